//! Decisions of the core become orders about pods, and the outcomes of orders are taken in.

use super::orders::{ApiOrder, Bind, BindPermit, OrderOutcome};
use super::shares::Begin;
use super::{ClusterState, Uid, lease_of};
use crate::view::ObjectEvent;
use berth_engine::{Core, StartError, Turn};
use berth_kube::event::ObjectReference;
use berth_model::Observed;
use berth_model::{Cause, JobId, LeaseId, Name, PodRef, Span};

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
    }

    /// Says on the pods of a job why it waits, and in an event on its first one if that is for ever:
    /// `lasting` are the codes of what no waiting changes.
    pub fn explain(&mut self, job: JobId, why: &str, lasting: Option<String>) {
        // Where it is held for others the core knows no more than that.
        let held = self
            .constrained_jobs
            .waiting
            .get(&job)
            .filter(|constrained| constrained.since.is_none());
        let own = held.and_then(|constrained| constrained.why.as_ref()).map(ToString::to_string);
        let lasting = lasting.filter(|_| own.is_none());
        let why = own.as_deref().unwrap_or(why);
        let pods = self.tasks_of(job);
        let first = pods.first().and_then(|uid| self.pods.get(uid));
        if let (Some(codes), Some(pod)) = (lasting, first.filter(|pod| pod.reported_reason != why))
        {
            let (about, note) = (ObjectReference::from(&pod.view.at), why.to_owned());
            let event = ObjectEvent { about, reason: "NeverFits", note, dedup_key: Some(codes) };
            self.order(ApiOrder::WriteEvent(event));
        }
        for uid in pods {
            self.report_reason(&uid, why);
        }
    }

    /// Says on a pod why it waits, if it does not say so already.
    pub fn report_reason(&mut self, uid: &Uid, why: &str) {
        let Some(pod) = self.pods.get_mut(uid).filter(|pod| pod.reported_reason != why) else {
            return;
        };
        pod.reported_reason = why.to_owned();
        let (at, version) = (pod.view.at.clone(), pod.view.version.clone());
        self.order(ApiOrder::WriteReason { pod: at, version, message: why.to_owned() });
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
                } else {
                    self.end(turn, lease.job, lease.task, &why);
                }
                self.release_waiting(turn);
            }
            OrderOutcome::Infeasible(lease, why) => {
                self.binds.remove(&lease);
                self.end(turn, lease.job, lease.task, &why);
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
            OrderOutcome::ReasonNotWritten(pod) => {
                if let Some(pod) = self.pods.get_mut(&pod.uid) {
                    pod.reported_reason.clear();
                }
            }
        }
        // A reservation pod may have become unused.
        self.nodes.report(turn);
    }
}
