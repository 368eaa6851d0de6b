//! Pages of jobs in the order that is asked for. Every page reads a bounded number of rows: an index
//! has the order, or the state in memory does.

use super::meant::is_meant;
use super::order_cost;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::Code;
use berth_engine::Core;
use berth_model::{JobId, JobState};
use berth_store::{JobFilter, JobKey, JobOrder, JobPage, JobPlace, JobRow, KeyValue};

fn cursor(text: &str) -> Result<JobId, Fault> {
    text.parse().map_err(|_| Fault::new(Code::BadCursor, format!("`{text}` is no cursor")))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    Newest,
    Oldest,
    State {
        backwards: bool,
    },
    Key(JobOrder),
    /// Of jobs that wait.
    Eta {
        latest: bool,
    },
}

/// Jobs, and the cursor of the next page.
pub type Page = (Vec<JobRow>, Option<String>);

impl Sort {
    pub fn of(text: Option<&str>) -> Result<Sort, Fault> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Sort::Newest) };
        let (word, descending) = match text.strip_prefix('-') {
            Some(word) => (word, true),
            None => (text, false),
        };
        let key = |key| Sort::Key(JobOrder { key, descending });
        Ok(match word {
            "id" | "submitted" if descending => Sort::Newest,
            "id" | "submitted" => Sort::Oldest,
            "state" => Sort::State { backwards: descending },
            "name" => key(JobKey::Name),
            "priority" => key(JobKey::Priority),
            "gpus" => key(JobKey::Gpus),
            "cost" => key(JobKey::Cost),
            "eta" => Sort::Eta { latest: descending },
            _ => {
                let fault = Fault::new(Code::BadRequest, format!("sort: there is no key `{word}`"));
                let keys = "id, submitted, name, state, priority, gpus, cost or eta";
                return Err(
                    fault.next(format!("use {keys}, with - before it for the largest first"))
                );
            }
        })
    }
}

pub async fn page(
    service: &Service,
    filter: &JobFilter,
    sort: Sort,
    after: Option<&str>,
    limit: u32,
) -> Result<Page, Fault> {
    let store = &service.store;
    match sort {
        Sort::Newest | Sort::Oldest => {
            let after = after.map(cursor).transpose()?;
            let JobPage { jobs, next } = match sort {
                Sort::Oldest => store.oldest_job_page(filter, after, limit).await?,
                _ => store.job_page(filter, after, limit).await?,
            };
            Ok((jobs, next.map(|id| id.to_string())))
        }
        Sort::Key(order) => {
            let after = after.map(|after| place(after, order.key)).transpose()?;
            let page = match order.key {
                JobKey::Cost => {
                    order_cost::page(service, filter, order, after.as_ref(), limit).await?
                }
                JobKey::Name | JobKey::Priority | JobKey::Gpus => {
                    store.ordered_job_page(filter, order, after.as_ref(), limit).await?
                }
            };
            Ok((page.jobs, page.next.map(|place| told(&place, order.key))))
        }
        Sort::State { backwards } => by_state(service, filter, backwards, after, limit).await,
        Sort::Eta { latest } => by_eta(&service.engine.core(), filter, latest, after, limit),
    }
}

fn word(key: JobKey) -> &'static str {
    match key {
        JobKey::Name => "name",
        JobKey::Priority => "priority",
        JobKey::Gpus => "gpus",
        JobKey::Cost => "cost",
    }
}

fn told(place: &JobPlace, key: JobKey) -> String {
    let JobPlace { value, id } = place;
    match value {
        KeyValue::Int(number) => format!("{}:{id}:{number}", word(key)),
        KeyValue::Text(text) => format!("{}:{id}:{text}", word(key)),
    }
}

/// The parts of a cursor that begins with that word.
fn parts<'a>(text: &'a str, begins: &str) -> Result<(&'a str, &'a str), Fault> {
    let rest = text.strip_prefix(begins).and_then(|rest| rest.strip_prefix(':'));
    rest.and_then(|rest| rest.split_once(':')).ok_or_else(|| bad(text))
}

fn bad(text: &str) -> Fault {
    Fault::new(Code::BadCursor, format!("`{text}` is no cursor of this order"))
}

fn place(text: &str, key: JobKey) -> Result<JobPlace, Fault> {
    let (id, value) = parts(text, word(key))?;
    let value = match key {
        JobKey::Name => KeyValue::Text(value.to_owned()),
        JobKey::Priority | JobKey::Gpus | JobKey::Cost => {
            KeyValue::Int(value.parse().map_err(|_| bad(text))?)
        }
    };
    Ok(JobPlace { value, id: id.parse().map_err(|_| bad(text))? })
}

/// One state after the other, the newest jobs of each first.
async fn by_state(
    service: &Service,
    filter: &JobFilter,
    backwards: bool,
    after: Option<&str>,
    limit: u32,
) -> Result<Page, Fault> {
    // One that starts is running as far as the store knows.
    let all = JobState::ALL.into_iter().filter(|state| *state != JobState::Starting);
    let wanted = |state: &JobState| filter.states.is_empty() || filter.states.contains(state);
    let mut states: Vec<JobState> = all.filter(wanted).collect();
    if backwards {
        states.reverse();
    }
    let mut from = None;
    if let Some(text) = after {
        let (id, state) = parts(text, "state")?;
        let at = states.iter().position(|one| one.as_str() == state).ok_or_else(|| bad(text))?;
        states.drain(..at);
        from = (!id.is_empty()).then(|| cursor(id)).transpose()?;
    }
    let mut rows = Vec::new();
    for state in states {
        let left = limit - rows.len() as u32;
        if left == 0 {
            return Ok((rows, Some(format!("state::{}", state.as_str()))));
        }
        let filter = JobFilter { states: vec![state], ..filter.clone() };
        let page = service.store.job_page(&filter, from.take(), left).await?;
        rows.extend(page.jobs);
        if let Some(next) = page.next {
            return Ok((rows, Some(format!("state:{next}:{}", state.as_str()))));
        }
    }
    Ok((rows, None))
}

/// Jobs that wait, by the last forecast; those of which it knows nothing as if they were last.
fn by_eta(
    core: &Core,
    filter: &JobFilter,
    latest: bool,
    after: Option<&str>,
    limit: u32,
) -> Result<Page, Fault> {
    let after: Option<(i64, JobId)> = match after {
        None => None,
        Some(text) => {
            let (id, at) = parts(text, "eta")?;
            Some((at.parse().map_err(|_| bad(text))?, id.parse().map_err(|_| bad(text))?))
        }
    };
    let eta = |id: &JobId| {
        let forecast = core.forecast.as_ref()?;
        forecast.jobs.get(id)?.p50
    };
    let waits = core.jobs.iter().filter(|(_, job)| job.leases.is_empty() && is_meant(filter, job));
    let mut keys: Vec<(i64, JobId)> =
        waits.map(|(id, _)| (eta(id).map_or(i64::MAX, |at| at.0), *id)).collect();
    keys.retain(|key| after.is_none_or(|after| if latest { *key < after } else { *key > after }));
    keys.sort_unstable();
    if latest {
        keys.reverse();
    }
    let more = keys.len() > limit as usize;
    keys.truncate(limit as usize);
    let next = keys.last().filter(|_| more).map(|(at, id)| format!("eta:{id}:{at}"));
    let rows = keys.iter().filter_map(|(_, id)| Some(core.jobs.get(id)?.clone().refreshed()));
    Ok((rows.collect(), next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_come_back_as_they_went_out_and_only_for_their_order() {
        let id = JobId::new(17).element(3);
        for (key, value) in
            [(JobKey::Cost, KeyValue::Int(-5)), (JobKey::Name, KeyValue::Text("a:b".into()))]
        {
            let at = JobPlace { value, id };
            assert_eq!(place(&told(&at, key), key).unwrap(), at);
            assert!(place(&told(&at, key), JobKey::Gpus).is_err());
        }
        for odd in ["", "17", "cost:17", "cost:x:1", "cost:17:x"] {
            assert!(place(odd, JobKey::Cost).is_err(), "{odd}");
        }
    }

    #[test]
    fn orders_are_read_and_a_slip_is_refused() {
        assert_eq!(Sort::of(None).unwrap(), Sort::Newest);
        assert_eq!(Sort::of(Some("id")).unwrap(), Sort::Oldest);
        let order = JobOrder { key: JobKey::Cost, descending: true };
        assert_eq!(Sort::of(Some("-cost")).unwrap(), Sort::Key(order));
        assert!(Sort::of(Some("colour")).is_err());
    }
}
