//! Which jobs have which data.

use crate::data_tree;
use crate::fault::Fault;
use crate::service::Service;
use berth_engine::LiveJob;
use berth_model::{DataHash, JobId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a job was submitted with.
fn hashes_of(job: &LiveJob) -> impl Iterator<Item = DataHash> {
    let run = job.detail.workload.run().into_iter();
    run.flat_map(|run| run.versions()).filter_map(|(_, data)| data.hash)
}

/// Jobs of a team that have not ended and use the data.
pub(super) fn jobs_with(service: &Service, team: &str, hash: &str) -> BTreeSet<JobId> {
    let core = service.engine.core();
    let of_team = core.jobs.values().filter(|job| job.row.team == team);
    let using = of_team.filter(|job| hashes_of(job).any(|used| used.as_str() == hash));
    using.map(|job| JobId::new(job.row.id.number)).collect()
}

/// What jobs of a team use that have not ended.
pub(super) fn used_in(service: &Service, team: &str) -> BTreeSet<DataHash> {
    let core = service.engine.core();
    core.jobs.values().filter(|job| job.row.team == team).flat_map(hashes_of).collect()
}

/// Whether an object is part of what a job was submitted with.
pub(crate) async fn is_of_job(
    service: &Service,
    job: JobId,
    team: &str,
    hash: &DataHash,
) -> Result<bool, Fault> {
    let own: Vec<DataHash> = {
        let core = service.engine.core();
        core.jobs.get(&job).map(|job| hashes_of(job).collect()).unwrap_or_default()
    };
    for of_job in &own {
        if of_job == hash {
            return Ok(true);
        }
    }
    for of_job in &own {
        let folder = format!("{team}/{of_job}");
        let sums = match service.blobs.listed(&folder) {
            Some(sums) => sums,
            None => {
                let sums = data_tree::sums(&service.store, &service.blobs.blobs, team, of_job);
                let sums = Arc::new(sums.await.map_err(|error| super::of_tree(&error))?);
                service.blobs.note_listed(folder, sums.clone());
                sums
            }
        };
        if sums.contains(hash.as_str()) {
            return Ok(true);
        }
    }
    Ok(false)
}
