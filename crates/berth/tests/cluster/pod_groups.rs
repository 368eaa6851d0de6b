//! Pods that say with the help of other objects what they are: groups and owners.

pub mod kinds;
mod owners;
mod subgroups;

use super::support::{add_nodes, berth, cluster, node, node_of, nodes_of, pod, until, why};
use berth_testbed::kube::{Cluster, Kwok, Part};
use kinds::{define, uid_of};

/// Pods of a name and a number, each with these marks.
fn pods(name: &str, count: u32, gpus: u32, metadata: &str, spec: &str) -> String {
    (0..count).map(|at| pod(&format!("{name}-{at}"), gpus, metadata, spec)).collect()
}

fn all_bound(cluster: &Cluster, name: &str, count: u32) -> bool {
    nodes_of(cluster, name, count).iter().all(Option::is_some)
}

#[test]
fn a_gang_is_as_large_as_its_pod_group_says_and_waits_for_it() {
    let cluster = Cluster::builder()
        .controller_manager()
        .kwok(Kwok::all_nodes())
        .flag(Part::ApiServer, "--runtime-config=scheduling.k8s.io/v1alpha2=true")
        .flag(Part::ApiServer, "--feature-gates=GenericWorkload=true")
        .start();
    for name in ["a", "b"] {
        cluster.apply(&node(name, &format!("{{topology.kubernetes.io/rack: {name}}}"), "[]"));
    }
    let _berth = berth(&cluster);

    // A group that comes after its pods, of a kind that is defined when Berth runs already.
    let kai = "  annotations: {pod-group-name: late, testbed.berth.dev/runs: 1h}";
    cluster.apply(&pods("late", 2, 1, kai, ""));
    until("its pods say what they wait for", || why(&cluster, "late-0").contains("PodGroup late"));
    define(&cluster, &["scheduling.run.ai/v2alpha2 PodGroup podgroups"]);
    cluster.apply(
        "apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: late}
spec: {minMember: 3}
",
    );
    cluster.apply(&pod("other", 1, "", ""));
    until("another pod is bound", || node_of(&cluster, "other").is_some());
    assert!(!all_bound(&cluster, "late", 2), "three pods are needed");
    until("its pods say how many exist", || {
        why(&cluster, "late-0").contains("2 of 3 pods of gang late exist")
    });
    cluster.apply(&pods("late", 3, 1, kai, ""));
    until("the gang is bound", || all_bound(&cluster, "late", 3));
    // One more than is needed, when the others run.
    cluster.apply(&pods("late", 4, 1, kai, ""));
    until("the one that came later is bound", || all_bound(&cluster, "late", 4));

    // The group of Kubernetes itself, with a place where all of it has to be.
    cluster.apply(
        "apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: close}
spec:
  schedulingPolicy: {gang: {minCount: 2}}
  schedulingConstraints: {topology: [{key: topology.kubernetes.io/rack}]}
",
    );
    cluster.apply(&pods("close", 2, 3, "", "  schedulingGroup: {podGroupName: close}"));
    until("the gang is bound", || all_bound(&cluster, "close", 2));
    let racks = nodes_of(&cluster, "close", 2);
    assert_eq!(racks[0], racks[1], "a rack is one node here");

    // A group that makes no sense keeps its own pods from running, and nobody else's.
    define(&cluster, &["scheduling.volcano.sh/v1beta1 PodGroup podgroups"]);
    cluster.apply(
        "apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: odd}
spec: {minMember: -4}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: odder}
spec: {minMember: {many: yes}}
",
    );
    let of = |group: &str| format!("  annotations: {{scheduling.k8s.io/group-name: {group}}}");
    cluster.apply(&pods("odd", 1, 1, &of("odd"), ""));
    cluster.apply(&pods("odder", 1, 1, &of("odder"), ""));
    until("it says what is wrong", || why(&cluster, "odd-0").contains("minMember` is `-4`"));
    until("so does the other", || why(&cluster, "odder-0").contains("odder cannot be read"));
    cluster.apply(
        "apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: odd}
spec: {minMember: 1}
",
    );
    until("the one that was set right is bound", || node_of(&cluster, "odd-0").is_some());
    assert_eq!(node_of(&cluster, "odder-0"), None);
}

#[test]
fn owners_of_pods_and_their_owners_say_what_is_a_gang() {
    let cluster = cluster();
    define(
        &cluster,
        &[
            "jobset.x-k8s.io/v1alpha2 JobSet jobsets",
            "kubeflow.org/v1 PyTorchJob pytorchjobs",
            "ray.io/v1 RayCluster rayclusters",
            "ray.io/v1 RayJob rayjobs",
            "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet leaderworkersets",
        ],
    );
    add_nodes(&cluster, &["a", "b"]);
    let berth = berth(&cluster);
    cluster.apply(
        "apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bert}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1}
    Worker: {replicas: 2}
---
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: tune, annotations: {berth.dev/priority: '7'}}
spec: {rayClusterSpec: {workerGroupSpecs: [{groupName: w, replicas: 2}]}}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: pipeline}
spec:
  replicatedJobs:
  - {name: workers, replicas: 2, template: {spec: {parallelism: 1, completions: 1}}}
",
    );
    let by = |kind: &str, name: &str| {
        let uid = uid_of(&cluster, kind, name);
        let (api, kind) = kind.rsplit_once('/').unwrap();
        format!(
            "  ownerReferences:
  - {{apiVersion: {api}, kind: {kind}, name: {name}, uid: {uid}, controller: true}}"
        )
    };
    // A cluster of a job, and a job of a set, which says nothing by itself.
    cluster.apply(&format!(
        "apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: tune-x
{}
spec: {{workerGroupSpecs: [{{groupName: w, replicas: 2}}]}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: pipeline-workers-0
{}
spec:
  suspend: true
  managedBy: testbed.berth.dev/nobody
  template: {{spec: {{restartPolicy: Never, containers: [{{name: a, image: b}}]}}}}
",
        by("ray.io/v1/RayJob", "tune"),
        by("jobset.x-k8s.io/v1alpha2/JobSet", "pipeline")
    ));

    let torch = by("kubeflow.org/v1/PyTorchJob", "bert");
    let of = |role: &str| {
        format!(
            "  labels: {{training.kubeflow.org/job-name: bert, \
             training.kubeflow.org/replica-type: {role}}}\n{torch}"
        )
    };
    let ray = by("ray.io/v1/RayCluster", "tune-x");
    let ray = format!("  labels: {{ray.io/cluster: tune-x, ray.io/group: w}}\n{ray}");
    let set = by("batch/v1/Job", "pipeline-workers-0");
    let set = format!(
        "  labels: {{jobset.sigs.k8s.io/jobset-name: pipeline, \
         jobset.sigs.k8s.io/replicatedjob-name: workers}}\n{set}"
    );
    let group = "  labels: {leaderworkerset.sh/name: serve, leaderworkerset.sh/group-index: '0', \
                 leaderworkerset.sh/group-key: k1}\n  annotations: {leaderworkerset.sh/size: '2'}";
    cluster.apply(&pods("bert-worker", 2, 1, &of("worker"), ""));
    cluster.apply(&pods("tune-x", 2, 1, &ray, ""));
    cluster.apply(&pods("pipeline-workers", 1, 1, &set, ""));
    cluster.apply(&pods("serve", 1, 1, group, ""));
    cluster.apply(&pod("other", 1, "", ""));
    until("another pod is bound", || node_of(&cluster, "other").is_some());
    for (name, count) in [("bert-worker", 2), ("tune-x", 2), ("pipeline-workers", 1), ("serve", 1)]
    {
        assert!(nodes_of(&cluster, name, count).iter().all(Option::is_none), "{name} is not whole");
    }
    cluster.apply(&pods("bert-master", 1, 1, &of("master"), ""));
    cluster.apply(&pods("tune-x", 3, 1, &ray, ""));
    cluster.apply(&pods("pipeline-workers", 2, 1, &set, ""));
    cluster.apply(&pods("serve", 2, 1, group, ""));
    for (name, count) in [
        ("bert-worker", 2),
        ("bert-master", 1),
        ("tune-x", 3),
        ("pipeline-workers", 2),
        ("serve", 2),
    ] {
        until(&format!("{name} is bound"), || all_bound(&cluster, name, count));
    }
    let jobs = berth.all_jobs();
    assert_eq!(jobs.len(), 5, "{jobs:?}");
    let tune = berth.job("tune-x");
    assert_eq!(tune["priority"], 7, "its owner's owner said so: {tune}");
}
