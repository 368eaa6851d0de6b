//! Manifests written for other schedulers, applied as they are, with Berth in the place of the one
//! they were written for.

use super::pod_groups::kinds::define;
use super::support::{cluster, node, pod, until};
use berth_testbed::Server;
use berth_testbed::kube::{ADMIN, Cluster, Kwok};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub fn sample(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../berth-kube/samples");
    fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn berth(cluster: &Cluster, args: &[&str]) -> Server {
    let program = Path::new(env!("CARGO_BIN_EXE_berth"));
    Server::start_on(program, &cluster.kubeconfig(ADMIN), args)
}

pub fn add_namespaces(cluster: &Cluster, names: &[&str]) {
    for name in names {
        cluster.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}"));
    }
    for name in names {
        let account = ["serviceaccount", "default", "--namespace", name];
        until("the namespace can have pods", || cluster.find(&account).is_some());
    }
}

pub fn add_node(cluster: &Cluster, name: &str, labels: &str) {
    cluster.apply(&node(name, &format!("{{kubernetes.io/hostname: {name}, {labels}}}"), "[]"));
    until("the node is ready and free of taints", || {
        cluster.get(&["node", name])["spec"]["taints"] == Value::Null
    });
}

/// The pods of a namespace that have a node, by name.
pub fn placed(cluster: &Cluster, namespace: &str) -> BTreeMap<String, String> {
    let pods = cluster.get(&["pods", "--namespace", namespace]);
    let pods = pods["items"].as_array().cloned().unwrap_or_default();
    let node = |pod: &Value| {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some((text(&pod["metadata"]["name"])?, text(&pod["spec"]["nodeName"])?))
    };
    pods.iter().filter_map(node).collect()
}

pub fn why(cluster: &Cluster, namespace: &str, pod: &str) -> String {
    let pod = cluster.get(&["pod", pod, "--namespace", namespace]);
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let scheduled = conditions.iter().find(|one| one["type"] == "PodScheduled");
    scheduled.and_then(|one| one["message"].as_str()).unwrap_or_default().to_owned()
}

/// The jobs of a name, also those that have ended.
pub fn jobs(berth: &Server, name: &str) -> Vec<Value> {
    let all = berth.all_jobs();
    all.into_iter().filter(|job| job["name"] == name).collect()
}

/// The only job of a name.
pub fn job(berth: &Server, name: &str) -> Value {
    let mut found = jobs(berth, name);
    assert_eq!(found.len(), 1, "{name}: {found:?}");
    found.remove(0)
}

/// What was said about objects.
pub fn events(cluster: &Cluster) -> String {
    let events = cluster.get(&["events.events.k8s.io", "--all-namespaces"]);
    let events = events["items"].as_array().cloned().unwrap_or_default();
    let notes: Vec<&str> = events.iter().filter_map(|event| event["note"].as_str()).collect();
    notes.join("\n")
}

fn is_suspended(cluster: &Cluster, namespace: &str, name: &str) -> bool {
    cluster.get(&["job", name, "--namespace", namespace])["spec"]["suspend"] == true
}

#[test]
fn manifests_of_kai_run_as_they_are() {
    let cluster = cluster();
    define(
        &cluster,
        &[
            "scheduling.run.ai/v2 Queue queues!",
            "scheduling.run.ai/v2alpha2 PodGroup podgroups",
            "kai.scheduler/v1alpha1 Topology topologies!",
        ],
    );
    add_namespaces(&cluster, &["vision", "speech"]);
    for at in 0..8 {
        let (zone, rack) = (at / 6, at / 2);
        let labels = format!(
            "topology.kubernetes.io/zone: z{zone}, topology.kubernetes.io/rack: r{rack}, pdu: p{at}"
        );
        add_node(&cluster, &format!("n{at}"), &labels);
    }
    // One more in the last rack, of which there are MIG instances.
    let instances = "topology.kubernetes.io/zone: z1, topology.kubernetes.io/rack: r3, \
         nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, nvidia.com/gpu.memory: '81559', \
         nvidia.com/gpu.count: '1', nvidia.com/mig.strategy: mixed";
    let labels = format!("{{kubernetes.io/hostname: sliced, {instances}}}");
    let sliced = node("sliced", &labels, "[]");
    cluster.apply(&sliced.replace("nvidia.com/gpu: 8", "nvidia.com/mig-3g.40gb: 2"));
    cluster.apply(
        "apiVersion: kai.scheduler/v1alpha1
kind: Topology
metadata: {name: cluster-topology}
spec:
  levels:
  - {nodeLabel: topology.kubernetes.io/zone}
  - {nodeLabel: topology.kubernetes.io/rack}
  - {nodeLabel: kubernetes.io/hostname}
",
    );
    let map = cluster.folder().join("map.yaml");
    fs::write(&map, "schedulers: [elder]\nqueues: {legacy: speech}\n").unwrap();
    let berth = berth(&cluster, &["--stand-in", "kai", "--map", &map.display().to_string()]);

    // A queue that is not there yet, and nonsense beside it.
    let in_vision = |name: &str, marks: &str| {
        pod(name, 1, &format!("  namespace: vision\n{marks}"), "")
            .replace("berth\n", "kai-scheduler\n")
    };
    cluster.apply(&in_vision("early", "  labels: {kai.scheduler/queue: vision}"));
    until("it says which queue is missing", || {
        why(&cluster, "vision", "early").contains("there is no queue vision")
    });
    cluster.apply(&sample("kai/queues.yaml"));
    until("it is bound when there is one", || placed(&cluster, "vision").contains_key("early"));
    let odd = "  labels: {kai.scheduler/queue: vision, kai.scheduler/preemptibility: maybe}";
    cluster.apply(&in_vision("odd", odd));
    until("nonsense is told", || why(&cluster, "vision", "odd").contains("`maybe`"));
    until("also in an event", || events(&cluster).contains("`maybe`"));
    cluster.delete(&["pod", "early", "--namespace=vision", "--force"]);

    // Six of a gang in one zone, each two in a rack.
    cluster.apply(&sample("kai/gang-job.yaml"));
    until("the gang is bound", || placed(&cluster, "vision").len() == 6);
    let nodes: Vec<String> = placed(&cluster, "vision").into_values().collect();
    let mut racks: BTreeMap<u32, u32> = BTreeMap::new();
    for node in &nodes {
        let at: u32 = node.trim_start_matches('n').parse().unwrap();
        assert!(at < 6, "{nodes:?} are in one zone");
        *racks.entry(at / 2).or_default() += 1;
    }
    assert!(racks.values().all(|pods| *pods == 2), "{racks:?}");
    let pretrain = job(&berth, "pretrain");
    assert_eq!((&pretrain["team"], &pretrain["priority"]), (&"vision".into(), &50.into()));
    until("the job is complete", || {
        let job = cluster.get(&["job", "pretrain", "--namespace=vision"]);
        job["status"]["succeeded"] == 6
    });

    cluster.apply(&sample("kai/pods.yaml"));
    until("a whole GPU is given", || placed(&cluster, "vision").contains_key("whole"));
    assert_eq!(job(&berth, "whole")["priority"], 100, "the class is called build");

    // The parts of a group: one pod of the sample, which asks for a MIG instance, and two more.
    let of = |name: &str, part: &str| {
        let marks = format!(
            "  namespace: speech\n  labels: {{kai.scheduler/subgroup-name: {part}}}\n  \
             annotations: {{pod-group-name: serving, testbed.berth.dev/runs: 1h}}"
        );
        pod(name, 1, &marks, "").replace("berth\n", "kai-scheduler\n")
    };
    cluster.apply(&sample("kai/pod-group.yaml"));
    cluster.apply(&(of("prefill-0", "prefill") + &of("decode-1", "decode")));
    until("the group is bound", || placed(&cluster, "speech").len() == 3);
    let speech = placed(&cluster, "speech");
    assert_eq!(speech["decode-0"], "sliced", "{speech:?}");
    assert!(["n6", "n7"].contains(&speech["decode-1"].as_str()), "one rack: {speech:?}");
    assert!(["n6", "n7"].contains(&speech["prefill-0"].as_str()), "one zone: {speech:?}");
    let serving = job(&berth, "serving");
    assert_eq!((&serving["team"], &serving["priority"]), (&"speech".into(), &125.into()));

    // Names that only the configuration knows.
    let legacy = "  namespace: speech\n  labels: {kai.scheduler/queue: legacy}";
    cluster.apply(&pod("mapped", 1, legacy, "").replace("berth\n", "elder\n"));
    until("it is bound", || placed(&cluster, "speech").contains_key("mapped"));
    assert_eq!(job(&berth, "mapped")["team"], "speech");
}

#[test]
fn manifests_of_volcano_run_as_they_are() {
    let cluster = cluster();
    define(
        &cluster,
        &[
            "scheduling.volcano.sh/v1beta1 Queue queues!",
            "scheduling.volcano.sh/v1beta1 PodGroup podgroups",
        ],
    );
    add_namespaces(&cluster, &["ml"]);
    for at in 0..4 {
        let labels = format!(
            "topology.kubernetes.io/block: b{}, topology.kubernetes.io/rack: r{at}",
            at / 2
        );
        add_node(&cluster, &format!("n{at}"), &labels);
    }
    let berth = berth(&cluster, &["--stand-in", "volcano"]);
    cluster.apply(&sample("volcano/queues.yaml"));
    cluster.apply(&sample("volcano/pod-group.yaml"));
    let of = |name: &str, task: &str| {
        let marks = format!(
            "  namespace: ml\n  annotations: {{scheduling.k8s.io/group-name: tf-dist, \
             volcano.sh/task-spec: {task}, testbed.berth.dev/runs: 1h}}"
        );
        pod(name, 2, &marks, "").replace("berth\n", "volcano\n")
    };
    cluster.apply(&(of("master-0", "master") + &of("worker-1", "worker")));
    until("the class is missed", || {
        why(&cluster, "ml", "worker-0").contains("no priority class high-priority")
    });
    cluster.apply(
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high-priority}, \
         value: 900}",
    );
    until("the group is bound", || placed(&cluster, "ml").len() == 3);
    let placed = placed(&cluster, "ml");
    assert_eq!(placed["worker-0"], placed["worker-1"], "a rack is one node here");
    let block = |pod: &str| placed[pod].trim_start_matches('n').parse::<u32>().unwrap() / 2;
    assert_eq!(block("master-0"), block("worker-0"));
    let tf = job(&berth, "tf-dist");
    assert_eq!((&tf["team"], &tf["priority"]), (&"training".into(), &900.into()));

    // Pods of a ReplicaSet that are of use only from three on, of which there are two at first.
    let replicas = sample("volcano/replicas.yaml");
    cluster.apply(&replicas.replace("replicas: 4", "replicas: 2"));
    let ps = || {
        let pods = cluster.get(&["pods", "--namespace=ml", "--selector=app=ps"]);
        let pods = pods["items"].as_array().cloned().unwrap_or_default();
        let names = pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str());
        names.map(str::to_owned).collect::<Vec<String>>()
    };
    until("they say that there are too few", || {
        let ps = ps();
        let is_told =
            |pod: &String| why(&cluster, "ml", pod).contains("the gang has 2 pods in all");
        ps.len() == 2 && ps.iter().all(is_told)
    });
    cluster.apply(&replicas);
    until("all are bound", || {
        let (ps, placed) = (ps(), self::placed(&cluster, "ml"));
        ps.len() == 4 && ps.iter().all(|pod| placed.contains_key(pod))
    });
    assert_eq!(job(&berth, "ps")["team"], "training");
    until("a mark without effect is told", || {
        events(&cluster).contains("no effect that `volcano.sh/sla-waiting-time` is `1h`")
    });
}

#[test]
fn manifests_of_kueue_run_as_they_are_also_beside_the_default_scheduler() {
    let cluster =
        Cluster::builder().controller_manager().scheduler().kwok(Kwok::all_nodes()).start();
    define_kueue(&cluster);
    add_namespaces(&cluster, &["team-a"]);
    for at in 0..4 {
        let labels = format!(
            "cloud.provider.com/topology-block: b{}, cloud.provider.com/topology-rack: r{at}, \
             nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3",
            at / 2
        );
        add_node(&cluster, &format!("n{at}"), &labels);
    }
    cluster.apply(&sample("kueue/queues.yaml"));
    cluster.apply(
        "{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, \
         metadata: {name: prod-priority}, value: 10}",
    );
    let mut berth = berth(&cluster, &["--stand-in", "kueue"]);
    // All GPUs are somebody else's for now.
    let taken: String = (0..4)
        .map(|at| {
            pod(&format!("taken-{at}"), 8, "", &format!("  nodeName: n{at}"))
                .replace("berth", "elder")
        })
        .collect();
    cluster.apply(&taken);
    until("all GPUs are used", || {
        (0..4)
            .all(|at| cluster.get(&["pod", &format!("taken-{at}")])["status"]["phase"] == "Running")
    });
    cluster.apply(&sample("kueue/job.yaml"));
    until("it waits in its queue", || {
        jobs(&berth, "sample-job").first().is_some_and(|job| job["state"] == "pending")
    });
    let waits = job(&berth, "sample-job");
    assert_eq!((&waits["team"], &waits["priority"]), (&"team-a-cq".into(), &10.into()));
    assert!(is_suspended(&cluster, "team-a", "sample-job"));
    // It keeps its place when Berth is away for a while.
    berth.kill();
    berth.start_again();
    assert_eq!(job(&berth, "sample-job")["id"], waits["id"]);

    cluster.delete(&["pod", "--all", "--force", "--grace-period=0"]);
    until("the job is complete", || {
        let job = cluster.get(&["job", "sample-job", "--namespace=team-a"]);
        job["status"]["succeeded"] == 4
    });
    until("it is done in the books", || job(&berth, "sample-job")["state"] == "done");
    let placed_at: Vec<String> = placed(&cluster, "team-a").into_values().collect();
    for node in &placed_at {
        let pods = placed_at.iter().filter(|other| *other == node).count();
        assert!(pods % 2 == 0, "two of a slice are in one rack: {placed_at:?}");
    }

    cluster.apply(&sample("kueue/pod-group.yaml"));
    until("the group is admitted and bound", || {
        let placed = placed(&cluster, "team-a");
        ["leader", "worker"].iter().all(|name| placed.contains_key(*name))
    });
    assert_eq!(job(&berth, "sample-group")["team"], "team-a-cq");
}

#[test]
fn a_job_of_kueue_that_loses_its_place_is_suspended_and_comes_back() {
    let cluster = cluster();
    define_kueue(&cluster);
    add_namespaces(&cluster, &["team-a"]);
    add_node(&cluster, "n0", "disk: fast");
    cluster.apply(&sample("kueue/queues.yaml"));
    cluster.apply(
        "{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, \
         metadata: {name: urgent}, value: 1000}",
    );
    let berth = berth(&cluster, &["--stand-in", "kueue"]);
    let with = |name: &str, labels: &str, runs: &str| {
        format!(
            "apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, namespace: team-a, labels: {{{labels}}}}}
spec:
  parallelism: 2
  completions: 2
  suspend: true
  template:
    metadata: {{annotations: {{testbed.berth.dev/runs: {runs}}}}}
    spec:
      restartPolicy: Never
      containers: [{{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: 3}}}}}}]
"
        )
    };
    cluster.apply(&with("odd", "kueue.x-k8s.io/queue-name: nowhere", "1s"));
    cluster.apply(&with("low", "kueue.x-k8s.io/queue-name: user-queue", "1h"));
    let runs = |name: &str| {
        cluster.get(&["job", name, "--namespace=team-a"])["status"]["active"] == 2
            && placed(&cluster, "team-a").keys().filter(|pod| pod.starts_with(name)).count() == 2
    };
    until("the low one runs", || runs("low"));
    assert!(is_suspended(&cluster, "team-a", "odd"), "nobody has its queue");
    until("it says so", || events(&cluster).contains("there is no LocalQueue nowhere"));
    until("so does a queue that has more than we know", || events(&cluster).contains("`pods`"));
    let urgent = "kueue.x-k8s.io/queue-name: user-queue, kueue.x-k8s.io/priority-class: urgent";
    cluster.apply(&with("high", urgent, "5s"));
    until("the low one is suspended", || is_suspended(&cluster, "team-a", "low"));
    until("the high one runs", || runs("high"));
    until("the high one is complete", || {
        let high = cluster.get(&["job", "high", "--namespace=team-a"]);
        high["status"]["succeeded"] == 2
    });
    until("the low one runs again", || runs("low"));
    assert_eq!(job(&berth, "low")["attempts"], 2);
    // Whoever deletes it also takes it out of the queue.
    cluster.delete(&["job", "low", "--namespace=team-a"]);
    until("it has ended", || job(&berth, "low")["state"] == "cancelled");
    // A queue that is made later is found.
    cluster.apply(
        "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: nowhere, \
         namespace: team-a}, spec: {clusterQueue: team-a-cq}}",
    );
    until("the odd one is complete", || {
        let odd = cluster.get(&["job", "odd", "--namespace=team-a"]);
        odd["status"]["succeeded"] == 2
    });
    // Nobody has what this one asks for.
    let shared = with("shared", "kueue.x-k8s.io/queue-name: user-queue", "1s");
    cluster.apply(&shared.replace("nvidia.com/gpu: 3", "nvidia.com/gpu.shared: 1"));
    until("it says so as well", || {
        events(&cluster).contains("it stays suspended: no node hands out nvidia.com/gpu.shared")
    });
    // Rules about other pods are read from pods alone.
    let spread = with("spread", "kueue.x-k8s.io/queue-name: user-queue", "1s").replace(
        "      restartPolicy: Never\n",
        "      restartPolicy: Never
      topologySpreadConstraints:
      - maxSkew: 2
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {batch.kubernetes.io/job-name: spread}}
",
    );
    cluster.apply(&spread);
    until("the one with such rules is complete", || {
        let spread = cluster.get(&["job", "spread", "--namespace=team-a"]);
        spread["status"]["succeeded"] == 2
    });
}

pub fn define_kueue(cluster: &Cluster) {
    define(
        cluster,
        &[
            "kueue.x-k8s.io/v1beta2 ClusterQueue clusterqueues!",
            "kueue.x-k8s.io/v1beta2 LocalQueue localqueues",
            "kueue.x-k8s.io/v1beta2 Cohort cohorts!",
            "kueue.x-k8s.io/v1beta2 ResourceFlavor resourceflavors!",
            "kueue.x-k8s.io/v1beta2 WorkloadPriorityClass workloadpriorityclasses!",
        ],
    );
}
