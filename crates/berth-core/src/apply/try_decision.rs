//! Carrying one decision out on a draft, or saying why that cannot be.

use crate::draft::Draft;
use crate::ix::TaskIx;
use crate::jobs::{Lease, Standing, Stop};
use crate::state::promises::{self, resolve_promise};
use berth_model::{Decision, JobId, LeaseId, Name};

/// Why a decision does not fit the state.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no such job")]
    UnknownJob,
    #[error("there is no such node")]
    UnknownNode,
    #[error("there is no such task")]
    UnknownTask,
    #[error("job {job} is not in line")]
    NotInLine { job: JobId },
    #[error("lease {lease} is not the next of its task")]
    NotNext { lease: LeaseId },
    #[error("node {node} takes no work")]
    NodeClosed { node: Name },
    #[error("{node} has no GPU {gpu}")]
    UnknownGpu { node: Name, gpu: usize },
    #[error("GPU {gpu} of {node} has no room")]
    GpuFull { node: Name, gpu: usize },
    #[error("{node} has too little CPU")]
    Cpu { node: Name },
    #[error("{node} has too little memory")]
    Memory { node: Name },
    #[error("{node} takes no more tasks")]
    Tasks { node: Name },
    #[error("{node} has too little {resource}")]
    Counted { node: Name, resource: Name },
    #[error("there is no open lease {lease}")]
    NotOpen { lease: LeaseId },
    #[error("lease {lease} is being stopped already")]
    Stopping { lease: LeaseId },
    #[error("job {job} neither waits nor is being moved")]
    NotWaiting { job: JobId },
    #[error("{0}")]
    Promise(promises::UnknownTarget),
    #[error("there is a claim {claim} already")]
    ClaimExists { claim: Name },
    #[error("there is no pool {pool}")]
    UnknownPool { pool: Name },
    #[error("node {node} is in use")]
    NodeInUse { node: Name },
    #[error("job {job} runs")]
    Runs { job: JobId },
}

/// Carries a decision out on the draft, or says why it cannot be.
pub(crate) fn try_decision(draft: &mut Draft<'_>, decision: &Decision) -> Result<(), Error> {
    let state = &mut *draft.state;
    match decision {
        Decision::Start { lease, node, slices, price, .. } => {
            let ix = state.jobs.find(lease.job).ok_or(Error::UnknownJob)?;
            let node_ix = state.cluster.find(node).ok_or(Error::UnknownNode)?;
            let job = state.jobs.get(ix);
            if !matches!(job.standing, Standing::Waiting | Standing::Running) {
                return Err(Error::NotInLine { job: lease.job });
            }
            let task = job.tasks.get(lease.task as usize).ok_or(Error::UnknownTask)?;
            if task.lease.is_some() || task.attempts != lease.attempt {
                return Err(Error::NotNext { lease: *lease });
            }
            let target = state.cluster.node(node_ix);
            if !target.open() {
                return Err(Error::NodeClosed { node: node.clone() });
            }
            let leaf = state.leaf_of(ix, lease.task).clone();
            let mut gpus = target.gpus.clone();
            for slice in slices {
                let at = slice.gpu as usize;
                let Some(gpu) = gpus.get_mut(at) else {
                    return Err(Error::UnknownGpu { node: node.clone(), gpu: at });
                };
                let model = &target.spec.gpus[at].model;
                if !gpu.healthy || !gpu.fits(&slice.share, model) {
                    return Err(Error::GpuFull { node: node.clone(), gpu: at });
                }
                gpu.take(&slice.share, model, job.queue);
            }
            if target.spec.cpu.is_some() && target.cpu_free < leaf.need.cpu {
                return Err(Error::Cpu { node: node.clone() });
            }
            if target.spec.memory.is_some() && target.memory_free < leaf.need.memory {
                return Err(Error::Memory { node: node.clone() });
            }
            if target.tasks_left() < 1 {
                return Err(Error::Tasks { node: node.clone() });
            }
            let free = |resource: &Name| target.counted_free.get(resource).copied().unwrap_or(0);
            let lacks = |(resource, asks): &(&Name, &i64)| free(resource) < **asks;
            if let Some((resource, _)) = leaf.need.counted.iter().find(lacks) {
                return Err(Error::Counted { node: node.clone(), resource: resource.clone() });
            }
            let charge = state.charge_of(&leaf, node_ix, slices);
            let opened = Lease {
                attempt: lease.attempt,
                node: node_ix,
                slices: slices.clone(),
                charge,
                price: *price,
                since: state.now,
                bound: false,
                stopping: None,
            };
            draft.open(TaskIx { job: ix, task: lease.task }, opened);
        }
        Decision::Stop { lease, cause, for_job, grace } => {
            let ix = state.jobs.find(lease.job).ok_or(Error::UnknownJob)?;
            let job = state.jobs.get(ix);
            let held = job.tasks.get(lease.task as usize).and_then(|task| task.lease.as_ref());
            let held = held.filter(|held| held.attempt == lease.attempt);
            let held = held.ok_or(Error::NotOpen { lease: *lease })?;
            if held.stopping.is_some() {
                return Err(Error::Stopping { lease: *lease });
            }
            let until = state.now + *grace;
            let stop = Stop { cause: *cause, for_job: *for_job, until };
            draft.stop(TaskIx { job: ix, task: lease.task }, stop);
        }
        Decision::Reserve { job, at, places, firm } => {
            let ix = state.jobs.find(*job).ok_or(Error::UnknownJob)?;
            // A job on its way out may be promised where it goes on.
            if !matches!(state.jobs.get(ix).standing, Standing::Waiting | Standing::Ending)
                && !state.jobs.get(ix).leases().any(|(_, lease)| lease.stopping.is_some())
            {
                return Err(Error::NotWaiting { job: *job });
            }
            let promised =
                resolve_promise(state, ix, *at, places, *firm).map_err(Error::Promise)?;
            draft.unpromise(ix);
            draft.promise(ix, promised);
        }
        Decision::Unreserve { job } => {
            let ix = state.jobs.find(*job).ok_or(Error::UnknownJob)?;
            draft.unpromise(ix);
        }
        Decision::Claim { claim, pool, .. } => {
            if state.claims.contains_key(claim) {
                return Err(Error::ClaimExists { claim: claim.clone() });
            }
            if !state.pools.contains_key(pool) {
                return Err(Error::UnknownPool { pool: pool.clone() });
            }
        }
        Decision::Return { node } => {
            let ix = state.cluster.find(node).ok_or(Error::UnknownNode)?;
            if !state.cluster.node(ix).tasks.is_empty() {
                return Err(Error::NodeInUse { node: node.clone() });
            }
        }
        Decision::SetAside { job, .. } => {
            let ix = state.jobs.find(*job).ok_or(Error::UnknownJob)?;
            if state.jobs.get(ix).open > 0 {
                return Err(Error::Runs { job: *job });
            }
        }
    }
    Ok(())
}
