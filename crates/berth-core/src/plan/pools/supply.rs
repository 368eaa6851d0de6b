//! Machines that are on their way already, and what they have room for.

use crate::ix::JobIx;
use crate::plan::pools::offering::{milli_on, serves, tasks_per_machine};
use crate::plan::pools::room::{Room, fill};
use crate::shape::Shape;
use crate::state::State;
use berth_model::{JobId, Name, Offering};
use std::collections::BTreeMap;

/// A machine being bought, with the room on it that no job counts on yet.
pub(crate) struct Machine {
    pub(super) labels: BTreeMap<Name, Name>,
    pub(super) offering: Offering,
    pub(super) room: Room,
}

impl Machine {
    /// Takes as many of the missing tasks as it has room for.
    pub(super) fn serve(&mut self, state: &State, job: JobIx, shape: &Shape, missing: &mut [u32]) {
        if !serves(state, job, &self.offering) {
            return;
        }
        for (leaf, left) in shape.leaves.iter().zip(missing) {
            let most = tasks_per_machine(state, leaf, &self.labels, &self.offering);
            if most > 0 {
                let milli = milli_on(state, leaf, &self.offering);
                *left -= fill(std::slice::from_mut(&mut self.room), leaf, milli, most.min(*left));
            }
        }
    }
}

/// What blocked jobs can count on without another machine.
pub(crate) struct Supply {
    pub(super) machines: Vec<Machine>,
    /// What jobs that machines are bought for lack beyond those.
    pub(super) served: BTreeMap<JobId, Vec<u32>>,
    /// Free GPUs that earlier jobs of the plan count on.
    pub(super) free_taken: u32,
}

impl Supply {
    pub(super) fn coming(state: &State) -> Supply {
        let mut machines = Vec::new();
        let mut served: BTreeMap<JobId, Vec<u32>> = BTreeMap::new();
        for claim in state.claims.values() {
            let Some(pool) = state.pools.get(&claim.pool) else { continue };
            let offering = pool.offerings.iter().find(|offering| {
                offering.instance == claim.instance
                    && offering.zone == claim.zone
                    && offering.lifecycle == claim.lifecycle
            });
            let Some(offering) = offering else { continue };
            let mut machine = Machine {
                labels: pool.labels.clone(),
                offering: offering.clone(),
                room: Room::of(offering),
            };
            if let Some(id) = claim.for_job
                && let Some(job) = state.jobs.find(id).filter(|ix| state.is_waiting(*ix))
            {
                let shape = state.shape_of(job);
                let missing = served
                    .entry(id)
                    .or_insert_with(|| shape.leaves.iter().map(|leaf| leaf.min).collect());
                machine.serve(state, job, shape, missing);
            }
            machines.push(machine);
        }
        Supply { machines, served, free_taken: 0 }
    }
}
