//! Gangs that have lost a member while the others run: the pod that comes in its place takes it at
//! once, and the place is kept for it for a while.

use super::{ClusterState, Stage, lease_of};
use berth_engine::{Core, Turn};
use berth_model::{JobId, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

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
