//! Annotations and events that Berth writes on objects.

use berth_kube::event::ObjectReference;

/// The annotation that says which job and lease a pod is.
pub const LEASE: &str = "berth.dev/lease";

/// What is wrong with an object, and what to do.
#[derive(Debug)]
pub struct Note {
    pub about: ObjectReference,
    /// In one word.
    pub reason: &'static str,
    pub note: String,
    /// What tells it from another one of the same reason; the note where left out. A note with
    /// figures changes with them, and says nothing new.
    pub apart: Option<String>,
}
