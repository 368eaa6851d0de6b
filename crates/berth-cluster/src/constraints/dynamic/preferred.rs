//! What pods that are placed would like of those that come: to be near them, or not. Kept by the
//! label a pod must have to be meant, so that asking costs what its labels are, and a pod that
//! would like nothing costs nothing.

use crate::view::Ties;
use berth_kube::dynamic::Rule;
use berth_kube::object::{Labels, Text};
use berth_model::Name;
use std::collections::BTreeMap;
use std::sync::Arc;

type Rules = BTreeMap<Rule, BTreeMap<Name, Lean>>;

#[derive(Default)]
pub struct Leanings {
    /// Rules about pods with one value of a label, by that label and value.
    labelled: BTreeMap<Text, BTreeMap<Text, Rules>>,
    /// All other rules.
    open: Rules,
    members: BTreeMap<String, (Arc<Ties>, Name)>,
    /// Whoever waits has been asked whether these rules mean it.
    is_asked: bool,
    /// Counts the changes.
    pub version: u64,
}

/// Pods of one node with the same rule.
#[derive(Default)]
struct Lean {
    pods: u32,
    /// Their weights, added up; less than nothing where such pods had better be elsewhere.
    worth: i64,
}

/// Who would be liked, and where.
pub struct Liking<'a> {
    pub rule: &'a Rule,
    nodes: &'a BTreeMap<Name, Lean>,
}

impl<'a> Liking<'a> {
    /// What it is worth to be where each of these nodes is.
    pub fn nodes(&self) -> impl Iterator<Item = (&'a Name, i64)> + use<'a> {
        self.nodes.iter().map(|(name, lean)| (name, lean.worth))
    }
}

impl Leanings {
    /// A pod was seen, is somewhere else, or is nowhere any more. Returns whether it has a rule that
    /// nobody had before.
    pub fn moved(&mut self, uid: &str, ties: Option<&Arc<Ties>>, node: Option<&Name>) -> bool {
        let ties = ties.filter(|ties| ties.leanings().next().is_some());
        let now = ties.zip(node);
        let before = self.members.get(uid);
        if before.map(|(ties, node)| (ties, node)) == now {
            return false;
        }
        self.version += 1;
        if let Some((ties, node)) = self.members.remove(uid) {
            ties.leanings().for_each(|(weight, rule)| self.take(weight, rule, &node));
        }
        let Some((ties, node)) = now else { return false };
        self.members.insert(uid.to_owned(), (ties.clone(), node.clone()));
        ties.leanings().fold(false, |new, (weight, rule)| self.add(weight, rule, node) || new)
    }

    /// The rules that may be about a pod with these labels.
    pub fn of<'a>(&'a self, labels: &'a Labels) -> impl Iterator<Item = Liking<'a>> {
        // Most clusters have none, and then no label is looked at.
        let labels = labels.iter().filter(|_| !self.labelled.is_empty());
        let labelled = labels.filter_map(|(key, value)| self.labelled.get(key)?.get(value));
        let rules = labelled.chain([&self.open]).flatten();
        rules.map(|(rule, nodes)| Liking { rule, nodes })
    }

    /// There is a rule that whoever waits does not know of: that of a pod which never waited here.
    pub fn tell_strange(&mut self) {
        self.is_asked = false;
    }

    /// Whether there is one since this was last asked, as there may be at the start.
    pub fn take_strange(&mut self) -> bool {
        !std::mem::replace(&mut self.is_asked, true)
    }

    /// Returns whether nobody had the rule.
    fn add(&mut self, weight: i32, rule: &Rule, node: &Name) -> bool {
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

    /// What nobody has any more is forgotten.
    fn take(&mut self, weight: i32, rule: &Rule, node: &Name) {
        let Some((key, value)) = rule.pods.label() else {
            return lessen(&mut self.open, weight, rule, node);
        };
        let Some(values) = self.labelled.get_mut(key) else { return };
        let Some(rules) = values.get_mut(value) else { return };
        lessen(rules, weight, rule, node);
        if rules.is_empty() {
            values.remove(value);
        }
        if values.is_empty() {
            self.labelled.remove(key);
        }
    }
}

fn lessen(rules: &mut Rules, weight: i32, rule: &Rule, node: &Name) {
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

    fn ties(affinity: Value) -> Arc<Ties> {
        let metadata = json!({ "name": "p", "namespace": "vision" });
        let pod = json!({ "metadata": metadata, "spec": { "affinity": affinity } });
        Arc::new(Ties::of(&serde_json::from_value(pod).unwrap()).unwrap().unwrap())
    }

    fn likes(kind: &str, weight: i32, selector: Value) -> Arc<Ties> {
        let wish = json!({ "weight": weight, "podAffinityTerm": term(selector) });
        ties(json!({ kind: { "preferredDuringSchedulingIgnoredDuringExecution": [wish] } }))
    }

    fn needs(kind: &str, selector: Value) -> Arc<Ties> {
        let term = term(selector);
        ties(json!({ kind: { "requiredDuringSchedulingIgnoredDuringExecution": [term] } }))
    }

    fn web() -> Value {
        json!({ "matchLabels": { "app": "web" } })
    }

    /// What each node is worth to a pod of that kind.
    fn worth(leanings: &Leanings, app: &str) -> Vec<(String, i64)> {
        let labels: Labels = [("app", app.into()), ("other", "x".into())].into_iter().collect();
        let nodes = leanings.of(&labels).flat_map(|liking| liking.nodes());
        nodes.map(|(name, worth)| (name.to_string(), worth)).collect()
    }

    fn put(leanings: &mut Leanings, uid: &str, ties: &Arc<Ties>, node: &str) {
        leanings.moved(uid, Some(ties), Some(&Name::new(node)));
    }

    #[test]
    fn weights_of_placed_pods_are_added_up_where_they_are() {
        let mut leanings = Leanings::default();
        put(&mut leanings, "1", &likes("podAffinity", 30, web()), "a");
        put(&mut leanings, "2", &likes("podAffinity", 40, web()), "a");
        put(&mut leanings, "3", &likes("podAntiAffinity", 50, web()), "b");
        put(&mut leanings, "4", &needs("podAffinity", web()), "c");
        let worth_of_each = [("a".to_owned(), 70), ("b".to_owned(), -50), ("c".to_owned(), 1)];
        assert_eq!(worth(&leanings, "web"), worth_of_each);
        assert_eq!(worth(&leanings, "db"), []);
    }

    #[test]
    fn a_rule_about_everybody_is_found_by_everybody() {
        let mut leanings = Leanings::default();
        put(&mut leanings, "1", &likes("podAntiAffinity", 5, json!({})), "a");
        let several = json!({ "key": "app", "operator": "In", "values": ["web", "db"] });
        let several = json!({ "matchExpressions": [several] });
        put(&mut leanings, "2", &likes("podAntiAffinity", 7, several), "b");
        assert_eq!(worth(&leanings, "web").len(), 2);
    }

    #[test]
    fn a_pod_that_moves_or_goes_is_not_counted_where_it_was() {
        let mut leanings = Leanings::default();
        let likes = likes("podAffinity", 30, web());
        put(&mut leanings, "1", &likes, "a");
        let version = leanings.version;
        put(&mut leanings, "1", &likes, "a");
        assert_eq!(leanings.version, version, "seen again, it is where it was");
        put(&mut leanings, "1", &likes, "b");
        put(&mut leanings, "2", &likes, "b");
        assert_eq!(worth(&leanings, "web"), [("b".to_owned(), 60)]);
        leanings.moved("1", Some(&likes), None);
        assert_eq!(worth(&leanings, "web"), [("b".to_owned(), 30)]);
        leanings.moved("2", Some(&likes), None);
        assert_eq!(worth(&leanings, "web"), []);
        assert!(leanings.labelled.is_empty() && leanings.members.is_empty());
        assert_eq!(leanings.version, version + 4);
    }

    #[test]
    fn what_must_be_away_or_has_no_rules_at_all_is_none_of_this() {
        let mut leanings = Leanings::default();
        put(&mut leanings, "1", &needs("podAntiAffinity", web()), "a");
        leanings.moved("2", None, Some(&Name::new("a")));
        assert_eq!((worth(&leanings, "web").len(), leanings.version), (0, 0));
    }

    #[test]
    fn a_rule_that_nobody_had_is_told_to_be_new_once() {
        let mut leanings = Leanings::default();
        let node = Name::new("a");
        let (first, second) =
            (likes("podAffinity", 30, web()), likes("podAntiAffinity", 40, web()));
        assert!(leanings.moved("1", Some(&first), Some(&node)));
        assert!(!leanings.moved("2", Some(&second), Some(&node)));
        assert!(!leanings.moved("1", None, None));
        assert!(!leanings.moved("1", Some(&first), Some(&node)));
        assert!(leanings.take_strange(), "at the start nobody has been asked");
        assert!(!leanings.take_strange());
        leanings.tell_strange();
        assert!(leanings.take_strange());
    }
}
