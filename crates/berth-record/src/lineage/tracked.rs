//! Reading the tracking store.

use super::known::Known;
use crate::lineage::MOST_VERSIONS;
use berth_api::Code;
use berth_service::Fault;
use berth_tracker::{
    Experiment, Kind, Load, LoggedModel, ModelVersion, RegisteredModel, Run, Store, read,
};
use std::sync::Arc;

/// MLflow's tag for the parent run.
pub(crate) const PARENT: &str = "mlflow.parentRunId";

/// Converts an error of the tracking store to one of Berth's routes.
pub(crate) fn failed(error: berth_tracker::Error) -> Fault {
    let code = match error.code {
        berth_tracker::Code::Unavailable => Code::StoreDown,
        berth_tracker::Code::DoesNotExist => Code::NotFound,
        berth_tracker::Code::TooManyRequests => Code::TooMany,
        berth_tracker::Code::LimitExceeded => Code::TooLarge,
        berth_tracker::Code::InvalidParameterValue | berth_tracker::Code::BadRequest => {
            Code::BadRequest
        }
        _ => Code::Internal,
    };
    Fault::new(code, error.message)
}

/// Whether the caller may read the runs of an experiment: it belongs to a team of the caller or is
/// shared with one.
pub(crate) fn sees(known: &impl Known, experiment: &Experiment) -> bool {
    let shared = &experiment.shared_with;
    known.reads(&experiment.team) || shared.iter().any(|team| team == "*" || known.reads(team))
}

/// A run with its experiment.
pub(crate) async fn run(
    store: &dyn Store,
    id: &str,
) -> Result<Option<(Run, Arc<Experiment>)>, Fault> {
    let Some(head) = store.run_head(id).await.map_err(failed)? else { return Ok(None) };
    let Some(experiment) = store.experiment(head.experiment) else { return Ok(None) };
    let run = store.runs(&[head.no]).await.map_err(failed)?.pop();
    Ok(run.map(|run| (run, experiment)))
}

pub(crate) async fn registered(
    store: &dyn Store,
    team: &str,
    name: &str,
) -> Result<Option<RegisteredModel>, Fault> {
    let (scope, name) = (team.to_owned(), Some(name.to_owned()));
    let load = Load { kind: Kind::RegisteredModel, scope, name, sub: Some(0) };
    let found = store.docs(load).await.map_err(failed)?.pop();
    found.map(|(_, doc)| read(&doc)).transpose().map_err(failed)
}

pub(crate) async fn version(
    store: &dyn Store,
    (team, name, version): (&str, &str, u64),
) -> Result<Option<ModelVersion>, Fault> {
    let (scope, name, sub) = (team.to_owned(), Some(name.to_owned()), version.cast_signed());
    let load = Load { kind: Kind::ModelVersion, scope, name, sub: Some(sub) };
    let found = store.docs(load).await.map_err(failed)?.pop();
    found.map(|(_, doc)| read(&doc)).transpose().map_err(failed)
}

/// All versions of all models of a team; `None` if they exceed the limit.
pub(crate) async fn versions(
    store: &dyn Store,
    team: &str,
) -> Result<Option<Vec<ModelVersion>>, Fault> {
    let count = store.count(Kind::ModelVersion, team.to_owned()).await.map_err(failed)?;
    if count > MOST_VERSIONS {
        return Ok(None);
    }
    let load = Load { kind: Kind::ModelVersion, scope: team.to_owned(), name: None, sub: None };
    let found = store.docs(load).await.map_err(failed)?;
    let read = found.into_iter().map(|(_, doc)| read(&doc)).collect::<berth_tracker::Result<_>>();
    read.map(Some).map_err(failed)
}

pub(crate) async fn logged(store: &dyn Store, id: &str) -> Result<Option<LoggedModel>, Fault> {
    let found = store.named(Kind::LoggedModel, id.to_owned()).await.map_err(failed)?;
    found.map(|(_, doc)| read(&doc)).transpose().map_err(failed)
}

/// The value of a tag of a run.
pub(crate) fn tag<'a>(run: &'a Run, key: &str) -> Option<&'a str> {
    let found = run.tags.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
    found.filter(|value| !value.is_empty())
}
