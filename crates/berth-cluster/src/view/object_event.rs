//! Annotations and events that Berth writes on objects.

use berth_kube::event::{Level, ObjectReference};
use berth_model::PodRef;

/// The annotation that says which job and lease a pod is.
pub const LEASE: &str = "berth.dev/lease";

/// A Warning event that Berth is to write on an object.
#[derive(Debug)]
pub struct ObjectEvent {
    pub about: ObjectReference,
    /// The reason in one word.
    pub reason: &'static str,
    pub note: String,
    /// Events with the same reason and key are written once; the key is the note where left out. A
    /// note with figures changes with them without saying anything new.
    pub dedup_key: Option<String>,
}

/// An event about one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodEvent {
    pub pod: PodRef,
    pub level: Level,
    /// The reason in one word, such as `FailedScheduling`.
    pub reason: &'static str,
    pub note: String,
    /// Events about a pod with the same reason and key are one object, which counts them.
    pub key: String,
}
