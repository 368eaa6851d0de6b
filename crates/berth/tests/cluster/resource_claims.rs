//! GPUs that pods claim.

use super::pod_groups::kinds::define;
use super::support::{berth, berth_with, cluster, node_of, until, why};
use berth_testbed::kube::Cluster;
use serde_json::{Value, json};

/// What a driver says there is on a node, as the driver of NVIDIA says it.
pub fn slice(node: &str, product: &str, memory: &str, gpus: u32) -> String {
    let devices: Vec<String> = (0..gpus)
        .map(|at| {
            format!(
                "  - name: gpu-{at}
    attributes:
      type: {{string: gpu}}
      productName: {{string: {product}}}
      uuid: {{string: GPU-{node}-{at}}}
    capacity: {{memory: {{value: {memory}}}}}
"
            )
        })
        .collect();
    format!(
        "apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: {node}-gpus}}
spec:
  driver: gpu.nvidia.com
  nodeName: {node}
  pool: {{name: {node}, generation: 1, resourceSliceCount: 1}}
  devices:
{}---
",
        devices.concat()
    )
}

pub fn node(name: &str) -> String {
    format!(
        "apiVersion: v1
kind: Node
metadata: {{name: {name}}}
status:
  capacity: &amounts {{cpu: 64, memory: 512Gi, pods: 110}}
  allocatable: *amounts
  conditions: [{{type: Ready, status: 'True'}}]
---
"
    )
}

pub const CLASS: &str = "apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec:
  selectors:
  - cel:
      expression: device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'
  config:
  - opaque: {driver: gpu.nvidia.com, parameters: {apiVersion: v1, kind: GpuConfig}}
---
";

/// A template, and a pod that has a claim made from it.
pub fn pod(name: &str, count: u32, selector: &str) -> String {
    format!(
        "apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: {name}}}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu.nvidia.com
          count: {count}
          selectors: [{{cel: {{expression: \"{selector}\"}}}}]
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, annotations: {{testbed.berth.dev/runs: 1h}}}}
spec:
  schedulerName: berth
  resourceClaims: [{{name: gpu, resourceClaimTemplateName: {name}}}]
  containers:
  - {{name: main, image: none, resources: {{claims: [{{name: gpu}}]}}}}
---
"
    )
}

pub const ANY: &str = "device.driver != ''";
const LARGE: &str = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('64Gi')) >= 0";

/// The claim of a pod.
fn claim(cluster: &Cluster, pod: &str) -> Value {
    let pod = cluster.get(&["pod", pod]);
    let name = &pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"];
    cluster.get(&["resourceclaim", name.as_str().expect("it was made")])
}

/// The devices a pod was given, and where, when it is bound.
fn given(cluster: &Cluster, pod: &str) -> (String, Vec<String>) {
    until("the pod is bound", || node_of(cluster, pod).is_some());
    let claim = claim(cluster, pod);
    let results = claim["status"]["allocation"]["devices"]["results"].as_array().cloned();
    let names = results.into_iter().flatten();
    let names = names.filter_map(|one| one["device"].as_str().map(str::to_owned)).collect();
    (node_of(cluster, pod).expect("it is bound"), names)
}

#[test]
fn claims_are_given_the_gpus_that_were_decided() {
    let cluster = cluster();
    cluster.apply(&format!("{}{}", node("small"), node("large")));
    cluster.apply(CLASS);
    cluster.apply(&slice("small", "NVIDIA L4", "24Gi", 2));
    cluster.apply(&slice("large", "NVIDIA H100 80GB HBM3", "80Gi", 2));
    // Somebody else has a GPU of the large node.
    let foreign = pod("foreign", 1, LARGE).replace("schedulerName: berth", "schedulerName: other");
    cluster.apply(&foreign);
    until("its claim is made", || {
        cluster.get(&["pod", "foreign"])["status"]["resourceClaimStatuses"].is_array()
    });
    let taken = json!({ "status": { "allocation": { "devices": { "results": [{
        "request": "gpu", "driver": "gpu.nvidia.com", "pool": "large", "device": "gpu-0",
    }] } } } });
    let name = claim(&cluster, "foreign")["metadata"]["name"].as_str().unwrap().to_owned();
    let patch = taken.to_string();
    let target = format!("resourceclaim/{name}");
    cluster.patch(&[&target, "--subresource=status", "--type=merge", "-p", &patch]);
    let mut berth = berth(&cluster);

    cluster.apply(&pod("one", 1, LARGE));
    assert_eq!(given(&cluster, "one"), ("large".to_owned(), vec!["gpu-1".to_owned()]));
    let written = claim(&cluster, "one");
    let uid = &cluster.get(&["pod", "one"])["metadata"]["uid"];
    assert_eq!(written["status"]["reservedFor"][0]["uid"], *uid);
    let config = &written["status"]["allocation"]["devices"]["config"][0];
    assert_eq!(config["source"], "FromClass", "the driver is told what the class says");
    let node = &written["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0];
    assert_eq!(node["matchFields"][0]["values"], json!(["large"]));

    // A server that starts knows what it gave.
    berth.kill();
    berth.start_again();
    cluster.apply(&pod("two", 1, LARGE));
    cluster.apply(&pod("both", 2, ANY));
    let (at, devices) = given(&cluster, "both");
    assert_eq!((at.as_str(), devices.len()), ("small", 2));
    until("no large one is left", || !why(&cluster, "two").is_empty());
    assert_eq!(node_of(&cluster, "two"), None);
    let odd = "device.attributes['gpu.nvidia.com'].productName.size() > 3";
    cluster.apply(&pod("odd", 1, odd));
    until("it says what is not understood", || why(&cluster, "odd").contains("not understood"));

    // When it is over, its GPU is somebody else's.
    cluster.delete(&["pod", "one", "--force", "--grace-period=0"]);
    assert_eq!(given(&cluster, "two"), ("large".to_owned(), vec!["gpu-1".to_owned()]));
}

#[test]
fn a_suspended_job_whose_pods_claim_gpus_is_let_go_and_they_wait_behind_their_gate() {
    let cluster = cluster();
    define(
        &cluster,
        &[
            "kueue.x-k8s.io/v1beta2 ClusterQueue clusterqueues!",
            "kueue.x-k8s.io/v1beta2 LocalQueue localqueues",
        ],
    );
    cluster.apply(&format!("{}{CLASS}", node("a")));
    cluster.apply(&slice("a", "NVIDIA L4", "24Gi", 1));
    cluster.apply(
        "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: team}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: team, \
 namespace: default}, spec: {clusterQueue: team}}
",
    );
    let _berth = berth_with(&cluster, &["--stand-in", "kueue"]);
    let template = pod("train", 1, ANY);
    let (template, _) = template.split_once("---").expect("a template and a pod");
    cluster.apply(template);
    cluster.apply(
        "apiVersion: batch/v1
kind: Job
metadata: {name: train, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  parallelism: 2
  completions: 2
  suspend: true
  template:
    metadata: {annotations: {testbed.berth.dev/runs: 1s}}
    spec:
      restartPolicy: Never
      resourceClaims: [{name: gpu, resourceClaimTemplateName: train}]
      containers: [{name: main, image: none, resources: {claims: [{name: gpu}]}}]
",
    );
    let pods = || cluster.get(&["pods"])["items"].as_array().cloned().unwrap_or_default();
    until("its pods say that one GPU is not enough for both", || {
        pods().iter().any(|pod| {
            let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|one| one["message"].as_str().is_some_and(|m| m.contains("GPU")))
        })
    });
    assert!(pods().iter().all(|pod| pod["spec"]["nodeName"] == Value::Null));
    cluster.apply(&format!("{}{}", node("b"), slice("b", "NVIDIA L4", "24Gi", 1)));
    until("it is complete with another one", || {
        cluster.get(&["job", "train"])["status"]["succeeded"] == 2
    });
}
