//! What Berth knows of one object of the cluster: values without behaviour of their own, read once
//! when the object is observed.

mod external;
pub mod managed;
pub mod managed_names;
mod node;
mod object_event;
mod pod;
mod pod_constraints;
mod queued;
mod unschedulable;

pub use external::{ExternalKind, ExternalQueue, ExternalQueues};
pub use managed::ManagedPodView;
pub use managed_names::{CONTAINER, FETCH, is_pod_of, pod_ref};
pub use node::{Asks, NodePredicate, NodeView, NodeViews, untolerated};
pub use object_event::{LEASE, ObjectEvent, PodEvent};
pub use pod::{
    DeviceClaimRef, GangKey, LateMember, Phase, PodResources, PodView, Rank, ResourceUsage,
    SchedulingRequest,
};
pub use pod_constraints::PodConstraints;
pub use queued::{ChildRef, GATE, JobRef, QueuedJob, parse_placeholder, placeholder};
pub use unschedulable::{Unreadable, Unschedulable};
