//! Pods that give way, and what becomes of the jobs of those that their controllers make anew.

use super::other_schedulers::job;
use super::support::{add_nodes, berth, cluster, node, node_of, pod, until, why};
use berth_testbed::Server;
use berth_testbed::kube::{Cluster, Pooled};
use serde_json::Value;

/// Whether a pod was told to leave, and has so many seconds for it.
pub fn is_displaced(cluster: &Cluster, name: &str, grace: u32) -> bool {
    let pod = cluster.find(&["pod", name]).unwrap_or_default();
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let told = conditions.iter().any(|one| one["type"] == "DisruptionTarget");
    told && pod["metadata"]["deletionGracePeriodSeconds"] == grace
}

/// A class that others give way to.
pub const URGENT: &str = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, \
                      metadata: {name: urgent}, value: 1000}";

/// A node of eight GPUs, and Berth.
fn scene() -> (Pooled, Server) {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let berth = berth(&cluster);
    cluster.apply(URGENT);
    (cluster, berth)
}

/// The high one gets the place of the only low one, and gives it back.
fn has_its_place_back(cluster: &Cluster) {
    until("the high one is bound", || node_of(cluster, "high").is_some());
    cluster.delete(&["pod", "high", "--force", "--grace-period=0"]);
    until("it runs again", || running(cluster, "low").len() == 1);
}

/// There is one low job, the one of before, in its second attempt.
fn is_the_same_again(berth: &Server, before: &[Value]) {
    let after = of_job(berth, "low");
    assert_eq!((after.len(), &after[0]["id"]), (1, &before[0]["id"]), "{after:?}");
    assert_eq!(after[0]["attempts"], 2, "{after:?}");
}

/// A Job of two pods that fill a node, with marks on its pods.
fn displaceable(name: &str, marks: &str) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  completions: 2
  parallelism: 2
  template:
    metadata:
      annotations: {{{marks}testbed.berth.dev/runs: 1h, testbed.berth.dev/stops: 2s}}
    spec:
      schedulerName: berth
      restartPolicy: Never
      terminationGracePeriodSeconds: 20
      containers: [{{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: 4}}}}}}]
"
    )
}

/// The names of the pods of a Job that run.
fn running(cluster: &Cluster, job: &str) -> Vec<String> {
    let pods = cluster.get(&["pods", &format!("--selector=job-name={job}")]);
    let pods = pods["items"].as_array().cloned().unwrap_or_default();
    let runs = |pod: &&Value| {
        pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null()
    };
    let names = pods.iter().filter(runs).map(|pod| pod["metadata"]["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

/// Has a Job lose its place to a pod and get it back, and its pods end well then.
fn displace(cluster: &Cluster, name: &str) {
    until("the low one runs", || running(cluster, name).len() == 2);
    let first = running(cluster, name);
    cluster.apply(&urgent("high"));
    until("the low one is asked to end", || first.iter().all(|pod| is_displaced(cluster, pod, 20)));
    assert_eq!(node_of(cluster, "high"), None, "the low one still has its GPUs");
    until("the high one is bound", || node_of(cluster, "high").is_some());
    cluster.delete(&["pod", "high", "--force", "--grace-period=0"]);
    until("the low one runs again", || running(cluster, name).len() == 2);
    let second = running(cluster, name);
    assert!(second.iter().all(|pod| !first.contains(pod)), "{first:?} {second:?}");
    for pod in &second {
        cluster.annotate(&["pod", pod, "testbed.berth.dev/runs=10ms", "--overwrite"]);
    }
    until("the job is complete", || {
        let job = cluster.get(&["job", name]);
        let conditions = job["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| one["type"] == "Complete" && one["status"] == "True")
    });
}

#[test]
fn a_gang_that_its_job_makes_anew_is_the_same_job_again() {
    let (cluster, berth) = scene();
    let marks = "berth.dev/gang: low, berth.dev/gang-size: '2', ";
    cluster.apply(&displaceable("low", marks));
    until("it is known", || !of_job(&berth, "low").is_empty());
    let before = job(&berth, "low")["id"].clone();
    displace(&cluster, "low");
    until("it is done in the books", || job(&berth, "low")["state"] == "done");
    let after = job(&berth, "low");
    assert_eq!((&after["id"], &after["attempts"]), (&before, &2.into()), "{after}");
}

#[test]
fn pods_of_no_gang_that_their_job_makes_anew_are_the_same_jobs_again() {
    let (cluster, berth) = scene();
    cluster.apply(&displaceable("low", ""));
    displace(&cluster, "low");
    until("both are done in the books", || {
        let jobs = of_job(&berth, "low-");
        jobs.len() == 2 && jobs.iter().all(|job| job["state"] == "done" && job["attempts"] == 2)
    });
}

#[test]
fn one_pod_without_gpus_takes_the_place_of_one_of_many_that_end_at_once() {
    let cluster = cluster();
    let nodes = ["a", "b"].map(|name| {
        node(name, "{}", "[]").replace(", nvidia.com/gpu: 8", "").replace("cpu: 64", "cpu: 16")
    });
    cluster.apply(&nodes.join("---\n"));
    let _berth = berth(&cluster);
    cluster.apply(URGENT);
    let runs = "  annotations: {testbed.berth.dev/runs: 1h}";
    let of_cpu = |name: &str, cores: u32, spec: &str| {
        pod(name, 0, runs, spec).replace("nvidia.com/gpu: 0", &format!("cpu: {cores}"))
    };
    let names: Vec<String> = (0..16).map(|at| format!("low-{at}")).collect();
    let low: String =
        names.iter().map(|name| of_cpu(name, 2, "  terminationGracePeriodSeconds: 0")).collect();
    cluster.apply(&low);
    until("all are bound", || names.iter().all(|name| node_of(&cluster, name).is_some()));
    cluster.apply(&of_cpu("high", 2, "  priorityClassName: urgent"));
    until("the high one is bound", || node_of(&cluster, "high").is_some());
    let left = names.iter().filter(|name| cluster.find(&["pod", name]).is_some()).count();
    assert_eq!(left, 15);
}

#[test]
fn a_pod_whose_budget_is_used_up_stays_while_another_may_go() {
    let cluster = cluster();
    add_nodes(&cluster, &["a", "b"]);
    cluster.apply(URGENT);
    cluster.apply(
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: better}, value: 5}",
    );
    cluster.apply(
        "apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: kept}
spec: {minAvailable: 1, selector: {matchLabels: {app: kept}}}
",
    );
    let _berth = berth(&cluster);
    let runs = "  annotations: {testbed.berth.dev/runs: 1h}";
    let kept = pod("kept", 8, &format!("  labels: {{app: kept}}\n{runs}"), "");
    let other = pod("other", 8, runs, "  priorityClassName: better");
    cluster.apply(&format!("{kept}{other}"));
    until("both are bound", || {
        ["kept", "other"].iter().all(|pod| node_of(&cluster, pod).is_some())
    });
    cluster.apply(&urgent("high"));
    until("the high one is bound", || node_of(&cluster, "high").is_some());
    let kept = cluster.get(&["pod", "kept"]);
    assert!(kept["metadata"]["deletionTimestamp"].is_null(), "its budget holds: {kept}");
    assert!(cluster.find(&["pod", "other"]).is_none(), "the better one has given way");
}

#[test]
fn a_pod_that_is_made_before_the_one_in_its_place_has_ended_is_the_same_job_too() {
    let (cluster, berth) = scene();
    cluster.apply(&replica("low", "5s", ""));
    until("it runs", || running(&cluster, "low").len() == 1);
    let first = running(&cluster, "low");
    let before = of_job(&berth, "low");
    cluster.apply(&urgent("high"));
    has_its_place_back(&cluster);
    assert_ne!(running(&cluster, "low"), first);
    is_the_same_again(&berth, &before);
}

/// A pod that fills a node and displaces others for it.
fn urgent(name: &str) -> String {
    let runs = "  annotations: {testbed.berth.dev/runs: 1h}";
    pod(name, 8, runs, "  priorityClassName: urgent")
}

/// A ReplicaSet of one pod that fills a node, and takes so long to end. Its controller makes another
/// one as soon as that one is asked to.
fn replica(name: &str, stops: &str, spec: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: {name}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{job-name: {name}}}}}
  template:
    metadata:
      labels: {{job-name: {name}}}
      annotations: {{testbed.berth.dev/stops: {stops}}}
    spec:
      schedulerName: berth
      terminationGracePeriodSeconds: 20
      containers: [{{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: 8}}}}}}]
{spec}"
    )
}

/// The pod of a ReplicaSet that waits for the one before it, if there is one.
fn heir(cluster: &Cluster, name: &str) -> Option<String> {
    let pods = cluster.get(&["pods", &format!("--selector=job-name={name}")]);
    let pods = pods["items"].as_array().cloned().unwrap_or_default();
    let waits = |pod: &&Value| {
        pod["spec"]["nodeName"].is_null() && pod["metadata"]["deletionTimestamp"].is_null()
    };
    let name = pods.iter().find(waits)?["metadata"]["name"].as_str()?.to_owned();
    why(cluster, &name).contains("in the place of a pod").then_some(name)
}

#[test]
fn a_pod_that_is_deleted_while_it_waits_for_the_one_before_it_leaves_its_place_to_the_next() {
    let (cluster, berth) = scene();
    cluster.apply(&replica("low", "1h", ""));
    until("it runs", || running(&cluster, "low").len() == 1);
    let first = running(&cluster, "low").remove(0);
    let before = of_job(&berth, "low");
    cluster.apply(&urgent("high"));
    until("another one waits for it to end", || heir(&cluster, "low").is_some());
    let deleted = heir(&cluster, "low").unwrap();
    cluster.delete(&["pod", &deleted]);
    until("the next one waits", || heir(&cluster, "low").is_some_and(|heir| heir != deleted));
    cluster.annotate(&["pod", &first, "testbed.berth.dev/stops=10ms", "--overwrite"]);
    has_its_place_back(&cluster);
    is_the_same_again(&berth, &before);
}

#[test]
fn a_pod_whose_node_is_lost_while_it_gives_way_is_the_same_job_elsewhere() {
    let (cluster, berth) = scene();
    cluster.apply(&replica("low", "1h", ""));
    until("it runs", || running(&cluster, "low").len() == 1);
    let before = of_job(&berth, "low");
    cluster.apply(&urgent("high"));
    until("another one waits for it to end", || heir(&cluster, "low").is_some());
    cluster.delete(&["node", "a"]);
    add_nodes(&cluster, &["b", "c"]);
    until("both run elsewhere", || {
        node_of(&cluster, "high").is_some() && running(&cluster, "low").len() == 1
    });
    is_the_same_again(&berth, &before);
    assert_eq!(of_job(&berth, "low")[0]["state"], "running");
}

#[test]
fn a_pod_that_ends_well_while_it_gives_way_is_done() {
    let (cluster, berth) = scene();
    // Otherwise its controller takes a pod for failed as soon as that is asked to end.
    let waits = displaceable("low", "")
        .replace("spec:\n  comp", "spec:\n  podReplacementPolicy: Failed\n  comp");
    cluster.apply(&waits.replace("stops: 2s", "stops: 1h"));
    until("both run", || running(&cluster, "low").len() == 2);
    let pods = running(&cluster, "low");
    cluster.apply(&urgent("high"));
    until("they are asked to end", || pods.iter().all(|pod| is_displaced(&cluster, pod, 20)));
    for pod in &pods {
        let done = r#"{"status": {"phase": "Succeeded"}}"#;
        cluster.patch(&["pod", pod, "--subresource=status", "--type=merge", "-p", done]);
        cluster.delete(&["pod", pod, "--force", "--grace-period=0"]);
    }
    until("the high one is bound", || node_of(&cluster, "high").is_some());
    until("both are done in the books", || {
        let jobs = of_job(&berth, "low-");
        jobs.len() == 2 && jobs.iter().all(|job| job["state"] == "done" && job["attempts"] == 1)
    });
}

#[test]
fn a_pod_with_a_rule_about_others_gives_way_and_is_the_same_job_again() {
    let (cluster, berth) = scene();
    let apart = "      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - labelSelector: {matchLabels: {job-name: low}}
            topologyKey: kubernetes.io/hostname
";
    cluster.apply(&replica("low", "2s", apart));
    until("it runs", || running(&cluster, "low").len() == 1);
    let before = of_job(&berth, "low");
    cluster.apply(&urgent("high"));
    has_its_place_back(&cluster);
    is_the_same_again(&berth, &before);
}

/// The jobs in the books whose names begin so.
pub fn of_job(berth: &Server, beginning: &str) -> Vec<Value> {
    let all = berth.all_jobs();
    let is_of = |job: &Value| job["name"].as_str().is_some_and(|name| name.starts_with(beginning));
    all.into_iter().filter(is_of).collect()
}
