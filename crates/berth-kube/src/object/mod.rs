//! What is read of Kubernetes objects. Ours and trimmed: of a pod of several kilobytes only what
//! bears on scheduling is kept, since tens of thousands of them are held at once.
//!
//! Reading never fails because of what a value means, only because of its shape: quantities,
//! operators and effects stay text here, so that one odd object cannot make a whole list
//! unreadable. Whoever gives them a meaning also has the words for what is wrong.

mod affinity;
mod container;
mod csi;
mod disruption;
mod list;
mod map;
mod meta;
mod node;
mod owner;
mod pod;
mod pod_address;
mod priority;
mod raw;
mod status;
mod storage;
mod text;
mod volume;

pub use affinity::{
    Affinity, LabelSelector, NodeAffinity, NodeSelector, NodeTerm, PodAffinity, PodTerm,
    PreferredNodeTerm, PreferredPodTerm, Requirement, SpreadConstraint, Toleration,
};
pub(crate) use container::GPU_FIELD;
pub use container::{Container, GPU_VARIABLE, Port, Resources};
pub use csi::{
    Allocatable, Attachable, AttachmentSource, AttachmentSpec, CsiCapacity, CsiDriver,
    CsiDriverSpec, CsiNode, CsiNodeDriver, CsiNodeSpec, VolumeAttachment,
};
pub use disruption::{DisruptionSpec, DisruptionStatus, PodDisruptionBudget};
pub use list::List;
pub use map::Map;
pub use meta::{Labels, Meta, OwnerReference};
pub use node::{Condition, Node, NodeSpec, NodeStatus, Taint};
pub use owner::{
    DependsOn, Elastic, GroupReplicas, JobSpec, JobTemplate, LeaderWorkerTemplate, Owner,
    OwnerSpec, OwnerStatus, RayCluster, RayHead, RayWorkers, ReplicatedJob, RunPolicy,
    SchedulingPolicy, Startup, Template,
};
pub use pod::{Gate, Pod, PodResourceClaim, PodSpec, SchedulingGroup, WorkloadRef};
pub use pod_address::{AddressSpec, AddressStatus, ListeningContainer, NamedPort, PodAddress};
pub use priority::PriorityClass;
pub use raw::Raw;
pub use status::{ClaimStatus, ContainerStatus, PodStatus, State, Terminated, Waiting};
pub use storage::{
    ClaimRef, ClaimSpec, CsiSource, InTree, Namespace, PersistentVolume, PersistentVolumeClaim,
    Phased, Requests, StorageClass, TopologyLabel, TopologyTerm, VolumeAffinity, VolumeSpec,
};
pub use text::Text;
pub use volume::{Disk, Volume, VolumeSource};
