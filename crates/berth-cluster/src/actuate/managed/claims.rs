//! Checks whether the claims of a pod can be used on its node. The node was chosen without them, so
//! they have to be usable everywhere.

use super::manifest;
use crate::options::PodSettings;
use crate::retry::MayComeFromApi;
use crate::state::pod_orders::CreatePod;
use berth_kube::{Api, PatchType};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Claim {
    spec: ClaimSpec,
    status: ClaimStatus,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ClaimSpec {
    volume_name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ClaimStatus {
    phase: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Volume {
    spec: VolumeSpec,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct VolumeSpec {
    node_affinity: Option<Value>,
}

/// Why a claim of a pod cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    #[error(transparent)]
    Api(#[from] berth_kube::Error),
    #[error(
        "there is no PersistentVolumeClaim {claim} in the namespace {namespace}; make it, or leave \
         the volume out"
    )]
    Missing { claim: String, namespace: String },
    #[error(
        "the claim {claim} can be used on some nodes only; jobs need one that can be used on all \
         of them"
    )]
    BoundToNodes { claim: String },
}

impl MayComeFromApi for ClaimError {
    fn api_error(&self) -> Option<&berth_kube::Error> {
        match self {
            ClaimError::Api(error) => Some(error),
            ClaimError::Missing { .. } | ClaimError::BoundToNodes { .. } => None,
        }
    }
}

/// Checks every claim of a pod.
pub async fn check(
    api: &Api,
    create: &CreatePod,
    settings: &PodSettings,
) -> Result<(), ClaimError> {
    let run = &create.start.run;
    let kept = settings.checkpoints.as_deref();
    let names: BTreeSet<&str> = manifest::claims(run).map(|(_, claim)| claim).chain(kept).collect();
    let namespace = &create.container.namespace;
    for name in names {
        let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}");
        let claim: Claim = match api.get(&path).await {
            Err(error) if error.is_not_found() => {
                let (claim, namespace) = (name.to_owned(), namespace.clone());
                return Err(ClaimError::Missing { claim, namespace });
            }
            claim => claim?,
        };
        if claim.status.phase == "Pending" && claim.spec.volume_name.is_empty() {
            // One that waits for its first consumer is made where that is.
            let chosen = json!({ "metadata": { "annotations": {
                "volume.kubernetes.io/selected-node": create.start.node,
            } } });
            api.patch(&path, PatchType::Merge, &chosen).await?;
            continue;
        }
        let path = format!("/api/v1/persistentvolumes/{}", claim.spec.volume_name);
        let volume: Volume = match api.get(&path).await {
            Err(error) if error.is_not_found() => continue,
            volume => volume?,
        };
        if volume.spec.node_affinity.is_some_and(|affinity| !affinity.is_null()) {
            return Err(ClaimError::BoundToNodes { claim: name.to_owned() });
        }
    }
    Ok(())
}
