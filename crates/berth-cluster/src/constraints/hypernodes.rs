//! HyperNodes of Volcano as levels of a topology.

use crate::view::Unschedulable;
use berth_kube::hypernode::{self, HyperNodeTree};
use berth_kube::object::Node;
use berth_model::{Name, Segment, TopologyAsk};
use std::collections::{BTreeMap, BTreeSet};

/// The tiers of HyperNodes that there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tiers {
    tiers: BTreeSet<u32>,
    names: BTreeMap<Name, u32>,
}

impl Tiers {
    pub fn of(tree: &HyperNodeTree) -> Tiers {
        Tiers { tiers: tree.tiers().collect(), names: tree.names.clone() }
    }

    /// As levels of a topology, the largest place first.
    pub fn levels(&self) -> Vec<Name> {
        self.tiers.iter().rev().map(|tier| hypernode::level(*tier)).collect()
    }

    /// The ask with tiers that there are in the place of those that are named by number or by name.
    pub fn place(&self, ask: TopologyAsk) -> Result<TopologyAsk, Unschedulable> {
        let TopologyAsk { within, required, preferred, segment } = ask;
        let required = required.map(|level| self.level(level)).transpose()?.flatten();
        // A pod does not wait for a level that it only prefers.
        let preferred = preferred.and_then(|level| self.level(level).ok().flatten());
        let segment = match segment {
            Some(Segment { size, within }) => {
                self.level(within)?.map(|within| Segment { size, within })
            }
            None => None,
        };
        Ok(TopologyAsk { within, required, preferred, segment })
    }

    /// The highest tier up to one that is named. Above all of them Volcano thinks of one more, which
    /// is the whole cluster: nothing is asked for then.
    fn level(&self, level: Name) -> Result<Option<Name>, Unschedulable> {
        let by_name = || self.names.get(&level).copied();
        let Some(most) = hypernode::tier(&level).or_else(by_name) else { return Ok(Some(level)) };
        match (self.tiers.range(..=most).next_back(), self.tiers.last()) {
            (Some(_), Some(highest)) if most > *highest => Ok(None),
            (Some(tier), _) => Ok(Some(hypernode::level(*tier))),
            (None, _) => Err(Unschedulable::UnknownTier { tier: most }),
        }
    }
}

/// The places of nodes.
#[derive(Debug, Default)]
pub struct Places {
    tree: HyperNodeTree,
    /// Those that are levels for the core.
    tiers: Vec<u32>,
}

impl Places {
    pub fn set_tree(&mut self, tree: HyperNodeTree) {
        self.tree = tree;
    }

    /// Returns whether they are others than before.
    pub fn set_levels(&mut self, levels: &[Name]) -> bool {
        let tiers: Vec<u32> = levels.iter().filter_map(|level| hypernode::tier(level)).collect();
        let is_other = tiers != self.tiers;
        self.tiers = tiers;
        is_other
    }

    /// At each tier the largest HyperNode around a node that is of this one or a lower tier, since
    /// a pod that may be in this tier may be in a lower one. So levels have no gaps.
    pub fn of(&self, node: &Node) -> Vec<(Name, Name)> {
        let (around, _) = self.tree.around(&node.metadata.name, &node.metadata.labels);
        let place = |tier: &u32| {
            let (_, name) = around.range(..=tier).next_back()?;
            Some((hypernode::level(*tier), (*name).clone()))
        };
        self.tiers.iter().filter_map(place).collect()
    }

    /// Says which nodes are in several HyperNodes of one tier.
    pub fn report_overlaps<'a>(&self, nodes: impl Iterator<Item = &'a Node>) {
        let twice = nodes.filter_map(|node| {
            let meta = &node.metadata;
            Some((self.tree.around(&meta.name, &meta.labels).1?, &*meta.name))
        });
        let (mut count, mut first) = (0u32, None);
        for one in twice {
            count += 1;
            first.get_or_insert(one);
        }
        if let Some((tier, node)) = first {
            tracing::warn!(
                nodes = count,
                first = node,
                tier,
                "nodes are in several HyperNodes of one tier, of which the first by name counts"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_kube::hypernode::HyperNode;

    /// Two leaves of tier 1, one of them below a spine of tier 3, and a node that is in the spine
    /// alone.
    fn tree() -> HyperNodeTree {
        let all = [
            (
                "leaf-a",
                r#"{"tier": 1, "tierName": "leaf", "members": [
                {"type": "Node", "selector": {"exactMatch": {"name": "n0"}}}]}"#,
            ),
            (
                "leaf-b",
                r#"{"tier": 1, "members": [
                {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}]}"#,
            ),
            (
                "spine",
                r#"{"tier": 3, "members": [
                {"type": "HyperNode", "selector": {"exactMatch": {"name": "leaf-a"}}},
                {"type": "Node", "selector": {"exactMatch": {"name": "n2"}}}]}"#,
            ),
        ];
        let all = all.map(|(name, spec)| (name, serde_json::from_str::<HyperNode>(spec).unwrap()));
        HyperNodeTree::new(&all.iter().map(|(name, one)| (Name::new(name), one)).collect()).0
    }

    #[test]
    fn a_node_has_a_place_at_every_tier_from_its_lowest_hypernode_on() {
        let mut places = Places::default();
        places.set_tree(tree());
        assert!(places.set_levels(&[3, 2, 1].map(hypernode::level)));
        assert!(!places.set_levels(&[3, 2, 1].map(hypernode::level)));
        let of = |name: &str| {
            let node = serde_json::json!({ "metadata": { "name": name } });
            let places = places.of(&serde_json::from_value(node).unwrap());
            let each = places.iter().map(|(level, name)| {
                format!("{}={name}", hypernode::tier(level).expect("it is a tier"))
            });
            each.collect::<Vec<String>>().join(" ")
        };
        assert_eq!(of("n0"), "3=spine 2=leaf-a 1=leaf-a");
        assert_eq!(of("n1"), "3=leaf-b 2=leaf-b 1=leaf-b");
        assert_eq!(of("n2"), "3=spine");
        assert_eq!(of("n3"), "");
    }

    #[test]
    fn tiers_that_are_asked_for_are_those_that_there_are() {
        let tiers = Tiers::of(&tree());
        assert_eq!(tiers.levels(), [3, 1].map(hypernode::level));
        let required = |level: Name| {
            let ask = TopologyAsk { required: Some(level), ..TopologyAsk::default() };
            tiers.place(ask).map(|ask| ask.required)
        };
        let found = |tier| Ok(Some(hypernode::level(tier)));
        assert_eq!(required(hypernode::level(1)), found(1));
        assert_eq!(required(hypernode::level(2)), found(1));
        assert_eq!(required(hypernode::level(3)), found(3));
        assert_eq!(required(hypernode::level(4)), Ok(None), "that is the whole cluster");
        assert_eq!(required("leaf".into()), found(1));
        assert_eq!(required("rack".into()), Ok(Some("rack".into())), "that is a label");
        let none = Err(Unschedulable::UnknownTier { tier: 0 });
        assert_eq!(required(hypernode::level(0)), none);
        let nowhere = Tiers::default();
        let level = hypernode::level(1);
        let soft = TopologyAsk { preferred: Some(level.clone()), ..TopologyAsk::default() };
        assert_eq!(
            nowhere.place(soft),
            Ok(TopologyAsk::default()),
            "a preferred level does not have to exist"
        );
        let segment = Some(Segment { size: 2, within: level });
        assert!(nowhere.place(TopologyAsk { segment, ..TopologyAsk::default() }).is_err());
    }
}
