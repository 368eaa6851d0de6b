//! A cluster on which worlds are run, one after another.

mod rest;

use super::check::{Run, Scene, Step};
use super::make::{NAMESPACES, POLITE, PRIORITIES};
use super::world::{Key, World};
use crate::kube::{ADMIN, Cluster, Kwok};
use crate::{Server, until};
use rest::Follower;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Who schedules a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    KubeScheduler,
    Berth,
}

impl Who {
    fn scheduler_name(self) -> &'static str {
        match self {
            Who::KubeScheduler => "default-scheduler",
            Who::Berth => "berth",
        }
    }
}

pub struct Lab {
    cluster: Cluster,
    program: PathBuf,
}

/// Where objects of a kind are, in the order in which they are deleted.
const KINDS: [(&str, &str); 3] = [
    ("/api/v1", "pods"),
    ("/apis/policy/v1", "poddisruptionbudgets"),
    ("/api/v1", "persistentvolumeclaims"),
];

impl Lab {
    /// # Panics
    ///
    /// If the cluster does not start.
    pub fn start(program: &Path) -> Lab {
        let kwok = Kwok::all_nodes().without_leases();
        let builder = Cluster::builder().bare_admission().controller_manager().scheduler();
        let cluster = builder.kwok(kwok).start();
        for (name, team) in NAMESPACES {
            let labels = format!("labels: {{team: {team}}}");
            cluster.apply(&format!(
                "{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}, {labels}}}}}"
            ));
        }
        let class = |name: &str, value: i32, policy: &str| {
            cluster.apply(&format!(
                "{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, \
                 metadata: {{name: {name}}}, value: {value}, preemptionPolicy: {policy}}}"
            ));
        };
        for value in PRIORITIES {
            class(&format!("p{value}"), value, "PreemptLowerPriority");
        }
        class(POLITE.0, POLITE.1, "Never");
        Lab { cluster, program: program.to_owned() }
    }

    /// Runs a world until it is at rest, and leaves nothing of it.
    ///
    /// # Panics
    ///
    /// If the cluster refuses an object: then the world is not one.
    pub fn run(&self, world: &World, who: Who) -> Run {
        let mut berth = (who == Who::Berth).then(|| self.start_berth());
        let mut follower = Follower::new(&self.cluster, berth.as_ref());
        if !world.nodes_come_last() {
            self.add_nodes(world);
        }
        self.add_volumes(world);
        world.budgets.iter().for_each(|budget| self.post(budget));
        let mut is_at_rest = true;
        for (at, phase) in world.phases.iter().enumerate() {
            if at > 0 {
                self.wait_for_budgets(world);
                follower.begin_phase();
            }
            for key in &phase.leaving {
                let Key { namespace, name } = key;
                let words = ["pod", name, "-n", namespace, "--wait=false", "--ignore-not-found"];
                self.cluster.delete(&words);
            }
            for pod in &phase.pods {
                let mut pod = pod.clone();
                pod["spec"]["schedulerName"] = who.scheduler_name().into();
                self.post(&pod);
            }
            if world.nodes_come_last() {
                self.add_nodes(world);
            }
            is_at_rest &= follower.rests();
        }
        let start = self.start_of(world);
        let (steps, reasons) = follower.end();
        let (mut errors, mut log) = (Vec::new(), String::new());
        if let Some(berth) = &mut berth {
            let events = berth.run_ok(&["events", "--since", "1h", "--no-pager", "-o", "wide"]);
            // So that the next one leads at once.
            berth.stop();
            log = berth.log();
            errors = errors_in(&log);
            log.push_str(&events);
        }
        self.clear();
        Run { start, steps: steps_of(steps), is_at_rest, reasons, errors, log }
    }

    fn start_berth(&self) -> Server {
        let berth = Server::start_on(&self.program, &self.cluster.kubeconfig(ADMIN), &[]);
        until("berth leads", || berth.is_ready());
        berth
    }

    fn add_nodes(&self, world: &World) {
        world.nodes.iter().for_each(|node| self.post(node));
        until("cordoned nodes have their taint, and others lose theirs", || {
            let nodes = self.cluster.get(&["nodes"]);
            let mut nodes = nodes["items"].as_array().into_iter().flatten();
            nodes.all(|node| {
                let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
                let has = |key: &str| taints.iter().any(|taint| taint["key"] == key);
                let is_cordoned = node["spec"]["unschedulable"] == true;
                is_cordoned == has("node.kubernetes.io/unschedulable")
                    && !has("node.kubernetes.io/not-ready")
            })
        });
    }

    fn add_volumes(&self, world: &World) {
        world.volumes.iter().for_each(|object| self.post(object));
        until("every claim has its volume", || {
            let claims = self.cluster.get(&["pvc", "--all-namespaces"]);
            let mut claims = claims["items"].as_array().into_iter().flatten();
            claims.all(|claim| claim["status"]["phase"] == "Bound")
        });
    }

    /// Their controller counts pods some time after these run.
    fn wait_for_budgets(&self, world: &World) {
        let is_settled = |budget: &Value| {
            let Key { namespace, name } = Key::of(budget);
            let selector = budget["spec"]["selector"]["matchLabels"]["app"].as_str();
            let selector = format!("app={}", selector.unwrap_or_default());
            let pods = self.cluster.get(&["pods", "-n", &namespace, "-l", &selector]);
            let pods = pods["items"].as_array().into_iter().flatten();
            let running = pods.filter(|pod| pod["status"]["phase"] == "Running").count();
            let status = self.cluster.get(&["pdb", &name, "-n", &namespace])["status"].clone();
            status["observedGeneration"].is_number()
                && status["currentHealthy"].as_u64() == Some(running as u64)
        };
        until("budgets are counted", || world.budgets.iter().all(is_settled));
    }

    fn start_of(&self, world: &World) -> Scene {
        let nodes = self.cluster.get(&["nodes"]);
        let nodes = nodes["items"].as_array().cloned().unwrap_or_default();
        Scene::new(&nodes, &world.budgets, &world.volumes)
    }

    fn post(&self, object: &Value) {
        let Key { namespace, .. } = Key::of(object);
        let path = match object["kind"].as_str().unwrap_or_default() {
            "Node" => "/api/v1/nodes".to_owned(),
            "PersistentVolume" => "/api/v1/persistentvolumes".to_owned(),
            "PersistentVolumeClaim" => {
                format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims")
            }
            "PodDisruptionBudget" => {
                format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets")
            }
            _ => format!("/api/v1/namespaces/{namespace}/pods"),
        };
        let posted = self.cluster.objects().try_post(&path, object);
        posted.unwrap_or_else(|refusal| panic!("{refusal}\n{object:#}"));
    }

    fn clear(&self) {
        let objects = self.cluster.objects();
        let gone = |path: &str, words: &[&str]| {
            until("nothing is left of the world", || {
                // Again and again: an object may have come in between.
                let _ = objects.delete_all(path);
                let left = self.cluster.get(words);
                left["items"].as_array().is_some_and(Vec::is_empty)
            });
        };
        for (root, plural) in KINDS {
            for (namespace, _) in NAMESPACES {
                let path = format!("{root}/namespaces/{namespace}/{plural}");
                gone(&path, &[plural, "-n", namespace]);
            }
        }
        gone("/api/v1/persistentvolumes", &["persistentvolumes"]);
        self.wait_for_kubelets();
        gone("/api/v1/nodes", &["nodes"]);
    }

    /// Simulated kubelets delete pods by name when they have seen that these are to stop. One that
    /// lags behind would delete the next world's pod of the same name. They work in order, so when
    /// a pod made now runs, they are through.
    fn wait_for_kubelets(&self) {
        let nodes = self.cluster.get(&["nodes"]);
        let Some(node) = nodes["items"][0]["metadata"]["name"].as_str() else { return };
        self.cluster.apply(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: last}}, spec: {{nodeName: {node}, \
             terminationGracePeriodSeconds: 0, tolerations: [{{operator: Exists}}], \
             containers: [{{name: main, image: none}}]}}}}"
        ));
        until("the kubelets are through", || {
            self.cluster.get(&["pod", "last"])["status"]["phase"] == "Running"
        });
        until("nothing is left in the namespace", || {
            let _ = self.cluster.objects().delete_all("/api/v1/namespaces/default/pods");
            let left = self.cluster.get(&["pods", "-n", "default"]);
            left["items"].as_array().is_some_and(Vec::is_empty)
        });
    }
}

/// What a server has logged as an error, without when that was.
fn errors_in(log: &str) -> Vec<String> {
    let errors = log.lines().map(without_colours).filter_map(|line| {
        let (_, what) = line.split_once("ERROR")?;
        Some(what.trim().to_owned())
    });
    let mut errors: Vec<String> = errors.collect();
    errors.dedup();
    errors
}

fn without_colours(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.split_once('m').map_or(part, |(_, text)| text));
    std::iter::once(first).chain(rest).collect()
}

/// Without changes of pods that the checker does not look at.
fn steps_of(steps: Vec<Step>) -> Vec<Step> {
    let is_ours = |step: &Step| {
        let namespace = match step {
            Step::Seen(pod) => &pod.key.namespace,
            Step::Gone(key) => &key.namespace,
            Step::Phase => return true,
        };
        NAMESPACES.iter().any(|(name, _)| name == namespace)
    };
    steps.into_iter().filter(is_ours).collect()
}
