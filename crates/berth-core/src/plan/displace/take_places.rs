//! Stopping the victims and promising the job their places.

use crate::ix::{JobIx, NodeIx};
use crate::plan::displace::right::Right;
use crate::plan::fit::spot::Spot;
use crate::plan::planner::Planner;
use crate::plan::units::Unit;
use crate::state::State;
use crate::transaction::Transaction;
use berth_model::Time;
use std::collections::BTreeSet;

impl Planner<'_> {
    /// Stops the victims and promises the job their places, as one transaction.
    pub(super) fn take_places(
        &mut self,
        job: JobIx,
        right: Right,
        units: Vec<Unit>,
        spots: &[Spot],
        yielding: &[JobIx],
    ) -> bool {
        let id = self.state().jobs.get(job).id;
        let releasing = self.state().releasing.len();
        let mut decisions = Vec::new();
        for unit in &units {
            let tasks = if unit.surplus { unit.tasks.clone() } else { self.live_tasks(unit.job) };
            let grace = self.state().jobs.get(unit.job).grace(&self.state().policy);
            let state = self.state();
            let same = state.jobs.get(unit.job).queue == state.jobs.get(job).queue;
            let cause = right.cause(unit, same);
            decisions.extend(self.stop(unit.job, &tasks, cause, Some(id), grace));
        }
        let at = self.free_at(spots);
        let moved = self.overlapping_promises(job, at, spots, yielding);
        for other in &moved {
            self.draft.unpromise(*other);
            let job = self.state().jobs.get(*other).id;
            decisions.push(berth_model::Decision::Unreserve { job });
        }
        let kept = !moved.is_empty() || self.state().promises.contains_key(&job);
        let decision = self.reserve(job, at, spots, true);
        // What was kept for it elsewhere, or is freed beside what it needs, is there for others.
        if kept || self.state().releasing.len() > releasing {
            self.helped_by_releasing.clear();
        }
        decisions.push(decision);
        for other in moved {
            // One that is being moved itself has nothing to reserve until it has stopped.
            let found = self.earliest(other).filter(|(_, spots)| !spots.is_empty());
            if let Some((at, spots)) = found {
                decisions.push(self.reserve(other, at, &spots, false));
            }
        }
        self.served.insert(job);
        self.transactions.push(Transaction { job: Some(id), decisions });
        true
    }

    /// Those of the jobs whose reservations overlap with what the job takes from that time on.
    fn overlapping_promises(
        &self,
        job: JobIx,
        at: Time,
        spots: &[Spot],
        yielding: &[JobIx],
    ) -> Vec<JobIx> {
        let state = self.state();
        let (to, queue) = (at + self.holding(job), state.jobs.get(job).queue);
        let mut found = BTreeSet::new();
        for spot in spots {
            let node = state.cluster.node(spot.node);
            let spare = node.spec.cpu.is_some()
                || node.spec.memory.is_some()
                || node.spec.tasks.is_some()
                || !node.spec.counted.is_empty();
            for kept in node.promised_slots.iter().filter(|kept| yielding.contains(&kept.job)) {
                let gpu = |gpu: u32| {
                    let mut slices = spot.slices.iter();
                    slices.any(|slice| node.reaches(kept, gpu, slice.gpu, queue))
                };
                let overlaps = kept.from < to
                    && at < kept.to
                    && (spare || kept.slices.iter().any(|slice| gpu(slice.gpu)));
                if overlaps {
                    found.insert((state.jobs.get(kept.job).id, kept.job));
                }
            }
        }
        found.into_iter().map(|(_, job)| job).collect()
    }

    /// When the last of the places is free of what is being stopped there.
    pub(crate) fn free_at(&self, spots: &[Spot]) -> Time {
        let state = self.state();
        let mut at = state.now;
        let nodes: BTreeSet<NodeIx> = spots.iter().map(|spot| spot.node).collect();
        for node in nodes {
            for task in &state.cluster.node(node).tasks {
                let lease = state.jobs.get(task.job).tasks[task.task as usize].lease.as_deref();
                let stop = lease.and_then(|lease| lease.stopping.as_ref());
                if let Some(stop) = stop {
                    at = at.max(stop.until);
                }
            }
        }
        at
    }
}

/// Where a job's live tasks are.
pub(crate) fn known_places(state: &State, job: JobIx) -> Vec<Spot> {
    state
        .jobs
        .get(job)
        .leases()
        .filter(|(_, lease)| lease.stopping.is_none())
        .map(|(task, lease)| Spot { task, node: lease.node, slices: lease.slices.clone() })
        .collect()
}
