//! What nodes stand for, by what names them.

use super::tracked::tag;
use berth_model::{DataHash, DataVersion, JobId};
use berth_store::DataVersionRow;
use berth_tracker::{Input, ModelVersion, Run};

/// Something that may become a node.
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
    /// With the hash that its reader had, where it had one.
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

/// The version of Berth's data that an input of a run names.
pub(crate) fn version_of(input: &Input) -> Option<(String, u64)> {
    let version: DataVersion = input.dataset.name.parse().ok()?;
    Some((version.name, version.version?))
}

/// What an input of a run is. Versions are those of the run's team.
pub(crate) fn of_input(input: &Input, team: &str, versions: &[DataVersionRow]) -> Thing {
    let dataset = &input.dataset;
    let is_hash = dataset.digest.parse::<DataHash>().is_ok();
    let team = team.to_owned();
    match version_of(input).filter(|_| is_hash) {
        Some((name, version)) => {
            Thing::Data { team, name, version, hash: Some(dataset.digest.clone()) }
        }
        // Programs that know no versions still log the sum that DVC computed.
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

/// The code that a run was made with: its snapshot, or else the commit.
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

/// The run that a version was registered from, as its maker said or as its source does.
pub(crate) fn run_of(version: &ModelVersion) -> Option<&str> {
    let of_source = || version.source.strip_prefix("runs:/")?.split('/').next();
    version.run.as_deref().or_else(of_source).filter(|run| !run.is_empty())
}

/// The version that another one is a copy of.
pub(crate) fn copied_from(version: &ModelVersion) -> Option<(String, u64)> {
    let (name, number) = version.source.strip_prefix("models:/")?.split_once('/')?;
    Some((name.to_owned(), number.parse().ok()?))
}
