//! Folding an event into the state. It never plans; an event that is refused changes nothing.

pub(crate) mod applied;
mod billing;
mod clock;
mod decisions;
mod history;
mod jobs;
mod leases;
mod nodes;
mod queues;
mod settings;
mod try_decision;
pub(crate) mod validate;

use crate::apply::applied::Applied;
use crate::apply::clock::BeforeAdvance;
use crate::state::State;
use berth_model::{Event, Rejected, Stamped};

impl State {
    /// Folds the next event of the log into the state.
    pub fn apply(&mut self, stamped: &Stamped) -> Result<Applied, Rejected> {
        if stamped.seq <= self.seq {
            return Err(Rejected::Duplicate { seq: stamped.seq, last: self.seq });
        }
        if stamped.seq > self.seq + 1 {
            return Err(Rejected::Gap { seq: stamped.seq, last: self.seq });
        }
        if stamped.at < self.now {
            return Err(Rejected::TimeWentBack { at: stamped.at, now: self.now });
        }
        validate::event(self, &stamped.event, stamped.at)?;
        let mut applied = Applied::default();
        if let Event::Decided { decisions, .. } = &stamped.event {
            // The one event whose parts depend on each other: tried as a whole first, at its time.
            let before = BeforeAdvance::of(self);
            let begun = self.advance(stamped.at);
            if let Err(why) = self.decided(decisions, &mut applied) {
                self.rewind(before, begun);
                return Err(why);
            }
        } else {
            let _ = self.advance(stamped.at);
            self.fold(&stamped.event, &mut applied);
        }
        self.seq = stamped.seq;
        Ok(applied)
    }

    fn fold(&mut self, event: &Event, applied: &mut Applied) {
        match event {
            Event::JobSubmitted { spec } => self.job_submitted(spec),
            Event::JobCancelled { job } => self.job_cancelled(*job, applied),
            Event::JobChanged { job, change } => self.job_changed(*job, change),
            Event::LeaseStarted { lease } => self.lease_started(*lease, applied),
            Event::LeaseSaved { job } => self.lease_saved(*job),
            Event::LeaseEnded { lease, outcome } => self.lease_ended(*lease, *outcome, applied),
            Event::NodeAdded { node } => self.node_added(node, applied),
            Event::NodeChanged { node, state } => self.node_changed(node, *state),
            Event::NodeRemoved { node } => self.node_removed(node, applied),
            Event::GpuChanged { node, gpu, health } => self.gpu_changed(node, *gpu, *health),
            Event::DataKept { node, data } => self.data_kept(node, data),

            Event::QueueSet { queue } => self.queue_set(queue, applied),
            Event::QueueRemoved { queue } => self.queue_removed(queue),
            Event::PolicySet { policy } => self.policy_set(policy),

            Event::ClassesSet { classes } => {
                self.classes = classes.clone();
                self.cluster.class_version += 1;
            }
            Event::ModelsSet { prices, speeds, watts } => {
                self.models_set(prices, speeds, watts, applied)
            }

            Event::TopologySet { topologies } => self.set_topologies(topologies),
            Event::PoolSet { pool } => {
                self.pools.insert(pool.name.clone(), (**pool).clone());
            }
            Event::PoolRemoved { pool } => {
                self.pools.remove(pool);
            }
            Event::ClaimReady { claim, node } => {
                self.claims.remove(claim);
                self.node_added(node, applied);
            }
            Event::ClaimFailed { claim, retry_at } => self.claim_failed(claim, *retry_at),

            Event::ReservationSet { reservation } => self.reservation_set(reservation),

            Event::ReservationRemoved { name } => {
                let gone = self.reservations.remove(name).expect("validated");
                self.set_blocks(&gone.nodes);
            }
            Event::DisruptionsSet { budget, allowed } => self.disruptions_set(budget, *allowed),
            Event::Tick => self.tick(applied),
            Event::BillDue => self.bill_due(applied),
            Event::Decided { .. } => unreachable!("handled by apply"),
        }
    }
}
