//! The identities of nodes.

use super::tracked::tag;
use berth_model::{DataHash, DataVersion, JobId};
use berth_store::DataVersionRow;
use berth_tracker::{Input, ModelVersion, Run};

/// The identity of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Thing {
    Model {
        team: String,
        name: String,
        version: u64,
    },
    Logged {
        id: String,
        team: String,
    },
    Run {
        id: String,
        team: String,
    },
    Job {
        id: JobId,
        team: String,
    },
    /// With the hash that the run has logged, if any.
    Data {
        team: String,
        name: String,
        version: u64,
        hash: Option<String>,
    },
    Dataset {
        team: String,
        name: String,
        digest: String,
        source: String,
    },
    Code {
        team: String,
        name: String,
        commit: Option<String>,
        dirty: Option<bool>,
    },
    Image {
        team: String,
        name: String,
    },
}

impl Thing {
    pub fn of_row(row: &DataVersionRow) -> Thing {
        let (team, name) = (row.team.clone(), row.name.clone());
        Thing::Data { team, name, version: row.version, hash: None }
    }
}

/// The version of Berth's data in an input of a run.
pub(crate) fn version_of(input: &Input) -> Option<(String, u64)> {
    let version: DataVersion = input.dataset.name.parse().ok()?;
    Some((version.name, version.version?))
}

/// Resolves an input of a run. Versions are in the run's team.
pub(crate) fn of_input(input: &Input, team: &str, versions: &[DataVersionRow]) -> Thing {
    let dataset = &input.dataset;
    let is_hash = dataset.digest.parse::<DataHash>().is_ok();
    let team = team.to_owned();
    match version_of(input).filter(|_| is_hash) {
        Some((name, version)) => {
            Thing::Data { team, name, version, hash: Some(dataset.digest.clone()) }
        }
        // Programs without the version name still log DVC's hash.
        None => match versions.iter().find(|row| row.hash == dataset.digest) {
            Some(row) => Thing::of_row(row),
            None => Thing::Dataset {
                team,
                name: dataset.name.clone(),
                digest: dataset.digest.clone(),
                source: dataset.source.clone(),
            },
        },
    }
}

/// The code of a run: its snapshot, else its commit.
pub(crate) fn code_of(run: &Run, team: &str) -> Option<Thing> {
    let commit = tag(run, "mlflow.source.git.commit").map(str::to_owned);
    let name = tag(run, "berth.code").map(str::to_owned).or_else(|| commit.clone())?;
    let dirty = tag(run, "berth.code.dirty").map(|dirty| dirty == "true");
    Some(Thing::Code { team: team.to_owned(), name, commit, dirty })
}

pub(crate) fn image_of(run: &Run, team: &str) -> Option<Thing> {
    let name = tag(run, "berth.image")?.to_owned();
    Some(Thing::Image { team: team.to_owned(), name })
}

/// The run of a version, from its `run_id` or its source.
pub(crate) fn run_of(version: &ModelVersion) -> Option<&str> {
    let of_source = || version.source.strip_prefix("runs:/")?.split('/').next();
    version.run.as_deref().or_else(of_source).filter(|run| !run.is_empty())
}

/// The version that a version was copied from.
pub(crate) fn copied_from(version: &ModelVersion) -> Option<(String, u64)> {
    let (name, number) = version.source.strip_prefix("models:/")?.split_once('/')?;
    Some((name.to_owned(), number.parse().ok()?))
}
