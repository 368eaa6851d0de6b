//! The Kubernetes testbed does what tests that stand on it rely on. All programs are real.

use berth_testbed::kube::{ADMIN, Cluster, Kwok, Part, Pool, Storage};
use berth_testbed::until;
use std::fs;
use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

#[test]
fn a_plain_job_runs_to_completion_and_its_pods_wait_for_the_scheduler() {
    let mut cluster =
        Cluster::builder().controller_manager().scheduler().kwok(Kwok::all_nodes()).start();
    cluster.apply(&format!("{}---\n{}", node("a"), node("b")));
    cluster.kill(Part::Scheduler);
    // Two nodes of eight GPUs: each pod gets one of its own.
    cluster.apply(
        "apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  completions: 2
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: none, resources: {limits: {nvidia.com/gpu: 8}}}
",
    );
    let pods = || cluster.get(&["pods", "-l", "job-name=train"])["items"].clone();
    until("the controller makes the pods", || pods().as_array().is_some_and(|all| all.len() == 2));
    for pod in pods().as_array().expect("a list") {
        assert_eq!(pod["spec"]["nodeName"], serde_json::Value::Null, "nobody schedules");
    }

    cluster.start(Part::Scheduler);
    until("the job is complete", || {
        let job = cluster.get(&["job", "train"]);
        job["status"]["succeeded"] == 2 && job["status"]["completionTime"].is_string()
    });
    let pods = cluster.get(&["pods", "-l", "job-name=train"]);
    let pods = pods["items"].as_array().expect("a list");
    let mut nodes: Vec<&str> =
        pods.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["a", "b"]);
    assert!(pods.iter().all(|pod| pod["status"]["phase"] == "Succeeded"));
}

#[test]
fn a_simulated_pod_runs_and_stops_as_long_as_it_is_told_to() {
    let cluster = Cluster::builder()
        .bare_admission()
        .kwok(Kwok::nodes_with_label("played=yes").without_leases())
        .start();
    cluster.apply(&node("a"));
    cluster.label(&["node", "a", "played=yes"]);
    cluster.apply(&node("b"));
    let phase = |name| cluster.get(&["pod", name])["status"]["phase"].clone();

    cluster.apply(&pod("short", "a", "testbed.berth.dev/runs: 1s"));
    cluster.apply(&pod("long", "a", "testbed.berth.dev/stops: 1h"));
    cluster.apply(&pod("elsewhere", "b", ""));
    until("the short one ends", || phase("short") == "Succeeded");
    until("the long one runs", || phase("long") == "Running");

    cluster.delete(&["pod", "long", "short", "--wait=false", "--grace-period=30"]);
    until("the short one goes", || cluster.find(&["pod", "short"]).is_none());
    let long = cluster.get(&["pod", "long"]);
    assert_eq!(long["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(long["status"]["phase"], "Running", "it uses its grace");
    assert_eq!(phase("elsewhere"), "Pending", "its node is not played");
    let leases = cluster.get(&["leases", "-n", "kube-node-lease"]);
    assert_eq!(leases["items"], serde_json::json!([]), "nobody renews Leases");
}

#[test]
fn a_cluster_that_went_back_to_its_pool_has_nothing_of_the_test_before() {
    static POOL: Pool =
        Pool::new(|| Cluster::builder().controller_manager().kwok(Kwok::all_nodes()));
    let cluster = POOL.take();
    let process = cluster.process(Part::ApiServer);
    cluster.apply(&node("a"));
    cluster.create_namespace("other");
    cluster.label(&["namespace", "default", "of=test"]);
    let account = ["serviceaccount", "default", "-n", "other"];
    until("the namespace can have pods", || cluster.find(&account).is_some());
    // Objects whose owners make them again, and such as nobody lets go.
    cluster.apply(LEFT);
    cluster.apply(&pod("held", "a", "").replace("metadata: {", "metadata: {finalizers: [a/b], "));
    until("the kind is served", || cluster.find(&["things"]).is_some());
    cluster
        .apply("{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, finalizers: [a/b]}}");
    until("a pod runs", || {
        let pods = cluster.get(&["pods", "-n", "other", "-l", "app=web"]);
        pods["items"].as_array().is_some_and(|pods| pods.len() == 2)
    });
    drop(cluster);

    let cluster = POOL.take();
    assert_eq!(cluster.process(Part::ApiServer), process, "it is the same one");
    let names = |words: &[&str]| {
        let list = cluster.get(words)["items"].clone();
        let names = list.as_array().cloned().unwrap_or_default();
        names.iter().map(|one| one["metadata"]["name"].clone()).collect::<Vec<_>>()
    };
    for kind in ["pods", "deployments", "replicasets", "pvc", "events", "leases"] {
        let all =
            names(&[kind, "--all-namespaces", "--field-selector=metadata.namespace!=kube-system"]);
        assert_eq!(all, Vec::<serde_json::Value>::new(), "{kind}");
    }
    for kind in ["nodes", "pv", "storageclasses", "crd"] {
        assert_eq!(names(&[kind]), Vec::<serde_json::Value>::new(), "{kind}");
    }
    assert_eq!(
        names(&["namespaces"]),
        ["default", "kube-node-lease", "kube-public", "kube-system"]
    );
    assert!(cluster.find(&["things"]).is_none(), "its kind is gone");
    assert!(cluster.get(&["namespace", "default"])["metadata"]["labels"]["of"].is_null());
    // It works as a new one does.
    cluster.apply(&node("a"));
    cluster.apply(&pod("next", "a", ""));
    until("a pod runs", || cluster.get(&["pod", "next"])["status"]["phase"] == "Running");
}

/// What a test may leave.
const LEFT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: other}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: none}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], volumeName: data, storageClassName: '', resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: data}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /data}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: slow}
provisioner: example.com/slow
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

#[test]
fn an_api_server_that_was_killed_comes_back_with_its_objects_and_users() {
    let mut cluster = Cluster::builder()
        .storage(Storage::Disk)
        .user("ada", &["vision"])
        .service_account("default", "berth")
        .flag(Part::ApiServer, "--request-timeout=30s")
        .start();
    cluster.kubectl_stdout(&["create", "configmap", "kept", "--from-literal=a=b"]);
    cluster.kubectl_stdout(&["create", "role", "reader", "--verb=get", "--resource=configmaps"]);
    cluster.kubectl_stdout(&[
        "create",
        "rolebinding",
        "readers",
        "--role=reader",
        "--group=vision",
    ]);
    let (url, process) = (cluster.url(), cluster.process(Part::ApiServer));

    cluster.kill(Part::ApiServer);
    assert!(!cluster.kubectl(&["get", "configmap", "kept"]).status.success());
    cluster.start(Part::ApiServer);

    assert_eq!(cluster.url(), url);
    assert_ne!(cluster.process(Part::ApiServer), process);
    assert_eq!(cluster.get(&["configmap", "kept"])["data"]["a"], "b");
    // Who somebody is and what they may do.
    let (ada, pod) = ("ada", "system:serviceaccount:default:berth");
    assert!(cluster.kubectl_as(ada, &["get", "configmap", "kept"]).status.success());
    let refused = cluster.kubectl_as(pod, &["get", "configmap", "kept"]);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(errors.contains("Forbidden") && errors.contains(pod), "{errors}");
    assert!(!format!("{cluster:?}").contains(cluster.token(ADMIN)), "tokens are not printed");
    let usage = cluster.usage(Part::ApiServer);
    assert!(!usage.cpu.is_zero() && usage.resident_bytes > 50_000_000, "{usage:?}");
}

#[test]
fn writes_wait_while_etcd_is_paused_and_go_through_when_it_resumes() {
    let cluster = Cluster::builder().start();
    cluster.pause(Part::Etcd);
    let mut kubectl = cluster.command("kubectl", ADMIN);
    kubectl.args(["create", "configmap", "patient"]).stdout(Stdio::null());
    let mut patient = kubectl.spawn().expect("kubectl runs");
    let hasty = cluster.kubectl(&["create", "configmap", "hasty", "--request-timeout=2s"]);
    assert!(!hasty.status.success(), "nobody could write it down");
    assert!(patient.try_wait().expect("it is our child").is_none(), "it waits");

    cluster.resume(Part::Etcd);
    assert!(patient.wait().expect("it ends").success());
    assert_eq!(cluster.get(&["configmap", "patient"])["kind"], "ConfigMap");
}

#[test]
fn helm_talks_to_the_cluster_and_leaves_the_home_of_its_user_alone() {
    let cluster = Cluster::builder().start();
    let output = cluster.helm(&["list", "--all-namespaces", "-o", "json"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "[]", "{errors}");
    let environment = cluster.helm(&["env"]);
    let environment = String::from_utf8_lossy(&environment.stdout).into_owned();
    let ours = cluster.folder().join("home").display().to_string();
    for folder in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        let line = environment.lines().find(|line| line.starts_with(folder));
        assert!(line.is_some_and(|line| line.contains(&ours)), "{environment}");
    }
}

#[test]
fn a_part_that_does_not_start_shows_the_end_of_its_log() {
    let options = Cluster::builder().flag(Part::ApiServer, "--no-such-flag=1");
    let failure = catch_unwind(AssertUnwindSafe(|| options.start())).expect_err("it cannot start");
    let text = failure.downcast_ref::<String>().expect("a panic with a text");
    assert!(text.starts_with("kube-apiserver ended:\n"), "{text}");
    assert!(text.contains("unknown flag: --no-such-flag"), "{text}");
}

#[test]
fn nothing_is_left_of_a_cluster_that_is_dropped_even_while_paused() {
    let cluster = Cluster::builder().kwok(Kwok::all_nodes()).start();
    let folders = folders_of(cluster.folder());
    assert_eq!(folders.len(), 2, "{folders:?}");
    assert!(processes_naming(&folders).len() >= 3);
    cluster.pause(Part::Etcd);
    drop(cluster);
    assert_gone(&folders);
}

#[test]
fn nothing_is_left_when_the_owner_is_killed() {
    let (mut owner, folder) = kube_up();
    let folders = folders_of(&folder);
    assert!(processes_naming(&folders).len() >= 4);
    owner.kill().expect("it runs");
    owner.wait().expect("it ended");
    assert_gone(&folders);
}

#[test]
fn kube_up_ends_with_everything_when_it_is_interrupted() {
    let (mut owner, folder) = kube_up();
    let folders = folders_of(&folder);
    let interrupted = Command::new("sh")
        .args(["-c", "kill -INT \"$1\"", "kill", &owner.id().to_string()])
        .status();
    assert!(interrupted.is_ok_and(|status| status.success()));
    assert!(owner.wait().expect("it ends").success());
    assert!(!folder.exists(), "it deletes its folder before it ends");
    assert_gone(&folders);
}

/// A node of eight GPUs.
fn node(name: &str) -> String {
    format!(
        "apiVersion: v1
kind: Node
metadata: {{name: {name}}}
status:
  capacity: {{cpu: 64, memory: 256Gi, pods: 110, nvidia.com/gpu: 8}}
  allocatable: {{cpu: 64, memory: 256Gi, pods: 110, nvidia.com/gpu: 8}}
"
    )
}

/// A pod that is on its node already, so that no scheduler is needed.
fn pod(name: &str, node: &str, annotation: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}, annotations: {{{annotation}}}}}
spec:
  nodeName: {node}
  containers: [{{name: main, image: none}}]
"
    )
}

/// Runs the program of `make kube-up` until it is ready, and gives its folder.
fn kube_up() -> (Child, PathBuf) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kube-up"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("kube-up runs");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let lines: Vec<String> =
        lines.map_while(Result::ok).take_while(|line| !line.starts_with("Ctrl-C")).collect();
    let config = lines.iter().find_map(|line| line.trim().strip_prefix("export KUBECONFIG="));
    let config = Path::new(config.unwrap_or_else(|| panic!("{lines:#?}")));
    let folder = config.parent().and_then(Path::parent).expect("it is two folders deep");
    (child, folder.to_owned())
}

/// The folder of a cluster and the one in which its etcd keeps the data.
fn folders_of(folder: &Path) -> Vec<PathBuf> {
    let guards = processes_naming(&[folder.to_owned()]);
    let data = guards.iter().flat_map(|words| words.iter());
    let data = data.filter_map(|word| word.strip_prefix("--data-dir=").map(PathBuf::from)).next();
    [folder.to_owned()].into_iter().chain(data).collect()
}

/// The command lines of all processes in which one of these folders is named.
fn processes_naming(folders: &[PathBuf]) -> Vec<Vec<String>> {
    let processes = fs::read_dir("/proc").expect("there is a /proc").flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let words = lines.map(|line| {
        line.split(|byte| *byte == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    });
    let names_one = |words: &Vec<String>| {
        folders
            .iter()
            .any(|folder| words.iter().any(|word| word.contains(&*folder.to_string_lossy())))
    };
    words.filter(names_one).collect()
}

fn assert_gone(folders: &[PathBuf]) {
    until("every process is gone", || processes_naming(folders).is_empty());
    until("every folder is gone", || folders.iter().all(|folder| !folder.exists()));
}
