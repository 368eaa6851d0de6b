//! The objects of a cluster as the checker sees them. It shares no code with Berth: a mistake in
//! how Berth reads an object must not be made here as well.

use super::amounts::{self, Amounts};
use super::selector::{self, Labels};
use crate::fuzz::make::NAMESPACES;
use crate::fuzz::world::Key;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub struct Node {
    pub name: String,
    pub labels: Labels,
    pub room: Amounts,
    pub object: Value,
}

#[derive(Debug, Clone)]
pub struct Pod {
    pub key: Key,
    pub labels: Labels,
    pub asks: Amounts,
    pub priority: i64,
    pub node: Option<String>,
    /// It was asked to end.
    pub is_leaving: bool,
    pub is_over: bool,
    pub is_gated: bool,
    pub runs: bool,
    pub gang: Option<Gang>,
    pub spec: Value,
}

/// Pods with the same name of a gang, in one namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gang {
    pub name: Key,
    pub size: usize,
}

#[derive(Debug, Clone)]
pub struct Budget {
    pub namespace: String,
    pub selector: Value,
    pub min_available: usize,
}

#[derive(Debug, Clone, Default)]
pub struct Scene {
    pub nodes: BTreeMap<String, Node>,
    pub pods: BTreeMap<Key, Pod>,
    pub budgets: Vec<Budget>,
    /// The nodes from which the volume of a claim can be reached.
    pub claims: BTreeMap<Key, Value>,
    pub namespaces: BTreeMap<String, Labels>,
}

impl Node {
    pub fn of(object: &Value) -> Node {
        let name = Key::of(object).name;
        let labels = selector::labels(&object["metadata"]["labels"]);
        let room = amounts::amounts(&object["status"]["allocatable"]);
        Node { name, labels, room, object: object.clone() }
    }
}

impl Pod {
    pub fn of(object: &Value) -> Pod {
        let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        let key = Key::of(object);
        let mark = |name: &str| metadata["annotations"][name].as_str();
        let gang = mark("berth.dev/gang").map(|name| Gang {
            name: Key { namespace: key.namespace.clone(), name: name.to_owned() },
            size: mark("berth.dev/gang-size").and_then(|size| size.parse().ok()).unwrap_or(1),
        });
        Pod {
            labels: selector::labels(&metadata["labels"]),
            asks: amounts::of_pod(spec),
            priority: spec["priority"].as_i64().unwrap_or(0),
            node: spec["nodeName"].as_str().map(str::to_owned),
            is_leaving: metadata["deletionTimestamp"].is_string(),
            is_over: status["phase"] == "Succeeded" || status["phase"] == "Failed",
            is_gated: spec["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()),
            runs: status["phase"] == "Running",
            gang,
            spec: spec.clone(),
            key,
        }
    }

    pub fn may_preempt(&self) -> bool {
        self.spec["preemptionPolicy"] != "Never"
    }

    /// Required terms, such as those of `podAffinity`.
    pub fn terms(&self, kind: &str) -> &[Value] {
        let terms = &self.spec["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"];
        terms.as_array().map_or(&[], Vec::as_slice)
    }

    /// Spreads that a node must satisfy.
    pub fn spreads(&self) -> Vec<&Value> {
        let all = self.spec["topologySpreadConstraints"].as_array().into_iter().flatten();
        all.filter(|one| one["whenUnsatisfiable"] == "DoNotSchedule").collect()
    }

    pub fn claims(&self) -> Vec<Key> {
        let volumes = self.spec["volumes"].as_array().into_iter().flatten();
        let named = volumes.filter_map(|one| one["persistentVolumeClaim"]["claimName"].as_str());
        let namespace = &self.key.namespace;
        named.map(|name| Key { namespace: namespace.clone(), name: name.to_owned() }).collect()
    }

    pub fn has_rules(&self) -> bool {
        let has_terms =
            ["podAffinity", "podAntiAffinity"].iter().any(|k| !self.terms(k).is_empty());
        has_terms || !self.spreads().is_empty()
    }
}

impl Scene {
    /// Without any pods.
    pub fn new(nodes: &[Value], budgets: &[Value], volumes: &[Value]) -> Scene {
        let nodes = nodes.iter().map(Node::of).map(|node| (node.name.clone(), node)).collect();
        let budget = |object: &Value| Budget {
            namespace: Key::of(object).namespace,
            selector: object["spec"]["selector"].clone(),
            min_available: object["spec"]["minAvailable"].as_u64().unwrap_or(0) as usize,
        };
        let claims = volumes.iter().filter(|one| one["kind"] == "PersistentVolume");
        let claims = claims.map(|volume| {
            let claim = &volume["spec"]["claimRef"];
            let text = |field: &str| claim[field].as_str().unwrap_or_default().to_owned();
            let key = Key { namespace: text("namespace"), name: text("name") };
            (key, volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].clone())
        });
        let team = |team: &str| Labels::from([("team".to_owned(), team.to_owned())]);
        Scene {
            nodes,
            pods: BTreeMap::new(),
            budgets: budgets.iter().map(budget).collect(),
            claims: claims.collect(),
            namespaces: NAMESPACES
                .iter()
                .map(|(name, of)| ((*name).to_owned(), team(of)))
                .collect(),
        }
    }

    /// Those that take room somewhere.
    pub fn placed(&self) -> impl Iterator<Item = (&Pod, &Node)> {
        let placed = self.pods.values().filter(|pod| !pod.is_over);
        placed.filter_map(|pod| Some((pod, self.nodes.get(pod.node.as_ref()?)?)))
    }

    pub fn on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Pod> {
        self.placed().filter(move |(_, at)| at.name == node).map(|(pod, _)| pod)
    }

    /// The same without some pods.
    pub fn without(&self, gone: &[&Key]) -> Scene {
        let mut scene = self.clone();
        scene.pods.retain(|key, _| !gone.contains(&key));
        scene
    }

    /// The same with a pod on a node.
    pub fn with(&self, pod: &Pod, node: &str) -> Scene {
        let mut scene = self.clone();
        scene.put(pod, node);
        scene
    }

    pub fn put(&mut self, pod: &Pod, node: &str) {
        let placed = Pod { node: Some(node.to_owned()), ..pod.clone() };
        self.pods.insert(pod.key.clone(), placed);
    }
}
