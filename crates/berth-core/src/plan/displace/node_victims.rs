//! Victims of one node.

use crate::ix::{NodeIx, QueueIx};
use crate::plan::displace::by_node::Claim;
use crate::plan::planner::Planner;
use crate::plan::units::{NodeVictim, Unit};
use berth_model::JobId;

impl Planner<'_> {
    /// The victims on one node, in the order they are taken.
    pub(super) fn units_on(
        &mut self,
        claim: &Claim<'_>,
        queues: &[QueueIx],
        node: NodeIx,
    ) -> Vec<Unit> {
        let mut node_victims = std::mem::take(&mut self.node_victims);
        let here = node_victims.on(node, || self.victims_on(node));
        let gives = |queue: QueueIx| self.gives(claim.job, queue, claim.right);
        let these = here.iter().filter(|node_victim| queues.contains(&node_victim.queue));
        let units = these.filter(|node_victim| self.may_be_taken(claim, node_victim, gives));
        let units = units.map(|node_victim| node_victim.unit.clone()).collect();
        self.node_victims = node_victims;
        units
    }

    /// What could be taken on a node by some right or other: the lowest class first, in it the least
    /// loss.
    pub(super) fn victims_on(&self, ix: NodeIx) -> Vec<NodeVictim> {
        let state = self.state();
        let mut found: Vec<(JobId, NodeVictim)> = Vec::new();
        for task in &state.cluster.node(ix).tasks {
            let victim = state.jobs.get(task.job);
            if !self.is_live(task.job, task.task) {
                continue;
            }
            let spare = self.surplus_of(task.job);
            let spare = spare.into_iter().find(|tasks| tasks.contains(&task.task));
            let surplus = spare.is_some();
            let unit = Unit { job: task.job, tasks: spare.unwrap_or_default(), surplus };
            if found.iter().any(|(_, node_victim)| node_victim.unit == unit) {
                continue;
            }
            let (cpu, memory) = self.cpu_and_memory_on(&unit, ix);
            let node_victim = NodeVictim {
                cpu,
                memory,
                loss: if surplus { 0 } else { state.loss(task.job) },
                here: self.held_on(&unit, ix),
                queue: victim.queue,
                priority: victim.priority,
                open: self.is_open(&unit),
                unit,
            };
            found.push((victim.id, node_victim));
        }
        found.sort_by(|(a, one), (b, other)| {
            let key = |victim: &NodeVictim| (victim.class(), victim.loss);
            key(one)
                .cmp(&key(other))
                .then_with(|| (a, &one.unit.tasks).cmp(&(b, &other.unit.tasks)))
        });
        found.into_iter().map(|(_, node_victim)| node_victim).collect()
    }

    fn cpu_and_memory_on(&self, unit: &Unit, node: NodeIx) -> (i64, i64) {
        let leases = self.state().jobs.get(unit.job).leases();
        let here = leases.filter(|(task, lease)| lease.node == node && unit.takes(*task));
        here.fold((0, 0), |(cpu, memory), (_, lease)| {
            (cpu + lease.charge.cpu, memory + lease.charge.memory)
        })
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
