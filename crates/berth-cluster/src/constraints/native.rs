//! Constraints that Kubernetes itself knows: node selectors, affinity, taints, extended resources
//! and host ports.

use super::labels::need;
use crate::view::{Asks, NodePredicate, NodeView};
use berth_kube::object::{Node, PodSpec};
use berth_kube::pod::interpod::{HostPort, InterPodConstraints, PORT_CAPACITY, disk_amounts};
use berth_kube::pod::node_constraint::{self, NodeConstraint};
use berth_model::{LabelAsk, Name};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a taint to be avoided weighs: as much as the heaviest preference.
const SOFT_TAINT_WEIGHT: i32 = 100;
/// The resource of which every pod takes one.
const PODS_RESOURCE: &str = "pods";

/// The cache drops unused readings when it holds more than these.
const MAX_CACHED_READINGS: usize = 1_024;

/// Reads with a memory: pods that ask for the same share what was read.
#[derive(Default)]
pub struct Native {
    rules: Mutex<Readings>,
    /// Whether some node has a taint that pods would rather avoid. Where none has, no pod has to
    /// say so.
    soft: AtomicBool,
}

#[derive(Default)]
struct Readings {
    known: BTreeMap<(NodeConstraint, bool), Rules>,
    /// So many were in use when that was last looked at.
    used: usize,
}

impl Readings {
    /// Looking costs no more than what was read since, a few times over.
    fn forget_unused(&mut self) {
        if self.known.len() >= MAX_CACHED_READINGS.max(2 * self.used) {
            self.known.retain(|_, rules| rules.is_used());
            self.used = self.known.len();
        }
    }
}

/// The rules of a pod, and how it asks for nodes by them.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    pub rules: Vec<NodePredicate>,
    pub labels: LabelAsk,
}

impl Rules {
    /// Whether some pod still has them.
    fn is_used(&self) -> bool {
        self.rules.iter().any(|rule| Arc::strong_count(&rule.allows) > 1)
    }

    fn prefer(&mut self, weight: i32, rule: NodePredicate) {
        let label = need(std::slice::from_ref(&rule));
        self.labels.weights.insert(rule.name.clone(), weight);
        self.labels.prefer.extend(label);
        self.rules.push(rule);
    }
}

impl Native {
    /// Notes what of a node changes how pods are read.
    pub fn note_taints(&self, node: &Node) {
        if node.spec.taints.iter().any(|taint| &*taint.effect == "PreferNoSchedule") {
            self.soft.store(true, Ordering::Relaxed);
        }
    }

    pub fn rules(&self, constraint: NodeConstraint) -> Rules {
        let key = (constraint, self.soft.load(Ordering::Relaxed));
        let mut readings = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rules) = readings.known.get(&key) {
            return rules.clone();
        }
        readings.forget_unused();
        let rules = read(&key.0, key.1);
        readings.known.insert(key, rules.clone());
        rules
    }
}

fn read(NodeConstraint { selection, tolerance }: &NodeConstraint, soft: bool) -> Rules {
    let tolerant = tolerance.clone();
    let taints = Asks::Tolerations(tolerance.clone());
    let mut must = vec![rule(tolerance.text(), taints, move |node| tolerant.allows(node))];
    let required = selection.required();
    if !required.is_trivial() {
        must.push(rule(required.text(), Asks::Selection, move |node| required.allows(node)));
    }
    let labels = LabelAsk { need: need(&must), ..LabelAsk::default() };
    let mut rules = Rules { rules: must, labels };
    for (weight, term) in selection.preferences().cloned() {
        let name = format!("prefers {term} by {weight}");
        rules.prefer(weight, rule(name, Asks::Named, move |node| term.holds(node)));
    }
    if soft {
        let name = format!("nothing to avoid for who {tolerance}");
        let tolerant = tolerance.clone();
        let avoids = rule(name, Asks::Named, move |node| tolerant.avoided(node) == 0);
        rules.prefer(SOFT_TAINT_WEIGHT, avoids);
    }
    rules
}

fn rule(
    name: String,
    asks: Asks,
    holds: impl Fn(&node_constraint::NodeView<'_>) -> bool + Send + Sync + 'static,
) -> NodePredicate {
    let allows = move |node: &NodeView| holds(&node_constraint::NodeView::from(&*node.object));
    NodePredicate { name: Name::from(name), allows: Arc::new(allows), asks }
}

/// How many pods a node takes, and what else it has.
pub fn counted(mut other: BTreeMap<Name, i64>) -> (Option<u32>, BTreeMap<Name, i64>) {
    let pods = other.remove(PODS_RESOURCE).map(|pods| u32::try_from(pods).unwrap_or(u32::MAX));
    (pods, other)
}

/// What a pod takes of whatever else its node has.
pub fn asks(other: &BTreeMap<Name, i64>, spec: &PodSpec) -> BTreeMap<Name, i64> {
    let mut asks = other.clone();
    // Each pod is one, whatever it says.
    asks.remove(PODS_RESOURCE);
    let ports = HostPort::of(spec).unwrap_or_default();
    for (name, amount, _) in ports.iter().flat_map(HostPort::amounts).chain(disk_amounts(spec)) {
        let taken = asks.entry(Name::from(name)).or_default();
        // On every address and on one of them is no more than on every address, and a pod does not
        // keep itself from a disk.
        *taken = (*taken + amount).min(PORT_CAPACITY);
    }
    asks
}

/// The ports and disks a pod takes, and how much every node has of each.
pub fn ports(dynamic: &InterPodConstraints, spec: &PodSpec) -> BTreeMap<Name, i64> {
    let amounts = dynamic.ports.iter().flat_map(HostPort::amounts).chain(disk_amounts(spec));
    amounts.map(|(name, _, size)| (Name::from(name), size)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_on(zone: usize) -> NodeConstraint {
        let spec = serde_json::json!({ "nodeSelector": { "zone": zone.to_string() } });
        NodeConstraint::of(&serde_json::from_value(spec).unwrap()).unwrap()
    }

    #[test]
    fn readings_that_no_pod_has_any_more_are_forgotten() {
        let native = Native::default();
        let kept = native.rules(only_on(0));
        for zone in 1..5 * MAX_CACHED_READINGS {
            native.rules(only_on(zone));
        }
        let readings = native.rules.lock().unwrap();
        assert!(readings.known.len() <= MAX_CACHED_READINGS, "{}", readings.known.len());
        let first = &readings.known[&(only_on(0), false)];
        assert!(Arc::ptr_eq(&first.rules[0].allows, &kept.rules[0].allows));
    }

    fn takes(spec: serde_json::Value) -> BTreeMap<Name, i64> {
        asks(&BTreeMap::new(), &serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn a_writer_of_a_disk_takes_all_of_it_and_readers_share_it() {
        let disk = |read_only: bool| {
            let disk = serde_json::json!({ "pdName": "pd-1", "readOnly": read_only });
            serde_json::json!({ "name": "v", "gcePersistentDisk": disk })
        };
        let volumes = |volumes: &[serde_json::Value]| serde_json::json!({ "volumes": volumes });
        let name = Name::new("disk gcePersistentDisk/pd-1");
        let (writes, reads) = (volumes(&[disk(false)]), volumes(&[disk(true)]));
        let size = ports(
            &InterPodConstraints::default(),
            &serde_json::from_value(writes.clone()).unwrap(),
        );
        let amount = |spec: &serde_json::Value| takes(spec.clone())[&name];
        assert!(2 * amount(&reads) <= size[&name]);
        assert!(amount(&reads) + amount(&writes) > size[&name]);
        let both = volumes(&[disk(false), disk(true)]);
        assert!(amount(&both) <= size[&name], "a pod does not keep itself away");
    }
}
