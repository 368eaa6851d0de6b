//! Machines that were ordered, came, failed to come and were given back.

use super::{Class, Finding};
use berth_model::{Decision, Lifecycle, Name, NodeSpec, PoolSpec, Snapshot, Time};
use std::collections::{BTreeMap, BTreeSet};

type Offer = (Name, Name, Name, Lifecycle);

#[derive(Default)]
pub(super) struct Claims {
    pools: BTreeMap<Name, PoolSpec>,
    ordered: BTreeMap<Name, Offer>,
    /// Machines that came, with their pool.
    there: BTreeMap<Name, Name>,
    returned: BTreeSet<Name>,
    ever: BTreeSet<Name>,
    sold_out: BTreeMap<Offer, Time>,
}

impl Claims {
    pub fn pool(&mut self, pool: &PoolSpec) {
        self.pools.insert(pool.name.clone(), pool.clone());
    }

    fn size(&self, pool: &Name) -> usize {
        let ordered = self.ordered.values().filter(|(of, ..)| of == pool).count();
        ordered + self.there.values().filter(|of| *of == pool).count()
    }

    pub fn order(&mut self, decision: &Decision, at: Time) -> Result<(), Finding> {
        let Decision::Claim { claim, pool, instance, zone, lifecycle, .. } = decision else {
            return Ok(());
        };
        let Some(spec) = self.pools.get(pool) else {
            return Err(wrong(format!("{claim} is ordered from {pool}, which is not there")));
        };
        let offer = (pool.clone(), instance.clone(), zone.clone(), *lifecycle);
        let sold = |o: &berth_model::Offering| {
            o.instance == *instance && o.zone == *zone && o.lifecycle == *lifecycle
        };
        if !spec.offerings.iter().any(sold) {
            return Err(wrong(format!("{claim} is ordered, and {pool} has no such machine")));
        }
        if self.sold_out.get(&offer).is_some_and(|until| at < *until) {
            return Err(wrong(format!("{claim} is ordered while there are none")));
        }
        if self.size(pool) >= spec.max as usize {
            return Err(wrong(format!("{claim} is one more than {pool} may have")));
        }
        if !self.ever.insert(claim.clone()) {
            return Err(wrong(format!("{claim} is ordered twice")));
        }
        self.ordered.insert(claim.clone(), offer);
        Ok(())
    }

    pub fn came(&mut self, claim: &Name, node: &NodeSpec) -> Result<(), Finding> {
        let Some((pool, ..)) = self.ordered.remove(claim) else {
            return Err(wrong(format!("{claim} came, but Berth had not ordered it")));
        };
        self.there.insert(node.name.clone(), pool);
        Ok(())
    }

    pub fn failed(&mut self, claim: &Name, retry_at: Time) -> Result<(), Finding> {
        let Some(offer) = self.ordered.remove(claim) else {
            return Err(wrong(format!("{claim} is unavailable, but Berth had not ordered it")));
        };
        self.sold_out.insert(offer, retry_at);
        Ok(())
    }

    pub fn give_back(&mut self, node: &Name) -> Result<(), Finding> {
        let Some(pool) = self.there.get(node) else {
            return Err(wrong(format!("{node} is given back and was never bought")));
        };
        if !self.returned.insert(node.clone()) {
            return Err(wrong(format!("{node} is given back twice")));
        }
        let least = self.pools.get(pool).map_or(0, |pool| pool.min as usize);
        let gone = self.returned.iter().filter(|node| self.there.get(*node) == Some(pool)).count();
        match self.size(pool) - gone < least {
            true => Err(wrong(format!("{node} is given back, and {pool} must keep {least}"))),
            false => Ok(()),
        }
    }

    pub fn gone(&mut self, node: &Name) {
        self.there.remove(node);
        self.returned.remove(node);
    }

    /// Whether the state waits for the same machines.
    pub fn agree(&self, snapshot: &Snapshot) -> Result<(), Finding> {
        let theirs: BTreeSet<&Name> = snapshot.claims.iter().map(|claim| &claim.name).collect();
        let ours: BTreeSet<&Name> = self.ordered.keys().collect();
        match theirs == ours {
            true => Ok(()),
            false => Err(wrong(format!("{ours:?} are on their way, and the state has {theirs:?}"))),
        }
    }
}

fn wrong(text: String) -> Finding {
    Finding { class: Class::Claims, text }
}
