//! Constraints that depend on what runs elsewhere: affinity to pods, spread, ports, volumes. They
//! are read here and weighed by whoever knows the other pods.

mod disk;
mod port;
mod selector;
mod spread;

pub use disk::disks;
pub use port::{HostPort, PORT_WHOLE};
pub use selector::Selector;
pub use spread::Spread;

use crate::constraint::NotUnderstood;
use crate::object::{Labels, Pod, PodAffinity, PodTerm, Source, Text};
use std::collections::BTreeSet;

/// What a pod makes of other pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Dynamic {
    /// Must be where such pods are.
    pub near: Vec<Rule>,
    /// Must be where no such pods are.
    pub away: Vec<Rule>,
    /// Should be where such pods are, by weight; a negative weight says where it should not.
    pub preferred: Vec<(i32, Rule)>,
    pub spread: Vec<Spread>,
    pub ports: BTreeSet<HostPort>,
    /// Claims on volumes in the pod's namespace, whose place binds the pod to nodes or zones.
    pub claims: Vec<Text>,
}

/// Pods of some namespaces, and the label whose value two nodes share when they count as one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    pub pods: Selector,
    pub namespaces: Namespaces,
    pub topology_key: Text,
}

/// Those named and those whose labels match; the pod's own is named where nothing else is said.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespaces {
    pub named: BTreeSet<Text>,
    pub matching: Selector,
}

impl Dynamic {
    pub fn of(pod: &Pod) -> Result<Dynamic, NotUnderstood> {
        let mut dynamic = Dynamic { ports: HostPort::of(&pod.spec)?, ..Dynamic::default() };
        if let Some(affinity) = &pod.spec.affinity {
            let none = PodAffinity::default();
            let near = affinity.pod_affinity.as_ref().unwrap_or(&none);
            let away = affinity.pod_anti_affinity.as_ref().unwrap_or(&none);
            dynamic.near = rules("podAffinity", near, pod)?;
            dynamic.away = rules("podAntiAffinity", away, pod)?;
            dynamic.preferred = wishes("podAffinity", near, pod, 1)?;
            dynamic.preferred.extend(wishes("podAntiAffinity", away, pod, -1)?);
            dynamic.preferred.sort();
        }
        let spread = pod.spec.topology_spread_constraints.iter();
        dynamic.spread =
            spread.map(|written| Spread::of(written, pod)).collect::<Result<_, _>>()?;
        dynamic.claims = claims(pod);
        Ok(dynamic)
    }

    pub fn is_empty(&self) -> bool {
        *self == Dynamic::default()
    }
}

impl Namespaces {
    /// Whether a namespace of that name and with those labels is meant.
    pub fn contains(&self, name: &str, labels: &Labels) -> bool {
        self.named.contains(name) || self.matching.matches(labels)
    }
}

impl Rule {
    fn of(place: &str, written: &PodTerm, pod: &Pod) -> Result<Rule, NotUnderstood> {
        if written.topology_key.is_empty() {
            return Err(NotUnderstood::new(place, "a term without topologyKey; name a node label"));
        }
        let mut pods = Selector::of(place, written.label_selector.as_ref())?;
        pods.same_as(&pod.metadata.labels, &written.match_label_keys);
        pods.unlike(&pod.metadata.labels, &written.mismatch_label_keys);
        let mut named: BTreeSet<Text> = written.namespaces.iter().cloned().collect();
        if named.is_empty() && written.namespace_selector.is_none() {
            named.insert(pod.metadata.namespace.clone());
        }
        let matching = Selector::of(place, written.namespace_selector.as_ref())?;
        let namespaces = Namespaces { named, matching };
        Ok(Rule { pods, namespaces, topology_key: written.topology_key.clone() })
    }
}

fn rules(place: &str, affinity: &PodAffinity, pod: &Pod) -> Result<Vec<Rule>, NotUnderstood> {
    let mut rules = affinity
        .required
        .iter()
        .map(|term| Rule::of(place, term, pod))
        .collect::<Result<Vec<_>, _>>()?;
    rules.sort();
    rules.dedup();
    Ok(rules)
}

fn wishes(
    place: &str,
    affinity: &PodAffinity,
    pod: &Pod,
    sign: i32,
) -> Result<Vec<(i32, Rule)>, NotUnderstood> {
    let wish = affinity.preferred.iter().map(|wish| {
        let weight = wish.weight.saturating_mul(sign);
        Ok((weight, Rule::of(place, &wish.pod_affinity_term, pod)?))
    });
    wish.collect()
}

fn claims(pod: &Pod) -> Vec<Text> {
    let named = pod.spec.volumes.iter().filter_map(|volume| match &volume.source {
        Source::Claim(claim) => Some(claim.clone()),
        Source::Ephemeral => Some(format!("{}-{}", pod.metadata.name, volume.name).into()),
        Source::Disk(_) | Source::Other(_) => None,
    });
    let mut claims: Vec<Text> = named.collect();
    claims.sort();
    claims.dedup();
    claims
}

#[cfg(test)]
mod tests;
