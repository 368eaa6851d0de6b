//! What Berth knows of one object of the cluster: values without behaviour of their own, read once
//! when the object is observed.

mod external;
pub mod managed;
pub mod managed_names;
mod node;
mod note;
mod pod;
mod queued;
mod ties;

pub use external::{Described, Foreign, Queues};
pub use managed::OwnSight;
pub use managed_names::{CONTAINER, is_pod_of, pod_ref};
pub use node::{NodeSight, NodeViews, Rule};
pub use note::{LEASE, Note};
pub use pod::{Asks, ClaimUse, GangKey, Later, Phase, PodSight, Rank, Takes, Wish};
pub use queued::{Below, GATE, JobAt, Queued, placeholder, to_be};
pub use ties::Ties;
