//! Binds or provisions the volumes of claims once the node of their pod is decided.

use crate::constraints::dynamic::VolumeStep;
use crate::retry::{LONGEST_PAUSE, retry_while_recoverable};
use berth_kube::object::{PersistentVolume, PersistentVolumeClaim, Text};
use berth_kube::{Api, Error, PatchType, percent_encode};
use serde_json::json;
use std::time::Duration;

/// How long a volume may take to be made and bound.
const BIND_TIMEOUT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const SELECTED: &str = "volume.kubernetes.io/selected-node";
const BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// Why the volumes of a pod could not be bound for the node that was decided.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    #[error(transparent)]
    Api(#[from] Error),
    /// Another claim got the volume first.
    #[error("the volume {volume} was taken")]
    VolumeTaken { volume: Text },
    /// The provisioner gave the node back.
    #[error("no volume could be made there for the claim {claim}")]
    NotProvisioned { claim: Text },
    #[error("its volumes were not bound in time")]
    Timeout,
}

/// Does what is to be done and waits until every claim has its volume.
pub async fn prepare(api: &Api, claims: &[VolumeStep], node: &str) -> Result<(), VolumeError> {
    for claim in claims {
        begin(api, claim, node).await?;
    }
    let all = async {
        for claim in claims {
            bound(api, claim).await?;
        }
        Ok(())
    };
    tokio::time::timeout(BIND_TIMEOUT, all).await.unwrap_or(Err(VolumeError::Timeout))
}

async fn begin(api: &Api, claim: &VolumeStep, node: &str) -> Result<(), VolumeError> {
    match claim {
        VolumeStep::Assign { namespace, claim, uid, volume, version } => {
            let path = format!("/api/v1/persistentvolumes/{volume}");
            let patch = json!({
                "metadata": {
                    "resourceVersion": &**version,
                    "annotations": { BY_CONTROLLER: "yes" },
                },
                "spec": { "claimRef": {
                    "kind": "PersistentVolumeClaim",
                    "apiVersion": "v1",
                    "namespace": &**namespace,
                    "name": &**claim,
                    "uid": &**uid,
                } },
            });
            match retry_while_recoverable(|| api.patch(&path, PatchType::Merge, &patch)).await {
                Ok(_) => Ok(()),
                // Also where our own write came through and its answer did not.
                Err(error) if error.is_conflict() => {
                    // A list of one: Berth may list volumes because it watches them, and needs no
                    // permission to get them.
                    let named = format!("fieldSelector=metadata.name%3D{}", percent_encode(volume));
                    let folder = "/api/v1/persistentvolumes";
                    let now =
                        retry_while_recoverable(|| api.list::<PersistentVolume>(folder, &named))
                            .await?;
                    let now = now.items.into_iter().next();
                    let claimed = now.and_then(|now| now.spec.claim_ref);
                    let ours = claimed.is_some_and(|of| of.uid == *uid);
                    match ours {
                        true => Ok(()),
                        false => Err(VolumeError::VolumeTaken { volume: volume.clone() }),
                    }
                }
                Err(error) => Err(refused(error).await),
            }
        }
        VolumeStep::Provision { namespace, claim } => {
            let path = path(namespace, claim);
            let patch = json!({ "metadata": { "annotations": { SELECTED: node } } });
            let chosen =
                retry_while_recoverable(|| api.patch(&path, PatchType::Merge, &patch)).await;
            match chosen {
                Ok(_) => Ok(()),
                Err(error) => Err(refused(error).await),
            }
        }
    }
}

/// Reports a refusal after a pause: the core may well choose the same node again at once.
async fn refused(error: Error) -> VolumeError {
    tokio::time::sleep(LONGEST_PAUSE).await;
    error.into()
}

async fn bound(api: &Api, order: &VolumeStep) -> Result<(), VolumeError> {
    let (VolumeStep::Assign { namespace, claim, .. } | VolumeStep::Provision { namespace, claim }) =
        order;
    let path = path(namespace, claim);
    let made = matches!(order, VolumeStep::Provision { .. });
    loop {
        let now = retry_while_recoverable(|| api.get::<PersistentVolumeClaim>(&path)).await?;
        if &*now.status.phase == "Bound" {
            return Ok(());
        }
        // A provisioner removes the annotation when it cannot make the volume there.
        if made && now.metadata.annotation(SELECTED).is_none() {
            return Err(VolumeError::NotProvisioned { claim: claim.clone() });
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn path(namespace: &str, claim: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{claim}")
}
