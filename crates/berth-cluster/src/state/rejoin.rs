//! Gangs that have lost a member while the others run: the pod that comes in its place takes it at
//! once, and the place is kept for it for a while.

use super::{ClusterState, Pod, Stage, Uid, lease_of};
use crate::view::{NodeView, NodeViews, SchedulingRequest};
use berth_engine::{Core, Turn};
use berth_kube::{Change, WatchUpdate};
use berth_model::{JobId, Name, NodeState, Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How long a place is kept for a pod that is not there yet. Controllers make one within seconds.
const KEPT_FOR: Span = Span::secs(30);

/// How long a gang waits with its next try when a place that was decided could not be had.
const PAUSE: Span = Span::secs(1);

#[derive(Default)]
pub(super) struct Rejoining {
    /// Gangs whose members found no place when they were last tried.
    short: BTreeSet<JobId>,
    /// Since when places are kept for pods that are yet to come.
    kept: BTreeMap<JobId, Time>,
    /// When the next try is due, where a place that was decided could not be had.
    not_before: BTreeMap<JobId, Time>,
}

impl Rejoining {
    /// Whether time alone may change anything.
    pub fn is_empty(&self) -> bool {
        self.short.is_empty() && self.kept.is_empty() && self.not_before.is_empty()
    }
}

/// The nodes that have failed, of those that were seen.
pub(super) fn failed_nodes(seen: &WatchUpdate<NodeView>) -> BTreeSet<Name> {
    let nodes: Vec<&NodeView> = match seen {
        WatchUpdate::Snapshot(nodes) => nodes.iter().collect(),
        WatchUpdate::Changes(changes) => {
            let applied = changes.iter().filter_map(|change| match change {
                Change::Applied(node) => Some(node),
                Change::Deleted(_) => None,
            });
            applied.collect()
        }
    };
    let failed = nodes.into_iter().filter(|node| node.spec.state == NodeState::Failed);
    failed.map(|node| node.spec.name.clone()).collect()
}

impl ClusterState {
    /// Gives gangs that have lost members places for those that come after them.
    pub(super) fn rejoin_gangs(&mut self, turn: &mut Turn<'_>) {
        self.give_up_kept(turn);
        self.rejoining.short.clear();
        self.rejoining.not_before.retain(|_, at| turn.at < *at);
        let short: Vec<JobId> = turn.core.state.short_gangs().collect();
        for job in short {
            let Some(missing) = self.may_rejoin(turn.core, job) else { continue };
            if !self.find_nodes_again(turn, job, missing) || !turn.rejoin(job) {
                self.rejoining.short.insert(job);
                continue;
            }
            if missing {
                self.rejoining.kept.entry(job).or_insert(turn.at);
            }
            // Rules of others count from now on where these are going to be.
            for uid in self.tasks_of(job) {
                self.place(turn.core, &uid);
            }
        }
    }

    /// Whether a member of a gang is on its way out of a failed node. No kubelet is there to end it,
    /// so it would have its place for minutes, while its controller has made another pod at once.
    /// What it takes is counted on that node until it is gone, should the node come back.
    pub(super) fn has_lost_its_place(&self, uid: &Uid) -> bool {
        let Some(Pod { view, .. }) = self.pods.get(uid).filter(|pod| pod.view.is_leaving) else {
            return false;
        };
        let is_alone = |request: &Arc<SchedulingRequest>| request.alone;
        let node = view.node.as_ref().and_then(|node| self.nodes.view(node));
        node.is_some_and(|node| node.spec.state == NodeState::Failed)
            && !self.pods[uid].request().is_none_or(is_alone)
    }

    /// Nodes have failed: members of gangs that were on their way out there already have lost their
    /// places.
    pub(super) fn leave_failed_nodes(&mut self, turn: &mut Turn<'_>, failed: &BTreeSet<Name>) {
        if failed.is_empty() {
            return;
        }
        let is_there = |pod: &Pod| pod.view.node.as_ref().is_some_and(|node| failed.contains(node));
        let there = self.pods.iter().filter(|(_, pod)| pod.task.is_some() && is_there(pod));
        let there: Vec<Uid> = there.map(|(uid, _)| uid.clone()).collect();
        for uid in there {
            if self.has_lost_its_place(&uid) {
                self.observe_task(turn, &uid);
            }
        }
    }

    /// Whether a gang can take others in, and whether these are yet to come. Nothing where it
    /// cannot.
    fn may_rejoin(&self, core: &Core, job: JobId) -> Option<bool> {
        let tasks = self.jobs.get(&job)?;
        if Stage::of(core, job) != Stage::Live {
            return None;
        }
        if self.rejoining.not_before.contains_key(&job) {
            return None;
        }
        let (mut is_missing, mut runs, mut is_replaced) = (false, false, false);
        for (task, uid) in tasks.pods.iter().enumerate() {
            if tasks.done[task] {
                continue;
            }
            let has_lease = lease_of(core, job, task as u32).is_some();
            match uid.as_ref().and_then(|uid| self.pods.get(uid)) {
                // One that was bound while it held nothing is on its way out.
                Some(pod) if !has_lease => {
                    let is_open = pod.view.node.is_none() && !pod.view.phase.is_over();
                    (is_open && !pod.view.is_leaving).then_some(())?;
                }
                Some(pod) if !pod.view.is_leaving && !pod.view.phase.is_over() => {
                    runs = true;
                    is_replaced |= pod.view.is_replaced;
                }
                Some(_) => {}
                None => is_missing |= !has_lease,
            }
        }
        // Where none of the others stays, the gang ends as a whole.
        let may_keep = !is_missing || is_replaced && !self.rejoining.kept.contains_key(&job);
        (runs && may_keep).then_some(is_missing)
    }

    /// A place that was decided for a member cannot be had: the next one is not looked for at once.
    pub(super) fn rejoin_later(&mut self, turn: &Turn<'_>, job: JobId) {
        self.rejoining.not_before.insert(job, turn.at + PAUSE);
    }

    /// A place that was kept for a pod that has not come is free again, and the gang waits for its
    /// end or for the pod.
    fn give_up_kept(&mut self, turn: &mut Turn<'_>) {
        if self.rejoining.kept.is_empty() {
            return;
        }
        let Rejoining { kept, .. } = &mut self.rejoining;
        kept.retain(|job, _| {
            let runs = turn.core.jobs.get(job).is_some_and(|live| !live.leases.is_empty());
            runs && self.jobs.get(job).is_some_and(|tasks| !tasks.is_whole())
        });
        let late = kept.iter().filter(|(_, since)| turn.at >= **since + KEPT_FOR);
        let late: Vec<JobId> = late.map(|(job, _)| *job).collect();
        for job in late {
            let Some(tasks) = self.jobs.get(&job) else { continue };
            let without_pod = |task: &u32| tasks.pods[*task as usize].is_none();
            let free = (0..tasks.pods.len() as u32).filter(without_pod);
            let free: Vec<u32> = free.collect();
            for task in free {
                self.end(turn, job, task, "no pod has come in the place of the one that was lost");
            }
        }
    }
}
