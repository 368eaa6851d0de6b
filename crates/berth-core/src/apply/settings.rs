//! The policy, what is known of GPU models, pools and reservations.

use crate::apply::applied::Applied;
use crate::ix::JobIx;
use crate::state::State;
use berth_model::{Micros, Milli, Name, Policy, Reservation, Time};
use std::collections::BTreeMap;

impl State {
    pub(super) fn policy_set(&mut self, policy: &Policy) {
        let version = policy.version.max(self.policy.version + 1);
        // Jobs stand in line by how long they would hold their places, too.
        let same = policy.backfill == self.policy.backfill && policy.grace == self.policy.grace;
        let enqueued = if same { Vec::new() } else { self.jobs.enqueued() };
        enqueued.iter().for_each(|ix| {
            self.dequeue(*ix);
        });
        self.policy = Policy { version, ..policy.clone() };
        enqueued.into_iter().for_each(|ix| self.enqueue(ix));
        self.cluster.mark_all_dirty();
        self.cluster.version += 1;
        self.cluster.class_version += 1;
        let promised: Vec<JobIx> = self.promises.keys().copied().collect();
        promised.into_iter().for_each(|ix| self.retime(ix));
    }

    pub(super) fn models_set(
        &mut self,
        prices: &BTreeMap<Name, Micros>,
        speeds: &BTreeMap<Name, Milli>,
        watts: &BTreeMap<Name, i64>,
        applied: &mut Applied,
    ) {
        self.models.prices = prices.clone();
        self.models.speeds = speeds.clone();
        self.models.watts = watts.clone();
        self.cluster.version += 1;
        self.reprice(applied);
    }

    pub(super) fn claim_failed(&mut self, claim: &Name, retry_at: Time) {
        let claim = self.claims.remove(claim).expect("validated");
        if let Some(pool) = self.pools.get_mut(&claim.pool) {
            for offering in &mut pool.offerings {
                if offering.instance == claim.instance
                    && offering.zone == claim.zone
                    && offering.lifecycle == claim.lifecycle
                {
                    offering.unavailable_until = Some(retry_at);
                }
            }
        }
    }

    pub(super) fn reservation_set(&mut self, reservation: &Reservation) {
        let before = self.reservations.insert(reservation.name.clone(), reservation.clone());
        // Nodes it no longer names are free again.
        self.set_blocks(&before.map_or(Vec::new(), |before| before.nodes));
        self.set_blocks(&reservation.nodes);
    }
}
