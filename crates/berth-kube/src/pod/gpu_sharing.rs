//! Fractions of GPUs. Kubernetes hands out whole GPUs, so a pod of ours holds each GPU that is
//! shared, and says which one it was given. Pods with a fraction ask for no GPU at all; their
//! containers are told the GPU by their environment.

use super::requests::is_vgpu;
use crate::fnv::fnv1a;
use crate::object::{GPU_FIELD, GPU_VARIABLE, Pod};
use serde_json::{Value, json};

/// The label of pods that hold a GPU for fractions.
pub const RESERVATION: &str = "berth.dev/reservation";
/// On such a pod: which of its node's GPUs it stands for.
pub const INDEX: &str = "berth.dev/gpu-index";
/// On such a pod: the GPU it was given, as it says itself.
pub const UUID: &str = "berth.dev/gpu-uuid";
/// On a pod with a fraction: the GPUs it has a part of, written when it is bound or made.
pub const GPUS: &str = "berth.dev/gpus";

const FRACTION_ANNOTATIONS: [&str; 2] = ["gpu-fraction", "gpu-memory"];
const CONTAINER_ANNOTATION: &str = "gpu-fraction-container-name";
/// The longest name of a pod.
const MAX_POD_NAME: usize = 253;

/// What a pod has to have so that its containers learn their GPU.
pub const MISSING_GPU_VARIABLE: &str = "nothing tells its containers which GPU they have a part of: set \
    NVIDIA_VISIBLE_DEVICES from the field metadata.annotations['berth.dev/gpus'], or let the \
    webhook of Berth do that";

/// A GPU that is held, as the pod that holds it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuReservation {
    pub gpu: u32,
    /// Nothing until the pod runs.
    pub uuid: Option<String>,
}

impl GpuReservation {
    /// What a pod of ours holds for fractions; nothing for any other pod.
    pub fn of(pod: &Pod) -> Option<GpuReservation> {
        pod.metadata.label(RESERVATION)?;
        let gpu = pod.metadata.annotation(INDEX)?.parse().ok()?;
        let uuid = pod.metadata.annotation(UUID).filter(|uuid| !uuid.is_empty());
        Some(GpuReservation { gpu, uuid: uuid.map(str::to_owned) })
    }
}

/// Whether some container has the variable that names its GPU.
pub fn has_gpu_variable(pod: &Pod) -> bool {
    let spec = &pod.spec;
    spec.containers
        .iter()
        .chain(spec.init_containers.iter())
        .any(|container| container.has_gpu_variable)
}

/// One of a kind for each GPU, so that two servers could not hold it twice.
pub fn reservation_name(node: &str, gpu: u32) -> String {
    let mut name = format!("gpu-{gpu}-{node}");
    if name.len() > MAX_POD_NAME {
        name = format!("gpu-{gpu}-{:016x}", fnv1a(node.bytes()));
    }
    name
}

/// The pod that holds a GPU. It is on its node from the first, whatever taints are there. It asks for
/// no more than it is limited to, so that a node that runs short ends it last: whoever shares its GPU
/// would have to end with it.
pub fn reservation_pod(
    namespace: &str,
    image: &str,
    priority_class: Option<&str>,
    node: &str,
    gpu: u32,
) -> Value {
    let field = |path: &str| json!({ "fieldRef": { "fieldPath": path } });
    let amounts = json!({ "cpu": "50m", "memory": "128Mi", "nvidia.com/gpu": "1" });
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": reservation_name(node, gpu),
            "namespace": namespace,
            "labels": { RESERVATION: "true", "app.kubernetes.io/managed-by": "berth" },
            "annotations": { INDEX: gpu.to_string() },
        },
        "spec": {
            "nodeName": node,
            "restartPolicy": "Always",
            "serviceAccountName": "berth-reservation",
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{ "operator": "Exists" }],
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": 65_532,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [{
                "name": "hold",
                "image": image,
                "args": ["reserve"],
                "env": [
                    { "name": "POD_NAME", "valueFrom": field("metadata.name") },
                    { "name": "POD_NAMESPACE", "valueFrom": field("metadata.namespace") },
                ],
                "resources": { "requests": amounts, "limits": amounts },
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "readOnlyRootFilesystem": true,
                    "capabilities": { "drop": ["ALL"] },
                },
            }],
        },
    });
    if let Some(class) = priority_class {
        pod["spec"]["priorityClassName"] = json!(class);
    }
    pod
}

/// What has to be added to a pod that asks for a fraction, as a JSON patch: the variable by which
/// its containers learn their GPU. Nothing for pods that ask for none or have it.
///
/// By an annotation all containers have the fraction or the one that is named, by resources those
/// that have these.
pub fn gpu_variable_patch(pod: &Value) -> Vec<Value> {
    let annotations = &pod["metadata"]["annotations"];
    let is_marked = FRACTION_ANNOTATIONS.iter().any(|mark| annotations[mark].is_string());
    let only = annotations[CONTAINER_ANNOTATION].as_str();
    let has_by_mark =
        |container: &Value| is_marked && only.is_none_or(|only| container["name"] == only);
    let mut patch = add_variable(pod, "containers", |one| has_by_mark(one) || has_vgpu(one));
    patch.extend(add_variable(pod, "initContainers", has_vgpu));
    patch
}

fn has_vgpu(container: &Value) -> bool {
    let amounts = ["limits", "requests"].map(|part| container["resources"][part].as_object());
    amounts.into_iter().flatten().any(|amounts| amounts.keys().any(|key| is_vgpu(key)))
}

/// Tells those of a list of containers their GPU that have a part of one.
fn add_variable(pod: &Value, list: &str, has_part: impl Fn(&Value) -> bool) -> Vec<Value> {
    let containers = pod["spec"][list].as_array().map(Vec::as_slice).unwrap_or_default();
    let told = containers.iter().enumerate().filter(|(_, container)| has_part(container));
    told.filter_map(|(at, container)| {
        let variable =
            json!({ "name": GPU_VARIABLE, "valueFrom": { "fieldRef": { "fieldPath": GPU_FIELD } } });
        let known = container["env"].as_array();
        let is_set = known.is_some_and(|env| env.iter().any(|one| one["name"] == GPU_VARIABLE));
        let path = format!("/spec/{list}/{at}/env");
        match known {
            _ if is_set => None,
            Some(_) => Some(json!({ "op": "add", "path": format!("{path}/-"), "value": variable })),
            None => Some(json!({ "op": "add", "path": path, "value": [variable] })),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_was_patched_learns_its_gpu_and_is_not_patched_again() {
        let mut pod = json!({
            "metadata": { "annotations": { "gpu-fraction": "0.5" } },
            "spec": { "containers": [
                { "name": "a" },
                { "name": "b", "env": [{ "name": "X", "value": "1" }] },
            ] },
        });
        let read = |pod: &Value| serde_json::from_value::<Pod>(pod.clone()).unwrap();
        assert!(!has_gpu_variable(&read(&pod)));
        let patch = gpu_variable_patch(&pod);
        let paths: Vec<&str> = patch.iter().filter_map(|op| op["path"].as_str()).collect();
        assert_eq!(paths, ["/spec/containers/0/env", "/spec/containers/1/env/-"]);
        pod["spec"]["containers"][0]["env"] = patch[0]["value"].clone();
        pod["spec"]["containers"][1]["env"].as_array_mut().unwrap().push(patch[1]["value"].clone());
        assert!(has_gpu_variable(&read(&pod)));
        assert!(super::gpu_variable_patch(&pod).is_empty());
    }

    #[test]
    fn only_pods_with_a_fraction_are_patched_and_only_the_container_that_is_named() {
        let pod = |annotations: Value| {
            json!({
                "metadata": { "annotations": annotations },
                "spec": { "containers": [{ "name": "a" }, { "name": "b" }] },
            })
        };
        assert!(gpu_variable_patch(&pod(json!({}))).is_empty());
        let one = gpu_variable_patch(&pod(
            json!({ "gpu-memory": "4096", "gpu-fraction-container-name": "b" }),
        ));
        assert_eq!(one.len(), 1);
        assert_eq!(one[0]["path"], "/spec/containers/1/env");
    }

    #[test]
    fn containers_with_volcanos_resources_are_told_their_gpu_and_no_others() {
        let asks = json!({ "limits": { "volcano.sh/vgpu-memory": "3000" } });
        let pod = json!({ "spec": {
            "containers": [{ "name": "a" }, { "name": "b", "resources": asks }],
            "initContainers": [{ "name": "c", "resources": asks }, { "name": "d" }],
        } });
        let patch = gpu_variable_patch(&pod);
        let paths: Vec<&str> = patch.iter().filter_map(|op| op["path"].as_str()).collect();
        assert_eq!(paths, ["/spec/containers/1/env", "/spec/initContainers/0/env"]);
    }

    #[test]
    fn a_pod_that_holds_a_gpu_is_known_by_what_is_written_on_it() {
        let mut pod = reservation_pod("berth-reservations", "berth:1", Some("urgent"), "n1", 3);
        assert_eq!(pod["metadata"]["name"], "gpu-3-n1");
        assert_eq!(pod["spec"]["priorityClassName"], "urgent");
        let resources = &pod["spec"]["containers"][0]["resources"];
        assert_eq!(resources["requests"], resources["limits"], "it is evicted last");
        let read = |pod: &Value| GpuReservation::of(&serde_json::from_value(pod.clone()).unwrap());
        assert_eq!(read(&pod), Some(GpuReservation { gpu: 3, uuid: None }));
        pod["metadata"]["annotations"][UUID] = json!("GPU-1");
        assert_eq!(read(&pod), Some(GpuReservation { gpu: 3, uuid: Some("GPU-1".to_owned()) }));
        assert!(reservation_name(&"n".repeat(253), 3).len() < MAX_POD_NAME);
    }
}
