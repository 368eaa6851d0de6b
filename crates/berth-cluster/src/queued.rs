//! Jobs that wait in a queue of Kueue's: they are suspended, so they have no pods, and are let go
//! when their gang has got its place. What their pods will be is read from their templates.

use super::names::{self, Names};
use super::read::{Reader, View};
use super::sight::{GangKey, PodSight, Wish};
use berth_kube::event::About;
use berth_kube::mark;
use berth_kube::object::{Meta, Owner, Pod};
use std::sync::Arc;

/// The gate that keeps the pods of a job that was let go from other schedulers, until each has the
/// node that was decided for it.
pub const GATE: &str = "berth.dev/placement";
/// What stands for a pod that was not made yet, before the job's own identity.
const TO_BE: &str = "to be made by ";

pub const TRAINER: &str = "trainer.kubeflow.org";
const TRAIN_JOBS: &str = "trainjobs";

const UNKNOWN: &str = "what its pods will be cannot be read from it; let it begin by hand, and its \
                       pods wait for their places as a gang";

/// A job that waits, or that was let go.
#[derive(Debug, Clone)]
pub struct Queued {
    pub at: JobAt,
    pub is_suspended: bool,
    /// It has ended, well or not.
    pub is_over: bool,
    /// Its pods as they will be; or why it cannot be understood.
    pub pods: Result<Vec<PodSight>, String>,
}

/// A job of others, and no later one of its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobAt {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub api_version: String,
    /// Where it is at the API server.
    pub path: String,
    /// Its field that holds it back, as a JSON pointer.
    pub suspend: &'static str,
    /// The specs of its pods that need a gate, as JSON pointers, and the gates they have.
    pub gates: Vec<(String, Vec<String>)>,
    /// Where these specs are, if in an object below it.
    pub below: Option<Below>,
}

/// What a job makes its pods by, and is suspended together with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Below {
    pub uid: String,
    pub path: String,
}

impl From<&JobAt> for About {
    fn from(job: &JobAt) -> About {
        About {
            api_version: job.api_version.clone(),
            kind: job.kind.clone(),
            namespace: job.namespace.clone(),
            name: job.name.clone(),
            uid: job.uid.clone(),
        }
    }
}

impl Queued {
    /// Nothing for what waits in no queue, or is let go by what owns it.
    pub fn of(
        reader: &Reader,
        names: &Names,
        owner: &Arc<Owner>,
        above: &[&Owner],
        plural: &str,
    ) -> Option<Queued> {
        let waits_in = |owner: &Owner| names::is_queued(&owner.metadata);
        names.local.as_ref()?;
        // What is said of a TrainJob's pods its JobSet says, which it makes first of all.
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
        let templates = mark::templates(owner);
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
        let at = JobAt {
            kind: job.kind.to_string(),
            namespace: meta.namespace.to_string(),
            name: meta.name.to_string(),
            uid: meta.uid.to_string(),
            api_version: job.api_version.to_string(),
            path: of(job, if set.is_some() { TRAIN_JOBS } else { plural }),
            suspend,
            gates: gates(reader, owner),
            below: set
                .map(|set| Below { uid: set.metadata.uid.to_string(), path: of(set, plural) }),
        };
        let owners: Vec<&Owner> = [&**owner].into_iter().chain(above.iter().copied()).collect();
        let view = View { around: mark::Around { owners: &owners, group: None }, not: None, names };
        let pods = match templates.is_empty() {
            // It is let go at once, and its pods wait behind their gates.
            true if mark::is_read_from_pods_alone(owner) => Ok(Vec::new()),
            true => Err(UNKNOWN.to_owned()),
            false => pods(reader, &view, &meta.uid, &templates),
        };
        Some(Queued { at, is_suspended, is_over: owner.is_over() || job.is_over(), pods })
    }

    /// The gangs its pods are of: one, unless they are made one after the other.
    pub fn gangs(&self) -> Vec<GangKey> {
        let pods = self.pods.iter().flatten();
        let mut gangs: Vec<GangKey> =
            pods.filter_map(|pod| Some(wish(pod)?.gang.clone())).collect();
        gangs.sort();
        gangs.dedup();
        gangs
    }
}

/// Whether it makes its pods by a JobSet.
fn is_train_job(owner: &Owner) -> bool {
    owner.group() == TRAINER && &*owner.kind == "TrainJob"
}

fn wish(pod: &PodSight) -> Option<&Arc<Wish>> {
    pod.wish.as_ref()?.as_ref().ok()
}

fn pods(
    reader: &Reader,
    view: &View,
    uid: &str,
    templates: &[(Pod, i64)],
) -> Result<Vec<PodSight>, String> {
    let mut all = Vec::new();
    for (template, count) in templates {
        let sight = reader.pod(template, view);
        if let Some(Err(why)) = &sight.wish {
            return Err(why.clone());
        }
        for _ in 0..*count {
            let mut pod = sight.clone();
            pod.at.uid = format!("{TO_BE}{uid}/{}", all.len());
            all.push(pod);
        }
    }
    Ok(all)
}

/// Whose pod one is that was not made yet, and which of them.
pub fn to_be(uid: &str) -> Option<(&str, usize)> {
    let (owner, at) = uid.strip_prefix(TO_BE)?.rsplit_once('/')?;
    Some((owner, at.parse().ok()?))
}

/// Where the pods of another scheduler's need a gate.
fn gates(reader: &Reader, owner: &Owner) -> Vec<(String, Vec<String>)> {
    let specs = mark::template_paths(owner).into_iter();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_to_be_tells_whose_it_is() {
        assert_eq!(to_be(&format!("{TO_BE}9c02-a/3")), Some(("9c02-a", 3)));
        assert_eq!(to_be("9c02-a"), None);
    }
}
