//! The relative speed of the GPUs that a job holds.

use crate::ix::JobIx;
use crate::state::State;

/// The relative speed of the GPUs a job holds: that of the slowest model among its tasks.
pub(crate) fn job_speed(state: &State, job: JobIx) -> i64 {
    let shape = state.shape_of(job);
    let mut slowest = i64::MAX;
    for (task, lease) in state.jobs.get(job).leases() {
        let leaf = &shape.leaves[shape.leaf_of(task)];
        let Some(model) = lease.charge.model else { continue };
        let name = state.model_name(model);
        let asked = leaf.spec.models.iter().find(|ask| ask.model == *name);
        slowest = slowest.min(asked.map_or(1_000, |ask| ask.speed.0));
    }
    if slowest == i64::MAX { 1_000 } else { slowest.max(1) }
}
