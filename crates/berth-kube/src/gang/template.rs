//! The pods that a suspended job would have. Kueue's way is to suspend a job until there is room:
//! until then there are no pods, and the job itself has to be read instead.

use super::owner::{JOB_SET, RAY, RAY_GROUP, REPLICATED_JOB, ROLE, TRAINING};
use super::pod_count::at_once;
use crate::object::{Labels, List, Meta, Owner, Pod, PodSpec, PodStatus, RayCluster, Template};

/// The group of a head, as its operator calls it.
const RAY_HEAD: &str = "headgroup";

/// One pod of each kind the owner would make, and how many of it. Empty where the owner has no
/// template that we know.
pub fn templates(owner: &Owner) -> Vec<(Pod, i64)> {
    let spec = &owner.spec;
    match (owner.group(), &*owner.kind) {
        ("batch", "Job") => {
            let count = at_once(spec.parallelism, spec.completions);
            let pod = spec.template.iter().map(|made| (pod(owner, made, "pod", &[]), count));
            pod.collect()
        }
        ("jobset.x-k8s.io", "JobSet") => {
            let jobs = spec.replicated_jobs.iter().filter_map(|jobs| {
                let job = &jobs.template.spec;
                let each = at_once(job.parallelism, job.completions);
                let marks = [(JOB_SET, &*owner.metadata.name), (REPLICATED_JOB, &*jobs.name)];
                let made = pod(owner, job.template.as_ref()?, &jobs.name, &marks);
                Some((made, each.saturating_mul(jobs.replicas.unwrap_or(1))))
            });
            jobs.collect()
        }
        ("kubeflow.org", _) => {
            let roles = spec.replica_specs.iter().filter_map(|(role, replicas)| {
                let name = role.to_ascii_lowercase();
                let marks = [(TRAINING, &*owner.metadata.name), (ROLE, &*name)];
                let made = pod(owner, replicas.template.as_ref()?, &name, &marks);
                Some((made, replicas.replicas.unwrap_or(1)))
            });
            roles.collect()
        }
        ("ray.io", "RayCluster") if !is_read_from_pods_alone(owner) => {
            let of = |made: &Template, group: &str| {
                pod(owner, made, group, &[(RAY, &*owner.metadata.name), (RAY_GROUP, group)])
            };
            let head = spec.ray.head.template.iter().map(|made| (of(made, RAY_HEAD), 1));
            let workers = spec.ray.workers.iter().filter_map(|workers| {
                Some((of(workers.template.as_ref()?, &workers.group_name), workers.pods().0))
            });
            head.chain(workers).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether what its pods are can be read from them alone, though it has templates: the cluster of a
/// RayJob gets its name when it is made, and one that grows by itself has a container of its
/// operator's.
pub fn is_read_from_pods_alone(owner: &Owner) -> bool {
    match (owner.group(), &*owner.kind) {
        ("ray.io", "RayJob") => true,
        ("ray.io", "RayCluster") => owner.spec.ray.autoscaling,
        _ => false,
    }
}

/// The specs of the pods that the owner would make, each with its place in the owner as a JSON
/// pointer.
pub fn template_paths(owner: &Owner) -> Vec<(String, &PodSpec)> {
    let spec = &owner.spec;
    match (owner.group(), &*owner.kind) {
        ("batch", "Job") => {
            let made = spec.template.iter();
            made.map(|made| ("/spec/template/spec".to_owned(), &made.spec)).collect()
        }
        ("jobset.x-k8s.io", "JobSet") => {
            let jobs = spec.replicated_jobs.iter().enumerate().filter_map(|(at, jobs)| {
                let made = jobs.template.spec.template.as_ref()?;
                Some((format!("/spec/replicatedJobs/{at}/template/spec/template/spec"), &made.spec))
            });
            jobs.collect()
        }
        ("kubeflow.org", kind) => {
            let Some(field) = replicas_field(kind) else { return Vec::new() };
            let roles = spec.replica_specs.iter().filter_map(|(role, replicas)| {
                let made = replicas.template.as_ref()?;
                Some((format!("/spec/{field}/{role}/template/spec"), &made.spec))
            });
            roles.collect()
        }
        ("ray.io", "RayCluster") => ray_paths("/spec", &spec.ray),
        ("ray.io", "RayJob") => {
            let cluster = spec.ray_cluster_spec.iter();
            cluster.flat_map(|cluster| ray_paths("/spec/rayClusterSpec", cluster)).collect()
        }
        _ => Vec::new(),
    }
}

fn ray_paths<'a>(at: &str, cluster: &'a RayCluster) -> Vec<(String, &'a PodSpec)> {
    let head = cluster.head.template.iter();
    let head = head.map(|made| (format!("{at}/headGroupSpec/template/spec"), &made.spec));
    let workers = cluster.workers.iter().enumerate().filter_map(|(group, workers)| {
        let made = workers.template.as_ref()?;
        Some((format!("{at}/workerGroupSpecs/{group}/template/spec"), &made.spec))
    });
    head.chain(workers).collect()
}

/// Where a training job has its roles.
fn replicas_field(kind: &str) -> Option<&'static str> {
    let field = match kind {
        "PyTorchJob" => "pytorchReplicaSpecs",
        "TFJob" => "tfReplicaSpecs",
        "MPIJob" => "mpiReplicaSpecs",
        "XGBoostJob" => "xgbReplicaSpecs",
        "PaddleJob" => "paddleReplicaSpecs",
        "JAXJob" => "jaxReplicaSpecs",
        _ => return None,
    };
    Some(field)
}

/// As the controller would make it, with the labels by which its gang is found.
fn pod(owner: &Owner, made: &Template, part: &str, marks: &[(&str, &str)]) -> Pod {
    let with = |labels: Labels, (key, value): &(&str, &str)| labels.with(key, (*value).into());
    let metadata = Meta {
        name: format!("{}-{part}", owner.metadata.name).into(),
        namespace: owner.metadata.namespace.clone(),
        labels: marks.iter().fold(made.metadata.labels.clone(), with),
        annotations: made.metadata.annotations.clone(),
        owner_references: List::from_iter([owner.controller()]),
        creation_timestamp: owner.metadata.creation_timestamp,
        ..Meta::default()
    };
    Pod { metadata, spec: made.spec.clone(), status: PodStatus::default() }
}
