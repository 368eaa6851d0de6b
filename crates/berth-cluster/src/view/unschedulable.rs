//! Why a pod or a gang cannot be scheduled as it is written.

use berth_kube::InvalidField;
use berth_kube::object::Text;
use berth_kube::pod::{gpu_sharing, requests};
use berth_kube::selector::UnsupportedConstraint;
use berth_model::Name;

/// Why Berth does not schedule a pod. The text says what its author can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unschedulable {
    #[error("spec.{field} is not understood, so nothing is risked")]
    UnknownField { field: Text },
    #[error(transparent)]
    Resources(#[from] requests::Error),
    #[error("{}", gpu_sharing::MISSING_GPU_VARIABLE)]
    MissingGpuVariable,
    #[error(transparent)]
    Constraint(#[from] UnsupportedConstraint),
    /// Labels, annotations and fields that describe its gang.
    #[error("{}", joined(.0))]
    Annotations(Vec<InvalidField>),
    #[error("nothing says how many pods make the gang {gang} whole")]
    UnknownGangSize { gang: Name },
    #[error(
        "there is no LocalQueue {queue} in the namespace {namespace}: make it, or say with --map \
         which queue is meant"
    )]
    UnknownLocalQueue { namespace: Text, queue: Name },
    #[error("there is no priority class {class}: make it, or take the mark away")]
    UnknownPriorityClass { class: Name },
    #[error(
        "it has to lie within a HyperNode of tier {tier} at most, and Berth knows of none; make \
         HyperNodes, which are read with --stand-in volcano, or take highestTierAllowed away"
    )]
    UnknownTier { tier: u32 },
    #[error("it belongs to {kind} {name}, which is not there")]
    MissingOwner { kind: Text, name: Text },
    #[error("{kind} {name} cannot be read: {why}")]
    UnreadableOwner { kind: Text, name: Text, why: Unreadable },
    #[error("it names PodGroup {name}, which is not there; make it, or take the mark away")]
    MissingPodGroup { name: Name },
    #[error("PodGroup {name} cannot be read: {why}")]
    UnreadablePodGroup { name: Name, why: Unreadable },
    /// Of a suspended job: its pods are made by something that Berth does not know.
    #[error(
        "what its pods will be cannot be read from it; let it begin by hand, and its pods wait for \
         their places as a gang"
    )]
    UnknownPodTemplates,
}

/// An object of the API server does not have the form of its kind. The text is the JSON parser's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

impl From<serde_json::Error> for Unreadable {
    fn from(error: serde_json::Error) -> Unreadable {
        Unreadable(error.to_string())
    }
}

fn joined(fields: &[InvalidField]) -> String {
    let all: Vec<String> = fields.iter().map(ToString::to_string).collect();
    all.join("; ")
}
