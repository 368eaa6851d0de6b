//! What Berth does, and the rights each of it needs.

use super::scene::{SLICE, Scene};
use crate::chart::NAMESPACE;
use crate::support::{node_of, pod, until, why};
use berth_testbed::Server;
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

/// Something that Berth does, with the rights it is the first to need. `act` gets a name for what it
/// makes, another one each time, and the data of the step.
pub struct Step {
    pub rights: &'static [&'static str],
    pub data: &'static str,
    pub act: fn(&Scene, &Server, &str, &str),
    pub is_done: fn(&Scene, &Server, &str, &str) -> bool,
    /// What could not be done without a right is done when it is there; words are not said again.
    pub is_made_up_for: bool,
}

const STEP: Step = Step {
    rights: &[],
    data: "",
    act: |_, _, _, _| {},
    is_done: |_, _, _, _| true,
    is_made_up_for: true,
};

pub const STEPS: &[Step] = &[
    Step {
        rights: &[
            "get leases.coordination.k8s.io",
            "create leases.coordination.k8s.io",
            "update leases.coordination.k8s.io",
            "list nodes",
            "watch nodes",
            "list pods",
            "watch pods",
            "create pods/binding",
        ],
        act: |scene, _, name, _| drop(scene.cluster.apply(&pod(name, 1, "", ""))),
        is_done: |scene, _, name, _| node_of(&scene.cluster, name).is_some(),
        ..STEP
    },
    Step {
        rights: &["patch pods/status"],
        act: |scene, _, name, _| {
            drop(scene.cluster.apply(&pod(name, 1, "", "  nodeSelector: {disk: none}")));
        },
        is_done: |scene, _, name, _| !why(&scene.cluster, name).is_empty(),
        ..STEP
    },
    Step {
        rights: &[
            "create endpointslices.discovery.k8s.io",
            "update endpointslices.discovery.k8s.io",
        ],
        act: |scene, _, _, _| {
            drop(scene.cluster.kubectl(&["delete", "endpointslice", SLICE, "-n", NAMESPACE]));
        },
        is_done: |scene, _, _, _| {
            let slice = scene.cluster.kubectl(&["get", "endpointslice", SLICE, "-n", NAMESPACE]);
            slice.status.success()
        },
        ..STEP
    },
    Step {
        rights: &["delete pods"],
        act: |scene, _, name, _| {
            let runs = "  annotations: {testbed.berth.dev/runs: 1h}";
            for low in [format!("{name}-a"), format!("{name}-b")] {
                scene.cluster.apply(&pod(&low, 7, runs, ""));
                until(&format!("{low} is bound"), || node_of(&scene.cluster, &low).is_some());
            }
            scene.cluster.apply(&pod(name, 8, "", "  priorityClassName: urgent"));
        },
        is_done: |scene, _, name, _| node_of(&scene.cluster, name).is_some(),
        ..STEP
    },
    Step {
        rights: &["create events.events.k8s.io"],
        act: |scene, _, name, _| {
            scene.cluster.apply(&format!(
                "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, \
                 metadata: {{name: {name}}}, spec: {{resourceGroups: many}}}}"
            ));
        },
        is_done: |scene, _, name, _| {
            let events = scene.cluster.json(&["get", "events.events.k8s.io", "--all-namespaces"]);
            let events = events["items"].as_array().cloned().unwrap_or_default();
            events.iter().any(|event| event["regarding"]["name"] == name)
        },
        is_made_up_for: false,
        ..STEP
    },
    object("Queue {quota: {gpu: 1}}", &["patch queues.berth.dev/status"]),
    object("Budget {queue: default, limit: 100}", &["patch budgets.berth.dev/status"]),
    object("Job {team: default, gpus: 1, run: sleep 1}", &["patch jobs.berth.dev/status"]),
    Step {
        rights: &["patch policies.berth.dev/status"],
        act: |scene, _, _, _| {
            let _ = scene.cluster.kubectl(&["delete", "policies.berth.dev", "default"]);
            scene.cluster.apply(&own("Policy", "default", "{grace: 2m}"));
        },
        is_done: |scene, _, _, _| has_status(scene, "policies", "default"),
        ..STEP
    },
    Step {
        rights: &[
            "get namespaces",
            "create namespaces",
            "patch namespaces",
            "create serviceaccounts",
            "patch serviceaccounts",
            "create resourcequotas",
            "patch resourcequotas",
            "create networkpolicies.networking.k8s.io",
            "patch networkpolicies.networking.k8s.io",
            "create roles.rbac.authorization.k8s.io",
            "patch roles.rbac.authorization.k8s.io",
            "create rolebindings.rbac.authorization.k8s.io",
            "patch rolebindings.rbac.authorization.k8s.io",
        ],
        // Every team has a namespace here, and every queue is a team.
        act: |scene, _, name, _| drop(scene.cluster.apply(&own("Queue", &team(name), "{}"))),
        is_done: |scene, _, name, _| {
            let namespace = format!("berth-{}", team(name));
            let last = ["get", "rolebinding", "berth-members", "--namespace", &namespace];
            scene.cluster.kubectl(&last).status.success()
        },
        ..STEP
    },
    Step {
        rights: &[
            "create pods",
            "get pods",
            "get pods/log",
            "list services",
            "create services",
            "delete services",
            "create secrets",
        ],
        act: |scene, berth, name, _| {
            let mut set = berth.command(&["secret", "set", "key"]);
            let mut set = set.stdin(Stdio::piped()).spawn().expect("berth runs");
            set.stdin.take().expect("it is piped").write_all(b"value\n").expect("it reads");
            assert!(set.wait().expect("it ends").success());
            let file = scene.cluster.folder().join("job.yaml");
            let text = format!(
                "name: {name}\nnodes: 2\ngpus: 1\nlaunch: ranks\nsecrets: {{KEY: key}}\nrun: sleep 1\n"
            );
            std::fs::write(&file, text).expect("the folder can be written");
            berth.says(&["run", "-d", "-f", &file.display().to_string()]);
        },
        is_done: |scene, berth, name, _| {
            // Its pods end as soon as they are told to, and everything of it goes.
            for pod in pods_of(scene, name) {
                let ends = "testbed.berth.dev/runs=10ms";
                let _ =
                    scene.cluster.kubectl(&["annotate", "pod", "-n", "berth-default", &pod, ends]);
            }
            let jobs = berth.json(&["ps", "--all", name]);
            let is_over = jobs["jobs"][0]["state"] == "done";
            is_over && left(scene, "services").is_empty() && left(scene, "secrets").is_empty()
        },
        ..STEP
    },
    Step {
        rights: &["patch jobs.batch", "patch pods"],
        act: |scene, _, name, _| {
            let spec = format!("{{suspend: true, template: {TEMPLATE}}}");
            scene.cluster.apply(&queued("batch/v1 Job", name, &spec));
        },
        is_done: |scene, _, name, _| {
            let pods = scene.cluster.json(&["get", "pods", "-l", &format!("job-name={name}")]);
            pods["items"][0]["spec"]["nodeName"].is_string()
        },
        ..STEP
    },
    Step {
        rights: &["patch jobsets.jobset.x-k8s.io"],
        act: |scene, _, name, _| {
            let spec = format!(
                "{{suspend: true, replicatedJobs: [{{name: a, replicas: 1, \
                 template: {{spec: {{template: {TEMPLATE}}}}}}}]}}"
            );
            scene.cluster.apply(&queued("jobset.x-k8s.io/v1alpha2 JobSet", name, &spec));
        },
        is_done: |scene, _, name, _| {
            scene.cluster.json(&["get", "jobset", name])["spec"]["suspend"] == false
        },
        ..STEP
    },
    training("PyTorchJob pytorch", &["patch pytorchjobs.kubeflow.org"]),
    training("TFJob tf", &["patch tfjobs.kubeflow.org"]),
    training("MPIJob mpi", &["patch mpijobs.kubeflow.org"]),
    training("XGBoostJob xgb", &["patch xgboostjobs.kubeflow.org"]),
    training("PaddleJob paddle", &["patch paddlejobs.kubeflow.org"]),
    training("JAXJob jax", &["patch jaxjobs.kubeflow.org"]),
];

/// Rights that no step shows to be needed yet: a volume has to be waited for, a pod has to have a
/// terminal, and machines have to be bought.
pub const NOT_SHOWN: &[&str] = &[
    "get persistentvolumeclaims",
    "patch persistentvolumeclaims",
    "get persistentvolumes",
    "patch persistentvolumes",
    "get pods/exec",
    "create pods/exec",
    "patch pools.berth.dev/status",
    "get resourceclaims.resource.k8s.io",
    "update resourceclaims.resource.k8s.io",
    "update resourceclaims.resource.k8s.io/status",
];

/// An object of Berth's own.
fn own(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "apiVersion: berth.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    )
}

fn has_status(scene: &Scene, plural: &str, name: &str) -> bool {
    let object = scene.cluster.json(&["get", &format!("{plural}.berth.dev"), name]);
    object["status"]["conditions"].is_array()
}

/// An object gets its status. The data are its kind and its spec.
const fn object(data: &'static str, rights: &'static [&'static str]) -> Step {
    Step {
        rights,
        data,
        act: |scene, _, name, data| {
            let (kind, spec) = data.split_once(' ').expect("a kind and a spec");
            drop(scene.cluster.apply(&own(kind, name, spec)));
        },
        is_done: |scene, _, name, data| {
            let (kind, _) = data.split_once(' ').expect("a kind and a spec");
            has_status(scene, &format!("{}s", kind.to_lowercase()), name)
        },
        is_made_up_for: true,
    }
}

/// A team of its own for each try.
fn team(name: &str) -> String {
    let short: String = format!("of-{name}").chars().take(40).collect();
    short.trim_end_matches('-').to_owned()
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

/// The pods of a job of that name.
fn pods_of(scene: &Scene, name: &str) -> Vec<String> {
    let pods = names(&scene.cluster.json(&["get", "pods", "-n", "berth-default"]));
    pods.into_iter().filter(|pod| pod.starts_with(name)).collect()
}

/// What is left of a kind of jobs that have ended.
fn left(scene: &Scene, kind: &str) -> Vec<String> {
    names(&scene.cluster.json(&["get", kind, "-n", "berth-default", "-l", "berth.dev/job"]))
}

const TEMPLATE: &str = "{spec: {restartPolicy: Never, containers: \
    [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]}}";

/// Something that waits suspended in the queue.
fn queued(kind: &str, name: &str, spec: &str) -> String {
    let (api, kind) = kind.split_once(' ').expect("a version and a kind");
    format!(
        "apiVersion: {api}
kind: {kind}
metadata: {{name: {name}, labels: {{kueue.x-k8s.io/queue-name: line}}}}
spec: {spec}
"
    )
}

/// A suspended training job is let go. The data are its kind, and how the field begins in which it
/// has its roles.
const fn training(data: &'static str, rights: &'static [&'static str]) -> Step {
    Step {
        rights,
        data,
        act: |scene, _, name, data| {
            let (kind, field) = data.split_once(' ').expect("a kind and a field");
            let spec = format!(
                "{{runPolicy: {{suspend: true}}, {field}ReplicaSpecs: \
                 {{Worker: {{replicas: 1, template: {TEMPLATE}}}}}}}"
            );
            scene.cluster.apply(&queued(&format!("kubeflow.org/v1 {kind}"), name, &spec));
        },
        is_done: |scene, _, name, data| {
            let (kind, _) = data.split_once(' ').expect("a kind and a field");
            scene.cluster.json(&["get", kind, name])["spec"]["runPolicy"]["suspend"] == false
        },
        is_made_up_for: true,
    }
}
