//! Topologies of KAI and Kueue, and HyperNodes of Volcano.

use super::{ExternalObject, ExternalObjects};
use crate::constraints::hypernodes::Tiers;
use crate::view::ExternalKind;
use crate::view::ObjectEvent;
use berth_kube::hypernode::{self, HyperNode, HyperNodeTree};
use berth_kube::object::{List, Text};
use berth_model::Name;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A topology as KAI and Kueue describe it: labels of nodes, the largest place first.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Topology {
    spec: TopologySpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct TopologySpec {
    levels: List<TopologyLevel>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TopologyLevel {
    node_label: Text,
}

/// What is read of a HyperNode.
pub(super) fn hypernode(text: &str) -> serde_json::Result<HyperNode> {
    #[derive(Deserialize)]
    struct Object {
        spec: HyperNode,
    }
    Ok(serde_json::from_str::<Object>(text)?.spec)
}

impl ExternalObjects {
    /// All HyperNodes, where they are others than when this was last asked.
    pub fn hypernodes(&mut self) -> Option<HyperNodeTree> {
        if !std::mem::take(&mut self.has_other_hypernodes) {
            return None;
        }
        let all =
            self.of(ExternalKind::HyperNode).filter_map(|((_, _, name), object)| match object {
                ExternalObject::HyperNode(object) => Some((Name::new(name), object)),
                _ => None,
            });
        let (tree, wrong) = HyperNodeTree::new(&all.collect());
        for (name, note) in wrong {
            let key = (ExternalKind::HyperNode, String::new(), name.to_string());
            if let Some((about, _)) = self.objects.get(&key) {
                let (about, note) = (about.clone(), format!("left out: {note}"));
                self.events.push(ObjectEvent { about, reason: "LeftOut", note, dedup_key: None });
            }
        }
        self.tiers = Tiers::of(&tree);
        Some(tree)
    }

    /// The levels of each topology.
    pub(super) fn topologies(&self) -> BTreeMap<Name, Vec<Name>> {
        let described = self.of(ExternalKind::Topology).filter_map(|((_, _, name), object)| {
            let ExternalObject::Topology(topology) = object else { return None };
            // The node itself is always the last level, under a name of its own.
            let levels = topology.spec.levels.iter().map(|level| &*level.node_label);
            let levels = levels.filter(|label| *label != "kubernetes.io/hostname");
            Some((Name::new(name), levels.map(Name::new).collect()))
        });
        let tiers = (Name::new(hypernode::TOPOLOGY), self.tiers.levels());
        described.chain([tiers].into_iter().filter(|(_, levels)| !levels.is_empty())).collect()
    }
}
