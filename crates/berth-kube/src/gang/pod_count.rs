//! How many pods an owner stands for.

use super::draft::Draft;
use crate::object::{Owner, RayCluster, RayWorkers, Startup};

/// Pods in all, and those without which it does not start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub members: Option<u32>,
    pub min: Option<u32>,
}

impl Count {
    fn all(members: Option<u32>) -> Count {
        Count { members, min: members }
    }
}

/// Pods of a Job that run at once.
pub(super) fn job(owner: &Owner, draft: &mut Draft) -> Count {
    let pods = at_once(owner.spec.parallelism, owner.spec.completions);
    Count::all(draft.number("Job: spec.parallelism", Some(pods)))
}

/// A whole JobSet, or that one of its replicated jobs.
pub(super) fn job_set(owner: &Owner, only: Option<&str>, draft: &mut Draft) -> Count {
    let jobs = owner.spec.replicated_jobs.iter();
    let meant = jobs.filter(|jobs| only.is_none_or(|only| *jobs.name == *only));
    let pods = meant.fold(0i64, |sum, jobs| {
        let each = at_once(jobs.template.spec.parallelism, jobs.template.spec.completions);
        sum.saturating_add(each.saturating_mul(jobs.replicas.unwrap_or(1)))
    });
    Count::all(draft.number("JobSet: spec.replicatedJobs", Some(pods)))
}

/// Whether some jobs of the set are made only when others run or have ended: then they cannot wait
/// for one another to start together.
pub(super) fn is_in_order(owner: &Owner) -> bool {
    let spec = &owner.spec;
    let ordered = matches!(&spec.startup_policy,
        Some(Startup::Order { startup_policy_order: Some(order) }) if &**order == "InOrder");
    ordered || spec.replicated_jobs.iter().any(|jobs| !jobs.depends_on.is_empty())
}

/// Whether the workers of a group are made only when its leader is ready.
pub(super) fn is_leader_first(owner: &Owner) -> bool {
    matches!(&owner.spec.startup_policy, Some(Startup::Word(word)) if &**word == "LeaderReady")
}

/// Whether each pod of a StatefulSet is made only when the one before it is ready.
pub(super) fn is_one_by_one(owner: &Owner) -> bool {
    let spec = &owner.spec;
    let is_parallel = spec.pod_management_policy.as_deref() == Some("Parallel");
    &*owner.kind == "StatefulSet" && !is_parallel && spec.replicas.is_some_and(|pods| pods > 1)
}

/// Whether the launcher of a training job is made only when its workers are ready: then they cannot
/// wait for it. It makes no difference whether the launcher works as well.
pub(super) fn is_launcher_last(owner: &Owner) -> bool {
    owner.spec.launcher_creation_policy.as_deref() == Some("WaitForWorkersReady")
}

/// Which roles of a training job begin together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Roles {
    All,
    Launcher,
    AllButLauncher,
}

impl Roles {
    fn have(self, role: &str) -> bool {
        match self {
            Roles::All => true,
            Roles::Launcher => is_launcher(role),
            Roles::AllButLauncher => !is_launcher(role),
        }
    }
}

/// The job writes its roles with a capital, its pods without.
pub(super) fn is_launcher(role: &str) -> bool {
    role.eq_ignore_ascii_case("launcher")
}

/// A training job: every pod of these roles, unless it says that fewer will do.
pub(super) fn kubeflow(owner: &Owner, roles: Roles, draft: &mut Draft) -> Count {
    let meant = || owner.spec.replica_specs.iter().filter(|(role, _)| roles.have(role));
    let replicas = |wanted: fn(&str) -> bool| {
        let of = meant().filter(|(role, _)| wanted(role));
        of.fold(0i64, |sum, (_, role)| sum.saturating_add(role.replicas.unwrap_or(1)))
    };
    let all = replicas(|_| true);
    let members = draft.number(&format!("{}: replicas", owner.kind), Some(all));
    let policy = owner.spec.run_policy.as_ref().and_then(|run| run.scheduling_policy.as_ref());
    let min_available = policy.and_then(|policy| policy.min_available);
    // minAvailable counts every role, also those that are created at another time.
    let min_available =
        min_available.map(|least| if roles == Roles::All { least } else { least.min(all) });
    let elastic = owner.spec.elastic_policy.as_ref().and_then(|elastic| elastic.min_replicas);
    // An elastic job counts its workers; those of the other roles it needs in any case.
    let least = elastic.map(|workers| workers.saturating_add(replicas(|role| role != "Worker")));
    let min = match min_available.or(least) {
        None => members,
        least => draft.number(&format!("{}: minAvailable or minReplicas", owner.kind), least),
    };
    Count { members, min }
}

/// A head and its workers; with autoscaling, the workers it keeps in any case.
pub(super) fn ray(cluster: &RayCluster, draft: &mut Draft) -> Count {
    let pods = cluster.workers.iter().map(RayWorkers::pods);
    let (all, least) = pods.fold((1i64, 1i64), |(all, least), (pods, kept)| {
        (all.saturating_add(pods), least.saturating_add(kept))
    });
    let members = draft.number("RayCluster: workerGroupSpecs", Some(all));
    let min = if cluster.autoscaling {
        draft.number("RayCluster: minReplicas", Some(least))
    } else {
        members
    };
    Count { members, min }
}

/// No more pods run at once than are still to be completed.
pub(super) fn at_once(parallelism: Option<i64>, completions: Option<i64>) -> i64 {
    let parallelism = parallelism.unwrap_or(1);
    completions.map_or(parallelism, |completions| parallelism.min(completions))
}
