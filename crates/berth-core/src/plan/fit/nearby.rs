//! Where a group may lie because of other jobs.

use crate::cluster::domain::Level;
use crate::ix::{JobIx, NodeIx};
use crate::shape::leaf::Leaf;
use crate::state::State;
use berth_model::{JobId, JobTarget, Name};
use std::collections::BTreeSet;

/// Where a group may lie because of other jobs.
pub(crate) struct Nearby {
    /// Each wish with the domains (or nodes) the other jobs are in.
    wishes: Vec<(Level, bool, BTreeSet<u32>)>,
}

impl Nearby {
    pub fn of(state: &State, leaf: &Leaf, own: JobIx) -> Nearby {
        let mut wishes = Vec::new();
        for ask in &leaf.near {
            let mut found = BTreeSet::new();
            for id in targets(state, &ask.target) {
                let Some(ix) = state.jobs.find(id).filter(|ix| *ix != own) else { continue };
                for (_, lease) in state.jobs.get(ix).leases() {
                    found.extend(place_of(state, ask.level, lease.node));
                }
            }
            wishes.push((ask.level, ask.away, found));
        }
        Nearby { wishes }
    }

    /// Whether every job it must be near to runs somewhere.
    pub fn runs(&self) -> bool {
        self.wishes.iter().all(|(_, away, found)| *away || !found.is_empty())
    }

    pub fn admits(&self, state: &State, node: NodeIx) -> bool {
        self.wishes.iter().all(|(level, away, found)| {
            let here = place_of(state, *level, node);
            let there = here.is_some_and(|here| found.contains(&here));
            there != *away
        })
    }
}

fn place_of(state: &State, level: Level, node: NodeIx) -> Option<u32> {
    match level {
        Level::Node | Level::Nvlink => Some(node.0),
        Level::Label { topology, depth } => {
            state.cluster.domain_of(node, topology, depth).map(|domain| domain.0)
        }
    }
}

fn targets(state: &State, target: &JobTarget) -> Vec<JobId> {
    match target {
        JobTarget::Name(name) => {
            let from = (name.clone(), Name::default());
            let named = state.named.range(from..).take_while(|((n, _), _)| n == name);
            named.flat_map(|(_, ids)| ids.iter().copied()).collect()
        }
        JobTarget::Label { key, value } => state
            .labelled
            .get(&(key.clone(), value.clone()))
            .map(|ids| ids.iter().copied().collect())
            .unwrap_or_default(),
    }
}
