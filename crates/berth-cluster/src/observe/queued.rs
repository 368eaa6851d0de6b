//! Jobs in a queue of Kueue: they are suspended, have no pods, and are resumed when their gang is
//! placed. Their future pods are read from their templates.

use super::names::{self, Names};
use super::reader::{ReadContext, Reader};
use crate::view::{ChildRef, GATE, JobRef, PodView, QueuedJob, Unschedulable, placeholder};
use berth_kube::gang;
use berth_kube::object::{Meta, Owner, Pod};
use std::sync::Arc;

pub const TRAINER: &str = "trainer.kubeflow.org";
const TRAIN_JOBS: &str = "trainjobs";

impl QueuedJob {
    /// Nothing for an object that is in no queue, or whose owner is resumed instead.
    pub fn of(
        reader: &Reader,
        names: &Names,
        owner: &Arc<Owner>,
        above: &[&Owner],
        plural: &str,
    ) -> Option<QueuedJob> {
        let waits_in = |owner: &Owner| names::is_queued(&owner.metadata);
        names.local.as_ref()?;
        // A TrainJob describes its pods in the JobSet that it makes first.
        let (set, job) = match above {
            [job, above @ ..] if is_train_job(job) && !above.iter().any(|one| waits_in(one)) => {
                (Some(&**owner), *job)
            }
            _ if is_train_job(owner) || above.iter().any(|one| waits_in(one)) => return None,
            _ => (None, &**owner),
        };
        if !waits_in(job) {
            return None;
        }
        let templates = gang::templates(owner);
        let suspend = match job.group() {
            "kubeflow.org" => "/spec/runPolicy/suspend",
            _ => "/spec/suspend",
        };
        let by_policy = job.spec.run_policy.as_ref().and_then(|run| run.suspend);
        let is_suspended = job.spec.suspend.or(by_policy) == Some(true);
        if templates.is_empty() && !is_suspended {
            return None;
        }
        let meta = &job.metadata;
        let of = |owner: &Owner, plural: &str| {
            let Meta { namespace, name, .. } = &owner.metadata;
            format!("/apis/{}/namespaces/{namespace}/{plural}/{name}", owner.api_version)
        };
        let at = JobRef {
            kind: job.kind.to_string(),
            namespace: meta.namespace.to_string(),
            name: meta.name.to_string(),
            uid: meta.uid.to_string(),
            api_version: job.api_version.to_string(),
            path: of(job, if set.is_some() { TRAIN_JOBS } else { plural }),
            suspend,
            gates: gates(reader, owner),
            below: set
                .map(|set| ChildRef { uid: set.metadata.uid.to_string(), path: of(set, plural) }),
        };
        let owners: Vec<&Owner> = [&**owner].into_iter().chain(above.iter().copied()).collect();
        let context = ReadContext {
            around: gang::PodContext { owners: &owners, group: None },
            missing: None,
            names,
        };
        let pods = match templates.is_empty() {
            // Berth resumes it at once, and its pods wait behind their gates.
            true if gang::is_read_from_pods_alone(owner) => Ok(Vec::new()),
            true => Err(Unschedulable::UnknownPodTemplates),
            false => pods(reader, &context, &meta.uid, &templates),
        };
        Some(QueuedJob { at, is_suspended, is_over: owner.is_over() || job.is_over(), pods })
    }
}

/// Whether it makes its pods by a JobSet.
fn is_train_job(owner: &Owner) -> bool {
    owner.group() == TRAINER && &*owner.kind == "TrainJob"
}

fn pods(
    reader: &Reader,
    context: &ReadContext,
    uid: &str,
    templates: &[(Pod, i64)],
) -> Result<Vec<PodView>, Unschedulable> {
    let mut all = Vec::new();
    for (template, count) in templates {
        let view = reader.pod(template, context);
        if let Some(Err(why)) = &view.request {
            return Err(Unschedulable::clone(why));
        }
        for _ in 0..*count {
            let mut pod = view.clone();
            pod.at.uid = placeholder(uid, all.len());
            all.push(pod);
        }
    }
    Ok(all)
}

/// Where the pods of another scheduler's need a gate.
fn gates(reader: &Reader, owner: &Owner) -> Vec<(String, Vec<String>)> {
    let specs = gang::template_paths(owner).into_iter();
    let needed = specs.filter(|(_, spec)| {
        let is_there = spec.scheduling_gates.iter().any(|gate| &*gate.name == GATE);
        !is_there && !reader.is_our_scheduler(&spec.scheduler_name)
    });
    needed
        .map(|(path, spec)| {
            let gates = spec.scheduling_gates.iter().map(|gate| gate.name.to_string());
            (path, gates.collect())
        })
        .collect()
}
