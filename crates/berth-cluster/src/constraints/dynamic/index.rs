//! An index of placed pods by the queries of pending pods. Only queries that some pending pod has,
//! and the rules of running pods, are kept.

use super::preferred::{PreferredAffinity, PreferredTerm};
use crate::view::PodView;
use berth_kube::object::{Labels, Text};
use berth_kube::pod::interpod::{AffinityTerm, TermNamespaces};
use berth_kube::selector::LabelMatcher;
use berth_model::Name;
use std::collections::{BTreeMap, BTreeSet};

/// A set of pods that some pending job depends on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodQuery {
    /// Those that each of these means.
    Matching(Vec<PodSelector>),
    /// The same, without those that have been asked to end.
    Staying(PodSelector),
    /// Those that must be away from what the rule means.
    Carrying(AffinityTerm),
    /// Those that use a claim, by namespace and name.
    Claiming(Text, Text),
    /// No pods. It makes pods that want volumes of one class take turns.
    Class(Text),
    /// No pods. It makes pods that want volumes of one driver take turns where nodes come to their
    /// limit.
    Driver(Text),
}

/// Pods by their labels and namespaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodSelector {
    pub pods: LabelMatcher,
    pub namespaces: TermNamespaces,
}

impl PodSelector {
    pub fn of(rule: &AffinityTerm) -> PodSelector {
        PodSelector { pods: rule.pods.clone(), namespaces: rule.namespaces.clone() }
    }

    /// Pods of one namespace.
    pub fn within(namespace: &Text, pods: &LabelMatcher) -> PodSelector {
        let named = BTreeSet::from([namespace.clone()]);
        let namespaces = TermNamespaces { named, matching: LabelMatcher::NOTHING };
        PodSelector { pods: pods.clone(), namespaces }
    }
}

/// A pod that is placed, or would be.
#[derive(Clone, Copy)]
pub struct PlacedPod<'a> {
    pub view: &'a PodView,
    pub node: Option<&'a Name>,
}

#[derive(Default)]
pub struct Index {
    queries: BTreeMap<PodQuery, Found>,
    namespaces: BTreeMap<Text, Labels>,
    /// What placed pods would like of others.
    pub preferred: PreferredAffinity,
    /// Counts the changes of what is found.
    pub version: u64,
}

#[derive(Default)]
struct Found {
    members: BTreeMap<String, Name>,
    nodes: BTreeMap<Name, u32>,
}

impl Found {
    /// Whether anything has changed.
    fn set(&mut self, uid: &str, node: Option<&Name>) -> bool {
        if self.members.get(uid) == node {
            return false;
        }
        if let Some(before) = self.members.remove(uid)
            && let Some(count) = self.nodes.get_mut(&before)
        {
            *count -= 1;
            if *count == 0 {
                self.nodes.remove(&before);
            }
        }
        if let Some(node) = node {
            self.members.insert(uid.to_owned(), node.clone());
            *self.nodes.entry(node.clone()).or_default() += 1;
        }
        true
    }
}

impl Index {
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    pub fn len(&self) -> usize {
        self.queries.len()
    }

    pub fn contains(&self, query: &PodQuery) -> bool {
        self.queries.contains_key(query)
    }

    /// How many such pods there are, by node.
    pub fn nodes(&self, query: &PodQuery) -> impl Iterator<Item = (&Name, u32)> {
        let found = self.queries.get(query).into_iter();
        found.flat_map(|found| found.nodes.iter().map(|(node, count)| (node, *count)))
    }

    /// Such pods, by their uids, and where they are.
    pub fn members(&self, query: &PodQuery) -> impl Iterator<Item = (&String, &Name)> {
        self.queries.get(query).into_iter().flat_map(|found| &found.members)
    }

    /// From now on these are looked at, among all the pods there are.
    pub fn add<'a>(&mut self, query: PodQuery, all: impl Iterator<Item = PlacedPod<'a>>) {
        let mut found = Found::default();
        for seen in all.filter(|seen| self.means(&query, seen.view)) {
            found.set(&seen.view.at.uid, seen.node);
        }
        self.queries.insert(query, found);
        self.version += 1;
    }

    /// A pod was seen, is somewhere else, or is nowhere any more.
    pub fn moved(&mut self, seen: PlacedPod<'_>) {
        let PlacedPod { view, node } = seen;
        let is_new = self.preferred.moved(&view.at.uid, view.constraints.as_ref(), node);
        // Of a pod that has waited here, all that it asks about know already.
        if is_new && view.request.is_none() {
            self.preferred.mark_unknown_terms();
        }
        let mut queries = std::mem::take(&mut self.queries);
        for (query, found) in &mut queries {
            let node = seen.node.filter(|_| self.means(query, seen.view));
            self.version += u64::from(found.set(&seen.view.at.uid, node));
        }
        self.queries = queries;
    }

    /// What is looked at that a pod would be among.
    pub fn touched(&self, view: &PodView) -> BTreeSet<PodQuery> {
        self.queries.keys().filter(|query| self.means(query, view)).cloned().collect()
    }

    /// The rules of other pods that keep such a pod away from them.
    pub fn barred(&self, view: &PodView) -> impl Iterator<Item = &AffinityTerm> {
        self.queries.keys().filter_map(move |query| match query {
            PodQuery::Carrying(rule) if self.is_meant(rule, view) => Some(rule),
            _ => None,
        })
    }

    /// What pods that are placed would like of such a one.
    pub fn preferred_terms<'a>(
        &'a self,
        view: &'a PodView,
    ) -> impl Iterator<Item = PreferredTerm<'a>> {
        let of = self.preferred.of(&view.labels);
        of.filter(|term| self.is_meant(term.rule, view))
    }

    /// Whether any of them would.
    pub fn is_preferred(&self, view: &PodView) -> bool {
        self.preferred_terms(view).next().is_some()
    }

    /// Forgets queries that no job has any more.
    pub fn keep(&mut self, used: &BTreeSet<PodQuery>) {
        self.queries.retain(|query, found| {
            let carried = matches!(query, PodQuery::Carrying(_)) && !found.members.is_empty();
            carried || used.contains(query)
        });
    }

    /// Sets the labels of all namespaces. Returns whether any has changed.
    pub fn name(&mut self, namespaces: BTreeMap<Text, Labels>) -> bool {
        let news = self.namespaces != namespaces;
        self.namespaces = namespaces;
        news
    }

    pub fn queries(&self) -> Vec<PodQuery> {
        self.queries.keys().cloned().collect()
    }

    pub fn means(&self, query: &PodQuery, view: &PodView) -> bool {
        let constraints = view.constraints.as_deref();
        match query {
            PodQuery::Matching(all) => all.iter().all(|who| self.matches(who, view)),
            PodQuery::Staying(who) => !view.is_leaving && self.matches(who, view),
            PodQuery::Carrying(rule) => constraints
                .is_some_and(|constraints| constraints.dynamic.anti_affinity.contains(rule)),
            PodQuery::Claiming(namespace, claim) => constraints.is_some_and(|constraints| {
                constraints.namespace == *namespace && constraints.dynamic.claims.contains(claim)
            }),
            PodQuery::Class(_) | PodQuery::Driver(_) => false,
        }
    }

    pub fn matches(&self, who: &PodSelector, view: &PodView) -> bool {
        self.selects(&who.pods, &who.namespaces, view)
    }

    pub fn is_meant(&self, rule: &AffinityTerm, view: &PodView) -> bool {
        self.selects(&rule.pods, &rule.namespaces, view)
    }

    fn selects(&self, pods: &LabelMatcher, namespaces: &TermNamespaces, view: &PodView) -> bool {
        let none = Labels::default();
        let namespace = view.at.namespace.as_str();
        let labels = self.namespaces.get(namespace).unwrap_or(&none);
        pods.matches(&view.labels) && namespaces.contains(namespace, labels)
    }
}
