//! GPU release times: when the GPUs of each node come free at the earliest. The search for a place in
//! the future skips most nodes by them. They are worked out anew, when next needed, for nodes where
//! anything has changed.

use crate::cluster::gpu::Mode;
use crate::cluster::node::Node;
use crate::shape::leaf::Leaf;
use crate::state::State;
use berth_model::{BackfillEnds, Time};

impl State {
    /// Whether release times tell anything about the group: they are made of time limits.
    pub(crate) fn release_times_apply(&self, leaf: &Leaf) -> bool {
        self.policy.backfill == BackfillEnds::Limits && leaf.whole().is_some()
    }

    /// Works out the release times of nodes where something has changed.
    pub(crate) fn refresh_release_times(&mut self) {
        for ix in std::mem::take(&mut self.cluster.outdated) {
            let times = self.release_times_of(self.cluster.node(ix));
            self.cluster.set_release_times(ix, &times);
        }
    }

    /// When each usable GPU of the node comes free, earliest first.
    fn release_times_of(&self, node: &Node) -> Vec<Time> {
        let mut free: Vec<Option<Time>> = node
            .gpus
            .iter()
            .map(|gpu| {
                let usable = gpu.healthy && gpu.unused() == Mode::Free;
                usable.then_some(Time(i64::MIN))
            })
            .collect();
        let mut busy = |gpu: u32, until: Time| {
            let free = &mut free[gpu as usize];
            *free = free.map(|free| free.max(until));
        };
        for task in &node.tasks {
            let job = self.jobs.get(task.job);
            let Some(lease) = job.tasks[task.task as usize].lease.as_deref() else { continue };
            let end = match &lease.stopping {
                Some(stop) => stop.until,
                None => {
                    let started = job.started.unwrap_or(lease.since);
                    started + job.limit_left() + job.grace(&self.policy)
                }
            };
            for slice in &lease.slices {
                busy(slice.gpu, end);
            }
        }
        for kept in &node.promised_slots {
            for slice in &kept.slices {
                busy(slice.gpu, kept.to);
            }
        }
        let mut times: Vec<Time> = free.into_iter().flatten().collect();
        times.sort_unstable();
        times
    }
}
