//! What Berth does for pods with volumes, and with devices that they claim.

use super::steps::{STEP, Step};
use crate::resource_claims as claims;
use crate::support::{node_of, volume};
use crate::volumes::{claim, user};

pub const STEPS: &[Step] = &[
    Step {
        rights: &["patch persistentvolumes", "get persistentvolumeclaims"],
        // A volume is there, and is given when the pod has its place.
        act: |scene, _, name, _| {
            let place = "  storageClassName: late\n  hostPath: {path: /data}";
            scene.cluster.apply(&volume(name, place));
            scene.cluster.apply(&(claim(name, "late", "ReadWriteOnce") + &user(name, name)));
        },
        is_done: |scene, _, name, _| node_of(&scene.cluster, name).is_some(),
        ..STEP
    },
    Step {
        rights: &["patch persistentvolumeclaims"],
        // A volume is to be made where the pod will be. Nobody makes it here.
        act: |scene, _, name, _| {
            scene.cluster.apply(&(claim(name, "made", "ReadWriteOnce") + &user(name, name)));
        },
        is_done: |scene, _, name, _| {
            let claim = scene.cluster.get(&["pvc", name]);
            claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"].is_string()
        },
        ..STEP
    },
    Step {
        rights: &[
            "get resourceclaims.resource.k8s.io",
            "update resourceclaims.resource.k8s.io",
            "update resourceclaims.resource.k8s.io/status",
            "update resourceclaims.resource.k8s.io/binding",
        ],
        act: |scene, _, name, _| scene.cluster.apply(&claims::pod(name, 1, claims::ANY)),
        is_done: |scene, _, name, _| node_of(&scene.cluster, name).is_some(),
        ..STEP
    },
];
