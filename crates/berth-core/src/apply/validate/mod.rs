//! Whether an event makes sense, before anything changes.

pub(crate) mod groups;
pub(crate) mod jobs;
mod limits;
pub(crate) mod nodes;
mod pools;
pub(crate) mod queues;
pub(crate) mod settings;

use crate::state::State;
use berth_model::{Event, Rejected, Time};

/// Refuses an event that makes no sense in this state.
pub(crate) fn event(state: &State, event: &Event, at: Time) -> Result<(), Rejected> {
    match event {
        Event::JobSubmitted { spec } => jobs::submitted(state, spec),
        Event::JobCancelled { job } => jobs::cancelled(state, *job),
        Event::JobChanged { job, change } => jobs::changed(state, *job, change),
        Event::LeaseStarted { lease } | Event::LeaseEnded { lease, .. } => {
            jobs::lease_is_open(state, *lease)
        }
        Event::LeaseSaved { job } => jobs::saved(state, *job),
        Event::NodeAdded { node } => nodes::node(state, node),
        Event::NodeChanged { node, state: new } => nodes::changed(state, node, new, at),
        Event::NodeRemoved { node } => nodes::removed(state, node),
        Event::GpuChanged { node, gpu, .. } => nodes::gpu_changed(state, node, *gpu),
        Event::DataKept { node, data } => nodes::data_kept(state, node, data),
        Event::QueueSet { queue } => queues::queue(state, queue),
        Event::QueueRemoved { queue } => queues::removed(state, queue),
        Event::PolicySet { policy } => settings::policy(policy),
        Event::ModelsSet { prices, speeds, watts } => settings::models(prices, speeds, watts),
        Event::TopologySet { topologies } => settings::topologies(state, topologies),
        Event::PoolSet { pool } => pools::pool(pool),
        Event::PoolRemoved { pool } => pools::pool_known(state, pool),
        Event::ClaimReady { claim, node } => {
            pools::claim_known(state, claim)?;
            nodes::node(state, node)
        }
        Event::ClaimFailed { claim, .. } => pools::claim_known(state, claim),
        Event::ReservationSet { reservation } => pools::reservation(state, reservation),
        Event::ReservationRemoved { name } => pools::reservation_known(state, name),
        Event::ClassesSet { .. }
        | Event::DisruptionsSet { .. }
        | Event::Decided { .. }
        | Event::Tick
        | Event::BillDue => Ok(()),
    }
}
