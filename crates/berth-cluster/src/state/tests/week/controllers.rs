//! What controllers of Kubernetes do to pods, as far as a week needs it.

use super::cluster::{Cluster, owner, uid};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const REPLICAS: usize = 4;
const ORDINALS: usize = 3;
const MEMBERS: usize = 4;

#[derive(Default)]
pub(super) struct Controllers {
    /// Revisions.
    pub deployment: u32,
    pub stateful_set: u32,
    /// Hours whose job has been made and has not ended.
    pub hours: Vec<i64>,
    /// Owners of hourly jobs that have ended well.
    pub done: BTreeSet<String>,
}

fn is_leaving(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

fn runs(pod: &Value) -> bool {
    pod["status"]["phase"] == "Running" && !is_leaving(pod)
}

fn ask(pod: &mut Value, requests: &Value) {
    pod["spec"]["containers"][0]["resources"] = json!({ "requests": requests, "limits": requests });
}

impl Controllers {
    pub fn reconcile(&mut self, cluster: &mut Cluster) {
        self.deploy(cluster);
        self.keep_ordinals(cluster);
        daemons(cluster);
        self.run_hourly_jobs(cluster);
        train(cluster);
    }

    /// One more than wanted while it rolls out, never one less.
    fn deploy(&self, cluster: &mut Cluster) {
        let current = format!("web-r{}", self.deployment);
        let live = |pod: &&Value| owner(pod).starts_with("web-") && !is_leaving(pod);
        let all: Vec<Value> = cluster.pods.values().filter(live).cloned().collect();
        let (new, old): (Vec<Value>, Vec<Value>) =
            all.iter().cloned().partition(|pod| owner(pod) == current);
        let ready = all.iter().filter(|pod| runs(pod)).count();
        if new.len() < REPLICAS && all.len() <= REPLICAS {
            let name = format!("{current}-{}", cluster.now().0 % 100_000_000 + new.len() as i64);
            cluster.create_pod(&name, ("ReplicaSet", &current), |pod| {
                pod["metadata"]["labels"] = json!({ "app": "web" });
                ask(pod, &json!({ "cpu": "2", "memory": "1Gi" }));
            });
        }
        let waits = old.iter().find(|pod| !runs(pod));
        if let Some(one) = waits.or_else(|| old.first().filter(|_| ready > REPLICAS)) {
            cluster.delete_pod(&uid(one));
        }
    }

    /// One after the other, each when the one before it runs; rollouts from the last to the first.
    fn keep_ordinals(&self, cluster: &mut Cluster) {
        let revision = self.stateful_set.to_string();
        let mut stale = None;
        for ordinal in 0..ORDINALS {
            let name = format!("db-{ordinal}");
            let known = cluster.pods.values().find(|pod| pod["metadata"]["name"] == *name);
            let Some(pod) = known else {
                return cluster.create_pod(&name, ("StatefulSet", "db"), |pod| {
                    pod["metadata"]["labels"] = json!({
                        "app": "db", "controller-revision-hash": revision,
                        "apps.kubernetes.io/pod-index": ordinal.to_string(),
                    });
                    let term = json!({
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": { "matchLabels": { "app": "db" } },
                    });
                    pod["spec"]["affinity"] = json!({ "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [term],
                    } });
                    ask(pod, &json!({ "cpu": "2", "memory": "4Gi" }));
                });
            };
            if !runs(pod) {
                return;
            }
            if pod["metadata"]["labels"]["controller-revision-hash"] != *revision {
                stale = Some(uid(pod));
            }
        }
        if let Some(uid) = stale {
            cluster.delete_pod(&uid);
        }
    }

    /// A pod that goes before it has ended is made again.
    fn run_hourly_jobs(&mut self, cluster: &mut Cluster) {
        for hour in &self.hours {
            let job = format!("tidy-{hour}");
            let has_pod = cluster.pods.values().any(|pod| owner(pod) == job && !is_leaving(pod));
            if !has_pod {
                let name = format!("{job}-{}", cluster.now().0);
                cluster.create_pod(&name, ("Job", &job), |pod| {
                    pod["spec"]["restartPolicy"] = "Never".into();
                    pod["metadata"]["annotations"]["runs"] = 10.into();
                    ask(pod, &json!({ "cpu": "1", "memory": "256Mi" }));
                });
            }
        }
        let is_over = |pod: &&Value| pod["status"]["phase"] == "Succeeded";
        let over: Vec<String> = cluster.pods.values().filter(is_over).map(uid).collect();
        over.iter().for_each(|uid| cluster.delete_pod(uid));
    }

    /// The pod of an hourly job has ended well.
    pub fn note_done(&mut self, pod: &Value) {
        let job = owner(pod).to_owned();
        self.hours.retain(|hour| format!("tidy-{hour}") != job);
        self.done.insert(job);
    }

    /// Which controllers have not all that they want.
    pub fn missing(&self, cluster: &Cluster) -> Vec<&'static str> {
        let running = |beginning: &str| {
            let of = |pod: &&Value| owner(pod).starts_with(beginning) && runs(pod);
            cluster.pods.values().filter(of).count()
        };
        let wanted = [
            ("the Deployment", running(&format!("web-r{}", self.deployment)), REPLICAS),
            ("the StatefulSet", running("db"), ORDINALS),
            ("the DaemonSet", running("agent"), cluster.node_names().len()),
            ("the gang", running("train"), MEMBERS),
        ];
        wanted.into_iter().filter(|(_, has, all)| has != all).map(|(name, ..)| name).collect()
    }

    pub fn member<'a>(&self, cluster: &'a Cluster, index: usize) -> Option<&'a Value> {
        cluster.pods.values().find(|pod| is_member(pod, index) && runs(pod))
    }
}

/// One on each node, also where it is cordoned.
fn daemons(cluster: &mut Cluster) {
    for node in cluster.node_names() {
        let name = format!("agent-{node}");
        if cluster.pods.values().any(|pod| pod["metadata"]["name"] == *name) {
            continue;
        }
        cluster.create_pod(&name, ("DaemonSet", "agent"), |pod| {
            let field = json!({ "key": "metadata.name", "operator": "In", "values": [node] });
            pod["spec"]["affinity"] = json!({ "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{ "matchFields": [field] }],
                },
            } });
            let tolerated = |key: &str, effect: &str| {
                json!({ "key": key, "operator": "Exists", "effect": effect })
            };
            pod["spec"]["tolerations"] = json!([
                tolerated("node.kubernetes.io/not-ready", "NoExecute"),
                tolerated("node.kubernetes.io/unreachable", "NoExecute"),
                tolerated("node.kubernetes.io/unschedulable", "NoSchedule"),
            ]);
            ask(pod, &json!({ "cpu": "100m", "memory": "64Mi" }));
        });
    }
}

fn is_member(pod: &Value, index: usize) -> bool {
    owner(pod) == "train" && pod["metadata"]["labels"]["index"] == *index.to_string()
}

/// An indexed Job: a pod that is asked to end has another one in its place at once.
fn train(cluster: &mut Cluster) {
    for index in 0..MEMBERS {
        if cluster.pods.values().any(|pod| is_member(pod, index) && !is_leaving(pod)) {
            continue;
        }
        let name = format!("train-{index}-{}", cluster.now().0);
        cluster.create_pod(&name, ("Job", "train"), |pod| {
            let index = index.to_string();
            pod["metadata"]["labels"] = json!({
                "index": index, "batch.kubernetes.io/job-completion-index": index,
            });
            pod["metadata"]["annotations"] = json!({
                "berth.dev/gang": "train", "berth.dev/gang-size": MEMBERS.to_string(),
                "batch.kubernetes.io/job-completion-index": index,
            });
            pod["spec"]["restartPolicy"] = "Never".into();
            ask(pod, &json!({ "cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4" }));
        });
    }
}
