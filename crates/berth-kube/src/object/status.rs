//! What has become of a pod.

use super::{Condition, List, Map, Raw, Resources, Text};
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: Text,
    /// Such as `Evicted` or `Preempting`.
    pub reason: Text,
    pub conditions: List<Condition>,
    pub container_statuses: List<ContainerStatus>,
    pub init_container_statuses: List<ContainerStatus>,
    /// What its node has set aside for the pod as a whole.
    pub allocated_resources: Map<Raw>,
    /// What the pod as a whole runs with, where the kubelet reports it.
    pub resources: Option<Box<Resources>>,
    pub resource_claim_statuses: List<ClaimStatus>,
}

impl PodStatus {
    /// Whether nothing of the pod runs any more, so that it holds nothing of its node.
    pub fn is_over(&self) -> bool {
        matches!(&*self.phase, "Succeeded" | "Failed")
    }
}

/// The claim that was made from a template for a pod.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimStatus {
    pub name: Text,
    pub resource_claim_name: Option<Text>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    pub name: Text,
    pub state: State,
    /// What its node has set aside for it.
    pub allocated_resources: Map<Raw>,
    /// What it runs with, which is not what it asks for while that is changed in place.
    pub resources: Option<Box<Resources>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct State {
    pub terminated: Option<Terminated>,
    /// Why it has not started yet.
    pub waiting: Option<Box<Waiting>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// Such as `ContainerCreating` or `ImagePullBackOff`.
    pub reason: Text,
    pub message: Text,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    pub exit_code: i32,
    pub reason: Text,
    /// What it left as its last words, or the end of its log.
    pub message: Text,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_tells_how_each_container_ended() {
        let status: PodStatus = serde_json::from_str(
            r#"{"phase": "Failed", "podIP": "10.0.0.1",
                "conditions": [{"type": "DisruptionTarget", "status": "True",
                                "reason": "PreemptionByScheduler", "message": "…"}],
                "containerStatuses": [
                    {"name": "a", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled",
                                                           "startedAt": null}}},
                    {"name": "b", "state": {"running": {}}}]}"#,
        )
        .unwrap();
        assert!(status.is_over());
        let ended = status.container_statuses[0].state.terminated.as_ref().unwrap();
        assert_eq!((ended.exit_code, &*ended.reason), (137, "OOMKilled"));
        assert!(status.container_statuses[1].state.terminated.is_none());
        assert_eq!(&*status.conditions[0].reason, "PreemptionByScheduler");
    }
}
