//! Gang annotations: what happens when those of a pod change, when a pod arrives after its gang has
//! started, and when the core refuses a gang.

use super::orders::{ApiOrder, UNSCHEDULABLE};
use super::{ClusterState, Stage, Uid};
use crate::view::ObjectEvent;
use crate::view::{GangKey, LateMember, SchedulingRequest};
use berth_engine::{Refused, Turn};
use berth_kube::event::ObjectReference;
use berth_model::PodRef;
use berth_model::{Event, JobChange, JobId, Rejected};

/// How often a gang is refused before there is an event: a queue that is made together with its
/// pods comes a moment after them.
pub(super) const REFUSALS_BEFORE_EVENT: u32 = 3;

/// Why the core would not have a gang.
pub(super) struct Refusal {
    pub why: String,
    /// In one word.
    pub reason: &'static str,
    /// How often it was tried again.
    pub rounds: u32,
}

impl ClusterState {
    /// A pod that waits for its gang belongs to another one now, or to none that is known.
    pub(super) fn change_gang(&mut self, uid: &Uid, before: Option<&SchedulingRequest>) {
        let Some(before) = before else { return };
        let now = self.pods.get(uid).and_then(crate::state::Pod::request);
        if now.is_some_and(|now| now.gang == before.gang) {
            return;
        }
        let Some(gang) = self.gangs.get_mut(&before.gang) else { return };
        gang.waiting.remove(uid);
        if gang.waiting.is_empty() && gang.job.is_none() {
            self.gangs.remove(&before.gang);
            self.refused.remove(&before.gang);
            self.incomplete.remove(&before.gang);
        }
    }

    /// Tells the core where a job of ours is to wait, and how urgently, if that has changed. What
    /// a gang asks for does not change any more once it has been submitted.
    pub(super) fn change(
        &self,
        turn: &mut Turn<'_>,
        uid: &Uid,
        job: JobId,
        before: Option<&SchedulingRequest>,
    ) {
        let now = self.pods.get(uid).and_then(crate::state::Pod::request);
        let (Some(before), Some(now)) = (before, now) else { return };
        let is_same = before.priority == now.priority && before.queue == now.queue;
        if is_same || Stage::of(turn.core, job) != Stage::Live {
            return;
        }
        if before.priority != now.priority {
            let change = JobChange::Priority(now.priority);
            turn.apply_observed(Event::JobChanged { job, change });
        }
        if before.queue != now.queue {
            let queue = now.queue.clone().unwrap_or_else(|| self.queue.clone());
            let change = Event::JobChanged { job, change: JobChange::Queue(queue) };
            if let Err(refused) = turn.all(vec![change]) {
                tracing::warn!(%refused, %job, "a job stays in its queue");
            }
        }
    }

    /// A task of a job runs: pods that wait beside it need not wait for its gang any longer.
    pub(super) fn began(&mut self, turn: &mut Turn<'_>, job: JobId) {
        let Some(tasks) = self.jobs.get(&job) else { return };
        if self.gangs.get(&tasks.gang).is_some_and(|gang| !gang.waiting.is_empty()) {
            let key = tasks.gang.clone();
            self.release_surplus(turn, &key, Some(job));
        }
    }

    /// Makes jobs of their own of pods that came when their gang had begun, where more may come
    /// than it needs.
    pub(super) fn release_surplus(
        &mut self,
        turn: &mut Turn<'_>,
        key: &GangKey,
        job: Option<JobId>,
    ) {
        let Some(gang) = self.gangs.get(key) else { return };
        if job.is_some_and(|job| !self.runs_whole(turn, job)) {
            return;
        }
        let mut work = self.work_done(gang);
        let tasks = job.and_then(|job| self.jobs.get(&job));
        work.extend(tasks.into_iter().flat_map(|tasks| tasks.ranks.iter().flatten().cloned()));
        let may_leave = |pod: &crate::state::Pod| {
            pod.request().is_some_and(|request| match request.later {
                LateMember::Waits => false,
                LateMember::Apart => job.is_some(),
                LateMember::ApartForGood => true,
            })
        };
        let waiting = gang.waiting.iter().filter_map(|uid| Some((uid, self.pods.get(uid)?)));
        let later: Vec<Uid> = waiting
            .filter(|(_, pod)| may_leave(pod))
            // What another one does, or has done, need not be done again.
            .filter(|(_, pod)| pod.view.rank().is_none_or(|rank| work.insert(rank)))
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in later {
            self.set_apart(turn, key, &uid);
        }
    }

    /// Whether a job has all of its pods, none of which is about to leave its place to another.
    fn runs_whole(&self, turn: &Turn<'_>, job: JobId) -> bool {
        let (Some(tasks), Some(live)) = (self.jobs.get(&job), turn.core.jobs.get(&job)) else {
            return false;
        };
        let stays = |uid: &Uid| self.pods.get(uid).is_some_and(|pod| !pod.view.is_leaving);
        !live.leases.is_empty()
            && live.leases.values().all(|lease| lease.stopping.is_none())
            && tasks.is_whole()
            && tasks.pods.iter().flatten().all(stays)
    }

    fn set_apart(&mut self, turn: &mut Turn<'_>, key: &GangKey, uid: &Uid) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        if pod.request().is_some_and(|request| request.has_to_be_together()) {
            let why = "its gang runs in one place, where a pod that comes later cannot be kept; say \
                       how many pods the gang has";
            return self.report_reason(uid, why);
        }
        pod.separate();
        let Some(apart) = pod.request().map(|request| request.gang.clone()) else { return };
        if let Some(gang) = self.gangs.get_mut(key) {
            gang.waiting.remove(uid);
        }
        self.gangs.entry(apart.clone()).or_default().waiting.insert(uid.clone());
        self.assemble_gang(turn, &apart);
    }

    /// Remembers that pods are a job of their own, and under which key.
    pub(super) fn separate_from_gang(&mut self, refs: &[PodRef]) -> Option<GangKey> {
        let [only] = refs else { return None };
        let pod = self.pods.get_mut(&only.uid)?;
        pod.separate();
        pod.request().map(|request| request.gang.clone())
    }

    /// Says on a pod what is wrong with it, and in an event.
    pub(super) fn report_invalid(&mut self, uid: &Uid, why: &str) {
        let Some(pod) = self.pods.get(uid).filter(|pod| pod.reported_reason != why) else { return };
        let (about, note) = (ObjectReference::from(&pod.view.at), why.to_owned());
        self.order(ApiOrder::WriteEvent(ObjectEvent {
            about,
            reason: "NotUnderstood",
            note,
            dedup_key: None,
        }));
        self.report(uid, UNSCHEDULABLE, why);
    }

    /// Says in an event what of the marks of a gang has no effect, on its first pod.
    pub(super) fn report_ignored_annotations(&mut self, pods: &[PodRef]) {
        let first = pods.first().and_then(|pod| self.pods.get(&pod.uid));
        let Some((pod, request)) = first.and_then(|pod| Some((pod, pod.request()?))) else {
            return;
        };
        let about = ObjectReference::from(&pod.view.at);
        let events: Vec<ObjectEvent> = request
            .ignored
            .iter()
            .map(|ignored| ObjectEvent {
                about: about.clone(),
                reason: "LeftOut",
                note: format!("it has no effect that {ignored}"),
                dedup_key: None,
            })
            .collect();
        self.write_events(events);
    }

    /// The core would not have a gang. It is tried again: a queue may be made later.
    pub(super) fn refuse(&mut self, key: &GangKey, pods: &[PodRef], refused: &Refused) {
        let why = refused.to_string();
        pods.iter().for_each(|pod| self.report(&pod.uid, UNSCHEDULABLE, &why));
        if self.refused.get(key).is_none_or(|refusal| refusal.why != why) {
            let reason = match refused {
                Refused::Rejected(Rejected::UnknownQueue { .. }) => "UnknownQueue",
                _ => "Refused",
            };
            self.refused.insert(key.clone(), Refusal { why, reason, rounds: 0 });
        }
    }

    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Tries again what was refused.
    pub fn retry_refused(&mut self, turn: &mut Turn<'_>) {
        let refused: Vec<GangKey> = self.refused.keys().cloned().collect();
        for key in refused {
            self.assemble_gang(turn, &key);
        }
        self.enqueue_refused(turn);
        self.report_refused();
        self.nodes.report(turn);
    }

    /// Says in an event why gangs are still refused, each once and on its first pod.
    fn report_refused(&mut self) {
        let ClusterState { refused, gangs, pods, orders, .. } = self;
        for (key, refusal) in
            refused.iter_mut().filter(|(_, refusal)| refusal.rounds < REFUSALS_BEFORE_EVENT)
        {
            refusal.rounds += 1;
            let first = gangs.get(key).and_then(|gang| gang.waiting.first());
            let Some(pod) = first.and_then(|uid| pods.get(uid)) else { continue };
            if refusal.rounds == REFUSALS_BEFORE_EVENT {
                let (about, note) = (ObjectReference::from(&pod.view.at), refusal.why.clone());
                let event = ObjectEvent { about, reason: refusal.reason, note, dedup_key: None };
                orders.push(ApiOrder::WriteEvent(event));
            }
        }
    }
}
