//! The versions of data that nodes keep.

use crate::cluster::Cluster;
use crate::ix::NodeIx;
use berth_model::{Bytes, Name};
use std::collections::{BTreeMap, BTreeSet};

impl Cluster {
    /// A node keeps these versions now, and no others.
    pub fn keep_data(&mut self, ix: NodeIx, data: BTreeMap<Name, Bytes>) {
        let before = std::mem::replace(&mut self.nodes[ix.at()].data, data.clone());
        for name in before.keys().filter(|name| !data.contains_key(*name)) {
            let Some(keepers) = self.keepers.get_mut(name) else { continue };
            keepers.remove(&ix);
            if keepers.is_empty() {
                self.keepers.remove(name);
            }
        }
        for (name, bytes) in data {
            self.keepers.entry(name).or_default().insert(ix, bytes.0);
        }
    }

    /// How many bytes of these versions each node keeps. Nodes with none are left out.
    pub fn kept_of(&self, data: &BTreeSet<Name>) -> BTreeMap<NodeIx, i64> {
        let mut kept: BTreeMap<NodeIx, i64> = BTreeMap::new();
        for (ix, bytes) in data.iter().filter_map(|name| self.keepers.get(name)).flatten() {
            let sum = kept.entry(*ix).or_default();
            *sum = sum.saturating_add(*bytes);
        }
        kept
    }
}
