//! Pods that Berth has made for its own jobs. Each is the task of one lease; the pods themselves say
//! of which.

use super::pod_orders::{Create, Over, PodOrder};
use super::shares::Begin;
use super::{Mirror, Uid};
use crate::view::is_pod_of;
use crate::view::{Phase, PodSight};
use berth_engine::{Core, LiveJob, Turn, UnreadableLease};
use berth_model::PodRef;
use berth_model::{Cause, JobId, LeaseId, Span};
use berth_node::{Ended, Observed};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc;

/// Said on pods that would wait for ever.
const NOT_OURS: &str = "its labels say that Berth has made it for a job of its own, and Berth has \
                        not; take the label berth.dev/job off it";

/// The way to whoever makes pods, and the pods of each lease that was ordered or seen.
pub struct Own {
    orders: mpsc::UnboundedSender<PodOrder>,
    pods: BTreeMap<LeaseId, Option<Uid>>,
    /// Pods about which the books have been asked.
    asked: BTreeSet<Uid>,
}

impl Own {
    pub fn new(orders: mpsc::UnboundedSender<PodOrder>) -> Own {
        Own { orders, pods: BTreeMap::new(), asked: BTreeSet::new() }
    }

    fn order(&self, order: PodOrder) {
        // Only at the end of the server is there nobody to take it; the next one orders again.
        let _ = self.orders.send(order);
    }
}

impl Mirror {
    /// Takes in what was made before the server started, and misses what is not there any more.
    pub(super) fn begin_own(&mut self, turn: &mut Turn<'_>) {
        let own = self.pods.iter().filter(|(_, pod)| pod.sight.own.is_some());
        let own: Vec<Uid> = own.map(|(uid, _)| uid.clone()).collect();
        for uid in own {
            if self.know_own(turn.core, &uid).is_some() {
                self.of_own(turn, &uid);
            }
        }
        let own = turn.core.jobs.values().filter(|job| job.detail.run.container.is_some());
        let begun = own.flat_map(|job| &job.leases).filter(|(_, live)| live.row.started.is_some());
        let lost =
            begun.map(|(lease, _)| *lease).filter(|lease| !self.own.pods.contains_key(lease));
        for lease in lost.collect::<Vec<_>>() {
            self.lose(turn, lease, "its pod is gone");
        }
    }

    /// Which task a pod is that Berth has made, and nothing when its lease is closed.
    pub(super) fn know_own(&mut self, core: &Core, uid: &Uid) -> Option<(JobId, u32)> {
        let pod = self.pods.get_mut(uid)?;
        let lease = pod.sight.own.as_ref()?.lease;
        let task = is_task(core, &pod.sight, lease).then_some((lease.job, lease.task));
        pod.task = task;
        if task.is_some() {
            self.own.pods.insert(lease, Some(uid.clone()));
        }
        task
    }

    /// A pod of an open lease was seen.
    pub(super) fn of_own(&mut self, turn: &mut Turn<'_>, uid: &Uid) {
        let sight = &self.pods[uid].sight;
        let Some(own) = sight.own.clone() else { return };
        let (lease, at) = (own.lease, turn.at);
        match sight.phase {
            Phase::Succeeded | Phase::Failed { .. } | Phase::Evicted => {
                let mut ended = match sight.phase {
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
                    turn.not_started(lease, why);
                    self.unshare(lease);
                    self.forget_task(uid);
                } else {
                    turn.set_reason(lease.job, why);
                }
            }
        }
    }

    /// A pod that says Berth has made it, and is the task of no open lease. Anybody can write
    /// that: it is removed if its job is known to have such a pod.
    pub(super) fn stray(&mut self, core: &Core, uid: &Uid) {
        let Some((lease, pod)) = self.made(uid) else { return };
        let sight = &self.pods[uid].sight;
        if sight.is_leaving {
            return;
        }
        if sight.node.is_none() {
            // Ours are made with their node.
            return self.complain(uid, NOT_OURS);
        }
        match core.jobs.get(&lease.job) {
            Some(job) if is_of(job, sight, lease) => {
                self.own.order(PodOrder::Remove { lease, pod });
            }
            Some(_) => {}
            None => {
                if self.own.asked.insert(uid.clone()) {
                    self.own.order(PodOrder::Stray { lease, pod });
                }
            }
        }
    }

    /// A pod of Berth's own is lost. The lease that is open now may be a later one.
    pub(super) fn leave_own(&mut self, turn: &mut Turn<'_>, uid: &Uid, why: &str) {
        let Some(lease) = self.pods.get(uid).and_then(|pod| Some(pod.sight.own.as_ref()?.lease))
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
    pub fn over_own(&mut self, turn: &mut Turn<'_>, lease: LeaseId, over: Over) {
        match over {
            Over::Ended(ended) => self.ended(turn, *ended),
            Over::NotStarted(why) => {
                turn.not_started(lease, why);
                self.unshare(lease);
            }
        }
        self.nodes.tell(turn);
    }

    /// A pod of Berth's own is gone.
    pub(super) fn gone_own(&mut self, uid: &Uid) {
        let Some((lease, _)) = self.made(uid) else { return };
        self.own.asked.remove(uid);
        if self.own.pods.get(&lease) == Some(&Some(uid.clone())) {
            self.own.pods.remove(&lease);
            self.own.order(PodOrder::Forget { lease });
        }
    }

    /// Whether the lease was one of Berth's own jobs.
    pub(super) fn start_own(
        &mut self,
        core: &Core,
        lease: LeaseId,
    ) -> Result<bool, UnreadableLease> {
        let Some(create) = Create::of(core, lease, &self.nodes)? else { return Ok(false) };
        self.own.pods.entry(lease).or_default();
        self.begin_lease(core, Begin::Create(Box::new(create)));
        Ok(true)
    }

    pub(super) fn make_own(&self, create: Box<Create>) {
        self.own.order(PodOrder::Create(create));
    }

    /// Whether the lease was one of Berth's own jobs.
    pub(super) fn stop_own(&mut self, lease: LeaseId, cause: Cause, grace: Span) -> bool {
        let Some(uid) = self.own.pods.get(&lease) else { return false };
        self.shares.forget(lease);
        let pod = uid.as_ref().and_then(|uid| self.made(uid)).map(|(_, pod)| pod);
        self.own.order(PodOrder::Stop { lease, pod, cause, grace });
        true
    }

    /// The end of a lease is in the log.
    pub(super) fn acknowledge_own(&mut self, lease: LeaseId) {
        match self.own.pods.get(&lease) {
            None => {}
            Some(None) => {
                self.own.pods.remove(&lease);
                self.own.order(PodOrder::Forget { lease });
            }
            Some(Some(uid)) => {
                let leaves = self.pods.get(uid).is_some_and(|pod| pod.sight.is_leaving);
                if let Some((_, pod)) = self.made(uid).filter(|_| !leaves) {
                    self.own.order(PodOrder::Remove { lease, pod });
                }
            }
        }
    }

    fn made(&self, uid: &Uid) -> Option<(LeaseId, PodRef)> {
        let sight = &self.pods.get(uid)?.sight;
        Some((sight.own.as_ref()?.lease, sight.at.clone()))
    }
}

/// Whether it is the pod that was made for an open lease, and none that only says so.
fn is_task(core: &Core, sight: &PodSight, lease: LeaseId) -> bool {
    let job = core.jobs.get(&lease.job);
    job.is_some_and(|job| job.leases.contains_key(&lease) && is_of(job, sight, lease))
}

/// Whether a lease has not begun so far, and is not to end.
fn is_new(core: &Core, lease: LeaseId) -> bool {
    let live = core.jobs.get(&lease.job).and_then(|job| job.leases.get(&lease));
    live.is_some_and(|live| live.row.started.is_none() && live.stopping.is_none())
}

/// Whether it is where the pods of the job are, and called as that of the lease is.
fn is_of(job: &LiveJob, sight: &PodSight, lease: LeaseId) -> bool {
    let container = job.detail.run.container.as_ref();
    container.is_some_and(|at| is_pod_of(&at.namespace, &job.row.name, lease, &sight.at))
}
