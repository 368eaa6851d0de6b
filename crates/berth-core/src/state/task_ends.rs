//! When the tasks of a node are taken to be over, kept where places are promised: what is promised
//! for later then takes nothing of what is free until its time.

use crate::cluster::node::TaskEnd;
use crate::ix::{JobIx, NodeIx, TaskIx};
use crate::state::State;
use berth_model::BackfillEnds;

impl State {
    /// Works out the ends of a node's tasks anew.
    pub(crate) fn refresh_task_ends(&mut self, ix: NodeIx) {
        let node = self.cluster.node(ix);
        if node.promised_slots.is_empty() {
            if !node.ends.is_empty() {
                self.cluster.nodes[ix.at()].ends = Vec::new();
            }
            return;
        }
        let ends = node.tasks.iter().filter_map(|task| self.task_end(*task)).collect();
        self.cluster.nodes[ix.at()].ends = ends;
    }

    /// A lease was opened, or ends at another time.
    pub(crate) fn renew_task_end(&mut self, task: TaskIx) {
        let lease = self.jobs.get(task.job).tasks[task.task as usize].lease.as_deref();
        let Some(ix) = lease.map(|lease| lease.node) else { return };
        if self.cluster.node(ix).promised_slots.is_empty() {
            return;
        }
        let end = self.task_end(task);
        let ends = &mut self.cluster.nodes[ix.at()].ends;
        ends.retain(|known| known.task != task);
        ends.extend(end);
    }

    /// The same for all leases of a job.
    pub(crate) fn renew_task_ends(&mut self, job: JobIx) {
        let tasks: Vec<u32> = self.jobs.get(job).leases().map(|(task, _)| task).collect();
        tasks.into_iter().for_each(|task| self.renew_task_end(TaskIx { job, task }));
    }

    /// What runs longer than was expected ends later with every moment that passes.
    pub(crate) fn refresh_estimated_ends(&mut self) {
        if self.policy.backfill != BackfillEnds::Estimates {
            return;
        }
        let promised = self.promises.values().flat_map(|promised| &promised.places);
        let nodes: std::collections::BTreeSet<NodeIx> = promised.map(|(node, _)| *node).collect();
        nodes.into_iter().for_each(|node| self.refresh_task_ends(node));
    }

    /// Nothing for work without an end.
    fn task_end(&self, task: TaskIx) -> Option<TaskEnd> {
        let job = self.jobs.get(task.job);
        let lease = job.tasks[task.task as usize].lease.as_deref()?;
        let at = self.expected_end(job, lease);
        if (at - self.now).is_unlimited() {
            return None;
        }
        let spec = &self.cluster.node(lease.node).spec;
        let counted = &self.leaf_of(task.job, task.task).need.counted;
        Some(TaskEnd {
            task,
            at,
            cpu: if spec.cpu.is_some() { lease.charge.cpu } else { 0 },
            memory: if spec.memory.is_some() { lease.charge.memory } else { 0 },
            counted: counted.clone(),
        })
    }
}
