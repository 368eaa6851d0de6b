//! The jobs that a job comes after. Whoever names one learns when and how it ended, so it has to be
//! one that they may see. A dependency that can never be met is refused at submission, where the
//! user still sees why.

use super::find::{self, Found};
use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::Code;
use berth_api::access::Permission;
use berth_file::error::did_you_mean;
use berth_file::job;
use berth_model::{After, Dependency, JobId, JobRef, JobRequest, JobState, Name};
use berth_store::ScheduleRow;
use std::collections::{BTreeMap, BTreeSet};

/// Jobs of one name that a job may come after.
const MOST_OF_A_NAME: usize = 1_000;

const NEXT: &str = "name a job that `berth ps --all` lists, or submit that job first";

/// The same by number, without jobs that have already ended as they should. A name stands for all
/// jobs of that name that have not ended and that the caller may see; where there is none, for the
/// last that has ended.
pub async fn by_number(
    service: &Service,
    caller: &Caller,
    request: &JobRequest,
) -> Result<Vec<Dependency>, Fault> {
    let mut found = Vec::new();
    for Dependency { after, job } in &request.after {
        let ids = match job {
            JobRef::Id(id) => {
                let known = find::job(service, caller, &id.to_string(), Permission::JobsRead).await;
                open(*after, &known.map_err(|fault| fault.next(NEXT))?)?
            }
            JobRef::Name(name) => named(service, caller, name, *after, &request.name).await?,
        };
        let each = ids.into_iter().map(|id| Dependency { after: *after, job: JobRef::Id(id) });
        found.extend(each);
    }
    Ok(found)
}

async fn named(
    service: &Service,
    caller: &Caller,
    name: &str,
    after: After,
    own: &str,
) -> Result<Vec<JobId>, Fault> {
    let live: BTreeSet<JobId> = {
        let core = service.engine.core();
        let named = core.jobs.values().map(|job| &job.row).filter(|row| row.name == name);
        let seen =
            named.filter(|row| caller.may(Permission::JobsRead, Some(&row.team), Some(&row.user)));
        // All elements of an array are waited for.
        seen.map(|row| JobId::new(row.id.number)).take(MOST_OF_A_NAME + 1).collect()
    };
    if live.len() > MOST_OF_A_NAME {
        let detail = format!("more than {MOST_OF_A_NAME} jobs are called `{name}`");
        return Err(Fault::new(Code::JobRefused, detail).next("name them by number in `after`"));
    }
    if !live.is_empty() {
        return Ok(live.into_iter().collect());
    }
    match find::job(service, caller, name, Permission::JobsRead).await {
        Ok(last) => open(after, &last),
        Err(_) if name == own => Err(after_itself(name)),
        Err(fault) if fault.0.known_code() == Some(Code::NoSuchJob) => {
            Err(no_job(service, caller, name))
        }
        Err(fault) => Err(fault),
    }
}

fn after_itself(name: &str) -> Fault {
    let detail = format!("the job would come after itself: no other job is called `{name}`");
    let next = "name another job in `after`; `singleton: true` runs one job of a name at a time";
    Fault::new(Code::JobRefused, detail).next(next)
}

/// With the name of a live job that may have been meant.
fn no_job(service: &Service, caller: &Caller, name: &str) -> Fault {
    let hint = {
        let core = service.engine.core();
        let seen = core
            .jobs
            .values()
            .map(|job| &job.row)
            .filter(|row| caller.may(Permission::JobsRead, Some(&row.team), Some(&row.user)));
        let names: BTreeSet<&str> = seen.map(|row| row.name.as_str()).collect();
        did_you_mean(name, names)
    };
    Fault::new(Code::NoSuchJob, format!("there is no job `{name}`{hint}")).next(NEXT)
}

/// The job, unless it has ended as it should; an error where it has ended otherwise.
fn open(after: After, found: &Found) -> Result<Vec<JobId>, Fault> {
    let states: Vec<JobState> = found.rows.iter().map(|row| row.state).collect();
    match outcome(after, &states) {
        Met::Open => Ok(vec![found.id]),
        Met::Yes => Ok(Vec::new()),
        Met::Never(state) => {
            let (id, name) = (found.id, &found.first().name);
            let (wanted, word) = match after {
                After::NotOk => ("fail", "done"),
                _ => ("succeed", state.as_str()),
            };
            let detail = format!(
                "the job would wait forever for job {id} ({name}) to {wanted}: it is {word} already"
            );
            let next = format!(
                "run that job again with `berth clone {id}` and name the new one, or write \
                 `after: {{any: [{id}]}}` to wait only for its end"
            );
            Err(Fault::new(Code::JobRefused, detail).next(next))
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Met {
    Open,
    Yes,
    Never(JobState),
}

/// What the states of a job, or of the elements of an array, mean for one that comes after it.
fn outcome(after: After, states: &[JobState]) -> Met {
    let ended = || states.iter().copied().filter(|state| state.is_final());
    let over = ended().count() == states.len();
    let wrong = match after {
        After::Ok => ended().find(|state| *state != JobState::Done),
        // An array has failed when it has ended and one of its elements has failed.
        After::NotOk if over && ended().all(|state| state == JobState::Done) => {
            Some(JobState::Done)
        }
        After::NotOk | After::Any | After::Start => None,
    };
    match wrong {
        Some(state) => Met::Never(state),
        None if over => Met::Yes,
        None => Met::Open,
    }
}

/// Refuses a schedule whose jobs could never start because of what they come after. The jobs
/// themselves are looked up each time that the schedule is due; a name may be that of another
/// schedule, which makes a job of that name.
pub async fn check_schedule(
    service: &Service,
    caller: &Caller,
    request: &JobRequest,
) -> Result<(), Fault> {
    if request.after.is_empty() {
        return Ok(());
    }
    let schedules: BTreeMap<String, Vec<String>> = service
        .store
        .every::<ScheduleRow>()
        .await?
        .into_iter()
        .filter(|row| caller.may(Permission::SchedulesRead, Some(&row.team), Some(&row.user)))
        .map(|row| (row.name, names_in(&row.file)))
        .collect();
    for Dependency { job, .. } in &request.after {
        match job {
            JobRef::Name(name) if *name == request.name => return Err(after_itself(name)),
            JobRef::Name(name) if schedules.contains_key(name.as_str()) => {}
            JobRef::Name(name) => {
                find::job(service, caller, name, Permission::JobsRead)
                    .await
                    .map_err(|_| no_job(service, caller, name))?;
            }
            JobRef::Id(id) => {
                find::job(service, caller, &id.to_string(), Permission::JobsRead)
                    .await
                    .map_err(|fault| fault.next(NEXT))?;
            }
        }
    }
    match circle(&request.name, &names(&request.after), &schedules) {
        None => Ok(()),
        Some(way) => {
            let detail = format!("jobs would wait for each other in a circle: {}", way.join(" → "));
            let next = "leave one of these out of `after`";
            Err(Fault::new(Code::JobRefused, detail).next(next))
        }
    }
}

fn names(after: &[Dependency]) -> Vec<String> {
    let named = after.iter().filter_map(|dependency| match &dependency.job {
        JobRef::Name(name) => Some(Name::to_string(name)),
        JobRef::Id(_) => None,
    });
    named.collect()
}

fn names_in(file: &str) -> Vec<String> {
    job::read_kept(file).map(|parsed| names(&parsed.file.after)).unwrap_or_default()
}

/// The way from a job over those that it comes after back to itself.
fn circle(
    own: &str,
    after: &[String],
    schedules: &BTreeMap<String, Vec<String>>,
) -> Option<Vec<String>> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let start = vec![own.to_owned()];
    let mut ways: Vec<(Vec<String>, &[String])> = vec![(start, after)];
    while let Some((way, after)) = ways.pop() {
        for name in after {
            let mut longer = way.clone();
            longer.push(name.clone());
            if name == own {
                return Some(longer);
            }
            if let Some(next) = schedules.get(name).filter(|_| seen.insert(name)) {
                ways.push((longer, next));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::JobState::{Done, Failed, Running};

    #[test]
    fn a_job_that_has_ended_as_it_should_is_not_waited_for() {
        assert_eq!(outcome(After::Ok, &[Done]), Met::Yes);
        assert_eq!(outcome(After::NotOk, &[Failed]), Met::Yes);
        assert_eq!(outcome(After::Any, &[Failed, Done]), Met::Yes);
        assert_eq!(outcome(After::Ok, &[Done, Running]), Met::Open);
    }

    #[test]
    fn a_job_that_has_ended_otherwise_is_never_waited_for() {
        assert_eq!(outcome(After::Ok, &[Failed]), Met::Never(Failed));
        assert_eq!(outcome(After::Ok, &[Running, Failed]), Met::Never(Failed));
        assert_eq!(outcome(After::NotOk, &[Done]), Met::Never(Done));
        assert_eq!(outcome(After::NotOk, &[Done, Done]), Met::Never(Done));
    }

    #[test]
    fn an_array_has_failed_when_it_has_ended_and_one_element_has_failed() {
        assert_eq!(outcome(After::NotOk, &[Done, Failed, Done]), Met::Yes);
        assert_eq!(outcome(After::NotOk, &[Done, Running]), Met::Open);
        assert_eq!(outcome(After::NotOk, &[Failed, Running]), Met::Open);
    }

    #[test]
    fn schedules_that_would_wait_for_each_other_are_a_circle() {
        let of = |pairs: &[(&str, &str)]| -> BTreeMap<String, Vec<String>> {
            pairs.iter().map(|(name, after)| ((*name).into(), vec![(*after).into()])).collect()
        };
        let after = ["prepare".to_owned()];
        let way = circle("train", &after, &of(&[("prepare", "fetch"), ("fetch", "train")]));
        assert_eq!(way.unwrap().join(" "), "train prepare fetch train");
        assert_eq!(circle("train", &after, &of(&[("prepare", "fetch"), ("fetch", "x")])), None);
        let others = of(&[("prepare", "fetch"), ("fetch", "prepare")]);
        assert_eq!(circle("train", &after, &others), None, "a circle of others, long there");
    }
}
