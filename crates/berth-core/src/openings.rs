//! When the GPUs of each node come free at the earliest, kept so that most nodes need not be looked
//! at when a place in the future is sought. Made anew, when next needed, for nodes where anything
//! has changed.

use crate::cluster::Cluster;
use crate::ix::NodeIx;
use crate::nodes::{Mode, Node};
use crate::shape::Leaf;
use crate::state::State;
use berth_model::{BackfillEnds, Time};

/// GPUs of a node that are told apart; of larger nodes only the first ones to come free count, as
/// if there were no others later.
const MOST: usize = 8;

/// When each usable GPU of a node is free of what runs and is promised there, in order. An overrun,
/// an operator's reservation or a lack of CPU may make it later, nothing makes it earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Openings {
    known: bool,
    /// It is among the nodes on which something has happened.
    stirred: bool,
    gpus: u8,
    times: [Time; MOST],
}

impl Default for Openings {
    fn default() -> Openings {
        Openings { known: false, stirred: false, gpus: 0, times: [Time(0); MOST] }
    }
}

impl Openings {
    /// Whether so many GPUs are surely not together before that time.
    pub fn later_than(&self, gpus: u32, at: Option<Time>) -> bool {
        let gpus = gpus as usize;
        if gpus > MOST || gpus == 0 {
            return false;
        }
        if gpus > usize::from(self.gpus) {
            return true;
        }
        at.is_some_and(|at| self.times[gpus - 1] >= at)
    }
}

impl Cluster {
    /// A node's openings are not known yet.
    pub fn expect_openings(&mut self, ix: NodeIx) {
        self.openings.push(Openings::default());
        self.outdated.push(ix);
    }

    /// What is known of the node's future no longer holds.
    pub fn outdate(&mut self, ix: NodeIx) {
        let openings = &mut self.openings[ix.at()];
        if !std::mem::replace(&mut openings.stirred, true) {
            self.stirred.push(ix);
        }
        if openings.known {
            openings.known = false;
            self.outdated.push(ix);
        }
    }

    /// Nodes on which something was opened, closed, stopped or promised since this was last asked.
    pub fn take_stirred(&mut self) -> Vec<NodeIx> {
        let stirred = std::mem::take(&mut self.stirred);
        stirred.iter().for_each(|ix| self.openings[ix.at()].stirred = false);
        stirred
    }

    pub fn outdate_all(&mut self) {
        for at in 0..self.openings.len() {
            self.outdate(NodeIx(at as u32));
        }
    }
}

impl State {
    /// Whether openings tell anything about the group: they are made of time limits.
    pub(crate) fn openings_serve(&self, leaf: &Leaf) -> bool {
        self.policy.backfill == BackfillEnds::Limits && leaf.whole().is_some()
    }

    /// Works out the openings of nodes where something has changed.
    pub(crate) fn refresh_openings(&mut self) {
        for ix in std::mem::take(&mut self.cluster.outdated) {
            let stirred = self.cluster.openings[ix.at()].stirred;
            let found = self.openings_of(self.cluster.node(ix));
            self.cluster.openings[ix.at()] = Openings { stirred, ..found };
        }
    }

    fn openings_of(&self, node: &Node) -> Openings {
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
        for kept in &node.kept {
            for slice in &kept.slices {
                busy(slice.gpu, kept.to);
            }
        }
        let mut times: Vec<Time> = free.into_iter().flatten().collect();
        times.sort_unstable();
        times.truncate(MOST);
        let mut found = Openings { known: true, gpus: times.len() as u8, ..Openings::default() };
        found.times[..times.len()].copy_from_slice(&times);
        found
    }
}
