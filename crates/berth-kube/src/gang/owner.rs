//! The gang that a pod's owner makes.

use super::draft::{Draft, Gang, first};
use super::pod_count::{self, Count, Roles};
use super::source::AnnotationSource;
use super::{GangKind, GroupKey, Subgroup};
use berth_model::Name;

pub(super) const JOB_SET: &str = "jobset.sigs.k8s.io/jobset-name";
pub(super) const REPLICATED_JOB: &str = "jobset.sigs.k8s.io/replicatedjob-name";
pub(super) const TRAINING: &str = "training.kubeflow.org/job-name";
pub(super) const ROLE: &str = "training.kubeflow.org/replica-type";
/// What the operator of MPI writes in its place.
const MPI_ROLE: &str = "training.kubeflow.org/job-role";
pub(super) const LWS: &str = "leaderworkerset.sh/name";
const LWS_GROUP: &str = "leaderworkerset.sh/group-key";
const LWS_INDEX: &str = "leaderworkerset.sh/group-index";
const LWS_SIZE: &str = "leaderworkerset.sh/size";
pub(super) const RAY: &str = "ray.io/cluster";
pub(super) const RAY_GROUP: &str = "ray.io/group";

pub(super) fn read(source: &AnnotationSource, draft: &mut Draft) {
    if draft.gang.is_some() {
        return;
    }
    let Some(gang) = together(source, draft) else {
        return;
    };
    let part = match gang.key.kind {
        GangKind::JobSet => source.pod.metadata.label(REPLICATED_JOB),
        GangKind::Kubeflow => role(source),
        GangKind::Ray => source.pod.metadata.label(RAY_GROUP),
        _ => None,
    };
    first(&mut draft.subgroup, part.map(|name| Subgroup::new(name, None)));
    kubeflow_policy(source, draft);
    draft.gang(gang);
}

/// The gang of an owner whose pods are useless one by one.
fn together(source: &AnnotationSource, draft: &mut Draft) -> Option<Gang> {
    let label = |key: &str| source.pod.metadata.label(key).filter(|value| !value.is_empty());
    if let Some(group) = label(LWS_GROUP) {
        return Some(leader_worker_set(source, draft, group));
    }
    if let Some(name) = label(JOB_SET) {
        return Some(job_set(source, draft, name));
    }
    if let Some(name) = label(TRAINING) {
        return Some(training(source, draft, name));
    }
    if let Some(name) = label(RAY) {
        let owner = source.owner("ray.io", "RayCluster");
        let count = owner.map(|owner| pod_count::ray(&owner.spec.ray, draft)).unwrap_or_default();
        return Some(gang(source.key(GangKind::Ray, name), count));
    }
    None
}

/// The gang that a pod's owner would make if a mark asks for one: also of a plain Job, or of any
/// controller at all. `None` where nothing owns the pod.
pub(super) fn any(source: &AnnotationSource, draft: &mut Draft) -> Option<Gang> {
    if let Some(gang) = together(source, draft) {
        return Some(gang);
    }
    let owner = source.pod.metadata.controller()?;
    let is_job = owner.group() == "batch" && &*owner.kind == "Job";
    let kind = if is_job { GangKind::Job } else { GangKind::Owner };
    let uid = Some(Name::new(&owner.uid));
    let key = GroupKey { uid, ..source.key(kind, &owner.name) };
    let given = source.context.owners.iter().find(|given| given.metadata.uid == owner.uid);
    let count = match given {
        Some(job) if is_job => pod_count::job(job, draft),
        Some(other) => {
            let members = draft.number("spec.replicas", other.spec.replicas);
            if pod_count::is_one_by_one(other) {
                let policy = other.spec.pod_management_policy.as_deref().unwrap_or("OrderedReady");
                let what = "its pods cannot begin together, as each is made when the one before it \
                            is ready; write Parallel";
                draft.invalid("StatefulSet: podManagementPolicy", policy, what);
            }
            Count { members, min: members }
        }
        None => Count::default(),
    };
    Some(gang(key, count))
}

/// How many pods run at once in each job of a set, for a pod of one.
pub(super) fn pods_of_one_job(source: &AnnotationSource) -> Option<u32> {
    let set = source.owner("jobset.x-k8s.io", "JobSet")?;
    let name = source.pod.metadata.label(REPLICATED_JOB)?;
    let jobs = set.spec.replicated_jobs.iter().find(|jobs| *jobs.name == *name)?;
    u32::try_from(jobs.template.spec.parallelism.unwrap_or(1)).ok().filter(|pods| *pods > 0)
}

fn gang(key: GroupKey, count: Count) -> Gang {
    Gang { key, members: count.members, min: count.min }
}

/// A set is one gang, unless its jobs follow one another: then each of them is one.
fn job_set(source: &AnnotationSource, draft: &mut Draft, name: &str) -> Gang {
    let Some(owner) = source.owner("jobset.x-k8s.io", "JobSet") else {
        return gang(source.key(GangKind::JobSet, name), Count::default());
    };
    match source.pod.metadata.label(REPLICATED_JOB).filter(|_| pod_count::is_in_order(owner)) {
        None => gang(source.key(GangKind::JobSet, name), pod_count::job_set(owner, None, draft)),
        Some(job) => {
            let key = source.key(GangKind::JobSet, &format!("{name}/{job}"));
            gang(key, pod_count::job_set(owner, Some(job), draft))
        }
    }
}

/// The role of a pod in its training job.
fn role<'a>(source: &AnnotationSource<'a>) -> Option<&'a str> {
    let meta = &source.pod.metadata;
    meta.label(ROLE).or_else(|| meta.label(MPI_ROLE))
}

/// A training job is one gang, unless its launcher follows its workers: then that is a gang of its
/// own.
fn training(source: &AnnotationSource, draft: &mut Draft, name: &str) -> Gang {
    let key = |name: &str| source.key(GangKind::Kubeflow, name);
    let Some(owner) = source.context.owners.iter().find(|owner| owner.group() == "kubeflow.org")
    else {
        return gang(key(name), Count::default());
    };
    if !pod_count::is_launcher_last(owner) {
        return gang(key(name), pod_count::kubeflow(owner, Roles::All, draft));
    }
    match role(source).is_some_and(pod_count::is_launcher) {
        true => {
            let count = pod_count::kubeflow(owner, Roles::Launcher, draft);
            gang(key(&format!("{name}/launcher")), count)
        }
        false => gang(key(name), pod_count::kubeflow(owner, Roles::AllButLauncher, draft)),
    }
}

/// Each group of a set is a gang; the sets' other groups are replicas of it.
fn leader_worker_set(source: &AnnotationSource, draft: &mut Draft, group: &str) -> Gang {
    let label = |key: &str| source.pod.metadata.label(key);
    let name = match (label(LWS), label(LWS_INDEX)) {
        (Some(set), Some(index)) => format!("{set}-{index}"),
        _ => group.to_owned(),
    };
    let owner = source.owner("leaderworkerset.x-k8s.io", "LeaderWorkerSet");
    let size = source
        .pod
        .metadata
        .annotation(LWS_SIZE)
        .map(str::to_owned)
        .or_else(|| Some(owner?.spec.leader_worker_template.as_ref()?.size?.to_string()));
    let members = draft.count(LWS_SIZE, size.as_deref());
    let uid = Some(Name::new(group));
    let key = GroupKey { uid, ..source.key(GangKind::LeaderWorkerSet, &name) };
    let min = if owner.is_some_and(pod_count::is_leader_first) { Some(1) } else { members };
    Gang { key, members, min }
}

/// A training job can name its queue and class in its own spec.
fn kubeflow_policy(source: &AnnotationSource, draft: &mut Draft) {
    let owner = source.context.owners.iter().find(|owner| owner.group() == "kubeflow.org");
    let policy = owner
        .and_then(|owner| owner.spec.run_policy.as_ref())
        .and_then(|run| run.scheduling_policy.as_ref());
    if let Some(policy) = policy {
        draft.queue(policy.queue.as_deref());
        draft.class(policy.priority_class.as_deref());
    }
}
