//! Binds or provisions the volumes of claims once the node of their pod is decided.

use crate::constraints::dynamic::VolumeStep;
use crate::retry::{LONGEST_PAUSE, retry_while_recoverable};
use berth_kube::object::{PersistentVolume, PersistentVolumeClaim};
use berth_kube::{Api, Error, PatchType, percent_encode};
use serde_json::json;
use std::time::Duration;

/// How long a volume may take to be made and bound.
const BIND_TIMEOUT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const SELECTED: &str = "volume.kubernetes.io/selected-node";
const BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// Does what is to be done and waits until every claim has its volume.
pub async fn prepare(api: &Api, claims: &[VolumeStep], node: &str) -> Result<(), String> {
    for claim in claims {
        begin(api, claim, node).await?;
    }
    let all = async {
        for claim in claims {
            bound(api, claim).await?;
        }
        Ok(())
    };
    let late = |_| Err("its volumes were not bound in time".to_owned());
    tokio::time::timeout(BIND_TIMEOUT, all).await.unwrap_or_else(late)
}

async fn begin(api: &Api, claim: &VolumeStep, node: &str) -> Result<(), String> {
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
                    // A list of one: whoever follows volumes needs no other right for it.
                    let named = format!("fieldSelector=metadata.name%3D{}", percent_encode(volume));
                    let folder = "/api/v1/persistentvolumes";
                    let now =
                        retry_while_recoverable(|| api.list::<PersistentVolume>(folder, &named))
                            .await;
                    let now = now.map_err(|error| error.to_string())?.items.into_iter().next();
                    let claimed = now.and_then(|now| now.spec.claim_ref);
                    let ours = claimed.is_some_and(|of| of.uid == *uid);
                    if ours { Ok(()) } else { Err(format!("the volume {volume} was taken")) }
                }
                Err(error) => Err(refused(&error).await),
            }
        }
        VolumeStep::Provision { namespace, claim } => {
            let path = path(namespace, claim);
            let patch = json!({ "metadata": { "annotations": { SELECTED: node } } });
            let chosen =
                retry_while_recoverable(|| api.patch(&path, PatchType::Merge, &patch)).await;
            match chosen {
                Ok(_) => Ok(()),
                Err(error) => Err(refused(&error).await),
            }
        }
    }
}

/// Why it cannot be done there, after a while: whoever plans may well choose the same at once.
async fn refused(error: &Error) -> String {
    tokio::time::sleep(LONGEST_PAUSE).await;
    error.to_string()
}

async fn bound(api: &Api, order: &VolumeStep) -> Result<(), String> {
    let (VolumeStep::Assign { namespace, claim, .. } | VolumeStep::Provision { namespace, claim }) =
        order;
    let path = path(namespace, claim);
    let made = matches!(order, VolumeStep::Provision { .. });
    loop {
        let now = retry_while_recoverable(|| api.get::<PersistentVolumeClaim>(&path))
            .await
            .map_err(|error| error.to_string())?;
        if &*now.status.phase == "Bound" {
            return Ok(());
        }
        // So the one who makes volumes says that it cannot be done there.
        if made && now.metadata.annotation(SELECTED).is_none() {
            return Err(format!("no volume could be made there for the claim {claim}"));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn path(namespace: &str, claim: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{claim}")
}
