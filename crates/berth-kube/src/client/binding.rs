//! Writing what was decided about a pod: its node, or its end.

use super::api::{Api, PatchType, decode, percent_encode};
use super::error::Result;
use berth_model::PodRef;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Phased {
    status: PhasedStatus,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PhasedStatus {
    phase: String,
}

/// Where the API server has a pod.
pub(crate) fn pod_path(pod: &PodRef) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Binding<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: BindingMeta<'a>,
    target: Target<'a>,
}

#[derive(Serialize)]
struct BindingMeta<'a> {
    name: &'a str,
    namespace: &'a str,
    uid: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<&'a str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Target<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
}

/// Where a pod is, and whether it is the one.
#[derive(Deserialize)]
struct Placed {
    metadata: PlacedMeta,
    spec: PlacedSpec,
}

#[derive(Deserialize)]
struct PlacedMeta {
    uid: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlacedSpec {
    #[serde(default)]
    node_name: String,
}

impl Api {
    /// Gives a pod its node, and the annotations with it: one write. It is refused where the pod
    /// has a node, or is another one of that name.
    pub async fn bind(
        &self,
        pod: &PodRef,
        node: &str,
        annotations: &BTreeMap<&str, String>,
    ) -> Result<()> {
        let PodRef { namespace, name, uid } = pod;
        let binding = Binding {
            api_version: "v1",
            kind: "Binding",
            metadata: BindingMeta { name, namespace, uid, annotations },
            target: Target { api_version: "v1", kind: "Node", name: node },
        };
        self.post(&format!("{}/binding", pod_path(pod)), &binding).await.map(drop)
    }

    /// Lifts all gates of a pod. With a host name it may run nowhere else from then on, whoever
    /// gives it its node.
    pub async fn remove_scheduling_gates(
        &self,
        pod: &PodRef,
        hostname: Option<&str>,
    ) -> Result<()> {
        let only = hostname.map(|name| json!({ "kubernetes.io/hostname": name }));
        let mut spec = json!({ "schedulingGates": null });
        if let Some(only) = only {
            spec["nodeSelector"] = only;
        }
        let change = json!({ "metadata": { "uid": pod.uid }, "spec": spec });
        match self.patch(&pod_path(pod), PatchType::Merge, &change).await {
            // It is open already: only what is behind a gate can be told where to run.
            Err(error) if error.code() == Some(422) && hostname.is_some() => {
                Box::pin(self.remove_scheduling_gates(pod, None)).await
            }
            // It is gone, or another pod has its name: binding tells which.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            opened => opened.map(drop),
        }
    }

    /// Where a pod is bound; nothing where it is not, is gone, or is another one of that name.
    pub async fn bound_node(&self, pod: &PodRef) -> Result<Option<String>> {
        // A list of one: whoever may list pods needs no other right for it.
        let folder = format!("/api/v1/namespaces/{}/pods", pod.namespace);
        let named = format!("fieldSelector=metadata.name%3D{}", percent_encode(&pod.name));
        let found = self.list::<Placed>(&folder, &named).await?.items;
        let found = found.into_iter().find(|found| found.metadata.uid == pod.uid);
        Ok(found.map(|found| found.spec.node_name).filter(|node| !node.is_empty()))
    }

    /// Asks a pod to end: SIGTERM now, SIGKILL after the grace. A condition on the pod first shows
    /// its controller that this is a disruption and no failure of the pod itself.
    pub async fn preempt(&self, pod: &PodRef, grace_secs: i64, why: &str) -> Result<()> {
        let condition = json!({ "status": { "conditions": [{
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": why,
        }] }, "metadata": { "uid": pod.uid } });
        let path = format!("{}/status", pod_path(pod));
        match self.patch(&path, PatchType::Strategic, &condition).await {
            Err(error) if error.is_not_found() => return Ok(()),
            // Another client wrote at the same moment, or it is another pod: the delete shows which.
            Err(error) if error.is_conflict() => {}
            marked => {
                // What is over needs no end, and whoever made it has yet to see how it ended.
                let marked: Phased = decode(&path, &marked?)?;
                if matches!(&*marked.status.phase, "Succeeded" | "Failed") {
                    return Ok(());
                }
            }
        }
        let options = json!({
            "gracePeriodSeconds": grace_secs,
            "preconditions": { "uid": pod.uid },
        });
        match self.delete(&pod_path(pod), &options).await {
            // It is gone, or another pod has its name by now.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    /// Says on the pod why it waits, where kubectl and autoscalers look for it. Returns whether it
    /// was written: a pod that has changed since that version may be bound by now.
    pub async fn set_unschedulable(
        &self,
        pod: &PodRef,
        version: &str,
        reason: &str,
        message: &str,
    ) -> Result<bool> {
        let condition = json!({ "status": { "conditions": [{
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
        }] }, "metadata": { "uid": pod.uid, "resourceVersion": version } });
        let path = format!("{}/status", pod_path(pod));
        match self.patch(&path, PatchType::Strategic, &condition).await {
            Err(error) if error.is_not_found() => Ok(true),
            Err(error) if error.is_conflict() => Ok(false),
            said => said.map(|_| true),
        }
    }

    /// Writes a condition of the pod that is true from now on.
    pub async fn set_condition(
        &self,
        pod: &PodRef,
        kind: &str,
        reason: &str,
        message: &str,
    ) -> Result<()> {
        let condition = json!({ "status": { "conditions": [{
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": message,
        }] }, "metadata": { "uid": pod.uid } });
        let path = format!("{}/status", pod_path(pod));
        match self.patch(&path, PatchType::Strategic, &condition).await {
            // It is gone, or another pod has its name.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            said => said.map(drop),
        }
    }
}
