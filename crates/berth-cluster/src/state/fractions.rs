//! Pods with a fraction of a GPU, and the pods that hold those GPUs.

use super::orders::ApiOrder;
use super::shares::{Begin, Next, Spot, Waits, spots};
use super::{Mirror, Uid};
use berth_engine::{Core, Turn};
use berth_model::LeaseId;
use berth_node::{Ended, Observed};

impl Mirror {
    /// Lets a lease begin; one that shares a GPU as soon as that is known.
    pub(super) fn begin_lease(&mut self, core: &Core, begin: Begin) {
        let spots = spots(core, begin.lease());
        if spots.is_empty() {
            return self.carry_out(begin);
        }
        self.hold_gpus(begin.lease(), spots);
        if let Some(begin) = self.shares.begin(begin) {
            self.carry_out(begin);
        }
    }

    fn carry_out(&self, begin: Begin) {
        match begin {
            Begin::Bind(bind) => self.order(ApiOrder::Bind(*bind)),
            Begin::Create(create) => self.make_own(create),
        }
    }

    fn hold_gpus(&mut self, lease: LeaseId, spots: Vec<Spot>) {
        let pods = self.shares.holding(&spots);
        for order in self.shares.hold(lease, spots) {
            self.order(order);
        }
        pods.iter().for_each(|pod| self.count(&pod.uid));
    }

    /// What the leases of before have parts of, as far as their pods are left.
    pub(super) fn remember_fractions(&mut self, core: &Core) {
        let leases = core.jobs.values().flat_map(|job| job.leases.keys().copied());
        let shared = leases.map(|lease| (lease, spots(core, lease)));
        let shared: Vec<(LeaseId, Vec<Spot>)> =
            shared.filter(|(_, spots)| !spots.is_empty()).collect();
        for (lease, spots) in shared {
            self.hold_gpus(lease, spots);
        }
    }

    /// What is held for nobody is given back.
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
        self.unshare(lease);
    }

    pub(super) fn unshare(&mut self, lease: LeaseId) {
        let holding = self.shares.holding_for(lease);
        let free = self.shares.let_go(lease);
        // Also one that stays for now, because a pod that was told of its GPU has not ended.
        holding.iter().for_each(|pod| self.count(&pod.uid));
        for pod in free {
            self.order(ApiOrder::Release { pod });
        }
    }

    /// A pod was seen that may hold a GPU, or have a part of one.
    pub(super) fn see_sharing(&mut self, uid: &Uid) {
        let Some(pod) = self.pods.get(uid) else { return };
        if pod.sight.shares.is_some() && pod.sight.node.is_some() {
            match pod.sight.phase.is_over() {
                true => self.lose_user(uid),
                false => self.shares.see_user(&pod.sight),
            }
        }
        let Some(pod) = self.pods.get(uid).filter(|pod| pod.sight.holds.is_some()) else { return };
        for next in self.shares.see(&pod.sight) {
            match next {
                Next::Begin(begin) => self.carry_out(begin),
                Next::Release(pod) => self.order(ApiOrder::Release { pod }),
            }
        }
    }

    /// A pod does not run any more.
    pub(super) fn lose_user(&mut self, uid: &Uid) {
        let Some(pod) = self.pods.get(uid) else { return };
        for pod in self.shares.lose_user(&pod.sight) {
            self.order(ApiOrder::Release { pod });
        }
    }

    /// A GPU could not be held.
    pub(super) fn not_reserved(&mut self, turn: &mut Turn<'_>, spot: &Spot, why: &str) {
        let Spot { node, gpu } = spot;
        let message = format!(
            "GPU {gpu} of {node} could not be held for it: {why}. See that the namespace and the \
             service account of reservations are there, and that Berth may make pods in it"
        );
        for waits in self.shares.waiting_for(spot) {
            match waits {
                Waits::Pod(pod) => self.say(&pod.uid, &message),
                Waits::Job(job) => turn.set_reason(job, message.clone()),
            }
        }
        for order in self.shares.again(spot) {
            self.order(order);
        }
    }
}
