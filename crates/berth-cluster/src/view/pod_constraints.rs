//! Constraints of a pod that depend on other pods and on volumes.

use berth_kube::object::{Pod, Text, VolumeSource};
use berth_kube::pod::interpod::InterPodConstraints;
use berth_kube::pod::node_constraint::NodeConstraint;
use berth_kube::selector::UnsupportedConstraint;
use std::collections::BTreeSet;

/// What a pod makes of others, of its volumes, and of nodes as far as that depends on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodConstraints {
    pub namespace: Text,
    pub dynamic: InterPodConstraints,
    pub constraint: NodeConstraint,
}

impl PodConstraints {
    /// Nothing for a pod without such rules.
    pub fn of(pod: &Pod) -> Result<Option<PodConstraints>, UnsupportedConstraint> {
        let spec = &pod.spec;
        let affinity = spec.affinity.as_deref().is_some_and(|affinity| {
            affinity.pod_affinity.is_some() || affinity.pod_anti_affinity.is_some()
        });
        let is_claim = |source: &VolumeSource| {
            matches!(source, VolumeSource::Claim(_) | VolumeSource::Ephemeral)
        };
        let claims = spec.volumes.iter().any(|volume| is_claim(&volume.source));
        if !affinity && !claims && spec.topology_spread_constraints.is_empty() {
            return Ok(None);
        }
        let dynamic = InterPodConstraints::of(pod)?;
        let dynamic = InterPodConstraints { ports: BTreeSet::new(), ..dynamic };
        let constraint = NodeConstraint::of(spec)?;
        let namespace = pod.metadata.namespace.clone();
        let some = !dynamic.is_empty();
        Ok(some.then_some(PodConstraints { namespace, dynamic, constraint }))
    }
}
