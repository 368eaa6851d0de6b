//! What Berth does, and the rights each of it needs.

use super::setup::{SLICE, Scene};
use super::{jobs, storage};
use crate::chart::NAMESPACE;
use crate::gpus::{fraction, holders};
use crate::pod_groups::kinds::uid_of;
use crate::support::{node_of, pod, until, why};
use berth_testbed::Server;
use berth_testbed::kube::Cluster;

/// Something that Berth does, with the rights it is the first to need. `act` gets a name for what it
/// makes, another one each time, and the data of the step.
pub struct Step {
    /// What has to be on for it, as the table of rights has it under `when`.
    pub when: &'static str,
    pub rights: &'static [&'static str],
    pub data: &'static str,
    pub act: fn(&Scene, &Server, &str, &str),
    pub is_done: fn(&Scene, &Server, &str, &str) -> bool,
    /// What could not be done without a right is done when it is there; words are not said again.
    pub is_made_up_for: bool,
}

pub const STEP: Step = Step {
    when: "",
    rights: &[],
    data: "",
    act: |_, _, _, _| {},
    is_done: |_, _, _, _| true,
    is_made_up_for: true,
};

/// All steps, of which the first to need a right is the one that shows it.
pub fn all() -> impl Iterator<Item = &'static Step> {
    STEPS.iter().chain(storage::STEPS).chain(jobs::STEPS).chain(LAST)
}

/// Needed for jobs everywhere, and otherwise where pods hold shared GPUs.
const LAST: &[Step] = &[Step {
    rights: &["create pods"],
    act: |scene, _, name, _| scene.cluster.apply(&fraction(name, "0.5")),
    is_done: |scene, _, _, _| !holders(&scene.cluster).is_empty(),
    ..STEP
}];

const STEPS: &[Step] = &[
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
        act: |scene, _, name, _| scene.cluster.apply(&pod(name, 1, "", "")),
        is_done: |scene, _, name, _| node_of(&scene.cluster, name).is_some(),
        ..STEP
    },
    Step {
        rights: &["patch pods/status"],
        act: |scene, _, name, _| {
            scene.cluster.apply(&pod(name, 1, "", "  nodeSelector: {disk: none}"));
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
            let slice = ["endpointslice", SLICE, "-n", NAMESPACE, "--ignore-not-found"];
            scene.cluster.delete(&slice);
        },
        is_done: |scene, _, _, _| {
            scene.cluster.find(&["endpointslice", SLICE, "-n", NAMESPACE]).is_some()
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
            scene.cluster.apply(&own("Queue", name, "{parent: nowhere}"));
        },
        is_done: |scene, _, name, _| {
            let events = scene.cluster.get(&["events.events.k8s.io", "--all-namespaces"]);
            let events = events["items"].as_array().cloned().unwrap_or_default();
            events.iter().any(|event| event["regarding"]["name"] == name)
        },
        is_made_up_for: false,
        ..STEP
    },
    Step {
        rights: &["patch events.events.k8s.io"],
        // The second pod comes and goes, and what was told of one pod is told again.
        act: |scene, _, name, _| {
            let marks =
                format!("  annotations: {{berth.dev/gang: {name}, berth.dev/gang-size: '3'}}");
            let (first, second) = (format!("{name}-0"), format!("{name}-1"));
            let says = |text: &str| until(text, || why(&scene.cluster, &first).contains(text));
            scene.cluster.apply(&pod(&first, 1, &marks, ""));
            says("1 of 3 pods");
            scene.cluster.apply(&pod(&second, 1, &marks, ""));
            says("2 of 3 pods");
            scene.cluster.delete(&["pod", &second, "--force", "--grace-period=0"]);
            says("1 of 3 pods");
        },
        is_done: |scene, _, name, _| {
            let events = scene.cluster.get(&["events.events.k8s.io", "--all-namespaces"]);
            let events = events["items"].as_array().cloned().unwrap_or_default();
            let first = format!("{name}-0");
            events.iter().any(|event| {
                event["regarding"]["name"] == first.as_str() && event["series"]["count"] == 2
            })
        },
        is_made_up_for: false,
        ..STEP
    },
    object("Queue {quota: {gpu: 1}}", &["patch queues.berth.dev/status"]),
    object("Budget {queue: default, limit: 100}", &["patch budgets.berth.dev/status"]),
    object("Job {team: default, gpus: 1, run: sleep 1}", &["patch jobs.berth.dev/status"]),
    object(
        "Pool {max: 4, offerings: [{type: p5, gpus: 8, model: H100-80GB, price: 98}]}",
        &["patch pools.berth.dev/status"],
    ),
    Step {
        rights: &["patch policies.berth.dev/status"],
        act: |scene, _, _, _| {
            scene.cluster.delete(&["policies.berth.dev", "default", "--ignore-not-found"]);
            scene.cluster.apply(&own("Policy", "default", "{grace: 2m}"));
        },
        is_done: |scene, _, _, _| has_status(scene, "policies", "default"),
        ..STEP
    },
    Step {
        when: "volcano",
        rights: &["patch pods"],
        act: |scene, _, name, _| {
            let gate = "  schedulingGates: [{name: scheduling.volcano.sh/queue-allocation-gate}]";
            let pod = pod(name, 1, "", gate);
            scene.cluster.apply(&pod.replace("schedulerName: berth", "schedulerName: volcano"));
        },
        is_done: |scene, _, name, _| node_of(&scene.cluster, name).is_some(),
        ..STEP
    },
    Step {
        when: "kueue",
        rights: &["patch jobs.batch", "patch pods"],
        act: |scene, _, name, _| {
            let spec = format!("{{suspend: true, template: {TEMPLATE}}}");
            scene.cluster.apply(&queued("batch/v1 Job", name, &spec));
        },
        is_done: |scene, _, name, _| {
            let pods = scene.cluster.get(&["pods", "-l", &format!("job-name={name}")]);
            pods["items"][0]["spec"]["nodeName"].is_string()
        },
        ..STEP
    },
    Step {
        when: "kueue",
        rights: &["patch jobsets.jobset.x-k8s.io"],
        act: |scene, _, name, _| {
            let spec = format!(
                "{{suspend: true, replicatedJobs: [{{name: a, replicas: 1, \
                 template: {{spec: {{template: {TEMPLATE}}}}}}}]}}"
            );
            scene.cluster.apply(&queued("jobset.x-k8s.io/v1alpha2 JobSet", name, &spec));
        },
        is_done: |scene, _, name, _| is_let_go(&scene.cluster, "jobset", name),
        ..STEP
    },
    Step {
        when: "kueue",
        rights: &["patch rayclusters.ray.io"],
        act: |scene, _, name, _| {
            let spec = format!("{{suspend: true, headGroupSpec: {{template: {TEMPLATE}}}}}");
            scene.cluster.apply(&queued("ray.io/v1 RayCluster", name, &spec));
        },
        is_done: |scene, _, name, _| is_let_go(&scene.cluster, "raycluster", name),
        ..STEP
    },
    Step {
        when: "kueue",
        rights: &["patch rayjobs.ray.io"],
        act: |scene, _, name, _| {
            let spec = format!(
                "{{suspend: true, rayClusterSpec: {{headGroupSpec: {{template: {TEMPLATE}}}}}}}"
            );
            scene.cluster.apply(&queued("ray.io/v1 RayJob", name, &spec));
        },
        is_done: |scene, _, name, _| is_let_go(&scene.cluster, "rayjob", name),
        ..STEP
    },
    Step {
        when: "kueue",
        rights: &["patch trainjobs.trainer.kubeflow.org"],
        act: |scene, _, name, _| {
            let cluster = &scene.cluster;
            cluster.apply(&queued(
                "trainer.kubeflow.org/v1alpha1 TrainJob",
                name,
                "{suspend: true}",
            ));
            let uid = uid_of(cluster, "trainer.kubeflow.org/v1alpha1/TrainJob", name);
            cluster.apply(&format!(
                "apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: {name}
  ownerReferences:
  - {{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, name: {name}, uid: {uid}, \
     controller: true}}
spec:
  suspend: true
  replicatedJobs: [{{name: a, replicas: 1, template: {{spec: {{template: {TEMPLATE}}}}}}}]
"
            ));
        },
        is_done: |scene, _, name, _| is_let_go(&scene.cluster, "trainjob", name),
        ..STEP
    },
    training("PyTorchJob pytorch", &["patch pytorchjobs.kubeflow.org"]),
    training("TFJob tf", &["patch tfjobs.kubeflow.org"]),
    training("MPIJob mpi", &["patch mpijobs.kubeflow.org"]),
    training("XGBoostJob xgb", &["patch xgboostjobs.kubeflow.org"]),
    training("PaddleJob paddle", &["patch paddlejobs.kubeflow.org"]),
    training("JAXJob jax", &["patch jaxjobs.kubeflow.org"]),
];

fn is_let_go(cluster: &Cluster, kind: &str, name: &str) -> bool {
    cluster.get(&[kind, name])["spec"]["suspend"] == false
}

/// An object of Berth's own.
pub fn own(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "apiVersion: berth.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    )
}

fn has_status(scene: &Scene, plural: &str, name: &str) -> bool {
    let object = scene.cluster.get(&[&format!("{plural}.berth.dev"), name]);
    object["status"]["conditions"].is_array()
}

/// An object gets its status. The data are its kind and its spec.
const fn object(data: &'static str, rights: &'static [&'static str]) -> Step {
    Step {
        when: "",
        rights,
        data,
        act: |scene, _, name, data| {
            let (kind, spec) = data.split_once(' ').expect("a kind and a spec");
            scene.cluster.apply(&own(kind, name, spec));
        },
        is_done: |scene, _, name, data| {
            let (kind, _) = data.split_once(' ').expect("a kind and a spec");
            has_status(scene, &format!("{}s", kind.to_lowercase()), name)
        },
        is_made_up_for: true,
    }
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
        when: "kueue",
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
            scene.cluster.get(&[kind, name])["spec"]["runPolicy"]["suspend"] == false
        },
        is_made_up_for: true,
    }
}
