//! The facts of a job that its run shows.

use crate::gpu_time;
use berth_code::Origin;
use berth_engine::Detail;
use berth_model::run::{Command, RunSpec};
use berth_model::{CodeId, JobId, JobState, Name, Time};
use berth_service::{Fault, Service, live, tracked_run};
use berth_store::{JobRow, LeaseRow, TeamRow};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The maximum length of a command in a tag.
const COMMAND: usize = 500;
/// The maximum number of nodes in a tag.
const MOST_NODES: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    pub job: Option<JobId>,
    /// The id of its run.
    pub run: String,
    pub name: String,
    pub user: String,
    pub team: String,
    pub project: String,
    /// The name of its experiment; `None` for the default experiment of the team.
    pub experiment: Option<String>,
    /// The number of its experiment, from `MLFLOW_EXPERIMENT_ID` in the job file.
    pub experiment_no: Option<i64>,
    /// `None` until it has ended.
    pub end: Option<End>,
    /// Whether it holds leases.
    pub runs: bool,
    pub started: Option<Time>,
    pub attempts: u32,
    pub leases: usize,
    /// The start of its newest attempt.
    pub nodes: Vec<String>,
    pub gpus: Option<String>,
    pub command: String,
    pub image: Option<String>,
    pub code: Option<CodeId>,
    /// The origin of the code. Only set for a new run.
    pub origin: Option<Origin>,
    pub checkpoint: Option<String>,
    /// The folders of its Python, if the job file sets them.
    pub venv: Option<PathBuf>,
    pub path: Option<String>,
    /// Values of its sweep.
    pub params: Vec<(String, String)>,
    /// The mounted versions of data, each with its path and hash.
    pub data: Vec<Mounted>,
    /// The submitted job file.
    pub file: String,
    /// Its cost so far, in millionths of a dollar.
    pub cost_micros: i64,
    /// Milliseconds of one whole GPU.
    pub gpu_ms: i64,
}

/// The end of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub state: JobState,
    pub at: Time,
    pub reason: String,
}

/// A version of data in a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
    pub path: String,
    /// Such as `c4@v3`.
    pub version: String,
    pub hash: String,
}

impl Facts {
    pub async fn of(service: &Service, job: JobId) -> Result<Option<Facts>, Fault> {
        let Some(row) = service.store.job(job).await? else { return Ok(None) };
        if row.state.is_final() && !is_of_its_team(service, &row).await? {
            return Ok(None);
        }
        let leases = service.store.leases_of(job).await?;
        let now = berth_engine::clock::now();
        let detail: Option<Detail> = serde_json::from_str(&row.detail).ok();
        let run = detail.as_ref().and_then(|detail| detail.workload.run().cloned());
        let mut facts = Facts::read(&row, run.as_deref(), &leases, now);
        // The setup comes first in the `PATH` of the job.
        let setup = run.and_then(|run| service.host.setup_of(&row.team, &row.user, &run));
        facts.venv = setup.or(facts.venv);
        let newest = leases.iter().map(|lease| lease.id.attempt).max();
        let newest: Vec<&LeaseRow> =
            leases.iter().filter(|lease| Some(lease.id.attempt) == newest).collect();
        let core = service.engine.core();
        if let Some(live) = core.jobs.get(&job) {
            facts.cost_micros = core.cost(live, now).0;
        }
        // If a node was removed meanwhile, the run keeps its tag.
        facts.gpus = gpus(newest.iter().flat_map(|lease| {
            let slices = live::slices(&lease.slices).into_iter();
            slices.filter_map(|slice| core.state.gpu_model(&lease.node, slice.gpu))
        }));
        drop(core);
        Ok(Some(facts))
    }

    fn read(row: &JobRow, run: Option<&RunSpec>, leases: &[LeaseRow], now: Time) -> Facts {
        let run = run.map(|run| run.of_element(row.id.element));
        let ended = row.state.is_final();
        let newest = leases.iter().map(|lease| lease.id.attempt).max();
        let nodes: BTreeSet<&str> = leases
            .iter()
            .filter(|lease| Some(lease.id.attempt) == newest)
            .map(|lease| lease.node.as_str())
            .collect();
        let variable = |name: &str| run.as_ref().and_then(|run| run.env.get(name)).cloned();
        let experiment = tracked_run::experiment(&row.experiment, &row.project);
        let named = variable("MLFLOW_EXPERIMENT_NAME").filter(|name| !name.is_empty());
        let name = match row.id.element {
            Some(element) => format!("{}_{element}", row.name),
            None => row.name.clone(),
        };
        Facts {
            job: Some(row.id),
            run: tracked_run::run_id(row.id, row.submitted),
            name,
            user: row.user.clone(),
            team: row.team.clone(),
            project: row.project.clone(),
            experiment: named.or(experiment.map(str::to_owned)),
            experiment_no: variable("MLFLOW_EXPERIMENT_ID").and_then(|no| no.parse().ok()),
            end: ended.then(|| End {
                state: row.state,
                at: row.ended.unwrap_or(now),
                reason: row.reason.clone(),
            }),
            runs: matches!(row.state, JobState::Starting | JobState::Running | JobState::Stopping),
            started: row.started.or_else(|| leases.iter().map(|lease| lease.opened).min()),
            attempts: row.attempt,
            leases: leases.len(),
            nodes: nodes.into_iter().take(MOST_NODES).map(str::to_owned).collect(),
            gpus: None,
            command: run.as_ref().map(command).unwrap_or_default(),
            image: run.as_ref().and_then(|run| Some(run.container.as_ref()?.image.clone())),
            code: run.as_ref().and_then(|run| run.code.clone()),
            origin: None,
            checkpoint: run.as_ref().and_then(|run| run.checkpoint.path.clone()),
            venv: variable("VIRTUAL_ENV").map(PathBuf::from),
            path: variable("PATH"),
            params: run.as_ref().map(|run| params(run, row.id)).unwrap_or_default(),
            data: run.as_ref().map(data).unwrap_or_default(),
            file: row.file.clone(),
            cost_micros: row.cost.0,
            gpu_ms: gpu_time::held(leases, now),
        }
    }
}

/// Whether the team of an ended job is still the one that it ran for. A team without live jobs can be
/// removed, and another one of its name added, which must not get the records of the first.
async fn is_of_its_team(service: &Service, row: &JobRow) -> Result<bool, Fault> {
    let team = service.store.get::<TeamRow>(row.team.as_str()).await?;
    // An operator may have made a queue without a team.
    let is_queue = || service.engine.teams().names().any(|name| name == row.team);
    Ok(team.map_or_else(is_queue, |team| was_there(team.created, row.ended)))
}

fn was_there(created: Time, ended: Option<Time>) -> bool {
    ended.is_none_or(|ended| created <= ended)
}

fn command(run: &RunSpec) -> String {
    let text = match &run.command {
        Command::Shell(text) => text.trim().to_owned(),
        Command::Program(words) => words.join(" "),
    };
    text.chars().take(COMMAND).collect()
}

fn params(run: &RunSpec, job: JobId) -> Vec<(String, String)> {
    let (Some(sweep), Some(element)) = (&run.sweep, job.element) else { return Vec::new() };
    let values = sweep.values(element).into_iter();
    values.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn data(run: &RunSpec) -> Vec<Mounted> {
    let version = |(path, data): (&String, berth_model::DataRef)| {
        let hash = data.hash?.to_string();
        Some(Mounted { path: path.clone(), version: data.version.to_string(), hash })
    };
    run.versions().filter_map(version).collect()
}

/// `8xH100`, or `2xH100, 1xL4`.
fn gpus<'a>(models: impl Iterator<Item = &'a Name>) -> Option<String> {
    let mut counts: BTreeMap<&Name, usize> = BTreeMap::new();
    for model in models {
        *counts.entry(model).or_default() += 1;
    }
    let words: Vec<String> =
        counts.iter().map(|(model, count)| format!("{count}x{model}")).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_job_is_not_of_a_team_that_was_added_later() {
        assert!(was_there(Time(5), None) && was_there(Time(5), Some(Time(5))));
        assert!(!was_there(Time(6), Some(Time(5))), "an earlier team had that name");
    }

    #[test]
    fn gpus_are_counted_by_model() {
        let models = ["H100", "L4", "H100"].map(Name::new);
        assert_eq!(gpus(models.iter()).as_deref(), Some("2xH100, 1xL4"));
        assert_eq!(gpus(std::iter::empty()), None);
    }
}
