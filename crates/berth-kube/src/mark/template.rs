//! The pods that a suspended job would have. Kueue's way is to suspend a job until there is room:
//! until then there are no pods, and the job itself has to be read instead.

use super::count::at_once;
use super::owner::{JOB_SET, REPLICATED_JOB, ROLE, TRAINING};
use crate::object::{Labels, List, Meta, Owner, Pod, PodSpec, PodStatus, Template};

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
        _ => Vec::new(),
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
        _ => Vec::new(),
    }
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
