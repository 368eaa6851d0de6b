//! From objects of the API server to what the mirror has to know of them.

use super::nodes;
use super::sight::{Asks, GangKey, NodeSight, Phase, PodSight, Rule, Wish};
use berth_kube::PodRef;
use berth_kube::constraint::{Constraint, NodeView};
use berth_kube::dynamic::Dynamic;
use berth_kube::mark::{self, Around, GroupKey, Kind};
use berth_kube::need::{Devices, Gpus, Need};
use berth_kube::node;
use berth_kube::object::{Node, Pod};
use berth_model::{Bytes, LabelAsk, Name, NodeSpec, Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// How long a pod has to end where it does not say.
const GRACE: Span = Span::secs(30);

/// Reads with a memory: pods that ask for the same share what was read.
pub struct Reader {
    ours: BTreeSet<String>,
    rules: Mutex<BTreeMap<Constraint, Vec<Rule>>>,
}

impl Reader {
    pub fn new(scheduler_names: &[String]) -> Reader {
        let ours = scheduler_names.iter().cloned().collect();
        Reader { ours, rules: Mutex::new(BTreeMap::new()) }
    }

    pub fn pod(&self, pod: &Pod) -> PodSight {
        let meta = &pod.metadata;
        let need = Need::of(pod);
        let asks = need.as_ref().map(asks).unwrap_or_default();
        let node = (!pod.spec.node_name.is_empty()).then(|| Name::new(&pod.spec.node_name));
        let ours = self.ours.contains(&*pod.spec.scheduler_name);
        PodSight {
            at: PodRef {
                namespace: meta.namespace.to_string(),
                name: meta.name.to_string(),
                uid: meta.uid.to_string(),
            },
            node,
            phase: phase(pod),
            is_leaving: meta.deletion_timestamp.is_some(),
            is_replaced: meta.controller().is_some(),
            is_gated: !pod.spec.scheduling_gates.is_empty(),
            asks,
            wish: ours.then(|| {
                let need = need.map_err(|error| error.to_string())?;
                understood(&need)?;
                self.wish(pod).map(Arc::new)
            }),
        }
    }

    fn wish(&self, pod: &Pod) -> Result<Wish, String> {
        let (meta, spec) = (&pod.metadata, &pod.spec);
        if let Some(key) = spec.unknown.first() {
            return Err(format!("spec.{key} is not understood, so nothing is risked"));
        }
        let dynamic = Dynamic::of(pod).map_err(|error| error.to_string())?;
        if !dynamic.is_empty() {
            return Err("rules about other pods are not understood yet".to_owned());
        }
        let mark = mark::read(pod, Around::default()).map_err(|bad| {
            let all: Vec<String> = bad.iter().map(ToString::to_string).collect();
            all.join("; ")
        })?;
        let GroupKey { namespace, kind, name, uid } = &mark.key;
        let Some(members) = mark.members.or(mark.min) else {
            return Err(format!("nothing says how many pods make the gang {name} whole"));
        };
        let mut rules = self.rules(Constraint::of(spec).map_err(|error| error.to_string())?);
        rules.extend(mark.node_pool.as_ref().map(node_pool));
        // A class that Kubernetes knows has been looked up by the API server.
        let marked = mark.priority.filter(|_| spec.priority_class_name.is_empty());
        let priority = marked.or(spec.priority).unwrap_or(0).saturating_add(mark.boost);
        let part = mark.subgroup.as_ref();
        let topology = part.and_then(|part| part.topology.clone()).or(mark.topology);
        let limit = spec.active_deadline_seconds.map(Span::secs);
        Ok(Wish {
            name: if members > 1 { name.clone() } else { Name::new(&meta.name) },
            gang: GangKey {
                namespace: namespace.clone(),
                name: Name::new(&format!("{kind:?}/{name}/{}", uid.as_deref().unwrap_or_default())),
            },
            alone: *kind == Kind::Pod,
            members,
            min: mark.min.unwrap_or(members).min(members),
            part: part.map(|part| (part.name.clone(), part.min)),
            queue: mark.queue,
            priority,
            preemptible: mark.preemptible.unwrap_or(true),
            min_runtime: mark.min_runtime,
            preempt_after: mark.preempt_after,
            time_limit: mark.time_limit.or(limit),
            grace: spec.termination_grace_period_seconds.map_or(GRACE, Span::secs),
            created: meta.creation_timestamp.unwrap_or(Time(0)),
            topology,
            labels: LabelAsk { need: nodes::need(&rules), prefer: BTreeMap::new() },
            rules,
        })
    }

    fn rules(&self, constraint: Constraint) -> Vec<Rule> {
        let mut known = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rules) = known.get(&constraint) {
            return rules.clone();
        }
        let Constraint { selection, tolerance } = constraint.clone();
        let name = tolerance.text();
        let allows = move |node: &NodeSight| tolerance.allows(&NodeView::from(&*node.object));
        let mut rules = vec![Rule { name: Name::new(&name), allows: Arc::new(allows) }];
        if !selection.is_trivial() {
            let name = selection.text();
            let allows = move |node: &NodeSight| selection.allows(&NodeView::from(&*node.object));
            rules.push(Rule { name: Name::new(&name), allows: Arc::new(allows) });
        }
        known.insert(constraint, rules.clone());
        rules
    }

    /// Nothing for a node that cannot be read; the others can be used.
    pub fn node(&self, node: &Node) -> Option<NodeSight> {
        let reading = match node::read(node, &node::TOPOLOGY_KEYS) {
            Ok(reading) => reading,
            Err(error) => {
                tracing::warn!(%error, node = &*node.metadata.name, "a node is left out");
                return None;
            }
        };
        // Taints are part of the rules, which know all that a toleration can say.
        let mut spec = NodeSpec { taints: Vec::new(), ..reading.spec };
        for gpu in &mut spec.gpus {
            // Nobody said how much it has, so it has too little for whoever asks by memory.
            gpu.memory = gpu.memory.max(Bytes(1));
        }
        Some(NodeSight { spec, object: Arc::new(node.clone()) })
    }
}

/// KAI divides nodes into pools by a label.
fn node_pool(pool: &Name) -> Rule {
    const KEY: &str = "kai.scheduler/node-pool";
    let wanted = pool.clone();
    let allows = move |node: &NodeSight| node.object.metadata.label(KEY) == Some(wanted.as_str());
    Rule { name: Name::new(&format!("{KEY}={pool}")), allows: Arc::new(allows) }
}

/// What a node would have to have that is not looked at makes the pod wait.
fn understood(need: &Need) -> Result<(), String> {
    if let Some(resource) = need.other.keys().next() {
        return Err(format!("it asks for {resource}, which Berth does not count yet"));
    }
    match need.gpus {
        Gpus::None | Gpus::Whole { .. } => Ok(()),
        _ => Err("parts of GPUs are not given on Kubernetes yet; ask for whole ones".to_owned()),
    }
}

fn asks(need: &Need) -> Asks {
    let gpus = need.gpus.ask(&Devices::default()).unwrap_or_default();
    Asks { cpu: need.cpu, memory: need.memory, gpus }
}

fn phase(pod: &Pod) -> Phase {
    match &*pod.status.phase {
        "Succeeded" => Phase::Succeeded,
        "Failed" => {
            let ends = pod.status.container_statuses.iter();
            let ends = ends.filter_map(|status| status.state.terminated.as_ref());
            let failed = ends.max_by_key(|end| end.exit_code != 0);
            Phase::Failed {
                code: failed.map(|end| end.exit_code).filter(|code| *code != 0),
                out_of_memory: failed.is_some_and(|end| &*end.reason == "OOMKilled"),
            }
        }
        "Running" => Phase::Running,
        _ => Phase::Pending,
    }
}
