//! Checks whether the claims of a pod can be used on its node. The node was chosen without them, so
//! they have to be usable everywhere.

use super::manifest;
use crate::options::PodSettings;
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

/// Says what is wrong with a claim, or nothing.
pub async fn check(
    api: &Api,
    create: &CreatePod,
    settings: &PodSettings,
) -> berth_kube::Result<Result<(), String>> {
    let run = &create.start.run;
    let kept = settings.checkpoints.as_deref();
    let names: BTreeSet<&str> = manifest::claims(run).map(|(_, claim)| claim).chain(kept).collect();
    let namespace = &create.container.namespace;
    for name in names {
        let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}");
        let claim: Claim = match api.get(&path).await {
            Err(error) if error.is_not_found() => {
                return Ok(Err(format!(
                    "there is no PersistentVolumeClaim {name} in the namespace {namespace}; make \
                     it, or leave the volume out"
                )));
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
            return Ok(Err(format!(
                "the claim {name} can be used on some nodes only; jobs need one that can be used \
                 on all of them"
            )));
        }
    }
    Ok(Ok(()))
}
