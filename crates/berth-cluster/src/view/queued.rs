//! Jobs of other controllers that are suspended until Berth admits them.

use super::pod::{GangKey, PodView, SchedulingRequest};
use super::unschedulable::Unschedulable;
use berth_kube::event::ObjectReference;
use std::sync::Arc;

/// The scheduling gate of pods whose job Berth has resumed. It keeps other schedulers from them
/// until Berth binds each to its node.
pub const GATE: &str = "berth.dev/placement";

/// Begins the uid of a placeholder for a pod that does not exist yet; the job's uid follows.
const PLACEHOLDER: &str = "to be made by ";

/// A job that is suspended, or that Berth has resumed.
#[derive(Debug, Clone)]
pub struct QueuedJob {
    pub at: JobRef,
    pub is_suspended: bool,
    /// It has ended, well or not.
    pub is_over: bool,
    /// Its pods as they will be, or why they cannot be scheduled.
    pub pods: Result<Vec<PodView>, Unschedulable>,
}

/// A job of others, and no later one of its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRef {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub api_version: String,
    /// Where it is at the API server.
    pub path: String,
    /// Its field that holds it back, as a JSON pointer.
    pub suspend: &'static str,
    /// The specs of its pods that need a gate, as JSON pointers, and the gates they have.
    pub gates: Vec<(String, Vec<String>)>,
    /// Where these specs are, if in an object below it.
    pub below: Option<ChildRef>,
}

/// What a job makes its pods by, and is suspended together with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildRef {
    pub uid: String,
    pub path: String,
}

impl From<&JobRef> for ObjectReference {
    fn from(job: &JobRef) -> ObjectReference {
        ObjectReference {
            api_version: job.api_version.clone(),
            kind: job.kind.clone(),
            namespace: job.namespace.clone(),
            name: job.name.clone(),
            uid: job.uid.clone(),
        }
    }
}

impl QueuedJob {
    /// The gangs its pods are of: one, unless they are made one after the other.
    pub fn gangs(&self) -> Vec<GangKey> {
        let pods = self.pods.iter().flatten();
        let mut gangs: Vec<GangKey> =
            pods.filter_map(|pod| Some(request(pod)?.gang.clone())).collect();
        gangs.sort();
        gangs.dedup();
        gangs
    }
}

fn request(pod: &PodView) -> Option<&Arc<SchedulingRequest>> {
    pod.request.as_ref()?.as_ref().ok()
}

/// The uid that stands for the pod at this place of a job, which was not made yet.
pub fn placeholder(job: &str, at: usize) -> String {
    format!("{PLACEHOLDER}{job}/{at}")
}

/// Whose pod one is that was not made yet, and which of them.
pub fn parse_placeholder(uid: &str) -> Option<(&str, usize)> {
    let (owner, at) = uid.strip_prefix(PLACEHOLDER)?.rsplit_once('/')?;
    Some((owner, at.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_to_be_tells_whose_it_is() {
        assert_eq!(parse_placeholder(&placeholder("9c02-a", 3)), Some(("9c02-a", 3)));
        assert_eq!(parse_placeholder("9c02-a"), None);
    }
}
