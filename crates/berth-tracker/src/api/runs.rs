//! Runs: making, reading, changing, searching and deleting them.

use super::call::{Call, Reply, Restored, Search, listed, random_id, searched_experiments};
use super::experiments::view;
use super::run_tags::{NAME_TAG, run_tags};
use crate::encode;
use crate::error::{Code, Error, Result};
use crate::grammar::Entity;
use crate::limits;
use crate::model::{Experiment, Run, Status};
use crate::page;
use crate::ports::{NewRun, Right, RunChange, RunQuery};
use serde_json::json;
use std::sync::Arc;

const USER_TAG: &str = "mlflow.user";
/// How many runs to read at once, and the size at which an answer ends.
const AT_ONCE: usize = 500;
const MOST_BYTES: usize = 64 << 20;

pub async fn create(call: &Call<'_>) -> Result<Reply> {
    let fields = &call.fields;
    let id = fields.text("experiment_id")?.filter(|id| !id.is_empty());
    let experiment = call.experiment(id.as_deref().unwrap_or("0")).await?;
    call.must(Right::Write, &experiment.team, Some(call.actor.user()))?;
    must_be_active(&experiment)?;
    let mut tags = run_tags(fields.pairs("tags")?)?;
    let tag =
        |wanted: &str| tags.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.clone());
    let (named, tagged) = (fields.text("run_name")?.filter(|name| !name.is_empty()), tag(NAME_TAG));
    if let (Some(named), Some(tagged)) = (&named, &tagged)
        && named != tagged
    {
        return Err(Error::invalid(format!(
            "Both 'run_name' argument and 'mlflow.runName' tag are specified, but with different \
             values (run_name='{named}', mlflow.runName='{tagged}')."
        )));
    }
    let id = random_id()?;
    let name = named.or(tagged.clone()).filter(|name| !name.is_empty());
    let name = limits::cut(name.unwrap_or_else(|| invented_name(&id)), limits::RUN_NAME);
    if tagged.is_none() {
        tags.push((NAME_TAG.to_owned(), name.clone()));
    }
    let user = fields.text("user_id")?.filter(|user| !user.is_empty());
    let user =
        user.or_else(|| tags.iter().find(|(key, _)| key == USER_TAG).map(|(_, v)| v.clone()));
    let user = limits::cut(user.unwrap_or_else(|| call.actor.user().to_owned()), limits::USER);
    let new = NewRun {
        id: id.clone(),
        experiment: experiment.no,
        name,
        user,
        by: call.actor.user().to_owned(),
        start: fields.int("start_time")?.filter(|at| *at > 0).unwrap_or(call.now),
        tags,
    };
    let run = of_new(&new);
    call.store.write(RunChange::Create(new)).await?;
    Ok(shown(&run, &experiment))
}

fn of_new(new: &NewRun) -> Run {
    Run {
        no: 0,
        id: new.id.clone(),
        experiment: new.experiment,
        name: new.name.clone(),
        user: new.user.clone(),
        status: Status::Running.word().to_owned(),
        start: Some(new.start),
        end: None,
        deleted: false,
        metrics: Vec::new(),
        params: Vec::new(),
        tags: new.tags.clone(),
        datasets: Vec::new(),
        models: Vec::new(),
    }
}

fn must_be_active(experiment: &Experiment) -> Result<()> {
    if experiment.deleted {
        return Err(Error::invalid(format!(
            "The experiment {} must be in the 'active' state. Current state is deleted.",
            experiment.no
        )));
    }
    Ok(())
}

const FIRST: &[&str] = &[
    "amber", "bold", "brisk", "calm", "clear", "crisp", "eager", "even", "fair", "fleet", "fond",
    "gentle", "keen", "kind", "light", "lively", "lucid", "mellow", "merry", "mild", "neat",
    "nimble", "plain", "proud", "quiet", "rapid", "sharp", "steady", "still", "swift", "vivid",
    "warm",
];
const SECOND: &[&str] = &[
    "anchor", "barge", "bay", "beacon", "bight", "bollard", "bow", "breeze", "buoy", "cape",
    "channel", "cove", "crane", "current", "deck", "dock", "ferry", "fjord", "harbor", "hull",
    "jetty", "keel", "lagoon", "mast", "mooring", "pier", "port", "quay", "rudder", "sail",
    "strait", "tide",
];

/// A default name, derived from the id of the run.
fn invented_name(id: &str) -> String {
    let bytes = id.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let pick = |words: &[&'static str], by: u64| words[(by % words.len() as u64) as usize];
    format!("{}-{}-{}", pick(FIRST, bytes), pick(SECOND, bytes >> 16), (bytes >> 32) % 1000)
}

fn shown(run: &Run, experiment: &Experiment) -> Reply {
    let mut out = b"{\"run\":".to_vec();
    encode::run(&mut out, run, experiment);
    out.push(b'}');
    Reply::bytes(out)
}

pub async fn get(call: &Call<'_>) -> Result<Reply> {
    let (head, experiment) = call.run(&call.fields.run_id()?).await?;
    Ok(shown(&call.read_run(&head).await?, &experiment))
}

pub async fn update(call: &Call<'_>) -> Result<Reply> {
    let fields = &call.fields;
    let (head, experiment) = call.own_run(&fields.run_id()?).await?;
    let status = fields.text("status")?.map(|word| Status::parse(&word)).transpose()?;
    let end = fields.int("end_time")?.filter(|at| *at > 0);
    let name = fields.text("run_name")?.filter(|name| !name.is_empty());
    let name = name.map(|name| limits::cut(name, limits::RUN_NAME));
    call.store.write(RunChange::Update { run: head.clone(), status, end, name }).await?;
    let run = call.read_run(&head).await?;
    let mut out = b"{\"run_info\":".to_vec();
    encode::run_info(&mut out, &run, &experiment);
    out.push(b'}');
    Ok(Reply::bytes(out))
}

pub async fn delete(call: &Call<'_>) -> Result<Reply> {
    stage(call, true).await
}

pub async fn restore(call: &Call<'_>) -> Result<Reply> {
    stage(call, false).await
}

async fn stage(call: &Call<'_>, deleted: bool) -> Result<Reply> {
    let (head, experiment) = call.run(&call.fields.run_id()?).await?;
    call.must(Right::Manage, &experiment.team, Some(&head.by))?;
    let target = format!("run {} of experiment {}", head.id, experiment.no);
    let restored = (!deleted).then(|| Restored::Run(head.id.to_string()));
    call.store.write(RunChange::Stage { run: head, deleted, at: call.now }).await?;
    let reply = Reply::empty().noted(target, json!({ "team": experiment.team }));
    Ok(Reply { restored, ..reply })
}

pub async fn search(call: &Call<'_>) -> Result<Reply> {
    let fields = &call.fields;
    let search = Search::read(fields, Entity::Run, limits::RUNS_PAGE, limits::RUNS_MOST)?;
    let Search { clauses, orders, offset, most } = search;
    let view = view(fields.text("run_view_type")?)?;
    let ids = searched_experiments(fields)?;
    let mut experiments: Vec<Arc<Experiment>> = Vec::new();
    for id in &ids {
        // Like MLflow, search unknown experiments without an error.
        match call.experiment(id).await {
            Ok(found) => experiments.push(found),
            Err(error) if error.code == Code::DoesNotExist => {}
            Err(error) => return Err(error),
        }
    }
    if experiments.is_empty() {
        return Ok(listed("runs", Vec::new(), None));
    }
    let query = RunQuery {
        experiments: experiments.iter().map(|of| of.no).collect(),
        view,
        clauses,
        orders,
        offset,
        limit: most + 1,
    };
    let found = call.store.search(&query).await?;
    let (numbers, mut next) = page::cut(found, offset, most);
    let mut out = encode::Runs::default();
    let (mut at, mut size) = (0, AT_ONCE);
    while at < numbers.len() {
        // Runs can be large: the next page returns the rest.
        if out.len() > MOST_BYTES {
            next = Some(page::token(offset + at as u64));
            break;
        }
        let some = &numbers[at..numbers.len().min(at + size)];
        let found = match call.store.runs(some).await {
            Err(error) if error.code == Code::LimitExceeded && size > 1 => {
                size = 1;
                continue;
            }
            found => found?,
        };
        at += some.len();
        for run in found {
            if let Some(of) = experiments.iter().find(|of| of.no == run.experiment) {
                out.push(&run, of);
            }
        }
    }
    Ok(Reply::bytes(out.finish(next.as_deref())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_name_gets_one_that_follows_from_its_id() {
        let name = invented_name("0b3c");
        assert_eq!(name, invented_name("0b3c"));
        assert_ne!(name, invented_name("0b3d"));
        assert_eq!(name.split('-').count(), 3, "{name}");
    }
}
