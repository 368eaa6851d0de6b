//! Where a volume can be used: by its rule about nodes, and by the zones its labels name.

use berth_kube::object::{Labels, PersistentVolume};
use berth_kube::pod::node_constraint::{self, NodeSelection};

/// Labels that say where a volume or a node is, each with the name it has on nodes of today.
const PLACES: [(&str, &str); 4] = [
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
];

/// Between the zones of a volume that is in several.
const BETWEEN: &str = "__";

/// Whether a volume can be used on a node. What is not understood cannot.
pub fn reaches(volume: &PersistentVolume, node: &node_constraint::NodeView<'_>) -> bool {
    let affinity = volume.spec.node_affinity.as_ref();
    let by_rule = match affinity.and_then(|affinity| affinity.required.as_ref()) {
        None => true,
        Some(selector) => NodeSelection::of_volume(selector).is_ok_and(|there| there.allows(node)),
    };
    by_rule && is_in_zone(&volume.metadata.labels, node.labels)
}

/// Whether a node is where the labels of a volume say that it is. In a cluster without zones no
/// node says where it is, and each will do.
fn is_in_zone(volume: &Labels, node: &Labels) -> bool {
    let mut asked = PLACES.iter().filter_map(|(key, today)| Some((key, today, volume.get(key)?)));
    let Some(first) = asked.next() else { return true };
    if !PLACES.iter().any(|(key, _)| node.contains(key)) {
        return true;
    }
    std::iter::once(first).chain(asked).all(|(key, today, zones)| {
        // A label that names no zone says nothing, as for kube-scheduler.
        if zones.split(BETWEEN).any(|zone| zone.trim().is_empty()) {
            return true;
        }
        let here = node.get(key).or_else(|| node.get(today));
        here.is_some_and(|here| zones.split(BETWEEN).any(|zone| zone.trim() == &**here))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ZONE: &str = "topology.kubernetes.io/zone";
    const REGION: &str = "topology.kubernetes.io/region";
    const OLD_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
    const OLD_REGION: &str = "failure-domain.beta.kubernetes.io/region";

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| (*key, (*value).into())).collect()
    }

    fn is_used(volume: &[(&str, &str)], node: &[(&str, &str)]) -> bool {
        is_in_zone(&labels(volume), &labels(node))
    }

    #[test]
    fn a_volume_is_used_in_its_zone_and_region_alone() {
        let volume = [(ZONE, "z1"), (REGION, "west")];
        assert!(is_used(&volume, &[(ZONE, "z1"), (REGION, "west")]));
        assert!(!is_used(&volume, &[(ZONE, "z2"), (REGION, "west")]));
        assert!(!is_used(&volume, &[(ZONE, "z1"), (REGION, "east")]));
        assert!(!is_used(&volume, &[(ZONE, "z1")]), "nothing says that it is in the region");
        assert!(is_used(&[("app", "db")], &[(ZONE, "z1")]), "other labels say nothing of places");
    }

    #[test]
    fn a_volume_of_several_zones_is_used_in_each_of_them() {
        let volume = [(ZONE, "z1__z3")];
        assert!(is_used(&volume, &[(ZONE, "z1")]));
        assert!(!is_used(&volume, &[(ZONE, "z2")]));
        assert!(is_used(&volume, &[(ZONE, "z3")]));
        assert!(is_used(&[(ZONE, "z1__")], &[(ZONE, "z2")]), "such a label is passed over");
    }

    #[test]
    fn the_old_labels_of_a_volume_mean_the_new_ones_of_nodes_as_well() {
        assert!(is_used(&[(OLD_ZONE, "z1")], &[(ZONE, "z1")]));
        assert!(!is_used(&[(OLD_ZONE, "z1")], &[(ZONE, "z2")]));
        assert!(!is_used(&[(OLD_REGION, "west")], &[(REGION, "east")]));
        assert!(is_used(&[(OLD_ZONE, "z1")], &[(OLD_ZONE, "z1"), (ZONE, "z2")]));
        assert!(!is_used(&[(ZONE, "z1")], &[(OLD_ZONE, "z1")]), "but not the other way round");
    }

    #[test]
    fn a_node_that_says_nothing_of_where_it_is_takes_volumes_of_every_zone() {
        assert!(is_used(&[(ZONE, "z1")], &[]));
        assert!(is_used(&[(ZONE, "z1")], &[("kubernetes.io/hostname", "a")]));
        assert!(!is_used(&[(ZONE, "z1")], &[(REGION, "west")]));
    }

    #[test]
    fn both_the_rule_of_a_volume_and_its_labels_have_to_allow_a_node() {
        let volume: PersistentVolume = serde_json::from_value(json!({
            "metadata": { "name": "v", "labels": { ZONE: "z1" } },
            "spec": { "nodeAffinity": { "required": { "nodeSelectorTerms": [{
                "matchExpressions": [{ "key": "rack", "operator": "In", "values": ["r1"] }],
            }] } } },
        }))
        .unwrap();
        let reaches = |zone: &str, rack: &str| {
            let labels = json!({ ZONE: zone, "rack": rack });
            let node = json!({ "metadata": { "name": "n", "labels": labels } });
            let node: berth_kube::object::Node = serde_json::from_value(node).unwrap();
            reaches(&volume, &node_constraint::NodeView::from(&node))
        };
        assert!(reaches("z1", "r1"));
        assert!(!reaches("z1", "r2"));
        assert!(!reaches("z2", "r1"));
    }
}
