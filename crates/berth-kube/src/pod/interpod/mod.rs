//! Constraints that depend on what runs elsewhere: affinity to pods, spread, ports, volumes. They
//! are read here and weighed by whoever knows the other pods.

mod disk;
mod port;
mod spread;

pub use disk::disk_amounts;
pub use port::{HostPort, PORT_CAPACITY};
pub use spread::TopologySpread;

use crate::object::{Labels, Pod, PodAffinity, PodTerm, Text, VolumeSource};
use crate::selector::{LabelMatcher, UnsupportedConstraint};
use std::collections::BTreeSet;

/// What a pod makes of other pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct InterPodConstraints {
    /// Must be where such pods are.
    pub affinity: Vec<AffinityTerm>,
    /// Must be where no such pods are.
    pub anti_affinity: Vec<AffinityTerm>,
    /// Should be where such pods are, by weight; a negative weight says where it should not.
    pub preferred: Vec<(i32, AffinityTerm)>,
    pub spread: Vec<TopologySpread>,
    pub ports: BTreeSet<HostPort>,
    /// Claims on volumes in the pod's namespace, whose place binds the pod to nodes or zones.
    pub claims: Vec<Text>,
}

/// Pods of some namespaces, and the label whose value two nodes share when they count as one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AffinityTerm {
    pub pods: LabelMatcher,
    pub namespaces: TermNamespaces,
    pub topology_key: Text,
}

/// Those named and those whose labels match. A term that has neither means the pod's own namespace,
/// which is then among the named.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermNamespaces {
    pub named: BTreeSet<Text>,
    pub matching: LabelMatcher,
}

impl InterPodConstraints {
    pub fn of(pod: &Pod) -> Result<InterPodConstraints, UnsupportedConstraint> {
        let mut constraints = InterPodConstraints {
            ports: HostPort::of(&pod.spec)?,
            ..InterPodConstraints::default()
        };
        if let Some(affinity) = &pod.spec.affinity {
            let none = PodAffinity::default();
            let near = affinity.pod_affinity.as_ref().unwrap_or(&none);
            let away = affinity.pod_anti_affinity.as_ref().unwrap_or(&none);
            constraints.affinity = rules("podAffinity", near, pod)?;
            constraints.anti_affinity = rules("podAntiAffinity", away, pod)?;
            constraints.preferred = wishes("podAffinity", near, pod, 1)?;
            constraints.preferred.extend(wishes("podAntiAffinity", away, pod, -1)?);
            constraints.preferred.sort();
        }
        let spread = pod.spec.topology_spread_constraints.iter();
        constraints.spread =
            spread.map(|written| TopologySpread::of(written, pod)).collect::<Result<_, _>>()?;
        constraints.claims = claims(pod);
        Ok(constraints)
    }

    pub fn is_empty(&self) -> bool {
        *self == InterPodConstraints::default()
    }
}

impl TermNamespaces {
    /// Whether a namespace of that name and with those labels is meant.
    pub fn contains(&self, name: &str, labels: &Labels) -> bool {
        self.named.contains(name) || self.matching.matches(labels)
    }
}

impl AffinityTerm {
    fn of(
        place: &str,
        written: &PodTerm,
        pod: &Pod,
    ) -> Result<AffinityTerm, UnsupportedConstraint> {
        if written.topology_key.is_empty() {
            return Err(UnsupportedConstraint::new(
                place,
                "a term without topologyKey; name a node label",
            ));
        }
        let mut pods = LabelMatcher::of(place, written.label_selector.as_ref())?;
        pods.same_as(&pod.metadata.labels, &written.match_label_keys);
        pods.unlike(&pod.metadata.labels, &written.mismatch_label_keys);
        let mut named: BTreeSet<Text> = written.namespaces.iter().cloned().collect();
        if named.is_empty() && written.namespace_selector.is_none() {
            named.insert(pod.metadata.namespace.clone());
        }
        let matching = LabelMatcher::of(place, written.namespace_selector.as_ref())?;
        let namespaces = TermNamespaces { named, matching };
        Ok(AffinityTerm { pods, namespaces, topology_key: written.topology_key.clone() })
    }
}

fn rules(
    place: &str,
    affinity: &PodAffinity,
    pod: &Pod,
) -> Result<Vec<AffinityTerm>, UnsupportedConstraint> {
    let mut rules = affinity
        .required
        .iter()
        .map(|term| AffinityTerm::of(place, term, pod))
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
) -> Result<Vec<(i32, AffinityTerm)>, UnsupportedConstraint> {
    let wish = affinity.preferred.iter().map(|wish| {
        let weight = wish.weight.saturating_mul(sign);
        Ok((weight, AffinityTerm::of(place, &wish.pod_affinity_term, pod)?))
    });
    wish.collect()
}

fn claims(pod: &Pod) -> Vec<Text> {
    let named = pod.spec.volumes.iter().filter_map(|volume| match &volume.source {
        VolumeSource::Claim(claim) => Some(claim.clone()),
        VolumeSource::Ephemeral => Some(format!("{}-{}", pod.metadata.name, volume.name).into()),
        VolumeSource::Disk(_) | VolumeSource::Other(_) => None,
    });
    let mut claims: Vec<Text> = named.collect();
    claims.sort();
    claims.dedup();
    claims
}

#[cfg(test)]
mod tests;
