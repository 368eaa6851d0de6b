//! Victims of one node.

use crate::ix::{NodeIx, QueueIx};
use crate::plan::displace::by_node::Claim;
use crate::plan::planner::Planner;
use crate::plan::units::{Seat, Unit};
use berth_model::JobId;

impl Planner<'_> {
    /// The victims on one node, in the order they are taken.
    pub(super) fn units_on(
        &mut self,
        claim: &Claim<'_>,
        queues: &[QueueIx],
        node: NodeIx,
    ) -> Vec<Unit> {
        let mut seats = std::mem::take(&mut self.seats);
        let here = seats.on(node, || self.seats_on(node));
        let gives = |queue: QueueIx| self.gives(claim.job, queue, claim.right);
        let these = here.iter().filter(|seat| queues.contains(&seat.queue));
        let units = these.filter(|seat| self.may_be_taken(claim, seat, gives));
        let units = units.map(|seat| seat.unit.clone()).collect();
        self.seats = seats;
        units
    }

    /// What could be taken on a node by some right or other, the least loss first.
    pub(super) fn seats_on(&self, ix: NodeIx) -> Vec<Seat> {
        let state = self.state();
        let mut found: Vec<(JobId, Seat)> = Vec::new();
        for task in &state.cluster.node(ix).tasks {
            let victim = state.jobs.get(task.job);
            if !self.is_live(task.job, task.task) {
                continue;
            }
            let spare = self.surplus_of(task.job);
            let spare = spare.into_iter().find(|tasks| tasks.contains(&task.task));
            let surplus = spare.is_some();
            let unit = Unit { job: task.job, tasks: spare.unwrap_or_default(), surplus };
            if found.iter().any(|(_, seat)| seat.unit == unit) {
                continue;
            }
            let seat = Seat {
                loss: if surplus { 0 } else { state.loss(task.job) },
                here: self.held_on(&unit, ix),
                queue: victim.queue,
                priority: victim.priority,
                open: self.is_open(&unit),
                unit,
            };
            found.push((victim.id, seat));
        }
        found.sort_by(|(a, one), (b, other)| {
            (one.loss, a, &one.unit.tasks).cmp(&(other.loss, b, &other.unit.tasks))
        });
        found.into_iter().map(|(_, seat)| seat).collect()
    }

    pub(super) fn held_on(&self, unit: &Unit, node: NodeIx) -> i64 {
        let known = self.state().jobs.get(unit.job);
        known
            .leases()
            .filter(|(task, lease)| lease.node == node && unit.takes(*task))
            .map(|(_, lease)| lease.charge.gpu)
            .sum()
    }
}
