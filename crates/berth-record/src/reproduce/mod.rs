//! Recipes: the job file that repeats a run with its code and data, and what has changed since.

mod differs;
mod file;

use crate::lineage::{Job, Known, Live, job_number, run, sees, tag};
use crate::runs::run_id;
use berth_api::wire::{Recipe, RecipeQuery, RecipeSource};
use berth_api::{Code, wire};
use berth_file::job::{self, JobFile};
use berth_model::{DataRef, DataVersion, JobId};
use berth_service::artifacts::{self, ArtifactPath};
use berth_service::{Caller, Fault, Service};
use berth_tracker::{Experiment, Run, Store};
use differs::Now;
use file::Had;
use futures_util::StreamExt;
use serde_json::Value;
use std::sync::Arc;

/// The job file among the artifacts of a run.
const FILE: &str = "berth/job.yaml";
/// The maximum size of a job file.
const MOST_BYTES: u64 = 8 << 20;
/// Ids of runs are longer than job numbers.
const LONGEST_NUMBER: usize = 20;

/// A run, its job, or both.
pub(crate) struct Found {
    pub id: String,
    pub run: Option<Run>,
    pub experiment: Option<Arc<Experiment>>,
    pub job: Option<Job>,
}

impl Found {
    fn team(&self) -> &str {
        let of_job = self.job.as_ref().map(|job| job.row.team.as_str());
        let of_run = self.experiment.as_ref().map(|experiment| experiment.team.as_str());
        of_job.or(of_run).unwrap_or_default()
    }

    /// The data of the run.
    fn data(&self) -> Vec<(String, DataRef)> {
        match (&self.job, &self.run) {
            (Some(job), _) => job.data(),
            (None, Some(run)) => data_of(run),
            (None, None) => Vec::new(),
        }
    }
}

/// The recipe of a run. `wanted` is its id, or the number or the name of a job, also as `run:ID` and
/// `job:17`.
pub async fn recipe(
    service: &Service,
    store: &dyn Store,
    caller: &Caller,
    wanted: &str,
    query: RecipeQuery,
) -> Result<wire::Recipe, Fault> {
    let live = Live { service, caller };
    let found = find(&live, store, wanted).await?;
    let team = found.team().to_owned();
    if query.team.is_some_and(|asked| asked != team) {
        return Err(absent(wanted));
    }
    let (old, source) = old_file(&live, &found, &team).await?;
    let data = found.data();
    let element = found.job.as_ref().and_then(|job| job.row.id.element);
    let (file, left_out) = file::repeatable(&old, &Had { team: &team, element, data: &data });
    let now = Now { live: &live, team: &team, found: &found };
    let mut differs = Vec::new();
    let code = now.code(&file, &mut differs).await?;
    let (data, of_data) = differs::data(&data, &now.versions().await?);
    differs.extend(of_data);
    differs.extend(now.secrets(&file).await?);
    if !differs.iter().any(|one| one.blocks) {
        differs.extend(now.accepted(&file).await?);
    }
    let image = image(&found, &file);
    differs.extend(differs::image(image.as_deref()));
    differs.extend(now.price().await?);
    differs.extend(differs::loose(&file));
    differs.extend(left_out);
    let json = serde_json::from_str(&job::write_json(&file));
    Ok(Recipe {
        run: found.id.clone(),
        job: found.job.as_ref().map(|job| job.row.id.into()),
        team,
        source,
        file: job::write(&file),
        job_file: json.unwrap_or_default(),
        code,
        image,
        data,
        differs,
    })
}

fn image(found: &Found, file: &JobFile) -> Option<String> {
    let of_job = found.job.as_ref().and_then(|job| job.image()).map(str::to_owned);
    let of_run = || found.run.as_ref().and_then(|run| tag(run, "berth.image")).map(str::to_owned);
    of_job.or_else(of_run).or_else(|| file.image.clone())
}

async fn find(live: &Live<'_>, store: &dyn Store, wanted: &str) -> Result<Found, Fault> {
    let (kind, name) = wanted.split_once(':').unwrap_or(("", wanted));
    let is_number = name.parse::<JobId>().is_ok() && name.len() < LONGEST_NUMBER;
    match kind {
        "run" => of_run(live, store, name).await,
        "job" => of_job(live, store, name).await,
        "" if is_number => of_job(live, store, name).await,
        // `job:` never names a run.
        "" if store.run_head(name).await.is_ok_and(|head| head.is_none()) => {
            of_job(live, store, name).await.map_err(|fault| match fault.0.known_code() {
                Some(Code::NoSuchJob) => absent(name),
                _ => fault,
            })
        }
        "" => of_run(live, store, name).await,
        _ => {
            let detail = format!("Berth cannot repeat a `{kind}`");
            Err(Fault::new(Code::BadRequest, detail)
                .next("name a run or a job, such as run:ID or job:17"))
        }
    }
}

async fn of_job(live: &Live<'_>, store: &dyn Store, wanted: &str) -> Result<Found, Fault> {
    let id = job_number(live.service, live.caller, wanted).await?;
    let job = live.job(id).await?.filter(|job| job.visible);
    let job = job.ok_or_else(|| Fault::no_job(wanted))?;
    let own = run_id(id, job.row.submitted);
    let tracked = run(store, &own).await?.filter(|(_, experiment)| sees(live, experiment));
    let (run, experiment) = tracked.unzip();
    Ok(Found { id: own, run, experiment, job: Some(job) })
}

async fn of_run(live: &Live<'_>, store: &dyn Store, id: &str) -> Result<Found, Fault> {
    let tracked = run(store, id).await?.filter(|(_, experiment)| sees(live, experiment));
    let (run, experiment) = tracked.ok_or_else(|| absent(id))?;
    let mut job = None;
    if let Some(number) = tag(&run, "berth.job").and_then(|job| job.parse::<JobId>().ok()) {
        // Any client can write tags, so check that the job names this run, too.
        let leads_back = |job: &Job| run_id(number, job.row.submitted) == run.id;
        job = live.job(number).await?.filter(|job| job.visible && leads_back(job));
    }
    Ok(Found { id: run.id.clone(), run: Some(run), experiment: Some(experiment), job })
}

fn absent(id: &str) -> Fault {
    Fault::not_found("run", id).next("`berth runs` lists runs, and `berth ps --all` jobs")
}

/// The submitted job file.
async fn old_file(
    live: &Live<'_>,
    found: &Found,
    team: &str,
) -> Result<(JobFile, RecipeSource), Fault> {
    if let Some(job) = &found.job {
        if job.run().is_none() {
            let detail = format!("the pods of job {} were not made by Berth", job.row.id);
            let next = "create them again with the tool that created them";
            return Err(Fault::new(Code::WrongState, detail).next(next));
        }
        return Ok((read(&job.row.file)?, RecipeSource::Job));
    }
    let experiment = found.experiment.as_ref().map(|experiment| experiment.no).unwrap_or_default();
    let id = &found.id;
    let path = ArtifactPath::file(&format!("{team}/{experiment}/{id}/artifacts/{FILE}"))?;
    let opened = artifacts::open(live.service, live.caller, &path).await;
    let artifact = opened.map_err(|fault| match fault.0.known_code() {
        Some(Code::NotFound) => Fault::new(
            Code::NotFound,
            format!("the run {id} has no job, so Berth does not know how it started"),
        )
        .next("Berth can repeat only runs of jobs; submit the script as a job"),
        _ => fault,
    })?;
    if artifact.bytes > MOST_BYTES {
        let detail = format!("{FILE} of the run {id} is too long for a job file");
        return Err(Fault::new(Code::WrongState, detail));
    }
    let mut content = artifact.read(live.service, 0..artifact.bytes).await?;
    let mut bytes = Vec::new();
    while let Some(piece) = content.next().await {
        let piece = piece.map_err(|error| {
            tracing::error!(%error, run = id, "the job file of a run cannot be read");
            Fault::new(Code::Internal, format!("{FILE} of the run {id} cannot be read"))
        })?;
        bytes.extend_from_slice(&piece);
    }
    Ok((read(&String::from_utf8_lossy(&bytes))?, RecipeSource::Artifact))
}

fn read(text: &str) -> Result<JobFile, Fault> {
    let parsed = berth_service::jobs::submit::read_kept(text)?;
    Ok(parsed.file)
}

/// The data of a run, from its inputs.
fn data_of(run: &Run) -> Vec<(String, DataRef)> {
    let data = run.datasets.iter().filter_map(|input| {
        let source: Value = serde_json::from_str(&input.dataset.source).ok()?;
        let version: DataVersion = input.dataset.name.parse().ok()?;
        let hash = Some(input.dataset.digest.parse().ok()?);
        Some((source["path"].as_str()?.to_owned(), DataRef { version, hash }))
    });
    data.collect()
}
