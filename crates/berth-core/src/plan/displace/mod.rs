//! Taking GPUs from running jobs: reclaim between queues, preemption inside one, classes that
//! reach across. Victims are freed on the draft in their order until the claimant fits; then only
//! those it really needs are stopped, and it is promised their places.

mod budgets;
mod by_gpu;
mod by_node;
mod by_room;
mod eligible;
pub(crate) mod gains;
mod node_victims;
pub(crate) mod protection;
pub(crate) mod right;
mod room;
mod search;
mod sources;
mod surplus;
pub(crate) mod take_places;
mod victim_sets;
mod victims;
