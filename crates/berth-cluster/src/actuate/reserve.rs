//! Creates and deletes reservation pods, which hold shared GPUs.

use crate::state::orders::GpuSlot;
use berth_kube::Api;
use berth_kube::pod::gpu_sharing;
use berth_model::PodRef;
use serde_json::json;
use std::time::Duration;

/// Where such pods are made, and what they run.
#[derive(Debug, Clone)]
pub struct Reserve {
    pub namespace: String,
    pub image: String,
    pub priority_class: Option<String>,
}

/// After how many tries the pause grows no more, and how long it is for each.
const MAX_RETRY_STEPS: u32 = 10;
const RETRY_STEP: Duration = Duration::from_millis(500);

impl Reserve {
    /// Makes the pod that holds a GPU, if there is none.
    pub async fn hold(&self, api: &Api, slot: &GpuSlot) -> berth_kube::Result<()> {
        let Reserve { namespace, image, priority_class } = self;
        let class = priority_class.as_deref();
        let pod = gpu_sharing::reservation_pod(namespace, image, class, &slot.node, slot.gpu);
        match api.post(&format!("/api/v1/namespaces/{namespace}/pods"), &pod).await {
            // It is there, or its predecessor is on its way out: the watch tells which.
            Err(error) if error.is_conflict() => Ok(()),
            made => made.map(drop),
        }
    }
}

/// How long to wait before it is tried once more.
pub fn pause(tries: u32) -> Duration {
    RETRY_STEP * tries.min(MAX_RETRY_STEPS)
}

pub async fn release(api: &Api, pod: &PodRef) -> berth_kube::Result<()> {
    let options = json!({ "preconditions": { "uid": pod.uid } });
    let path = format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name);
    match api.delete(&path, &options).await {
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        deleted => deleted.map(drop),
    }
}
