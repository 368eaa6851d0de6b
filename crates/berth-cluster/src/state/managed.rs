//! Pods of managed jobs: Berth creates them, each for one lease, and their labels name it.

use super::pod_orders::{CreatePod, LeaseEnd, PodOrder};
use super::shares::Begin;
use super::{ClusterState, Uid};
use crate::view::is_pod_of;
use crate::view::{Phase, PodView};
use berth_engine::{Core, LiveJob, StartError, Turn};
use berth_model::PodRef;
use berth_model::run::Container;
use berth_model::{Cause, JobId, LeaseId, Span};
use berth_model::{Ended, Event, Observed};
use std::collections::{BTreeMap, BTreeSet};

/// Said on pods that would wait for ever.
const NOT_MANAGED_TEXT: &str = "its labels say that Berth has made it for a job of its own, and Berth has \
                        not; take the label berth.dev/job off it";

/// The pods of each lease that was ordered or observed.
#[derive(Default)]
pub struct ManagedPods {
    orders: Vec<PodOrder>,
    pods: BTreeMap<LeaseId, Option<Uid>>,
    /// Pods whose job is looked up in the store.
    asked: BTreeSet<Uid>,
}

impl ManagedPods {
    fn order(&mut self, order: PodOrder) {
        self.orders.push(order);
    }

    pub(super) fn take_orders(&mut self) -> Vec<PodOrder> {
        std::mem::take(&mut self.orders)
    }
}

impl ClusterState {
    /// Takes in what was made before the server started, and misses what is not there any more.
    pub(super) fn sync_managed(&mut self, turn: &mut Turn<'_>) {
        let own = self.pods.iter().filter(|(_, pod)| pod.view.managed.is_some());
        let own: Vec<Uid> = own.map(|(uid, _)| uid.clone()).collect();
        for uid in own {
            if self.identify_managed(turn.core, &uid).is_some() {
                self.observe_managed(turn, &uid);
            }
        }
        let own = turn.core.jobs.values().filter(|job| container_of(job).is_some());
        let begun = own.flat_map(|job| &job.leases).filter(|(_, live)| live.row.started.is_some());
        let lost =
            begun.map(|(lease, _)| *lease).filter(|lease| !self.managed.pods.contains_key(lease));
        for lease in lost.collect::<Vec<_>>() {
            self.lose(turn, lease, "its pod is gone");
        }
    }

    /// Which task a pod is that Berth has made, and nothing when its lease is closed.
    pub(super) fn identify_managed(&mut self, core: &Core, uid: &Uid) -> Option<(JobId, u32)> {
        let pod = self.pods.get_mut(uid)?;
        let lease = pod.view.managed.as_ref()?.lease;
        let task = is_task(core, &pod.view, lease).then_some((lease.job, lease.task));
        pod.task = task;
        if task.is_some() {
            self.managed.pods.insert(lease, Some(uid.clone()));
        }
        task
    }

    /// A pod of an open lease was seen.
    pub(super) fn observe_managed(&mut self, turn: &mut Turn<'_>, uid: &Uid) {
        let view = &self.pods[uid].view;
        let Some(own) = view.managed.clone() else { return };
        let (lease, at) = (own.lease, turn.at);
        if let (Some(data), Some(node)) = (&own.node_data, &view.node)
            && is_new(turn.core, lease)
            && turn.core.state.data_of_node(node).is_some_and(|known| known != data)
        {
            // Reports of pods that have started before are old.
            turn.apply_observed(Event::DataKept { node: node.clone(), data: data.clone() });
        }
        match view.phase {
            Phase::Succeeded | Phase::Failed { .. } | Phase::Evicted => {
                let is_asked = turn.stop_cause(lease).is_some();
                if let Some(why) = own.not_begun()
                    && view.phase != Phase::Evicted
                    && !is_asked
                {
                    return self.never_begins(turn, lease, uid, why);
                }
                let mut ended = match view.phase {
                    Phase::Evicted => Ended::lost(lease, at, "its pod was evicted".to_owned()),
                    _ => own.ended(at),
                };
                ended.asked = turn.stop_cause(lease);
                self.ended(turn, ended);
                self.forget_task(uid);
            }
            Phase::Running => {
                if is_new(turn.core, lease) {
                    // What it waited for has come.
                    turn.set_reason(lease.job, String::new());
                }
                turn.observe(Observed::Started { lease, at });
                let waits = turn.core.jobs.get(&lease.job).is_some_and(|job| {
                    !job.detail.ready && job.detail.port.is_some() && lease.task == 0
                });
                if own.is_ready && waits {
                    turn.observe(Observed::Ready { lease, at });
                }
            }
            Phase::Pending => {
                let Some(why) = own.waits_for() else { return };
                if own.is_hopeless(at) && turn.stop_cause(lease).is_none() {
                    self.never_begins(turn, lease, uid, why);
                } else {
                    turn.set_reason(lease.job, why);
                }
            }
        }
    }

    /// A pod is there, and its command will never begin.
    fn never_begins(&mut self, turn: &mut Turn<'_>, lease: LeaseId, uid: &Uid, why: String) {
        turn.not_started(lease, why);
        self.release_shares(lease);
        self.forget_task(uid);
    }

    /// A pod with Berth's labels that is the task of no open lease. A user can write the labels,
    /// too, so it is removed only if its job is known to have such a pod.
    pub(super) fn stray(&mut self, core: &Core, uid: &Uid) {
        let Some((lease, pod)) = self.made(uid) else { return };
        let view = &self.pods[uid].view;
        if view.is_leaving {
            return;
        }
        if view.node.is_none() {
            // Ours are made with their node.
            return self.report_invalid(uid, NOT_MANAGED_TEXT);
        }
        match core.jobs.get(&lease.job) {
            Some(job) if is_of(job, view, lease) => {
                self.managed.order(PodOrder::Remove { lease, pod });
            }
            Some(_) => {}
            None => {
                if self.managed.asked.insert(uid.clone()) {
                    self.managed.order(PodOrder::Stray { lease, pod });
                }
            }
        }
    }

    /// A pod of Berth's own is lost. The lease that is open now may be a later one.
    pub(super) fn lose_managed(&mut self, turn: &mut Turn<'_>, uid: &Uid, why: &str) {
        let Some(lease) = self.pods.get(uid).and_then(|pod| Some(pod.view.managed.as_ref()?.lease))
        else {
            return;
        };
        if self.forget_task(uid).is_some() {
            self.lose(turn, lease, why);
        }
    }

    fn lose(&mut self, turn: &mut Turn<'_>, lease: LeaseId, why: &str) {
        let mut ended = Ended::lost(lease, turn.at, why.to_owned());
        ended.asked = turn.stop_cause(lease);
        self.ended(turn, ended);
    }

    /// A lease is over of which no pod tells.
    pub fn lease_ended(&mut self, turn: &mut Turn<'_>, lease: LeaseId, over: LeaseEnd) {
        match over {
            LeaseEnd::Ended(ended) => self.ended(turn, *ended),
            LeaseEnd::NotStarted(why) => {
                turn.not_started(lease, why);
                self.release_shares(lease);
            }
        }
        self.nodes.report(turn);
    }

    /// A pod of Berth's own is gone.
    pub(super) fn forget_managed(&mut self, uid: &Uid) {
        let Some((lease, _)) = self.made(uid) else { return };
        self.managed.asked.remove(uid);
        if self.managed.pods.get(&lease) == Some(&Some(uid.clone())) {
            self.managed.pods.remove(&lease);
            self.managed.order(PodOrder::Forget { lease });
        }
    }

    /// Whether the lease was one of Berth's own jobs.
    pub(super) fn start_managed(
        &mut self,
        core: &Core,
        lease: LeaseId,
    ) -> Result<bool, StartError> {
        let Some(create) = CreatePod::of(core, lease, &self.nodes)? else { return Ok(false) };
        self.managed.pods.entry(lease).or_default();
        self.start_lease(core, Begin::CreatePod(Box::new(create)));
        Ok(true)
    }

    pub(super) fn create_managed(&mut self, create: Box<CreatePod>) {
        self.managed.order(PodOrder::CreatePod(create));
    }

    /// Whether the lease was one of Berth's own jobs.
    pub(super) fn stop_managed(&mut self, lease: LeaseId, cause: Cause, grace: Span) -> bool {
        let Some(uid) = self.managed.pods.get(&lease) else { return false };
        self.shares.forget(lease);
        let pod = uid.as_ref().and_then(|uid| self.made(uid)).map(|(_, pod)| pod);
        self.managed.order(PodOrder::Stop { lease, pod, cause, grace });
        true
    }

    /// The end of a lease is in the log.
    pub(super) fn acknowledge_managed(&mut self, lease: LeaseId) {
        match self.managed.pods.get(&lease) {
            None => {}
            Some(None) => {
                self.managed.pods.remove(&lease);
                self.managed.order(PodOrder::Forget { lease });
            }
            Some(Some(uid)) => {
                let leaves = self.pods.get(uid).is_some_and(|pod| pod.view.is_leaving);
                if let Some((_, pod)) = self.made(uid).filter(|_| !leaves) {
                    self.managed.order(PodOrder::Remove { lease, pod });
                }
            }
        }
    }

    fn made(&self, uid: &Uid) -> Option<(LeaseId, PodRef)> {
        let view = &self.pods.get(uid)?.view;
        Some((view.managed.as_ref()?.lease, view.at.clone()))
    }
}

/// Whether it is the pod that was made for an open lease, and none that only says so.
fn is_task(core: &Core, view: &PodView, lease: LeaseId) -> bool {
    let job = core.jobs.get(&lease.job);
    job.is_some_and(|job| job.leases.contains_key(&lease) && is_of(job, view, lease))
}

/// Whether a lease has not begun so far, and is not to end.
fn is_new(core: &Core, lease: LeaseId) -> bool {
    let live = core.jobs.get(&lease.job).and_then(|job| job.leases.get(&lease));
    live.is_some_and(|live| live.row.started.is_none() && live.stopping.is_none())
}

/// Whether it is where the pods of the job are, and called as that of the lease is.
fn is_of(job: &LiveJob, view: &PodView, lease: LeaseId) -> bool {
    let container = container_of(job);
    container.is_some_and(|at| is_pod_of(&at.namespace, &job.row.name, lease, &view.at))
}

/// What a managed job runs in.
fn container_of(job: &LiveJob) -> Option<&Container> {
    job.detail.workload.run()?.container.as_ref()
}
