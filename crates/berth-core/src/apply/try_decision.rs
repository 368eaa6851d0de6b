//! Carrying one decision out on a draft, or saying why that cannot be.

use crate::draft::Draft;
use crate::ix::TaskIx;
use crate::jobs::{Lease, Standing, Stop};
use crate::state::promises::resolve_promise;
use berth_model::{Decision, Name};

/// Carries a decision out on the draft, or says why it cannot be.
pub(crate) fn try_decision(draft: &mut Draft<'_>, decision: &Decision) -> Result<(), String> {
    let state = &mut *draft.state;
    match decision {
        Decision::Start { lease, node, slices, price, .. } => {
            let ix = state.jobs.find(lease.job).ok_or("there is no such job")?;
            let node_ix = state.cluster.find(node).ok_or("there is no such node")?;
            let job = state.jobs.get(ix);
            if !matches!(job.standing, Standing::Waiting | Standing::Running) {
                return Err(format!("job {} is not in line", lease.job));
            }
            let task = job.tasks.get(lease.task as usize).ok_or("there is no such task")?;
            if task.lease.is_some() || task.attempts != lease.attempt {
                return Err(format!("lease {lease} is not the next of its task"));
            }
            let target = state.cluster.node(node_ix);
            if !target.open() {
                return Err(format!("node {node} takes no work"));
            }
            let leaf = state.leaf_of(ix, lease.task).clone();
            let mut gpus = target.gpus.clone();
            for slice in slices {
                let at = slice.gpu as usize;
                let gpu = gpus.get_mut(at).ok_or_else(|| format!("{node} has no GPU {at}"))?;
                let model = &target.spec.gpus[at].model;
                if !gpu.healthy || !gpu.fits(&slice.share, model) {
                    return Err(format!("GPU {at} of {node} has no room"));
                }
                gpu.take(&slice.share, model);
            }
            if target.spec.cpu.is_some() && target.cpu_free < leaf.need.cpu {
                return Err(format!("{node} has too little CPU"));
            }
            if target.spec.memory.is_some() && target.memory_free < leaf.need.memory {
                return Err(format!("{node} has too little memory"));
            }
            if target.tasks_left() < 1 {
                return Err(format!("{node} takes no more tasks"));
            }
            let free = |resource: &Name| target.counted_free.get(resource).copied().unwrap_or(0);
            let lacks = |(resource, asks): &(&Name, &i64)| free(resource) < **asks;
            if let Some((resource, _)) = leaf.need.counted.iter().find(lacks) {
                return Err(format!("{node} has too little {resource}"));
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
            let ix = state.jobs.find(lease.job).ok_or("there is no such job")?;
            let job = state.jobs.get(ix);
            let held = job.tasks.get(lease.task as usize).and_then(|task| task.lease.as_ref());
            let held = held.filter(|held| held.attempt == lease.attempt);
            let held = held.ok_or_else(|| format!("there is no open lease {lease}"))?;
            if held.stopping.is_some() {
                return Err(format!("lease {lease} is being stopped already"));
            }
            let until = state.now + *grace;
            let stop = Stop { cause: *cause, for_job: *for_job, until };
            draft.stop(TaskIx { job: ix, task: lease.task }, stop);
        }
        Decision::Reserve { job, at, places, firm } => {
            let ix = state.jobs.find(*job).ok_or("there is no such job")?;
            // A job on its way out may be promised where it goes on.
            if !matches!(state.jobs.get(ix).standing, Standing::Waiting | Standing::Ending)
                && !state.jobs.get(ix).leases().any(|(_, lease)| lease.stopping.is_some())
            {
                return Err(format!("job {job} neither waits nor is being moved"));
            }
            let promised = resolve_promise(state, ix, *at, places, *firm)?;
            draft.unpromise(ix);
            draft.promise(ix, promised);
        }
        Decision::Unreserve { job } => {
            let ix = state.jobs.find(*job).ok_or("there is no such job")?;
            draft.unpromise(ix);
        }
        Decision::Claim { claim, pool, .. } => {
            if state.claims.contains_key(claim) {
                return Err(format!("there is a claim {claim} already"));
            }
            if !state.pools.contains_key(pool) {
                return Err(format!("there is no pool {pool}"));
            }
        }
        Decision::Return { node } => {
            let ix = state.cluster.find(node).ok_or("there is no such node")?;
            if !state.cluster.node(ix).tasks.is_empty() {
                return Err(format!("node {node} is in use"));
            }
        }
        Decision::SetAside { job, .. } => {
            let ix = state.jobs.find(*job).ok_or("there is no such job")?;
            if state.jobs.get(ix).open > 0 {
                return Err(format!("job {job} runs"));
            }
        }
    }
    Ok(())
}
