//! A cluster, Berth on it, and objects to give it.

use berth_testbed::Server;
use berth_testbed::kube::{ADMIN, Builder, Cluster, Kwok, Pool, Pooled};
use serde_json::Value;
use std::path::Path;

pub use berth_testbed::until;

/// The real controllers, and simulated nodes.
fn options() -> Builder {
    Cluster::builder().controller_manager().kwok(Kwok::all_nodes())
}

/// A cluster that another test has used before, with nothing left of that.
pub fn cluster() -> Pooled {
    static POOL: Pool = Pool::new(options);
    POOL.take()
}

/// A cluster for one test alone, which may stop parts of it or change what is in it from its
/// start, such as the roles that a chart extends.
pub fn own_cluster() -> Cluster {
    options().start()
}

pub fn berth(cluster: &Cluster) -> Server {
    berth_with(cluster, &[])
}

/// With more flags.
pub fn berth_with(cluster: &Cluster, flags: &[&str]) -> Server {
    let program = Path::new(env!("CARGO_BIN_EXE_berth"));
    Server::start_on(program, &cluster.kubeconfig(ADMIN), flags)
}

/// Nodes of eight GPUs, ready before anything is asked of them.
pub fn add_nodes(cluster: &Cluster, names: &[&str]) {
    let nodes: Vec<String> = names.iter().map(|name| node(name, "{}", "[]")).collect();
    cluster.apply(&nodes.join("---\n"));
    for name in names {
        until("the node is ready and free of taints", || {
            cluster.get(&["node", name])["spec"]["taints"] == Value::Null
        });
    }
}

pub fn node(name: &str, labels: &str, taints: &str) -> String {
    format!(
        "apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels: {labels}
spec: {{taints: {taints}}}
status:
  capacity: &amounts {{cpu: 64, memory: 512Gi, pods: 110, nvidia.com/gpu: 8}}
  allocatable: *amounts
  conditions: [{{type: Ready, status: 'True'}}]
"
    )
}

/// A pod of so many GPUs, with more lines of metadata and of spec.
pub fn pod(name: &str, gpus: u32, metadata: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata:
  name: {name}
{metadata}
spec:
  schedulerName: berth
  restartPolicy: Never
{spec}
  containers:
  - {{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}
---
"
    )
}

/// The pods of a gang.
pub fn gang(name: &str, size: u32, gpus: u32) -> String {
    let marks = format!(
        "  annotations: {{berth.dev/gang: {name}, berth.dev/gang-size: '{size}', \
         testbed.berth.dev/runs: 1h}}"
    );
    (0..size).map(|at| pod(&format!("{name}-{at}"), gpus, &marks, "")).collect()
}

/// Where a pod is, if it is anywhere.
pub fn node_of(cluster: &Cluster, pod: &str) -> Option<String> {
    let pod = cluster.get(&["pod", pod]);
    pod["spec"]["nodeName"].as_str().map(str::to_owned)
}

/// Where the pods of a gang are.
pub fn nodes_of(cluster: &Cluster, name: &str, size: u32) -> Vec<Option<String>> {
    (0..size).map(|at| node_of(cluster, &format!("{name}-{at}"))).collect()
}

/// A volume with more lines of spec: where it is, and whose.
pub fn volume(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1
kind: PersistentVolume
metadata: {{name: {name}}}
spec:
  capacity: {{storage: 10Gi}}
  accessModes: [ReadWriteOnce]
{spec}
---
"
    )
}

/// A claim that has its volume, which every node reaches.
pub fn bound_claim(cluster: &Cluster, namespace: &str, name: &str) {
    cluster.apply(&volume(name, "  hostPath: {path: /data}"));
    cluster.apply(&format!(
        "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{namespace: {namespace}, name: {name}}}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ''
  volumeName: {name}
  resources: {{requests: {{storage: 5Gi}}}}
"
    ));
    until("the claim is bound", || {
        cluster.get(&["pvc", name, "--namespace", namespace])["status"]["phase"] == "Bound"
    });
}

/// Why a pod waits, as it says itself.
pub fn why(cluster: &Cluster, pod: &str) -> String {
    let pod = cluster.get(&["pod", pod]);
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let scheduled = conditions.iter().find(|one| one["type"] == "PodScheduled");
    scheduled.and_then(|one| one["message"].as_str()).unwrap_or_default().to_owned()
}
