//! Which placed pods somebody looks at, and where they are. Only what some waiting pod asks about is
//! kept, and the rules of pods that run: plain pods cost nothing here.

use super::preferred::{Leanings, Liking};
use crate::view::PodSight;
use berth_kube::dynamic::{Namespaces, Rule, Selector};
use berth_kube::object::{Labels, Text};
use berth_model::Name;
use std::collections::{BTreeMap, BTreeSet};

/// Pods that somebody looks at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watch {
    /// Those that each of these means.
    Matching(Vec<Who>),
    /// The same, without those that have been asked to end.
    Staying(Who),
    /// Those that must be away from what the rule means.
    Carrying(Rule),
    /// Those that use a claim, by namespace and name.
    Claiming(Text, Text),
    /// Nobody: pods that want volumes of one class take turns.
    Class(Text),
    /// Nobody: pods that want volumes of one driver take turns where nodes come to their limit.
    Driver(Text),
}

/// Pods by their labels and namespaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    pub pods: Selector,
    pub namespaces: Namespaces,
}

impl Who {
    pub fn of(rule: &Rule) -> Who {
        Who { pods: rule.pods.clone(), namespaces: rule.namespaces.clone() }
    }

    /// Pods of one namespace.
    pub fn within(namespace: &Text, pods: &Selector) -> Who {
        let named = BTreeSet::from([namespace.clone()]);
        let namespaces = Namespaces { named, matching: Selector::NOTHING };
        Who { pods: pods.clone(), namespaces }
    }
}

/// A pod that is placed, or would be.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    pub sight: &'a PodSight,
    pub node: Option<&'a Name>,
}

#[derive(Default)]
pub struct Index {
    watches: BTreeMap<Watch, Found>,
    namespaces: BTreeMap<Text, Labels>,
    /// What placed pods would like of others.
    pub leanings: Leanings,
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
        self.watches.is_empty()
    }

    pub fn len(&self) -> usize {
        self.watches.len()
    }

    pub fn contains(&self, watch: &Watch) -> bool {
        self.watches.contains_key(watch)
    }

    /// How many such pods there are, by node.
    pub fn nodes(&self, watch: &Watch) -> impl Iterator<Item = (&Name, u32)> {
        let found = self.watches.get(watch).into_iter();
        found.flat_map(|found| found.nodes.iter().map(|(node, count)| (node, *count)))
    }

    /// From now on these are looked at, among all the pods there are.
    pub fn add<'a>(&mut self, watch: Watch, all: impl Iterator<Item = Seen<'a>>) {
        let mut found = Found::default();
        for seen in all.filter(|seen| self.means(&watch, seen.sight)) {
            found.set(&seen.sight.at.uid, seen.node);
        }
        self.watches.insert(watch, found);
        self.version += 1;
    }

    /// A pod was seen, is somewhere else, or is nowhere any more.
    pub fn moved(&mut self, seen: Seen<'_>) {
        let Seen { sight, node } = seen;
        let is_new = self.leanings.moved(&sight.at.uid, sight.ties.as_ref(), node);
        // Of a pod that has waited here, all that it asks about know already.
        if is_new && sight.wish.is_none() {
            self.leanings.tell_strange();
        }
        let mut watches = std::mem::take(&mut self.watches);
        for (watch, found) in &mut watches {
            let node = seen.node.filter(|_| self.means(watch, seen.sight));
            self.version += u64::from(found.set(&seen.sight.at.uid, node));
        }
        self.watches = watches;
    }

    /// What is looked at that a pod would be among.
    pub fn touched(&self, sight: &PodSight) -> BTreeSet<Watch> {
        self.watches.keys().filter(|watch| self.means(watch, sight)).cloned().collect()
    }

    /// The rules of other pods that keep such a pod away from them.
    pub fn barred(&self, sight: &PodSight) -> impl Iterator<Item = &Rule> {
        self.watches.keys().filter_map(move |watch| match watch {
            Watch::Carrying(rule) if self.is_meant(rule, sight) => Some(rule),
            _ => None,
        })
    }

    /// What pods that are placed would like of such a one.
    pub fn likings<'a>(&'a self, sight: &'a PodSight) -> impl Iterator<Item = Liking<'a>> {
        let of = self.leanings.of(&sight.labels);
        of.filter(|liking| self.is_meant(liking.rule, sight))
    }

    /// Whether any of them would.
    pub fn is_liked(&self, sight: &PodSight) -> bool {
        self.likings(sight).next().is_some()
    }

    /// Forgets what nobody asks about any more.
    pub fn keep(&mut self, used: &BTreeSet<Watch>) {
        self.watches.retain(|watch, found| {
            let carried = matches!(watch, Watch::Carrying(_)) && !found.members.is_empty();
            carried || used.contains(watch)
        });
    }

    /// Namespaces are told apart by these labels. Returns whether that is news.
    pub fn name(&mut self, namespaces: BTreeMap<Text, Labels>) -> bool {
        let news = self.namespaces != namespaces;
        self.namespaces = namespaces;
        news
    }

    pub fn watches(&self) -> Vec<Watch> {
        self.watches.keys().cloned().collect()
    }

    pub fn means(&self, watch: &Watch, sight: &PodSight) -> bool {
        let ties = sight.ties.as_deref();
        match watch {
            Watch::Matching(all) => all.iter().all(|who| self.matches(who, sight)),
            Watch::Staying(who) => !sight.is_leaving && self.matches(who, sight),
            Watch::Carrying(rule) => ties.is_some_and(|ties| ties.dynamic.away.contains(rule)),
            Watch::Claiming(namespace, claim) => ties.is_some_and(|ties| {
                ties.namespace == *namespace && ties.dynamic.claims.contains(claim)
            }),
            Watch::Class(_) | Watch::Driver(_) => false,
        }
    }

    pub fn matches(&self, who: &Who, sight: &PodSight) -> bool {
        self.selects(&who.pods, &who.namespaces, sight)
    }

    pub fn is_meant(&self, rule: &Rule, sight: &PodSight) -> bool {
        self.selects(&rule.pods, &rule.namespaces, sight)
    }

    fn selects(&self, pods: &Selector, namespaces: &Namespaces, sight: &PodSight) -> bool {
        let none = Labels::default();
        let namespace = sight.at.namespace.as_str();
        let labels = self.namespaces.get(namespace).unwrap_or(&none);
        pods.matches(&sight.labels) && namespaces.contains(namespace, labels)
    }
}
