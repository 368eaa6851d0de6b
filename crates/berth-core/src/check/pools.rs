//! Buying machines and giving them back.

use crate::check::finding::FindingCode;
use crate::check::overlay::Overlay;
use crate::check::place::Fault;
use crate::state::State;
use berth_model::{Decision, Name, NodeState};
use std::collections::{BTreeMap, BTreeSet};

/// What a pool has, with what the plan adds and gives back.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    /// Machines that are there in whatever state, and those being bought: what is paid for.
    all: u32,
    /// Those of them that take or will take work.
    open: u32,
}

/// Pools as the plan changes them; counted when it first does.
#[derive(Debug, Default)]
pub(super) struct Pools {
    sizes: Option<BTreeMap<Name, Size>>,
    claimed: BTreeSet<Name>,
    returned: BTreeSet<Name>,
}

/// What one transaction does to the pools; it counts only if the transaction passes.
#[derive(Debug, Default)]
pub(super) struct PoolChanges {
    bought: Vec<(Name, Name)>,
    returned: Vec<(Name, Name)>,
}

impl Pools {
    /// There is no count of nodes by pool in the state, so this is one pass over the nodes, made
    /// only for a plan that buys or returns.
    fn size(&mut self, state: &State, pool: &Name) -> Size {
        let sizes = self.sizes.get_or_insert_with(|| {
            let mut sizes: BTreeMap<Name, Size> = BTreeMap::new();
            for node in state.cluster.nodes.iter().filter(|node| !node.removed) {
                let Some(pool) = &node.spec.pool else { continue };
                let size = sizes.entry(pool.clone()).or_default();
                size.all += 1;
                let open = matches!(node.spec.state, NodeState::Ready | NodeState::Leaving { .. });
                size.open += u32::from(open);
            }
            for claim in state.claims.values() {
                let size = sizes.entry(claim.pool.clone()).or_default();
                size.all += 1;
                size.open += 1;
            }
            sizes
        });
        sizes.get(pool).copied().unwrap_or_default()
    }

    pub fn claim(
        &mut self,
        view: &Overlay<'_>,
        trade: &mut PoolChanges,
        decision: &Decision,
    ) -> Vec<Fault> {
        let Decision::Claim { claim, pool, instance, zone, lifecycle, for_job } = decision else {
            return Vec::new();
        };
        let state = view.state;
        let Some(spec) = state.pools.get(pool) else {
            return vec![(FindingCode::Unknown, format!("there is no pool {pool}"))];
        };
        let mut found = Vec::new();
        if for_job.is_some_and(|id| state.jobs.find(id).is_none()) {
            found.push((FindingCode::Unknown, "a machine is bought for no job".to_owned()));
        }
        let taken = state.claims.contains_key(claim)
            || self.claimed.contains(claim)
            || trade.bought.iter().any(|(other, _)| other == claim);
        if taken {
            found.push((FindingCode::Claim, format!("there is a claim {claim} already")));
        }
        let offered = spec.offerings.iter().any(|offering| {
            offering.instance == *instance
                && offering.zone == *zone
                && offering.lifecycle == *lifecycle
                && offering.unavailable_until.is_none_or(|until| until <= state.now)
        });
        if !offered {
            let text = format!("pool {pool} does not offer {instance} in {zone} now");
            found.push((FindingCode::Claim, text));
        }
        trade.bought.push((claim.clone(), pool.clone()));
        let bought = trade.bought.iter().filter(|(_, of)| of == pool).count() as u32;
        if self.size(state, pool).all + bought > spec.max {
            let text = format!("pool {pool} would have more than {} machines", spec.max);
            found.push((FindingCode::PoolFull, text));
        }
        found
    }

    pub fn give_back(
        &mut self,
        view: &mut Overlay<'_>,
        trade: &mut PoolChanges,
        name: &Name,
    ) -> Vec<Fault> {
        let state = view.state;
        let Some(ix) = state.cluster.find(name) else {
            return vec![(FindingCode::Unknown, format!("there is no node {name}"))];
        };
        let node = state.cluster.node(ix);
        let spec = node.spec.pool.as_ref().and_then(|pool| state.pools.get(pool));
        let Some(pool) = spec else {
            return vec![(FindingCode::Return, format!("{name} belongs to no pool"))];
        };
        let mut found = Vec::new();
        let now = view.node(ix);
        if !now.tasks.is_empty() || !now.kept.is_empty() {
            found.push((FindingCode::Return, format!("{name} is in use or promised")));
        }
        let twice = self.returned.contains(name) || trade.returned.iter().any(|(n, _)| n == name);
        if twice || !matches!(node.spec.state, NodeState::Ready | NodeState::Leaving { .. }) {
            found.push((FindingCode::Return, format!("{name} is on its way out already")));
        }
        trade.returned.push((name.clone(), pool.name.clone()));
        let gone = trade.returned.iter().filter(|(_, of)| *of == pool.name).count() as u32;
        let bought = trade.bought.iter().filter(|(_, of)| *of == pool.name).count() as u32;
        if self.size(state, &pool.name).open + bought < pool.min + gone {
            let text = format!("pool {} would have fewer than {} machines", pool.name, pool.min);
            found.push((FindingCode::PoolShort, text));
        }
        found
    }

    /// Whether the plan gives the node back.
    pub fn returns(&self, trade: &PoolChanges, name: &Name) -> bool {
        self.returned.contains(name) || trade.returned.iter().any(|(other, _)| other == name)
    }

    pub fn commit(&mut self, trade: PoolChanges) {
        for (claim, pool) in trade.bought {
            self.claimed.insert(claim);
            if let Some(sizes) = &mut self.sizes {
                let size = sizes.entry(pool).or_default();
                size.all += 1;
                size.open += 1;
            }
        }
        for (node, pool) in trade.returned {
            self.returned.insert(node);
            if let Some(sizes) = &mut self.sizes {
                sizes.entry(pool).or_default().open -= 1;
            }
        }
    }
}
