//! What owns pods. One type for all kinds: of each only the counts are read, under the names the
//! kinds give them, and a kind leaves out what is not its own.

use super::{Condition, List, Map, Meta, OwnerReference, PodSpec, Text, meta};
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Owner {
    pub api_version: Text,
    pub kind: Text,
    pub metadata: Meta,
    pub spec: OwnerSpec,
    pub status: OwnerStatus,
}

/// Of all there is to say about an owner, whether it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct OwnerStatus {
    pub conditions: List<Condition>,
}

impl Owner {
    /// How a pod that it makes names it.
    pub fn controller(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            name: self.metadata.name.clone(),
            uid: self.metadata.uid.clone(),
            controller: true,
        }
    }

    /// Whether it has ended, well or not: it makes no pods any more.
    pub fn is_over(&self) -> bool {
        const ENDS: [&str; 5] = ["Complete", "Completed", "Succeeded", "Failed", "Finished"];
        let conditions = self.status.conditions.iter();
        conditions.filter(|one| &*one.status == "True").any(|one| ENDS.contains(&&*one.kind))
    }

    /// The API group, without its version.
    pub fn group(&self) -> &str {
        meta::group(&self.api_version)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerSpec {
    pub suspend: Option<bool>,
    /// Of a batch Job, as are the next three.
    pub parallelism: Option<i64>,
    pub completions: Option<i64>,
    pub backoff_limit: Option<i64>,
    pub template: Option<Box<Template>>,
    /// Of a Deployment, StatefulSet or LeaderWorkerSet.
    pub replicas: Option<i64>,
    /// Of a StatefulSet: whether it makes its pods at once.
    pub pod_management_policy: Option<Text>,
    /// Of a JobSet.
    pub replicated_jobs: List<ReplicatedJob>,
    /// Of a LeaderWorkerSet.
    pub leader_worker_template: Option<LeaderWorkerTemplate>,
    /// Of a Kubeflow job: how many pods of each role.
    #[serde(
        alias = "pytorchReplicaSpecs",
        alias = "tfReplicaSpecs",
        alias = "mpiReplicaSpecs",
        alias = "xgbReplicaSpecs",
        alias = "paddleReplicaSpecs",
        alias = "jaxReplicaSpecs"
    )]
    pub replica_specs: Map<GroupReplicas>,
    pub run_policy: Option<RunPolicy>,
    /// Of an MPIJob: whether its launcher is made only after its workers are ready.
    pub launcher_creation_policy: Option<Text>,
    pub elastic_policy: Option<Elastic>,
    /// Of a JobSet or a LeaderWorkerSet: whether some pods are made only after others run.
    pub startup_policy: Option<Startup>,
    /// Of a RayCluster.
    #[serde(flatten)]
    pub ray: RayCluster,
    /// Of a RayJob or RayService, which make a RayCluster.
    #[serde(alias = "rayClusterConfig")]
    pub ray_cluster_spec: Option<RayCluster>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicatedJob {
    pub name: Text,
    pub replicas: Option<i64>,
    pub depends_on: List<DependsOn>,
    pub template: JobTemplate,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct JobTemplate {
    pub spec: JobSpec,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct JobSpec {
    pub parallelism: Option<i64>,
    pub completions: Option<i64>,
    pub template: Option<Box<Template>>,
}

/// What the pods are made from: all there is to see of a job that is suspended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Template {
    pub metadata: Meta,
    pub spec: PodSpec,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct LeaderWorkerTemplate {
    /// Pods of one group, the leader among them.
    pub size: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct GroupReplicas {
    pub replicas: Option<i64>,
    pub template: Option<Box<Template>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunPolicy {
    pub suspend: Option<bool>,
    pub scheduling_policy: Option<SchedulingPolicy>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingPolicy {
    pub min_available: Option<i64>,
    pub queue: Option<Text>,
    pub priority_class: Option<Text>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Elastic {
    pub min_replicas: Option<i64>,
}

/// A word of a LeaderWorkerSet, an object of a JobSet.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Startup {
    Word(Text),
    #[serde(rename_all = "camelCase")]
    Order {
        startup_policy_order: Option<Text>,
    },
}

/// A replicated job that another one waits for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct DependsOn {
    pub name: Text,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RayCluster {
    /// Whether the number of workers follows the load.
    #[serde(rename = "enableInTreeAutoscaling")]
    pub autoscaling: bool,
    #[serde(rename = "headGroupSpec")]
    pub head: RayHead,
    #[serde(rename = "workerGroupSpecs")]
    pub workers: List<RayWorkers>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct RayHead {
    pub template: Option<Box<Template>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RayWorkers {
    pub group_name: Text,
    pub replicas: Option<i64>,
    pub min_replicas: Option<i64>,
    pub max_replicas: Option<i64>,
    /// Pods of one replica.
    pub num_of_hosts: Option<i64>,
    /// It makes none for now.
    pub suspend: bool,
    pub template: Option<Box<Template>>,
}

impl RayWorkers {
    /// How many pods its operator makes, and how many of them it keeps in any case.
    pub fn pods(&self) -> (i64, i64) {
        if self.suspend {
            return (0, 0);
        }
        let least = self.min_replicas.unwrap_or(0);
        let most = self.max_replicas.unwrap_or(i64::MAX).max(least);
        let replicas = self.replicas.unwrap_or(least).clamp(least, most);
        let hosts = self.num_of_hosts.unwrap_or(1);
        (replicas.saturating_mul(hosts), least.saturating_mul(hosts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(json: &str) -> Owner {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_job_tells_its_counts() {
        let job = owner(
            r#"{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
                "spec": {"parallelism": 4, "completions": 8, "suspend": true, "backoffLimit": 6,
                         "template": {"spec": {"containers": []}}}}"#,
        );
        assert_eq!(job.group(), "batch");
        assert_eq!((job.spec.parallelism, job.spec.completions), (Some(4), Some(8)));
        assert_eq!((job.spec.suspend, job.spec.backoff_limit), (Some(true), Some(6)));
    }

    #[test]
    fn kubeflow_and_ray_tell_their_roles() {
        let torch = owner(
            r#"{"kind": "PyTorchJob", "spec": {"runPolicy": {"schedulingPolicy": {"minAvailable": 3}},
                "pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 3}}}}"#,
        );
        assert_eq!(torch.spec.replica_specs.get("Worker").unwrap().replicas, Some(3));
        let ray = owner(
            r#"{"kind": "RayCluster", "spec": {"enableInTreeAutoscaling": true, "headGroupSpec": {},
                "workerGroupSpecs": [{"groupName": "g", "replicas": 2, "minReplicas": 1}]}}"#,
        );
        assert!(ray.spec.ray.autoscaling);
        assert_eq!(ray.spec.ray.workers[0].min_replicas, Some(1));
        let job = owner(
            r#"{"kind": "RayJob", "spec": {"rayClusterSpec": {"workerGroupSpecs": [{"replicas": 2}]}}}"#,
        );
        assert_eq!(job.spec.ray_cluster_spec.unwrap().workers[0].replicas, Some(2));
    }
}
