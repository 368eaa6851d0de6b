//! Jobs of kinds that others have defined, suspended until there is a place for them. Their
//! controllers are played here.

use super::other_schedulers::{add_namespaces, add_node, define_kueue, job, jobs, sample};
use super::pod_groups::kinds::define;
use super::support::{berth_with, cluster, pod, until};
use berth_testbed::kube::{Cluster, Pooled};
use serde_json::Value;

/// What a manifest says that does not name Berth.
const TEMPLATE: &str = "{spec: {containers: [{name: main, image: none, resources: {limits: {\
                        nvidia.com/gpu: 3}}}]}}";

/// A node of eight GPUs, queues of Kueue's, and the kinds.
fn scene() -> Pooled {
    let cluster = cluster();
    define_kueue(&cluster);
    define(
        &cluster,
        &[
            "ray.io/v1 RayCluster rayclusters",
            "ray.io/v1 RayJob rayjobs",
            "jobset.x-k8s.io/v1alpha2 JobSet jobsets",
            "trainer.kubeflow.org/v1alpha1 TrainJob trainjobs",
        ],
    );
    add_namespaces(&cluster, &["team-a"]);
    add_node(&cluster, "a", "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3");
    cluster.apply(&sample("kueue/queues.yaml"));
    cluster
}

/// An object that waits in a queue of Kueue's, or is one below another.
fn object(kind: &str, name: &str, metadata: &str, spec: &str) -> String {
    let (api, kind) = kind.split_once(' ').unwrap();
    format!(
        "apiVersion: {api}
kind: {kind}
metadata:
  name: {name}
  namespace: team-a
{metadata}
spec: {spec}
"
    )
}

const QUEUED: &str = "  labels: {kueue.x-k8s.io/queue-name: user-queue}";

/// All GPUs are somebody else's, who gives them back to nobody.
fn take_all(cluster: &Cluster) {
    cluster.apply(&pod("taken", 8, "", "  nodeName: a").replace("berth", "elder"));
    until("all GPUs are used", || cluster.get(&["pod", "taken"])["status"]["phase"] == "Running");
}

fn get(cluster: &Cluster, kind: &str, name: &str) -> Value {
    cluster.get(&[kind, name, "--namespace=team-a"])
}

/// A pod as a controller makes it from a template.
fn made(name: &str, labels: &str, by: &str, spec: &Value) -> String {
    let spec = serde_json::to_string(spec).unwrap();
    format!(
        "apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: team-a
  labels: {{{labels}}}
{by}
spec: {spec}
---
"
    )
}

fn by(cluster: &Cluster, kind: &str, name: &str) -> String {
    let object = get(cluster, kind, name);
    let text = |key: &str| object[key].as_str().unwrap().to_owned();
    let uid = object["metadata"]["uid"].as_str().unwrap();
    format!(
        "  ownerReferences:
  - {{apiVersion: {}, kind: {}, name: {name}, uid: {uid}, controller: true}}",
        text("apiVersion"),
        text("kind")
    )
}

fn is_bound(cluster: &Cluster, pod: &str) -> bool {
    get(cluster, "pod", pod)["spec"]["nodeName"].is_string()
}

/// The gates of the pods that a template makes.
fn gates(template: &Value) -> Vec<&str> {
    let gates = template["spec"]["schedulingGates"].as_array();
    gates.into_iter().flatten().filter_map(|gate| gate["name"].as_str()).collect()
}

#[test]
fn a_ray_cluster_is_let_go_when_its_head_and_workers_have_their_places() {
    let cluster = scene();
    let berth = berth_with(&cluster, &["--stand-in", "kueue"]);
    take_all(&cluster);
    let spec = format!(
        "{{suspend: true, headGroupSpec: {{template: {TEMPLATE}}}, workerGroupSpecs: [{{groupName: \
         gpus, replicas: 1, template: {TEMPLATE}}}]}}"
    );
    cluster.apply(&object("ray.io/v1 RayCluster", "tune", QUEUED, &spec));
    until("it waits", || jobs(&berth, "tune").first().is_some_and(|job| job["state"] == "pending"));
    assert_eq!(job(&berth, "tune")["team"], "team-a-cq");
    assert_eq!(get(&cluster, "raycluster", "tune")["spec"]["suspend"], true);
    cluster.delete(&["pod", "taken", "--force", "--grace-period=0"]);
    until("it is let go", || get(&cluster, "raycluster", "tune")["spec"]["suspend"] == false);

    let spec = get(&cluster, "raycluster", "tune")["spec"].clone();
    let templates = [&spec["headGroupSpec"]["template"], &spec["workerGroupSpecs"][0]["template"]];
    let owner = by(&cluster, "raycluster", "tune");
    for (template, group) in templates.into_iter().zip(["headgroup", "gpus"]) {
        assert_eq!(gates(template), ["berth.dev/placement"], "{template}");
        let labels = format!("ray.io/cluster: tune, ray.io/group: {group}");
        cluster.apply(&made(&format!("tune-{group}"), &labels, &owner, &template["spec"]));
    }
    until("both are bound", || {
        is_bound(&cluster, "tune-headgroup") && is_bound(&cluster, "tune-gpus")
    });
    assert_eq!(jobs(&berth, "tune").len(), 1, "they are the job that waited");
}

#[test]
fn a_ray_job_is_let_go_at_once_and_its_pods_wait_behind_their_gates() {
    let cluster = scene();
    let berth = berth_with(&cluster, &["--stand-in", "kueue"]);
    take_all(&cluster);
    let spec = format!(
        "{{suspend: true, rayClusterSpec: {{headGroupSpec: {{template: {TEMPLATE}}}, \
         workerGroupSpecs: [{{groupName: gpus, replicas: 1, template: {TEMPLATE}}}]}}}}"
    );
    cluster.apply(&object("ray.io/v1 RayJob", "tune", QUEUED, &spec));
    until("it is let go", || get(&cluster, "rayjob", "tune")["spec"]["suspend"] == false);
    let spec = get(&cluster, "rayjob", "tune")["spec"]["rayClusterSpec"].clone();
    let owner = by(&cluster, "rayjob", "tune");
    cluster.apply(&object("ray.io/v1 RayCluster", "tune-x7k", &owner, &spec.to_string()));
    let owner = by(&cluster, "raycluster", "tune-x7k");
    let templates = [&spec["headGroupSpec"]["template"], &spec["workerGroupSpecs"][0]["template"]];
    for (template, group) in templates.into_iter().zip(["headgroup", "gpus"]) {
        assert_eq!(gates(template), ["berth.dev/placement"], "{template}");
        let labels = format!("ray.io/cluster: tune-x7k, ray.io/group: {group}");
        cluster.apply(&made(&format!("tune-{group}"), &labels, &owner, &template["spec"]));
    }
    until("they wait as a gang in their queue", || {
        jobs(&berth, "tune-x7k").first().is_some_and(|job| job["state"] == "pending")
    });
    assert_eq!(job(&berth, "tune-x7k")["team"], "team-a-cq");
    assert!(!is_bound(&cluster, "tune-headgroup") && !is_bound(&cluster, "tune-gpus"));
    cluster.delete(&["pod", "taken", "--force", "--grace-period=0"]);
    until("both are bound", || {
        is_bound(&cluster, "tune-headgroup") && is_bound(&cluster, "tune-gpus")
    });
}

#[test]
fn a_train_job_is_let_go_when_its_job_set_has_its_place() {
    let cluster = scene();
    let berth = berth_with(&cluster, &["--stand-in", "kueue"]);
    take_all(&cluster);
    let kind = "trainer.kubeflow.org/v1alpha1 TrainJob";
    cluster.apply(&object(kind, "bert", QUEUED, "{suspend: true, runtimeRef: {name: torch}}"));
    let owner = by(&cluster, "trainjob", "bert");
    let set = |suspend: bool| {
        let spec = format!(
            "{{suspend: {suspend}, replicatedJobs: [{{name: node, replicas: 1, template: {{spec: \
             {{parallelism: 2, completions: 2, template: {TEMPLATE}}}}}}}]}}"
        );
        object("jobset.x-k8s.io/v1alpha2 JobSet", "bert", &owner, &spec)
    };
    cluster.apply(&set(true));
    until("it waits", || jobs(&berth, "bert").first().is_some_and(|job| job["state"] == "pending"));
    assert_eq!(job(&berth, "bert")["team"], "team-a-cq");
    assert_eq!(get(&cluster, "trainjob", "bert")["spec"]["suspend"], true);
    cluster.delete(&["pod", "taken", "--force", "--grace-period=0"]);
    until("it is let go", || get(&cluster, "trainjob", "bert")["spec"]["suspend"] == false);

    // Its controller lets the set go, and that makes a Job.
    let jobs_of = &get(&cluster, "jobset", "bert")["spec"]["replicatedJobs"];
    let template = jobs_of[0]["template"]["spec"]["template"].clone();
    assert_eq!(gates(&template), ["berth.dev/placement"], "{template}");
    let let_go = r#"{"spec": {"suspend": false}}"#;
    cluster.patch(&["jobset", "bert", "--namespace=team-a", "--type=merge", "-p", let_go]);
    let owner = by(&cluster, "jobset", "bert");
    let labels = "jobset.sigs.k8s.io/jobset-name: bert, \
                  jobset.sigs.k8s.io/replicatedjob-name: node";
    for rank in 0..2 {
        cluster.apply(&made(&format!("bert-{rank}"), labels, &owner, &template["spec"]));
    }
    until("both are bound", || is_bound(&cluster, "bert-0") && is_bound(&cluster, "bert-1"));
    assert_eq!(jobs(&berth, "bert").len(), 1, "they are the job that waited");
    // What takes its place suspends the TrainJob, whose controller does the rest.
    cluster.apply(
        "{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, \
         metadata: {name: urgent}, value: 1000}",
    );
    let urgent = "  labels: {kueue.x-k8s.io/queue-name: user-queue, \
                  kueue.x-k8s.io/priority-class: urgent}";
    let template = TEMPLATE.replace("{spec: {", "{spec: {restartPolicy: Never, ");
    let spec = format!("{{suspend: true, parallelism: 2, completions: 2, template: {template}}}");
    cluster.apply(&object("batch/v1 Job", "high", urgent, &spec));
    until("it is suspended again", || get(&cluster, "trainjob", "bert")["spec"]["suspend"] == true);
    assert_eq!(get(&cluster, "jobset", "bert")["spec"]["suspend"], false, "it is not Berth's");
}
