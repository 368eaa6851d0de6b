//! Suspended jobs of other controllers. They are jobs of the core before they have pods, are
//! resumed when they are placed, and suspended again when they are preempted.

use super::gang_annotations::{REFUSALS_BEFORE_EVENT, Refusal};
use super::orders::{ApiOrder, OpenGate};
use super::submission as gang;
use super::{ClusterState, Gang, Stage, Tasks, Uid};
use crate::constraints::predicates::PredicateRefs;
use crate::view::ObjectEvent;
use crate::view::{
    GangKey, JobRef, NodePredicate, PodResources, PodView, QueuedJob, parse_placeholder,
};
use berth_engine::Turn;
use berth_model::PodRef;
use berth_model::{Cause, Event, JobId, Name};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) struct HeldJob {
    job: QueuedJob,
    /// Whether it is to be suspended. The executor reads this at the time of the write.
    suspended: Arc<AtomicBool>,
    /// A user of Berth has ended it: it is not submitted again by itself.
    is_over: bool,
    /// Its pods have rules about other pods or about volumes, or claim devices, which Berth reads
    /// from pods alone. So Berth resumes it at once, and its pods wait behind their gate.
    is_constrained: bool,
    /// The node predicates that it uses.
    predicate_refs: PredicateRefs,
}

impl ClusterState {
    /// Keeps suspended jobs in mind when the server starts.
    pub fn hold_queued(&mut self, queued: Vec<QueuedJob>) {
        for job in queued.into_iter().filter(|job| !job.is_over) {
            self.remember_queued(job);
        }
    }

    /// Submits the suspended jobs that the core does not know.
    pub(super) fn enqueue_all(&mut self, turn: &mut Turn<'_>) {
        let all: Vec<GangKey> = self.held.keys().cloned().collect();
        for key in all {
            self.enqueue(turn, &key);
        }
    }

    /// Takes in what was seen of suspended jobs.
    pub fn observe_queued(&mut self, turn: &mut Turn<'_>, queued: Vec<QueuedJob>, gone: &[Uid]) {
        for job in queued {
            if job.is_over {
                self.job_is_gone(turn, &job.at.uid);
                continue;
            }
            let Some((key, is_other)) = self.remember_queued(job) else { continue };
            if is_other {
                self.withdraw(turn, &key);
            }
            self.enqueue(turn, &key);
        }
        for uid in gone {
            self.job_is_gone(turn, uid);
        }
        self.nodes.report(turn);
    }

    /// Keeps a job in mind. Returns its gang, and whether it asks for something else than before.
    fn remember_queued(&mut self, job: QueuedJob) -> Option<(GangKey, bool)> {
        if let Err(why) = &job.pods {
            self.report_suspended(&job.at, &why.to_string());
            return None;
        }
        let gangs = job.gangs();
        let [key] = &gangs[..] else {
            // Its pods come one after the other, each lot as a gang of its own.
            if job.is_suspended && !job.is_over {
                let (job, suspended) = (Box::new(job.at), Arc::new(AtomicBool::new(false)));
                self.order(ApiOrder::SetSuspended { job, suspended });
            }
            return None;
        };
        let key = key.clone();
        self.held_by.insert(job.at.uid.clone(), key.clone());
        let before = match self.held.remove(&key) {
            Some(other) if other.job.at.uid != job.at.uid => {
                self.nodes.release_predicates(other.predicate_refs);
                None
            }
            before => before,
        };
        let is_other = before.as_ref().is_some_and(|before| !is_alike(&before.job, &job));
        let (suspended, is_over, predicate_refs) = match before {
            None => (Arc::new(AtomicBool::new(job.is_suspended)), false, PredicateRefs::default()),
            Some(before) => (before.suspended, before.is_over && !is_other, before.predicate_refs),
        };
        if suspended.load(Ordering::SeqCst) != job.is_suspended {
            // The last order was not written yet, or a user has written something else.
            let (job, suspended) = (Box::new(job.at.clone()), suspended.clone());
            self.order(ApiOrder::SetSuspended { job, suspended });
        }
        let is_constrained = |pod: &PodView| pod.constraints.is_some() || !pod.claims.is_empty();
        let is_constrained = job.pods.iter().flatten().any(is_constrained);
        self.held.insert(
            key.clone(),
            HeldJob { job, suspended, is_over, is_constrained, predicate_refs },
        );
        Some((key, is_other))
    }

    /// Submits a job that waits, if it is not known already.
    fn enqueue(&mut self, turn: &mut Turn<'_>, key: &GangKey) {
        let Some(held) = self.held.get(key) else { return };
        let Ok(pods) = &held.job.pods else { return };
        if held.is_constrained {
            if !held.is_over {
                self.resume(key);
            }
            return;
        }
        let known = self.gangs.get(key).and_then(|gang| gang.job);
        let is_known = known.is_some_and(|job| Stage::of(turn.core, job) != Stage::Over);
        if !held.job.is_suspended || held.is_over || is_known {
            return;
        }
        let views: Vec<&PodView> = pods.iter().collect();
        let Some(request) = views.first().and_then(|pod| pod.request.as_ref()?.as_ref().ok())
        else {
            return;
        };
        let queue = request.queue.clone().unwrap_or_else(|| self.queue.clone());
        let policy = turn.core.state.policy();
        let job_request = gang::request(&views, &queue, &self.nodes, &self.claims, policy);
        let at = held.job.at.clone();
        let job_request = match job_request {
            Ok(job_request) => job_request,
            Err(unready) => return self.leave_suspended(key, &at, unready.to_string()),
        };
        let asks: Vec<PodResources> =
            job_request.workload.pods().iter().map(|pod| asks_of(pods, pod)).collect();
        let ignored = request.ignored.clone();
        match turn.submit(job_request) {
            Ok(job) => {
                self.track_held_predicates(key);
                self.write_events(ignored.into_iter().map(|ignored| ObjectEvent {
                    about: (&at).into(),
                    reason: "LeftOut",
                    note: format!("it has no effect that {ignored}"),
                    dedup_key: None,
                }));
                self.refused.remove(key);
                if let Some(old) = known {
                    self.jobs.remove(&old);
                }
                let gang = self.gangs.entry(key.clone()).or_default();
                gang.job = Some(job);
                gang.has_begun = true;
                let count = asks.len();
                let tasks = Tasks {
                    gang: key.clone(),
                    pods: vec![None; count],
                    asks,
                    ranks: vec![None; count],
                    done: vec![false; count],
                    starts: BTreeMap::new(),
                };
                self.jobs.insert(job, tasks);
            }
            Err(refused) => self.leave_suspended(key, &at, refused.to_string()),
        }
    }

    /// A suspended job cannot be submitted for now. It is tried again; each reason is reported
    /// once.
    fn leave_suspended(&mut self, key: &GangKey, at: &JobRef, why: String) {
        if self.refused.get(key).is_none_or(|refusal| refusal.why != why) {
            self.report_suspended(at, &why);
            // The event has just been written.
            let refusal = Refusal { why, reason: "Waiting", rounds: REFUSALS_BEFORE_EVENT };
            self.refused.insert(key.clone(), refusal);
        }
    }

    /// Says on a job why it stays suspended: it has no pods that could say so.
    fn report_suspended(&mut self, job: &JobRef, why: &str) {
        let note = format!("it stays suspended: {why}");
        self.order(ApiOrder::WriteEvent(ObjectEvent {
            about: job.into(),
            reason: "Waiting",
            note,
            dedup_key: None,
        }));
    }

    /// A job that has no pods is not wanted any more as it is.
    fn withdraw(&mut self, turn: &mut Turn<'_>, key: &GangKey) {
        let Some(job) = self.gangs.get(key).and_then(|gang| gang.job) else { return };
        let has_pods =
            self.jobs.get(&job).is_some_and(|tasks| tasks.pods.iter().any(Option::is_some));
        if has_pods || Stage::of(turn.core, job) != Stage::Live {
            return;
        }
        self.end_all(turn, job, "its job is gone or was changed");
        turn.apply_observed(Event::JobCancelled { job });
        self.jobs.remove(&job);
        if let Some(gang) = self.gangs.get_mut(key) {
            gang.job = None;
        }
    }

    fn job_is_gone(&mut self, turn: &mut Turn<'_>, uid: &Uid) {
        self.cancel_replacements(turn, uid);
        let held = self.held_by.remove(uid);
        if let Some(key) = &held {
            if let Some(held) = self.held.remove(key) {
                self.nodes.release_predicates(held.predicate_refs);
            }
            self.refused.remove(key);
        }
        let Some(key) = self.owners.remove(uid).or(held) else { return };
        // No controller replaces the pods that are left.
        let job = self.gangs.get(&key).and_then(|gang| gang.job);
        for uid in job.map(|job| self.tasks_of(job)).unwrap_or_default() {
            if let Some(pod) = self.pods.get_mut(&uid) {
                pod.view.is_replaced = false;
            }
        }
        self.withdraw(turn, &key);
        // No pod comes any more that would clean up after it.
        if self.gangs.get(&key).is_some_and(Gang::is_empty) {
            self.gangs.remove(&key);
            self.refused.remove(&key);
            self.incomplete.remove(&key);
        }
    }

    /// Tries again the jobs that the core refused.
    pub(super) fn enqueue_refused(&mut self, turn: &mut Turn<'_>) {
        let refused = self.refused.keys().filter(|key| self.held.contains_key(*key));
        for key in refused.cloned().collect::<Vec<GangKey>>() {
            self.enqueue(turn, &key);
        }
    }

    /// Whether a job goes on without the pods it has lost: it makes others when it is resumed.
    pub(super) fn is_held_by_us(&self, key: &GangKey) -> bool {
        self.held.get(key).is_some_and(|held| !held.is_constrained)
    }

    /// A job has got its place, and can make its pods.
    pub(super) fn resume(&mut self, key: &GangKey) {
        let Some(held) = self.held.get(key) else { return };
        if held.suspended.swap(false, Ordering::SeqCst) {
            let (job, suspended) = (Box::new(held.job.at.clone()), held.suspended.clone());
            self.order(ApiOrder::SetSuspended { job, suspended });
        }
    }

    /// A job loses its place: it is suspended, and its controller asks its pods to end, each with
    /// its grace. Returns whether that is so; a job that only loses members goes on.
    pub(super) fn suspend(&mut self, key: &GangKey, cause: Cause) -> bool {
        let Some(held) = self.held.get_mut(key) else { return false };
        // Pods of one that is tied are made again at once, and wait.
        if matches!(cause, Cause::Shrink | Cause::PeerFailed)
            || held.is_constrained && cause.requeues()
        {
            return false;
        }
        held.is_over |= !cause.requeues();
        let (job, suspended) = (Box::new(held.job.at.clone()), held.suspended.clone());
        if !suspended.swap(true, Ordering::SeqCst) {
            self.order(ApiOrder::SetSuspended { job, suspended });
        }
        true
    }

    /// The gang of a job whose pods were not made yet.
    pub(super) fn gang_to_be(&self, refs: &[PodRef]) -> Option<GangKey> {
        let owner = refs.iter().find_map(|pod| parse_placeholder(&pod.uid));
        self.held_by.get(owner?.0).cloned()
    }

    /// What a pod asks for that is not there, if it is known from its job.
    pub(super) fn asks_to_be(&self, key: &GangKey, pod: &PodRef) -> Option<PodResources> {
        let held = self.held.get(key)?;
        let pods = held.job.pods.as_ref().ok()?;
        parse_placeholder(&pod.uid).map(|_| asks_of(pods, pod))
    }

    /// Rules that pods will have which were not made yet.
    pub(super) fn track_held_predicates(&mut self, key: &GangKey) {
        let Some(held) = self.held.get_mut(key) else { return };
        let (mut rules, mut ports) = (BTreeMap::new(), BTreeMap::new());
        let pods = held.job.pods.iter().flatten();
        for request in pods.filter_map(|pod| pod.request.as_ref()?.as_ref().ok()) {
            rules.extend(request.rules.iter().map(|rule| (&rule.name, rule)));
            ports.extend(request.ports.clone());
        }
        let rules: Vec<NodePredicate> = rules.into_values().cloned().collect();
        let predicate_refs = self.nodes.track_predicates(&rules, &ports);
        self.nodes.release_predicates(std::mem::replace(&mut held.predicate_refs, predicate_refs));
    }

    /// The place of a pod that is gone is free for the next one that its job makes.
    pub(super) fn make_room(&self, turn: &mut Turn<'_>, key: &GangKey, job: JobId, task: u32) {
        let held = self.held.get(key).filter(|held| !held.is_constrained);
        let Some(Ok(pods)) = held.map(|held| &held.job.pods) else { return };
        let Some(tasks) = self.jobs.get(&job) else { return };
        let Some(wanted) = tasks.asks.get(task as usize) else { return };
        let Some(template) = pods.iter().find(|pod| pod.asks == *wanted) else { return };
        let at = template.at.clone();
        turn.amend_detail(job, |detail| {
            if let Some(pod) = detail.workload.pods_mut().get_mut(task as usize) {
                *pod = at;
            }
        });
    }

    /// What has to be lifted before a pod can get its node.
    pub(super) fn open(&self, pod: &PodView, node: &Name) -> Option<OpenGate> {
        let hostname = || self.nodes.label(node, "kubernetes.io/hostname");
        pod.is_ours_to_open.then(|| OpenGate { hostname: hostname() })
    }
}

fn asks_of(pods: &[PodView], pod: &PodRef) -> PodResources {
    let at = parse_placeholder(&pod.uid).map(|(_, at)| at);
    at.and_then(|at| pods.get(at)).map(|pod| pod.asks.clone()).unwrap_or_default()
}

/// Whether two readings of a job ask for the same.
fn is_alike(before: &QueuedJob, now: &QueuedJob) -> bool {
    let (Ok(before), Ok(now)) = (&before.pods, &now.pods) else { return false };
    let is_same = |(a, b): (&PodView, &PodView)| a.asks == b.asks && a.request == b.request;
    before.len() == now.len() && before.iter().zip(now).all(is_same)
}
