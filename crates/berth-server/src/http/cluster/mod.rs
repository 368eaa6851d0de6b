//! What the cluster has, who uses it, and who is entitled to it.

pub(super) mod gpus;
mod nodes;
mod queues;
mod shares;
mod state;

use crate::app::App;
use axum::routing::{MethodFilter, MethodRouter, on};

pub(super) use queues::{percentile, waits};
pub(super) use state::knobs;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "list_queues" => on(filter, queues::list),
        "get_queue" => on(filter, queues::get),
        "list_shares" => on(filter, shares::list),
        "list_gpus" => on(filter, gpus::list),
        "list_nodes" => on(filter, nodes::list),
        "get_node" => on(filter, nodes::get),
        "drain_node" => on(filter, nodes::drain),
        "cordon_node" => on(filter, nodes::cordon),
        "resume_node" => on(filter, nodes::resume),
        "get_policy" => on(filter, state::policy),
        "get_world" => on(filter, state::world),
        "list_config" => on(filter, state::config),
        _ => return None,
    })
}
