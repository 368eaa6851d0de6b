//! Decisions of the core become orders about pods, and the outcomes of orders are taken in.

use super::orders::{ApiOrder, Bind, BindPermit, OrderOutcome, UNSCHEDULABLE, UnwrittenReason};
use super::shares::Begin;
use super::{ClusterState, Uid, lease_of};
use crate::view::{ObjectEvent, PodEvent};
use berth_engine::{Core, StartError, Turn};
use berth_kube::event::{Level, ObjectReference};
use berth_model::Observed;
use berth_model::{Cause, JobId, LeaseId, Name, PodRef, Span, Time};

/// How long after an event about a waiting pod the next one comes: with another blocker, and with the
/// same.
const OTHER_EVENT_AFTER: Span = Span::mins(1);
const SAME_EVENT_AFTER: Span = Span::mins(10);

/// Why a job waits, as its pods say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Of the condition, in one word.
    pub reason: &'static str,
    pub text: String,
    /// The main blocker, when it is expected to start, and what to do next; nothing where nothing
    /// is in its way.
    pub event: Option<String>,
    /// Events with the same one are the same.
    pub key: String,
    /// The codes of what no waiting changes.
    pub lasting: Option<String>,
}

impl ClusterState {
    /// A lease was decided. Returns whether there is nothing to do for it any more.
    pub fn start(&mut self, core: &Core, lease: LeaseId) -> Result<bool, StartError> {
        if !self.start_managed(core, lease)? {
            let tasks = self.jobs.get(&lease.job);
            if tasks.and_then(|tasks| tasks.done.get(lease.task as usize)) == Some(&true) {
                return Ok(true);
            }
            self.bind_task(core, lease);
        }
        Ok(false)
    }

    pub(super) fn bind_task(&mut self, core: &Core, lease: LeaseId) {
        let live = core.jobs.get(&lease.job).and_then(|job| job.leases.get(&lease));
        let (Some(live), Some(tasks)) = (live, self.jobs.get_mut(&lease.job)) else { return };
        let pod = tasks.pods.get(lease.task as usize).and_then(Option::as_ref);
        let Some(pod) = pod.and_then(|uid| self.pods.get(uid)) else {
            tasks.starts.insert(lease.task, lease);
            let gang = tasks.gang.clone();
            return self.resume(&gang);
        };
        // It was adopted where it runs, or is on its way.
        if pod.view.node.is_some() || self.binds.contains_key(&lease) {
            return;
        }
        let node = Name::new(&live.row.node);
        if let Some(why) = self.repelled(&pod.view, &node) {
            tracing::error!(%lease, %node, why, "a place was decided that a rule forbids");
            return self.refused_binds.push(OrderOutcome::Infeasible(lease, why));
        }
        let open = self.open(&pod.view, &node);
        let pod = pod.view.at.clone();
        self.place(core, &pod.uid);
        let claims = self.prepare(&pod.uid, &node);
        let permit = BindPermit::default();
        self.binds.insert(lease, permit.clone());
        let devices = self.steps(core, lease, &pod.uid);
        let bind = Bind { lease, pod, node, open, claims, permit, gpus: None, devices };
        self.start_lease(core, Begin::Bind(Box::new(bind)));
    }

    /// The end of a lease is in the log: what is not bound yet must not be any more.
    pub fn acknowledge(&mut self, lease: LeaseId) {
        if let Some(permit) = self.binds.remove(&lease) {
            permit.revoke();
        }
        self.release_shares(lease);
        self.acknowledge_managed(lease);
    }

    /// A job was cancelled, also before it ran: its pods are not to run.
    pub fn cancelled(&mut self, job: JobId) {
        let Some(tasks) = self.jobs.get(&job) else { return };
        let gang = tasks.gang.clone();
        if self.suspend(&gang, Cause::Cancelled) {
            return;
        }
        let Some(tasks) = self.jobs.get(&job) else { return };
        let pods = tasks.pods.iter().flatten().filter_map(|uid| self.pods.get(uid));
        let pending = pods.filter(|pod| {
            !pod.view.is_leaving && !pod.view.phase.is_over() && pod.view.node.is_none()
        });
        let pending: Vec<PodRef> = pending.map(|pod| pod.view.at.clone()).collect();
        for pod in pending {
            self.order(ApiOrder::Evict { pod, grace_secs: 0, why: "its job was cancelled" });
        }
    }

    /// A lease is to end. Returns whether it ended at once, because it had no pod yet.
    pub fn stop(&mut self, lease: LeaseId, cause: Cause, grace: Span) -> bool {
        if self.stop_managed(lease, cause, grace) {
            return false;
        }
        let Some(tasks) = self.jobs.get_mut(&lease.job) else { return true };
        tasks.starts.remove(&lease.task);
        self.shares.forget(lease);
        let (gang, pod) = (tasks.gang.clone(), tasks.pods.get(lease.task as usize));
        let pod = pod.and_then(Option::as_ref).cloned();
        let is_held_back = self.suspend(&gang, cause);
        let Some(pod) = pod.and_then(|uid| self.pods.get(&uid)) else { return true };
        if is_held_back {
            return false;
        }
        let why = berth_engine::stop_message(cause);
        let grace_secs = (grace.0 + 999) / 1_000;
        let pod = pod.view.at.clone();
        // What has become too old has lost its node, and may never be seen to end.
        if cause.requeues() && cause != Cause::Stale {
            self.expect_replacement(lease.job, &pod.uid);
        }
        if cause == Cause::TimeLimit {
            self.report_time_limit(&pod);
        }
        self.order(ApiOrder::Evict { pod, grace_secs, why });
        false
    }

    /// A lease that was to end had no pod.
    pub fn ended_without_pod(&mut self, turn: &mut Turn<'_>, lease: LeaseId) {
        if lease_of(turn.core, lease.job, lease.task).is_some_and(|(open, _)| open == lease) {
            self.end(turn, lease.job, lease.task, "it had no pod");
        }
        let gang = self.jobs.get(&lease.job).map(|tasks| tasks.gang.clone());
        if let Some(gang) = gang {
            self.assemble_gang(turn, &gang);
        }
        self.release_waiting(turn);
    }

    /// Says on the pods of a job why it waits, and in events: one on each pod as kube-scheduler does,
    /// and another on the first one if no waiting changes it.
    pub fn explain(&mut self, job: JobId, why: &Explanation, now: Time) {
        let pods = self.tasks_of(job);
        let first = pods.first().and_then(|uid| self.pods.get(uid));
        let text = &why.text;
        if let (Some(codes), Some(pod)) =
            (&why.lasting, first.filter(|pod| pod.reported_reason != *text))
        {
            let (about, note) = (ObjectReference::from(&pod.view.at), text.clone());
            let dedup_key = Some(codes.clone());
            let event = ObjectEvent { about, reason: "NeverFits", note, dedup_key };
            self.order(ApiOrder::WriteEvent(event));
        }
        for uid in pods {
            self.report_waiting(&uid, why, now);
            self.report(&uid, why.reason, text);
        }
    }

    /// An event on a pod that waits: at first, when something else is in its way, and now and then.
    fn report_waiting(&mut self, uid: &Uid, why: &Explanation, now: Time) {
        let (Some(pod), Some(note)) = (self.pods.get_mut(uid), why.event.clone()) else { return };
        let is_due = match &pod.reported_event {
            None => true,
            Some((key, at)) => {
                let pause = if *key == why.key { SAME_EVENT_AFTER } else { OTHER_EVENT_AFTER };
                *at + pause <= now
            }
        };
        if !is_due {
            return;
        }
        pod.reported_event = Some((why.key.clone(), now));
        let (pod, key) = (pod.view.at.clone(), why.key.clone());
        let (level, reason) = (Level::Warning, "FailedScheduling");
        self.order(ApiOrder::WritePodEvent(PodEvent { pod, level, reason, note, key }));
    }

    /// Says on a pod why it is no job yet, and in an event, if it does not say so already.
    pub fn report_reason(&mut self, uid: &Uid, why: &str) {
        let new = self.pods.get(uid).filter(|pod| pod.reported_reason != why);
        if let Some(pod) = new.map(|pod| pod.view.at.clone()) {
            let (key, note) = (why.to_owned(), why.to_owned());
            let (level, reason) = (Level::Warning, "FailedScheduling");
            self.order(ApiOrder::WritePodEvent(PodEvent { pod, level, reason, note, key }));
        }
        self.report(uid, UNSCHEDULABLE, why);
    }

    /// Says on a pod why it waits, under a reason of one word, if it does not say so already.
    pub(super) fn report(&mut self, uid: &Uid, reason: &'static str, why: &str) {
        let Some(pod) = self.pods.get_mut(uid).filter(|pod| pod.reported_reason != why) else {
            return;
        };
        pod.reported_reason = why.to_owned();
        let (at, version) = (pod.view.at.clone(), pod.view.version.clone());
        let message = why.to_owned();
        self.order(ApiOrder::WriteReason { pod: at, version, reason, message });
    }

    /// A reason that still holds is written on the pod's newer version, which may have come before
    /// this answer and then comes no more. Without one it comes yet, and Berth explains the pod anew.
    fn write_reason_again(&mut self, unwritten: UnwrittenReason) {
        let UnwrittenReason { pod: at, version, reason, message, again } = unwritten;
        let Some(pod) = self.pods.get_mut(&at.uid).filter(|pod| pod.reported_reason == message)
        else {
            return;
        };
        if pod.view.node.is_none() && (again || pod.view.version != version) {
            let version = pod.view.version.clone();
            return self.order(ApiOrder::WriteReason { pod: at, version, reason, message });
        }
        pod.reported_reason.clear();
        let gang = pod.request().map(|request| request.gang.clone());
        gang.iter().for_each(|gang| self.tell_incomplete(gang));
    }

    /// What came of an order.
    pub fn done(&mut self, turn: &mut Turn<'_>, done: OrderOutcome) {
        match done {
            OrderOutcome::Bound(lease) => {
                self.binds.remove(&lease);
                turn.observe(Observed::Started { lease, at: turn.at });
            }
            OrderOutcome::Lost { lease, pod, why } => {
                self.binds.remove(&lease);
                let task = Some((lease.job, lease.task));
                if self.pods.get(&pod.uid).is_some_and(|pod| pod.task == task) {
                    // It is no use to try it again.
                    self.call_back(&pod.uid);
                    self.leave(turn, &pod.uid, &why);
                } else if is_current(turn, lease) {
                    self.end(turn, lease.job, lease.task, &why);
                }
                self.release_waiting(turn);
            }
            OrderOutcome::Infeasible(lease, why) => {
                self.binds.remove(&lease);
                if is_current(turn, lease) {
                    self.rejoin_later(turn, lease.job);
                    self.end(turn, lease.job, lease.task, &why);
                    self.grow_elsewhere(turn, lease.job);
                }
                self.release_waiting(turn);
            }
            OrderOutcome::Impossible(lease, why) => {
                self.binds.remove(&lease);
                turn.not_started(lease, why);
                self.release_shares(lease);
                self.lost(turn.core, lease);
                self.release_waiting(turn);
            }
            OrderOutcome::Unready { lease, pod, why } => {
                self.binds.remove(&lease);
                self.claim_later(turn, &pod.uid, &why);
            }
            OrderOutcome::NotReserved(slot, why) => self.not_reserved(turn, &slot, &why),
            OrderOutcome::ReasonNotWritten(unwritten) => self.write_reason_again(unwritten),
        }
        // A reservation pod may have become unused.
        self.nodes.report(turn);
    }
}

/// Whether the task still has this lease. Another pod may have taken the place of the one whose
/// binding failed, with a lease of its own.
fn is_current(turn: &Turn<'_>, lease: LeaseId) -> bool {
    lease_of(turn.core, lease.job, lease.task).is_some_and(|(current, _)| current == lease)
}
