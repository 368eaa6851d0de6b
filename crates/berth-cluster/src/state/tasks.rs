//! What happens to the tasks of a job when their pods or nodes change.

use super::orders::ApiOrder;
use super::{ClusterState, Gang, Uid};
use crate::view::{GangKey, Phase, PodResources, PodView, Rank};
use berth_engine::{Core, Turn};
use berth_model::{Cause, Event, JobId, LeaseId, Name};
use berth_model::{Ended, Observed};
use std::collections::{BTreeMap, BTreeSet};

/// The pods of a job.
pub struct Tasks {
    pub(super) gang: GangKey,
    /// By task; nothing while a pod is missing.
    pub pods: Vec<Option<Uid>>,
    /// What a pod has to ask for to be this task.
    pub(super) asks: Vec<PodResources>,
    /// The work of each, where it has a number and a pod of it was seen.
    pub(super) ranks: Vec<Option<Rank>>,
    /// Tasks that ended well: their controller makes no pod for them again.
    pub(super) done: Vec<bool>,
    /// Leases that wait for their pod.
    pub(super) starts: BTreeMap<u32, LeaseId>,
}

impl ClusterState {
    /// A pod that is a task was seen.
    pub fn observe_task(&mut self, turn: &mut Turn<'_>, uid: &Uid) {
        let pod = &self.pods[uid];
        let (Some((job, task)), view) = (pod.task, &pod.view) else { return };
        let Some((lease, node)) = lease_of(turn.core, job, task) else {
            // It holds nothing, so it must not run, and it cannot be started any more.
            let leaves = view.phase.is_over() || view.node.is_some() || view.is_leaving;
            let is_done = view.is_done();
            if view.is_placed() {
                // It was bound too late: another job has its place by now.
                let (pod, why) = (view.at.clone(), "it was bound after its lease had ended");
                self.order(ApiOrder::Evict { pod, grace_secs: 0, why });
            }
            if is_done {
                self.ended_well(turn, job, task);
            }
            if leaves {
                self.leave(turn, uid, "its pod is over");
            }
            return;
        };
        match (&view.phase, &view.node) {
            (Phase::Succeeded | Phase::Failed { .. }, _) => {
                let mut ended = Ended::lost(lease, turn.at, String::new());
                ended.lost = None;
                ended.started_at = Some(turn.at);
                match view.phase {
                    Phase::Failed { code, out_of_memory } => {
                        ended.code = Some(code.unwrap_or(1));
                        ended.oom = out_of_memory;
                    }
                    _ => ended.code = Some(0),
                }
                let is_done = view.is_done();
                // One that did its work while it gave way has not been stopped.
                let counts = |cause: &Cause| !(is_done && cause.requeues());
                ended.asked = turn.stop_cause(lease).filter(counts);
                let goes_on = ended.asked.is_some_and(Cause::requeues);
                self.ended(turn, ended);
                if goes_on {
                    // Where it may lie is worked out anew.
                    self.lost(turn.core, lease);
                }
                if is_done {
                    self.ended_well(turn, job, task);
                }
                self.leave(turn, uid, "its pod is over");
            }
            (Phase::Evicted, _) => self.leave(turn, uid, "its pod was evicted"),
            (_, Some(_)) if self.has_lost_its_place(uid) => {
                self.leave(turn, uid, "its pod is on its way out of a node that has failed");
            }
            (_, Some(bound)) if *bound == node => {
                turn.observe(Observed::Started { lease, at: turn.at });
                self.began(turn, job);
            }
            (_, Some(bound)) => {
                let why = format!("its pod was put on {bound}");
                self.call_back(uid);
                self.leave(turn, uid, &why);
            }
            (_, None) => {}
        }
    }

    /// A pod of a gang runs where it was not to be. The others are elsewhere, so it would wait for
    /// them for ever; one that is alone may stay.
    pub(super) fn call_back(&mut self, uid: &Uid) {
        let pod = &self.pods[uid];
        if pod.request().is_some_and(|request| !request.alone) {
            let (pod, why) = (pod.view.at.clone(), "it was bound apart from its gang");
            self.order(ApiOrder::Evict { pod, grace_secs: 0, why });
        }
    }

    /// A task ended well: its controller makes no pod for it again, even if the other tasks have to
    /// begin anew.
    pub(super) fn ended_well(&mut self, turn: &mut Turn<'_>, job: JobId, task: u32) {
        let Some(tasks) = self.jobs.get_mut(&job) else { return };
        if !std::mem::replace(&mut tasks.done[task as usize], true) {
            turn.amend_detail(job, |detail| detail.done.push(task));
        }
    }

    /// A pod that had lost its place may have come to a good end all the same.
    pub(super) fn observe_former_task(&mut self, turn: &mut Turn<'_>, uid: &Uid) {
        let Some(pod) = self.pods.get_mut(uid).filter(|pod| pod.view.is_done()) else { return };
        let Some((job, task)) = pod.was.take() else { return };
        let Some(tasks) = self.jobs.get(&job) else { return };
        // Another pod may have its place by now, and the place that is left then is its own.
        let at = tasks.open(&pod.view, task as usize);
        if let (Some(at), Stage::Live) = (at, Stage::of(turn.core, job)) {
            self.ended_well(turn, job, at as u32);
            if self.jobs[&job].is_whole() {
                self.hold(turn, job, false);
            }
        }
    }

    /// A pod of a gang ended well: its controller makes none in its place. Returns whether that is
    /// new.
    pub(super) fn note_done(&mut self, uid: &Uid) -> bool {
        let Some(pod) = self.pods.get(uid).filter(|pod| pod.view.is_done()) else { return false };
        let Some(request) = pod.request().filter(|request| !request.alone) else { return false };
        let gang = self.gangs.entry(request.gang.clone()).or_default();
        gang.waiting.remove(uid);
        gang.done.insert(uid.clone())
    }

    /// Whether a pod of that rank ended well.
    fn is_work_done(&self, job: JobId, rank: &Rank) -> bool {
        let gang = self.jobs.get(&job).and_then(|tasks| self.gangs.get(&tasks.gang));
        gang.is_some_and(|gang| self.work_done(gang).contains(rank))
    }

    pub(super) fn work_done(&self, gang: &Gang) -> BTreeSet<Rank> {
        gang.done.iter().filter_map(|uid| self.pods.get(uid)?.view.rank()).collect()
    }

    /// A pod is no task any more; from now on it is counted where it runs, if it does.
    pub fn forget_task(&mut self, uid: &Uid) -> Option<(JobId, u32)> {
        let pod = self.pods.get_mut(uid)?;
        let (job, task) = pod.task.take()?;
        // One that ended well was counted as what it was, and must not count as another one later.
        pod.was = (!pod.view.is_done()).then_some((job, task));
        if pod.view.phase.is_over() {
            self.nodes.release_predicates(std::mem::take(&mut pod.predicate_refs));
        }
        if let Some(tasks) = self.jobs.get_mut(&job) {
            tasks.pods[task as usize] = None;
        }
        self.count(uid);
        self.count_claims_of(uid);
        Some((job, task))
    }

    /// The task of a pod has lost it.
    pub(super) fn leave(&mut self, turn: &mut Turn<'_>, uid: &Uid, why: &str) {
        if self.pods.get(uid).is_some_and(|pod| pod.view.managed.is_some()) {
            return self.lose_managed(turn, uid, why);
        }
        let Some((job, task)) = self.forget_task(uid) else { return };
        self.end_lease(turn, job, task, why);
        self.note_done(uid);
        let unfinished = self.pods.get(uid).filter(|pod| !pod.view.is_done());
        let rank = unfinished.and_then(|pod| pod.view.rank());
        if rank.is_some_and(|rank| self.is_work_done(job, &rank)) {
            // Another pod has done its work, so its controller makes none in its place.
            self.ended_well(turn, job, task);
        }
        let replaced = self.pods.get(uid).is_some_and(|pod| {
            // The one that comes in its place is a job of its own where it is no gang.
            pod.view.is_replaced && pod.request().is_some_and(|request| !request.alone)
        });
        let Some(tasks) = self.jobs.get(&job) else { return };
        let (gang, alone) = (tasks.gang.clone(), tasks.pods.iter().all(Option::is_none));
        if self.is_held_by_us(&gang) {
            self.make_room(turn, &gang, job, task);
        } else if Stage::of(turn.core, job) == Stage::Live && !tasks.is_whole() {
            if alone && !replaced && !self.replacements.is_expected(job) {
                // No controller makes another pod.
                turn.apply_observed(Event::JobCancelled { job });
            } else {
                turn.park(job, true);
            }
        }
        if self.replacements.is_expected(job) {
            return self.hand_over(turn, job);
        }
        self.assemble_gang(turn, &gang);
    }

    pub(super) fn gone(&mut self, turn: &mut Turn<'_>, uid: &Uid) {
        self.lose_gpu_user(uid);
        self.leave(turn, uid, "its pod was deleted");
        self.forget_managed(uid);
        let Some(mut pod) = self.pods.remove(uid) else { return };
        self.nodes.count(&mut pod.counted, None);
        self.nodes.release_predicates(std::mem::take(&mut pod.predicate_refs));
        for order in self.shares.gone(&pod.view) {
            self.order(order);
        }
        self.unplace(&pod.view);
        let Some(key) = pod.request().map(|request| request.gang.clone()) else { return };
        self.tell_incomplete(&key);
        let Some(gang) = self.gangs.get_mut(&key) else { return };
        gang.waiting.remove(uid);
        let was_done = gang.done.remove(uid);
        let over = |job: &JobId| {
            self.jobs.get(job).is_none_or(|tasks| tasks.pods.iter().all(Option::is_none))
        };
        let ended =
            |job: &JobId| turn.core.jobs.get(job).is_none_or(|job| job.row.state.is_final());
        let is_left = !gang.waiting.is_empty() || !gang.done.is_empty();
        if !is_left && gang.job.as_ref().is_none_or(|job| over(job) && ended(job)) {
            if let Some(job) = gang.job {
                self.jobs.remove(&job);
                self.constrained_jobs.forget(job);
            }
            if let Some(owner) = &gang.owner {
                self.owners.remove(owner);
            }
            self.gangs.remove(&key);
            self.refused.remove(&key);
            self.incomplete.remove(&key);
        } else if was_done {
            // One that was made to do its work again may have waited for this.
            self.assemble_gang(turn, &key);
        }
    }

    /// The lease of a task has ended, if it had one. What is left of its gang is not begun again
    /// without the pods it misses.
    pub(super) fn end(&mut self, turn: &mut Turn<'_>, job: JobId, task: u32, why: &str) {
        self.end_lease(turn, job, task, why);
        let Some(tasks) = self.jobs.get(&job) else { return };
        let is_short = !tasks.is_whole() && !self.is_held_by_us(&tasks.gang);
        if is_short && Stage::of(turn.core, job) == Stage::Live {
            turn.park(job, true);
        }
    }

    fn end_lease(&mut self, turn: &mut Turn<'_>, job: JobId, task: u32, why: &str) {
        if let Some(tasks) = self.jobs.get_mut(&job) {
            tasks.starts.remove(&task);
        }
        let Some((lease, _)) = lease_of(turn.core, job, task) else { return };
        let mut ended = Ended::lost(lease, turn.at, why.to_owned());
        ended.asked = turn.stop_cause(lease);
        self.ended(turn, ended);
        self.lost(turn.core, lease);
    }

    pub(super) fn end_all(&mut self, turn: &mut Turn<'_>, job: JobId, why: &str) {
        let tasks = turn.core.jobs.get(&job).map(|job| job.leases.keys().map(|id| id.task));
        let tasks: BTreeSet<u32> = tasks.into_iter().flatten().collect();
        for task in tasks {
            self.end(turn, job, task, why);
        }
    }

    pub(super) fn lose_node(&mut self, turn: &mut Turn<'_>, name: &Name) {
        let there: Vec<Uid> = self
            .pods
            .iter()
            .filter(|(_, pod)| pod.task.is_some() && pod.view.node.as_ref() == Some(name))
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in there {
            // No kubelet reports the end of the pod any more, and its controller waits for that.
            let (pod, why) = (self.pods[&uid].view.at.clone(), "its node is gone");
            self.order(ApiOrder::Evict { pod, grace_secs: 0, why });
            self.leave(turn, &uid, why);
        }
        // Those that were decided and not bound yet.
        let leases = turn.core.jobs.values().flat_map(|job| &job.leases);
        let leases: Vec<LeaseId> = leases
            .filter(|(_, live)| live.row.node == name.as_str())
            .map(|(lease, _)| *lease)
            .collect();
        for lease in leases {
            self.end(turn, lease.job, lease.task, "its node is gone");
        }
        self.nodes.remove(turn, name);
    }
}

impl Tasks {
    /// A task that misses this pod, that one rather than others.
    fn open(&self, pod: &PodView, rather: usize) -> Option<usize> {
        let rank = pod.rank();
        let is_open = |at: &usize| {
            self.pods[*at].is_none()
                && !self.done[*at]
                && self.asks[*at] == pod.asks
                && (rank.is_none() || self.ranks[*at].is_none() || self.ranks[*at] == rank)
        };
        Some(rather).filter(is_open).or_else(|| (0..self.pods.len()).find(is_open))
    }

    /// Whether a pod of that rank may be this task: its own one, or any where it has none, since
    /// then it comes in the place of another.
    pub(super) fn is_work_of(&self, at: usize, rank: Option<&Rank>) -> bool {
        rank.is_none_or(|rank| self.ranks[at].as_ref() == Some(rank) || !self.is_known(rank))
    }

    pub(super) fn is_known(&self, rank: &Rank) -> bool {
        self.ranks.iter().flatten().any(|known| known == rank)
    }

    /// Whether every task that has not ended well has its pod.
    pub fn is_whole(&self) -> bool {
        self.pods.iter().zip(&self.done).all(|(pod, done)| *done || pod.is_some())
    }
}

/// How far a job has got, as far as its pods are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Live,
    /// It failed or was cancelled, and what is left of it is being stopped.
    Ending,
    Over,
}

impl Stage {
    pub(super) fn of(core: &Core, job: JobId) -> Stage {
        let Some(live) = core.jobs.get(&job) else { return Stage::Over };
        if live.row.state.is_final() {
            return Stage::Over;
        }
        let for_good = |cause: Cause| !cause.requeues();
        match live.leases.values().any(|lease| lease.stopping.is_some_and(for_good)) {
            true => Stage::Ending,
            false => Stage::Live,
        }
    }
}

/// The lease of a task that has not been closed, and its node.
pub fn lease_of(core: &Core, job: JobId, task: u32) -> Option<(LeaseId, Name)> {
    let leases = &core.jobs.get(&job)?.leases;
    let (id, live) = leases.iter().find(|(id, _)| id.task == task)?;
    Some((*id, Name::new(&live.row.node)))
}
