//! The kinds of GPUs that managed jobs can have on some node.

use super::{Nodes, Offer, devices};
use berth_kube::pod::requests::GpuUnit;
use berth_model::{Division, GpuAsk, Name};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

impl Nodes {
    /// The kinds of GPUs that jobs of our own can have.
    pub fn kinds(&self) -> BTreeSet<Name> {
        let pieces = self.offers.keys().filter_map(Offer::piece);
        pieces.filter_map(|piece| devices::kind(&piece)).collect()
    }

    /// One share of each model that is handed out several times over, the most frequent kind first.
    pub fn shares(&self) -> Vec<(Name, GpuAsk)> {
        let mut shares: BTreeMap<(GpuAsk, Name), usize> = BTreeMap::new();
        for (offer, nodes) in &self.offers {
            let Some(share @ (GpuAsk::TimeSlice { .. } | GpuAsk::Mps { .. })) = offer.piece()
            else {
                continue;
            };
            let gpus = nodes.iter().filter_map(|name| self.nodes.get(name));
            for gpu in gpus.flat_map(|node| &node.view.spec.gpus) {
                let is_shared =
                    matches!(gpu.division, Some(Division::TimeSlice { .. } | Division::Mps { .. }));
                if is_shared {
                    *shares.entry((share.clone(), gpu.model.clone())).or_default() += 1;
                }
            }
        }
        let mut shares: Vec<_> = shares.into_iter().collect();
        shares.sort_by_key(|(_, count)| Reverse(*count));
        shares.into_iter().map(|((share, model), _)| (model, share)).collect()
    }

    /// Whether one `nvidia.com/gpu` is less than a GPU somewhere.
    pub fn has_parts_as_gpus(&self) -> bool {
        let is_part = |offer: &Offer| matches!(offer, Offer::Gpu(unit) if *unit != GpuUnit::Whole);
        self.offers.keys().any(is_part)
    }
}
