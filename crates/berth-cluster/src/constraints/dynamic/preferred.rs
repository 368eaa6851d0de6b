//! Preferred affinity of placed pods towards those to come, indexed by the label that a pod must
//! have to be selected: a lookup costs as much as the pod has labels.

use crate::view::PodConstraints;
use berth_kube::object::{Labels, Text};
use berth_kube::pod::interpod::AffinityTerm;
use berth_model::Name;
use std::collections::BTreeMap;
use std::sync::Arc;

type Rules = BTreeMap<AffinityTerm, BTreeMap<Name, TermWeight>>;

#[derive(Default)]
pub struct PreferredAffinity {
    /// Rules about pods with one value of a label, by that label and value.
    labelled: BTreeMap<Text, BTreeMap<Text, Rules>>,
    /// All other rules.
    open: Rules,
    members: BTreeMap<String, (Arc<PodConstraints>, Name)>,
    /// All pending jobs were checked against these rules.
    is_asked: bool,
    /// Counts the changes.
    pub version: u64,
}

/// Pods of one node with the same rule.
#[derive(Default)]
struct TermWeight {
    pods: u32,
    /// The sum of their weights; negative for preferred anti-affinity.
    worth: i64,
}

/// Who would be liked, and where.
pub struct PreferredTerm<'a> {
    pub rule: &'a AffinityTerm,
    nodes: &'a BTreeMap<Name, TermWeight>,
}

impl<'a> PreferredTerm<'a> {
    /// What it is worth to be where each of these nodes is.
    pub fn nodes(&self) -> impl Iterator<Item = (&'a Name, i64)> + use<'a> {
        self.nodes.iter().map(|(name, lean)| (name, lean.worth))
    }
}

impl PreferredAffinity {
    /// A pod was seen, has moved, or is gone. Returns whether it has a rule that no placed pod had
    /// before.
    pub fn moved(
        &mut self,
        uid: &str,
        constraints: Option<&Arc<PodConstraints>>,
        node: Option<&Name>,
    ) -> bool {
        let constraints =
            constraints.filter(|constraints| constraints.preferred().next().is_some());
        let now = constraints.zip(node);
        let before = self.members.get(uid);
        if before.map(|(constraints, node)| (constraints, node)) == now {
            return false;
        }
        self.version += 1;
        if let Some((constraints, node)) = self.members.remove(uid) {
            constraints.preferred().for_each(|(weight, rule)| self.take(weight, rule, &node));
        }
        let Some((constraints, node)) = now else { return false };
        self.members.insert(uid.to_owned(), (constraints.clone(), node.clone()));
        constraints
            .preferred()
            .fold(false, |new, (weight, rule)| self.add(weight, rule, node) || new)
    }

    /// The rules that may be about a pod with these labels.
    pub fn of<'a>(&'a self, labels: &'a Labels) -> impl Iterator<Item = PreferredTerm<'a>> {
        // Most clusters have none, and then no label is looked at.
        let labels = labels.iter().filter(|_| !self.labelled.is_empty());
        let labelled = labels.filter_map(|(key, value)| self.labelled.get(key)?.get(value));
        let rules = labelled.chain([&self.open]).flatten();
        rules.map(|(rule, nodes)| PreferredTerm { rule, nodes })
    }

    /// There is a rule that pending jobs were not checked against: that of a pod which never waited
    /// for Berth.
    pub fn mark_unknown_terms(&mut self) {
        self.is_asked = false;
    }

    /// Whether there is one since this was last asked, as there may be at the start.
    pub fn take_unknown_terms(&mut self) -> bool {
        !std::mem::replace(&mut self.is_asked, true)
    }

    /// Returns whether no placed pod had the rule.
    fn add(&mut self, weight: i32, rule: &AffinityTerm, node: &Name) -> bool {
        let rules = match rule.pods.label() {
            None => &mut self.open,
            Some((key, value)) => {
                let values = self.labelled.entry(key.clone()).or_default();
                values.entry(value.clone()).or_default()
            }
        };
        let is_new = !rules.contains_key(rule);
        let lean = rules.entry(rule.clone()).or_default().entry(node.clone()).or_default();
        lean.pods += 1;
        lean.worth += i64::from(weight);
        is_new
    }

    /// Forgets a rule with its last pod.
    fn take(&mut self, weight: i32, rule: &AffinityTerm, node: &Name) {
        let Some((key, value)) = rule.pods.label() else {
            return subtract(&mut self.open, weight, rule, node);
        };
        let Some(values) = self.labelled.get_mut(key) else { return };
        let Some(rules) = values.get_mut(value) else { return };
        subtract(rules, weight, rule, node);
        if rules.is_empty() {
            values.remove(value);
        }
        if values.is_empty() {
            self.labelled.remove(key);
        }
    }
}

fn subtract(rules: &mut Rules, weight: i32, rule: &AffinityTerm, node: &Name) {
    let Some(nodes) = rules.get_mut(rule) else { return };
    if let Some(lean) = nodes.get_mut(node) {
        lean.pods -= 1;
        lean.worth -= i64::from(weight);
        if lean.pods == 0 {
            nodes.remove(node);
        }
    }
    if nodes.is_empty() {
        rules.remove(rule);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn term(selector: Value) -> Value {
        json!({ "topologyKey": "zone", "labelSelector": selector })
    }

    fn constraints(affinity: Value) -> Arc<PodConstraints> {
        let metadata = json!({ "name": "p", "namespace": "vision" });
        let pod = json!({ "metadata": metadata, "spec": { "affinity": affinity } });
        Arc::new(PodConstraints::of(&serde_json::from_value(pod).unwrap()).unwrap().unwrap())
    }

    fn likes(kind: &str, weight: i32, selector: Value) -> Arc<PodConstraints> {
        let request = json!({ "weight": weight, "podAffinityTerm": term(selector) });
        constraints(
            json!({ kind: { "preferredDuringSchedulingIgnoredDuringExecution": [request] } }),
        )
    }

    fn needs(kind: &str, selector: Value) -> Arc<PodConstraints> {
        let term = term(selector);
        constraints(json!({ kind: { "requiredDuringSchedulingIgnoredDuringExecution": [term] } }))
    }

    fn web() -> Value {
        json!({ "matchLabels": { "app": "web" } })
    }

    /// What each node is worth to a pod of that kind.
    fn worth(preferred: &PreferredAffinity, app: &str) -> Vec<(String, i64)> {
        let labels: Labels = [("app", app.into()), ("other", "x".into())].into_iter().collect();
        let nodes = preferred.of(&labels).flat_map(|term| term.nodes());
        nodes.map(|(name, worth)| (name.to_string(), worth)).collect()
    }

    fn put(
        preferred: &mut PreferredAffinity,
        uid: &str,
        constraints: &Arc<PodConstraints>,
        node: &str,
    ) {
        preferred.moved(uid, Some(constraints), Some(&Name::new(node)));
    }

    #[test]
    fn weights_of_placed_pods_are_added_up_where_they_are() {
        let mut preferred = PreferredAffinity::default();
        put(&mut preferred, "1", &likes("podAffinity", 30, web()), "a");
        put(&mut preferred, "2", &likes("podAffinity", 40, web()), "a");
        put(&mut preferred, "3", &likes("podAntiAffinity", 50, web()), "b");
        put(&mut preferred, "4", &needs("podAffinity", web()), "c");
        let worth_of_each = [("a".to_owned(), 70), ("b".to_owned(), -50), ("c".to_owned(), 1)];
        assert_eq!(worth(&preferred, "web"), worth_of_each);
        assert_eq!(worth(&preferred, "db"), []);
    }

    #[test]
    fn a_rule_about_all_pods_is_found_for_every_pod() {
        let mut preferred = PreferredAffinity::default();
        put(&mut preferred, "1", &likes("podAntiAffinity", 5, json!({})), "a");
        let several = json!({ "key": "app", "operator": "In", "values": ["web", "db"] });
        let several = json!({ "matchExpressions": [several] });
        put(&mut preferred, "2", &likes("podAntiAffinity", 7, several), "b");
        assert_eq!(worth(&preferred, "web").len(), 2);
    }

    #[test]
    fn a_pod_that_moves_or_goes_is_not_counted_where_it_was() {
        let mut preferred = PreferredAffinity::default();
        let likes = likes("podAffinity", 30, web());
        put(&mut preferred, "1", &likes, "a");
        let version = preferred.version;
        put(&mut preferred, "1", &likes, "a");
        assert_eq!(preferred.version, version, "seen again, it is where it was");
        put(&mut preferred, "1", &likes, "b");
        put(&mut preferred, "2", &likes, "b");
        assert_eq!(worth(&preferred, "web"), [("b".to_owned(), 60)]);
        preferred.moved("1", Some(&likes), None);
        assert_eq!(worth(&preferred, "web"), [("b".to_owned(), 30)]);
        preferred.moved("2", Some(&likes), None);
        assert_eq!(worth(&preferred, "web"), []);
        assert!(preferred.labelled.is_empty() && preferred.members.is_empty());
        assert_eq!(preferred.version, version + 4);
    }

    #[test]
    fn what_must_be_away_or_has_no_rules_at_all_is_none_of_this() {
        let mut preferred = PreferredAffinity::default();
        put(&mut preferred, "1", &needs("podAntiAffinity", web()), "a");
        preferred.moved("2", None, Some(&Name::new("a")));
        assert_eq!((worth(&preferred, "web").len(), preferred.version), (0, 0));
    }

    #[test]
    fn a_rule_that_no_pod_had_is_new_once() {
        let mut preferred = PreferredAffinity::default();
        let node = Name::new("a");
        let (first, second) =
            (likes("podAffinity", 30, web()), likes("podAntiAffinity", 40, web()));
        assert!(preferred.moved("1", Some(&first), Some(&node)));
        assert!(!preferred.moved("2", Some(&second), Some(&node)));
        assert!(!preferred.moved("1", None, None));
        assert!(!preferred.moved("1", Some(&first), Some(&node)));
        assert!(preferred.take_unknown_terms(), "at the start no job has been checked");
        assert!(!preferred.take_unknown_terms());
        preferred.mark_unknown_terms();
        assert!(preferred.take_unknown_terms());
    }
}
