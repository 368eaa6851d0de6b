//! Owners that keep pods running, that have one another, and that make their pods one after another.

use super::kinds::{define, uid_of};
use super::{all_bound, pods};
use crate::support::{add_nodes, berth, cluster, node_of, nodes_of, pod, until, why};
use berth_testbed::Server;
use berth_testbed::kube::Cluster;
use serde_json::Value;

/// What the pods of something that keeps them running are made from, each with six GPUs.
fn of(kind: &str, name: &str, marks: &str, replicas: u32, more: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}, {marks}}}
spec:
  replicas: {replicas}
{more}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}, annotations: {{testbed.berth.dev/runs: 1h}}}}
    spec:
      schedulerName: berth
      terminationGracePeriodSeconds: 0
      containers:
      - {{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: 6}}}}}}
"
    )
}

/// The pods of a controller, as the API server has them.
fn made(cluster: &Cluster, name: &str) -> Vec<Value> {
    let pods = cluster.get(&["pods", "--selector", &format!("app={name}")]);
    pods["items"].as_array().cloned().unwrap_or_default()
}

fn bound(cluster: &Cluster, name: &str) -> usize {
    made(cluster, name).iter().filter(|pod| pod["spec"]["nodeName"].is_string()).count()
}

/// The jobs whose names begin with this one, also those that have ended.
fn jobs(berth: &Server, name: &str) -> Vec<Value> {
    let all = berth.all_jobs();
    let is_it = |job: &Value| job["name"].as_str().is_some_and(|known| known.starts_with(name));
    all.into_iter().filter(is_it).collect()
}

#[test]
fn marks_on_what_keeps_pods_running_count_for_these_and_make_no_gang_by_themselves() {
    let cluster = cluster();
    add_nodes(&cluster, &["a", "b"]);
    let berth = berth(&cluster);

    // Three that have to do with each other nothing: there is room for two.
    let urgent = "annotations: {berth.dev/priority: '7'}";
    cluster.apply(&of("Deployment", "web", urgent, 3, ""));
    until("two are bound", || bound(&cluster, "web") == 2);
    until("each is a job", || jobs(&berth, "web").len() == 3);
    assert!(
        jobs(&berth, "web").iter().all(|job| job["priority"] == 7),
        "{:?}",
        jobs(&berth, "web")
    );
    // Old ReplicaSets have no pods, and new ones have the same marks.
    cluster.kubectl_stdout(&["scale", "deployment", "web", "--replicas=1"]);
    cluster.kubectl_stdout(&["set", "image", "deployment/web", "main=other"]);
    let image = |pod: &Value| pod["spec"]["containers"][0]["image"] == "other";
    until("the new one took the place of the old ones", || {
        let made = made(&cluster, "web");
        made.len() == 1 && made.iter().all(image) && bound(&cluster, "web") == 1
    });
    let new = made(&cluster, "web")[0]["metadata"]["name"].as_str().unwrap().to_owned();
    assert_eq!(jobs(&berth, &new)[0]["priority"], 7);
    cluster.delete(&["deployment", "web"]);
    until("there is room again", || made(&cluster, "web").is_empty());

    // A queue that nobody has, on the Deployment alone.
    let lost = "labels: {kai.scheduler/queue: nowhere}";
    cluster.apply(&of("Deployment", "lost", lost, 1, ""));
    until("its pod says that", || {
        let made = made(&cluster, "lost");
        let pod = made.first().and_then(|pod| pod["metadata"]["name"].as_str());
        pod.is_some_and(|pod| why(&cluster, pod).contains("there is no queue nowhere"))
    });

    // Without a mark each is by itself, with Volcano's all of them are one.
    let at_once = "  podManagementPolicy: Parallel\n  serviceName: none";
    cluster.apply(&of("StatefulSet", "free", "labels: {}", 2, at_once));
    until("both are bound", || bound(&cluster, "free") == 2);
    assert_eq!(jobs(&berth, "free").len(), 2);
    let least = "annotations: {scheduling.volcano.sh/group-min-member: '2'}";
    cluster.kubectl_stdout(&["scale", "statefulset", "free", "--replicas=1"]);
    until("there is room for one", || made(&cluster, "free").len() == 1);
    cluster.apply(&of("StatefulSet", "tied", least, 2, at_once));
    until("they are one job, and it waits", || {
        let tied = jobs(&berth, "tied");
        tied.len() == 1 && tied[0]["state"] == "pending" && made(&cluster, "tied").len() == 2
    });
    assert_eq!(bound(&cluster, "tied"), 0, "there is room for one of two");
    cluster.delete(&["statefulset", "free"]);
    until("both are bound", || bound(&cluster, "tied") == 2);
    assert_eq!(jobs(&berth, "tied").len(), 1);
}

/// Words of metadata by which an object belongs to another.
fn by(cluster: &Cluster, kind: &str, name: &str) -> String {
    let uid = uid_of(cluster, kind, name);
    let (api, kind) = kind.rsplit_once('/').unwrap();
    format!(
        "  ownerReferences:
  - {{apiVersion: {api}, kind: {kind}, name: {name}, uid: {uid}, controller: true}}"
    )
}

/// A Job that makes no pods by itself. Its controller leaves it alone: otherwise it would take the
/// pods away from the Job that are not of its own making, a second after they were made.
fn job(name: &str, owner: &str) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
{owner}
spec:
  suspend: true
  managedBy: testbed.berth.dev/nobody
  template: {{spec: {{restartPolicy: Never, containers: [{{name: a, image: b}}]}}}}
---
"
    )
}

/// A StatefulSet whose own pod is nobody's.
fn keeper(name: &str, owner: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {name}
{owner}
spec:
  replicas: 1
  serviceName: none
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{schedulerName: nobody, containers: [{{name: a, image: b}}]}}
"
    )
}

#[test]
fn pods_do_not_wait_for_those_that_are_made_when_they_run() {
    let cluster = cluster();
    define(
        &cluster,
        &[
            "jobset.x-k8s.io/v1alpha2 JobSet jobsets",
            "kubeflow.org/v2beta1 MPIJob mpijobs",
            "trainer.kubeflow.org/v1alpha1 TrainJob trainjobs",
            "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet leaderworkersets",
        ],
    );
    add_nodes(&cluster, &["a", "b"]);
    let berth = berth(&cluster);
    cluster.apply(
        "apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: pi}
spec:
  launcherCreationPolicy: WaitForWorkersReady
  mpiReplicaSpecs: {Launcher: {replicas: 1}, Worker: {replicas: 2}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune, annotations: {berth.dev/priority: '7'}}
---
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: llm, annotations: {berth.dev/priority: '3'}}
spec: {startupPolicy: LeaderReady, leaderWorkerTemplate: {size: 2}}
",
    );

    // A launcher that comes when the workers run.
    let mpi = by(&cluster, "kubeflow.org/v2beta1/MPIJob", "pi");
    let role = |role: &str, owner: &str| {
        format!(
            "  labels: {{training.kubeflow.org/job-name: pi, training.kubeflow.org/job-role: \
             {role}}}\n  annotations: {{testbed.berth.dev/runs: 1h}}\n{owner}"
        )
    };
    cluster.apply(&pods("pi-worker", 1, 1, &role("worker", &mpi), ""));
    cluster.apply(&pod("other", 1, "", ""));
    until("another pod is bound", || node_of(&cluster, "other").is_some());
    assert_eq!(node_of(&cluster, "pi-worker-0"), None, "there are two workers");
    cluster.apply(&pods("pi-worker", 2, 1, &role("worker", &mpi), ""));
    until("the workers are bound", || all_bound(&cluster, "pi-worker", 2));
    cluster.apply(&job("pi-launcher", &mpi));
    let launcher = by(&cluster, "batch/v1/Job", "pi-launcher");
    cluster.apply(&pod("pi-launcher-x", 1, &role("launcher", &launcher), ""));
    until("so is the launcher", || node_of(&cluster, "pi-launcher-x").is_some());

    // A TrainJob makes a set of jobs, of which one is made when the other has ended.
    cluster.apply(&format!(
        "apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: tune
{}
spec:
  replicatedJobs:
  - {{name: dataset-initializer, template: {{spec: {{parallelism: 1, completions: 1}}}}}}
  - name: node
    dependsOn: [{{name: dataset-initializer, status: Complete}}]
    template: {{spec: {{parallelism: 2, completions: 2}}}}
",
        by(&cluster, "trainer.kubeflow.org/v1alpha1/TrainJob", "tune")
    ));
    let set = by(&cluster, "jobset.x-k8s.io/v1alpha2/JobSet", "tune");
    let of_set = |part: &str| {
        let name = format!("tune-{part}-0");
        cluster.apply(&job(&name, &set));
        format!(
            "  labels: {{jobset.sigs.k8s.io/jobset-name: tune, \
             jobset.sigs.k8s.io/replicatedjob-name: {part}}}\n{}",
            by(&cluster, "batch/v1/Job", &name)
        )
    };
    cluster.apply(&pod("tune-data", 1, &of_set("dataset-initializer"), ""));
    until("what comes first is bound", || node_of(&cluster, "tune-data").is_some());
    let node = of_set("node");
    cluster.apply(&pods("tune-node", 1, 1, &node, ""));
    cluster.apply(&pod("another", 1, "", ""));
    until("another pod is bound", || node_of(&cluster, "another").is_some());
    assert_eq!(nodes_of(&cluster, "tune-node", 1), [None], "there are two nodes");
    until("the one that is there says so", || {
        why(&cluster, "tune-node-0").contains("1 of 2 pods of gang tune/node exist")
    });
    cluster.apply(&pods("tune-node", 2, 1, &node, ""));
    until("the nodes are bound", || all_bound(&cluster, "tune-node", 2));
    let nodes = jobs(&berth, "tune/node");
    assert_eq!(nodes.len(), 1, "{nodes:?}");
    assert_eq!(nodes[0]["priority"], 7, "the TrainJob said so: {nodes:?}");

    // The workers of a set are owned by their leader, which is a pod.
    let of_llm = |owner: &str| {
        format!(
            "  labels: {{leaderworkerset.sh/name: llm, leaderworkerset.sh/group-index: '0', \
             leaderworkerset.sh/group-key: k1}}\n  annotations: {{leaderworkerset.sh/size: '2', \
             testbed.berth.dev/runs: 1h}}\n{owner}"
        )
    };
    let set = by(&cluster, "leaderworkerset.x-k8s.io/v1/LeaderWorkerSet", "llm");
    cluster.apply(&keeper("llm", &set));
    let leader = of_llm(&by(&cluster, "apps/v1/StatefulSet", "llm"));
    cluster.apply(&pod("llm-lead", 1, &leader, ""));
    until("the leader is bound", || node_of(&cluster, "llm-lead").is_some());
    let uid = cluster.get(&["pod", "llm-lead"])["metadata"]["uid"].clone();
    let uid = uid.as_str().unwrap();
    cluster.apply(&keeper(
        "llm-0",
        &format!(
            "  ownerReferences:
  - {{apiVersion: v1, kind: Pod, name: llm-lead, uid: {uid}, controller: true}}"
        ),
    ));
    let worker = of_llm(&by(&cluster, "apps/v1/StatefulSet", "llm-0"));
    cluster.apply(&pod("llm-work", 1, &worker, ""));
    until("so is its worker", || node_of(&cluster, "llm-work").is_some());
    let all = jobs(&berth, "llm-");
    assert!(all.len() == 2 && all.iter().all(|job| job["priority"] == 3), "{all:?}");
}
