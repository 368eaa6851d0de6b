//! Orders to the API server, and their outcomes.

use super::device_claims::DeviceClaimError;
use crate::constraints::dynamic::VolumeStep;
use crate::view::{JobRef, ObjectEvent, PodEvent};
use berth_kube::dra::Allocation;
use berth_model::PodRef;
use berth_model::{LeaseId, Name};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The reasons of the condition `PodScheduled`.
pub const UNSCHEDULABLE: &str = "Unschedulable";
pub const GANG_INCOMPLETE: &str = "GangIncomplete";

/// One GPU of a node, by its number in the core.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GpuSlot {
    pub node: Name,
    pub gpu: u32,
}

/// A request to the API server.
#[derive(Debug)]
pub enum ApiOrder {
    Bind(Bind),
    /// A pod is to hold a GPU for those that share it.
    Reserve {
        slot: GpuSlot,
        tries: u32,
    },
    /// A reservation pod is to be deleted: no pod shares its GPU any more.
    Release {
        pod: PodRef,
    },
    Evict {
        pod: PodRef,
        grace_secs: i64,
        why: &'static str,
    },
    /// On the pod as it was in that version.
    WriteReason {
        pod: PodRef,
        version: String,
        /// In one word, such as [`UNSCHEDULABLE`].
        reason: &'static str,
        message: String,
    },
    /// A condition that says when a pod will have reached its time limit.
    AnnounceEnd {
        pod: PodRef,
        message: String,
    },
    /// An event about a pod, such as `kubectl describe pod` shows. It waits behind everything else.
    WritePodEvent(PodEvent),
    /// An event on an object.
    WriteEvent(ObjectEvent),
    /// Suspends or resumes a job of another controller, whichever is wanted at the time of the
    /// write.
    SetSuspended {
        job: Box<JobRef>,
        suspended: Arc<AtomicBool>,
    },
}

#[derive(Debug)]
pub struct Bind {
    pub lease: LeaseId,
    pub pod: PodRef,
    pub node: Name,
    /// A gate is in the way that is ours to lift.
    pub open: Option<OpenGate>,
    /// What is to be done for its volumes before.
    pub claims: Vec<VolumeStep>,
    pub permit: BindPermit,
    /// The GPUs that its containers share, for its annotation.
    pub gpus: Option<String>,
    /// What has to be written first for the devices that it claims.
    pub devices: Vec<BindStep>,
}

impl Bind {
    /// Nothing has to be written before.
    pub fn is_one_request(&self) -> bool {
        self.open.is_none() && self.claims.is_empty() && self.devices.is_empty()
    }
}

/// Lifts a gate. Until the pod is bound it may run nowhere else: another scheduler may see it in
/// between.
#[derive(Debug)]
pub struct OpenGate {
    /// As the label of its node has it.
    pub hostname: Option<String>,
}

/// Whether a binding is still wanted. Its lease may end while it waits for the API server.
#[derive(Debug, Clone, Default)]
pub struct BindPermit(Arc<AtomicBool>);

impl BindPermit {
    pub fn revoke(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_revoked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What came of an order.
#[derive(Debug)]
pub enum OrderOutcome {
    Bound(LeaseId),
    /// The pod is gone, or another scheduler has bound it.
    Lost {
        lease: LeaseId,
        pod: PodRef,
        why: String,
    },
    /// The devices that it claims were not available; they may be later.
    Unready {
        lease: LeaseId,
        pod: PodRef,
        why: String,
    },
    /// It is not possible there, but may be elsewhere.
    Infeasible(LeaseId, String),
    /// It will never be possible.
    Impossible(LeaseId, String),
    /// Nothing was written: the pod was another version meanwhile, or the API server failed.
    ReasonNotWritten(UnwrittenReason),
    /// No pod could be made that holds the GPU.
    NotReserved(GpuSlot, String),
}

/// A [`ApiOrder::WriteReason`] that was not carried out.
#[derive(Debug)]
pub struct UnwrittenReason {
    pub pod: PodRef,
    pub version: String,
    pub reason: &'static str,
    pub message: String,
    /// Whether the API server failed, so that the same write may succeed later.
    pub again: bool,
}

#[derive(Debug)]
pub enum BindStep {
    /// A claim is given its devices.
    Claim(Box<Allocation>),
    /// The devices that were decided cannot be given any more.
    Gone(DeviceClaimError),
}
