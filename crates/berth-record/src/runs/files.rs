//! What a job ran with, as files among the artifacts of its run.

use super::facts::Facts;
use super::{code, packages};
use berth_service::artifacts::{self, ArtifactPath};
use berth_service::{Caller, Fault, Service};
use berth_tracker::RunHead;
use bytes::Bytes;
use std::time::Duration;

const JOB: &str = "job.yaml";
const DIFF: &str = "code.diff";
const PACKAGES: &str = "packages.txt";
const ALL: [&str; 3] = [JOB, DIFF, PACKAGES];
/// A bucket that does not answer delays no other run for longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Writes those that are not there. A run is whole without them: a team that keeps all it may has none.
pub async fn written(service: &Service, facts: &Facts, head: &RunHead) {
    let written = tokio::time::timeout(PATIENCE, write(service, facts, head.experiment));
    match written.await {
        Ok(Ok(())) => {}
        Ok(Err(fault)) => {
            let why = fault.0.detail.clone();
            tracing::warn!(run = facts.run, why, "what a job ran with is not among its artifacts");
        }
        Err(_) => tracing::warn!(run = facts.run, "the store of objects does not answer in time"),
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

/// The run has moved to another experiment: its files are written there, and taken away here.
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
            tracing::warn!(run = facts.run, why, "a file stays with the former experiment");
        }
    }
}

fn path(facts: &Facts, experiment: i64, name: &str) -> Result<ArtifactPath, Fault> {
    let Facts { team, run, .. } = facts;
    ArtifactPath::file(&format!("{team}/{experiment}/{run}/artifacts/berth/{name}"))
}
