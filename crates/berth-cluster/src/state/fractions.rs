//! Pods with a fraction of a GPU, and the reservation pods that hold those GPUs.

use super::orders::{ApiOrder, GpuSlot};
use super::shares::{Begin, HolderFollowUp, Waiter, slots};
use super::{ClusterState, Uid};
use berth_engine::{Core, Turn};
use berth_model::LeaseId;
use berth_model::{Ended, Observed};

impl ClusterState {
    /// Lets a lease begin; one that shares a GPU as soon as that is known.
    pub(super) fn start_lease(&mut self, core: &Core, begin: Begin) {
        let slots = slots(core, begin.lease());
        if slots.is_empty() {
            return self.order_start(begin);
        }
        self.reserve_gpus(begin.lease(), slots);
        if let Some(begin) = self.shares.begin(begin) {
            self.order_start(begin);
        }
    }

    fn order_start(&mut self, begin: Begin) {
        match begin {
            Begin::Bind(bind) => self.order(ApiOrder::Bind(*bind)),
            Begin::CreatePod(create) => self.create_managed(create),
        }
    }

    fn reserve_gpus(&mut self, lease: LeaseId, slots: Vec<GpuSlot>) {
        let pods = self.shares.holding(&slots);
        for order in self.shares.hold(lease, slots) {
            self.order(order);
        }
        pods.iter().for_each(|pod| self.count(&pod.uid));
    }

    /// What the leases of before have parts of, as far as their pods are left.
    pub(super) fn remember_fractions(&mut self, core: &Core) {
        let leases = core.jobs.values().flat_map(|job| job.leases.keys().copied());
        let shared = leases.map(|lease| (lease, slots(core, lease)));
        let shared: Vec<(LeaseId, Vec<GpuSlot>)> =
            shared.filter(|(_, slots)| !slots.is_empty()).collect();
        for (lease, slots) in shared {
            self.reserve_gpus(lease, slots);
        }
    }

    /// Deletes the reservation pods that no lease needs.
    pub(super) fn give_back_idle(&mut self) {
        for pod in self.shares.idle() {
            self.order(ApiOrder::Release { pod });
        }
    }

    /// A lease has ended, and with it what it held of shared GPUs: in the same turn, so that a GPU
    /// is not given away whole while a pod of ours still holds it.
    pub(super) fn ended(&mut self, turn: &mut Turn<'_>, ended: Ended) {
        let lease = ended.lease;
        turn.observe(Observed::Ended(Box::new(ended)));
        self.release_shares(lease);
    }

    pub(super) fn release_shares(&mut self, lease: LeaseId) {
        let holding = self.shares.holding_for(lease);
        let free = self.shares.release(lease);
        // Also a reservation that stays for now, because a pod that uses its GPU has not ended.
        holding.iter().for_each(|pod| self.count(&pod.uid));
        for pod in free {
            self.order(ApiOrder::Release { pod });
        }
    }

    /// A pod was seen that may hold a GPU, or have a part of one.
    pub(super) fn observe_sharing(&mut self, uid: &Uid) {
        let Some(pod) = self.pods.get(uid) else { return };
        if pod.view.shares.is_some() && pod.view.node.is_some() {
            match pod.view.phase.is_over() {
                true => self.lose_gpu_user(uid),
                false => self.shares.observe_user(&pod.view),
            }
        }
        let Some(pod) = self.pods.get(uid).filter(|pod| pod.view.holds.is_some()) else { return };
        for next in self.shares.observe_holder(&pod.view) {
            match next {
                HolderFollowUp::Begin(begin) => self.order_start(begin),
                HolderFollowUp::Release(pod) => self.order(ApiOrder::Release { pod }),
            }
        }
    }

    /// A pod does not run any more.
    pub(super) fn lose_gpu_user(&mut self, uid: &Uid) {
        let Some(pod) = self.pods.get(uid) else { return };
        for pod in self.shares.lose_gpu_user(&pod.view) {
            self.order(ApiOrder::Release { pod });
        }
    }

    /// A GPU could not be held.
    pub(super) fn not_reserved(&mut self, turn: &mut Turn<'_>, slot: &GpuSlot, why: &str) {
        let GpuSlot { node, gpu } = slot;
        let message = format!(
            "GPU {gpu} of {node} could not be held for it: {why}. See that the namespace and the \
             service account of reservations are there, and that Berth may make pods in it"
        );
        for waits in self.shares.waiting_for(slot) {
            match waits {
                Waiter::Pod(pod) => self.report_reason(&pod.uid, &message),
                Waiter::Job(job) => turn.set_reason(job, message.clone()),
            }
        }
        for order in self.shares.again(slot) {
            self.order(order);
        }
    }
}
