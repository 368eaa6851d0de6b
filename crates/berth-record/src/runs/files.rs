//! Writes the job file, the diff and the packages into the artifacts of the run.

use super::facts::Facts;
use super::{code, packages};
use berth_engine::clock;
use berth_model::{Span, Time};
use berth_service::artifacts::{self, ArtifactPath};
use berth_service::{Caller, Fault, Service};
use berth_tracker::RunHead;
use bytes::Bytes;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const JOB: &str = "job.yaml";
const DIFF: &str = "code.diff";
const PACKAGES: &str = "packages.txt";
const ALL: [&str; 3] = [JOB, DIFF, PACKAGES];
/// The time limit, so that an unreachable bucket does not delay other runs.
const PATIENCE: Duration = Duration::from_secs(60);
/// For so long, it is not asked again.
const REST: Span = Span::mins(5);

/// When the store of objects is asked again after it did not answer.
#[derive(Debug, Default)]
pub struct Rest(AtomicI64);

/// Writes missing files. A run is complete without them, because the quota of the team may be used up.
/// Gives when to try again, where that could help.
pub async fn written(
    service: &Service,
    rest: &Rest,
    facts: &Facts,
    head: &RunHead,
) -> Option<Time> {
    let until = Time(rest.0.load(Ordering::Relaxed));
    if clock::now() < until {
        return Some(until);
    }
    let written = tokio::time::timeout(PATIENCE, write(service, facts, head.experiment));
    match written.await {
        Ok(Ok(())) => None,
        Ok(Err(fault)) => {
            let why = fault.0.detail.clone();
            tracing::warn!(
                run = facts.run,
                why,
                "cannot store the inputs of a job among its artifacts"
            );
            fault.is_transient().then(|| clock::now() + REST)
        }
        Err(_) => {
            tracing::warn!(run = facts.run, "the store of objects does not answer in time");
            let until = clock::now() + REST;
            rest.0.store(until.0, Ordering::Relaxed);
            Some(until)
        }
    }
}

async fn write(service: &Service, facts: &Facts, experiment: i64) -> Result<(), Fault> {
    let caller = Caller::of_record(service, &facts.user, &facts.team);
    for name in ALL {
        let path = path(facts, experiment, name)?;
        if artifacts::is_there(service, &path).await? {
            continue;
        }
        if let Some(content) = content(service, facts, name).await {
            artifacts::put_as_server(service, &caller, &path, content).await?;
        }
    }
    Ok(())
}

async fn content(service: &Service, facts: &Facts, name: &str) -> Option<Bytes> {
    let text = match name {
        JOB => facts.file.clone(),
        DIFF => code::origin(service, facts).await?.diff,
        _ => packages::of(service, facts).await?,
    };
    (!text.is_empty()).then(|| Bytes::from(text))
}

/// Moves the files after the run has moved to another experiment.
pub async fn moved(service: &Service, facts: &Facts, from: i64, to: i64) {
    let caller = Caller::of_record(service, &facts.user, &facts.team);
    for name in ALL {
        let Ok(old) = path(facts, from, name) else { continue };
        if !artifacts::is_there(service, &old).await.unwrap_or(false) {
            continue;
        }
        let taken = async {
            if let Some(content) = content(service, facts, name).await {
                let new = path(facts, to, name)?;
                artifacts::put_as_server(service, &caller, &new, content).await?;
            }
            artifacts::delete(service, &caller, &old).await.map(drop)
        };
        if let Err(fault) = taken.await {
            let why = fault.0.detail.clone();
            tracing::warn!(run = facts.run, why, "cannot move a file to the new experiment");
        }
    }
}

fn path(facts: &Facts, experiment: i64, name: &str) -> Result<ArtifactPath, Fault> {
    let Facts { team, run, .. } = facts;
    ArtifactPath::file(&format!("{team}/{experiment}/{run}/artifacts/berth/{name}"))
}
