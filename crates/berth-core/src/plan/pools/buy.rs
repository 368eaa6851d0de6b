//! Claiming machines: up to the minimum of each pool, and for jobs that fit nowhere else.

use crate::ix::{JobIx, NodeIx};
use crate::plan::bounds::bound;
use crate::plan::order::Candidates;
use crate::plan::planner::Planner;
use crate::plan::pools::offering::{expected_cost, machines_for, milli_on, on_offer};
use crate::plan::pools::room::{Room, fill};
use crate::plan::pools::supply::{Machine, Supply};
use crate::shape::Shape;
use crate::shape::leaf::Leaf;
use crate::transaction::Transaction;
use berth_model::{Decision, Name, Offering, Span};

/// Blocked jobs for which machines are considered in one plan.
const MAX_SERVED_JOBS: usize = 64;

impl Planner<'_> {
    pub(crate) fn pools(&mut self) {
        if self.state().pools.is_empty() {
            return;
        }
        self.buy_minimum();
        self.buy_for_jobs();
    }

    fn claim_one(&mut self, pool: &Name, offering: &Offering, job: Option<JobIx>) -> Decision {
        self.claims += 1;
        let id = job.map(|ix| self.state().jobs.get(ix).id);
        Decision::Claim {
            claim: Name::from(format!("{pool}-{}", self.claims)),
            pool: pool.clone(),
            instance: offering.instance.clone(),
            zone: offering.zone.clone(),
            lifecycle: offering.lifecycle,
            for_job: id,
        }
    }

    /// Machines a pool has, and those on their way, in this plan too.
    pub(super) fn size(&self, pool: &Name) -> u32 {
        let state = self.state();
        let nodes = state.cluster.live().filter(|(_, node)| node.spec.pool.as_ref() == Some(pool));
        let claimed = state.claims.values().filter(|claim| claim.pool == *pool);
        let planned =
            self.transactions.iter().flat_map(|t| &t.decisions).filter(
                |decision| matches!(decision, Decision::Claim { pool: of, .. } if of == pool),
            );
        (nodes.count() + claimed.count() + planned.count()) as u32
    }

    fn buy_minimum(&mut self) {
        let short: Vec<(Name, Offering, u32)> = self
            .state()
            .pools
            .values()
            .filter_map(|pool| {
                let missing = pool.min.saturating_sub(self.size(&pool.name));
                let open = pool.offerings.iter().filter(|o| on_offer(o, self.now()));
                let cheapest = open.min_by_key(|offering| offering.price)?;
                (missing > 0).then(|| (pool.name.clone(), cheapest.clone(), missing))
            })
            .collect();
        for (pool, offering, missing) in short {
            let decisions = (0..missing).map(|_| self.claim_one(&pool, &offering, None)).collect();
            self.transactions.push(Transaction { job: None, decisions });
        }
    }

    fn buy_for_jobs(&mut self) {
        let skipped = self.skipped.clone();
        let leaves: Vec<_> = self.state().queues.leaves().collect();
        let mut looked = 0;
        let mut supply = Supply::coming(self.state());
        for leaf in leaves {
            while looked < MAX_SERVED_JOBS {
                self.claiming = true;
                let next = self.next_of(leaf, Candidates::Every);
                self.claiming = false;
                let Some(job) = next else { break };
                looked += 1;
                self.skipped.insert(job);
                self.buy_for(job, &mut supply);
            }
        }
        self.skipped = skipped;
    }

    fn buy_for(&mut self, job: JobIx, supply: &mut Supply) {
        let state = self.state();
        let known = state.jobs.get(job);
        // What a bound keeps from starting needs no machine.
        if !bound(state, job, false).is_empty() {
            return;
        }
        let shape = state.shapes[known.shape.at()].clone();
        let missing = self.missing_machines(job, &shape, supply);
        if missing.iter().all(|n| *n == 0) {
            return;
        }
        let Some((pool, offering, nodes)) = self.cheapest(job, &shape, &missing) else { return };
        // Places promised before a machine could be there are as good.
        let ready = state.now + offering.boot;
        if state.promises.get(&job).is_some_and(|promised| promised.at <= ready) {
            return;
        }
        let id = known.id;
        let mut rooms = vec![Room::of(&offering); nodes as usize];
        let leaves = shape.leaves.iter().zip(&missing);
        for (leaf, n) in leaves {
            let _ = fill(&mut rooms, leaf, milli_on(state, leaf, &offering), *n);
        }
        let labels = state.pools[&pool].labels.clone();
        supply.machines.extend(rooms.into_iter().map(|room| Machine {
            labels: labels.clone(),
            offering: offering.clone(),
            room,
        }));
        let decisions: Vec<Decision> =
            (0..nodes).map(|_| self.claim_one(&pool, &offering, Some(job))).collect();
        self.transactions.push(Transaction { job: Some(id), decisions });
    }

    /// Tasks of each group that neither what is free nor what is being bought will hold.
    fn missing_machines(&self, job: JobIx, shape: &Shape, supply: &mut Supply) -> Vec<u32> {
        let state = self.state();
        // Machines bought for it serve it first, then what is left of others.
        let mut missing = match supply.served.remove(&state.jobs.get(job).id) {
            Some(missing) => missing,
            None => shape.leaves.iter().map(|leaf| leaf.min).collect(),
        };
        for machine in &mut supply.machines {
            machine.serve(state, job, shape, &mut missing);
        }
        let nothing_comes = shape.leaves.iter().zip(&missing).all(|(leaf, n)| leaf.min == *n);
        let mut after_free = missing.clone();
        for (leaf, left) in shape.leaves.iter().zip(&mut after_free) {
            *left -= self.free_now(job, leaf, supply).min(*left);
        }
        // What is free was not enough, whatever the count says: then it is not relied on.
        let counted_wrong = nothing_comes && after_free.iter().all(|n| *n == 0);
        if counted_wrong { missing } else { after_free }
    }

    /// Tasks of the group that free GPUs could hold, as far as counting tells.
    fn free_now(&self, job: JobIx, leaf: &Leaf, supply: &mut Supply) -> u32 {
        let state = self.state();
        let Some(g) = leaf.whole().filter(|_| leaf.countable(&state.cluster)) else { return 0 };
        if leaf.together != crate::shape::leaf::Together::default() || leaf.spread.is_some() {
            return 0;
        }
        let own = self.own_free(job, leaf, g);
        let free = state.cluster.slots(crate::cluster::domain::WHOLE, &leaf.classes, g) + own;
        let taken = supply.free_taken.div_ceil(g);
        let tasks = free.saturating_sub(taken).min(leaf.min);
        supply.free_taken += tasks * g;
        tasks
    }

    /// Tasks that would fit now on nodes where places are promised to the job itself.
    pub(crate) fn own_free(&self, job: JobIx, leaf: &Leaf, g: u32) -> u32 {
        let state = self.state();
        let Some(promised) = state.promises.get(&job) else { return 0 };
        let on = |ix: NodeIx| {
            let node = state.cluster.node(ix);
            let counts = node.indexed.is_none() && leaf.classes.contains(&node.class);
            if counts { (ix, node.free_whole() / g.max(1)) } else { (ix, 0) }
        };
        let mut own: Vec<(NodeIx, u32)> = promised.places.iter().map(|(ix, _)| on(*ix)).collect();
        own.retain(|(_, free)| *free > 0);
        own.sort_unstable();
        own.dedup();
        own.into_iter().map(|(_, free)| free).sum()
    }

    /// The offering with the least expected cost that the pool has room for.
    fn cheapest(&self, job: JobIx, shape: &Shape, n: &[u32]) -> Option<(Name, Offering, u32)> {
        type Rank = (i128, Span, Name, usize);
        let state = self.state();
        let mut best: Option<(Rank, &Offering, u32)> = None;
        for pool in state.pools.values() {
            let room = pool.max.saturating_sub(self.size(&pool.name));
            for (at, offering) in pool.offerings.iter().enumerate() {
                if !on_offer(offering, state.now) {
                    continue;
                }
                let Some(nodes) = machines_for(state, job, shape, n, &pool.labels, offering) else {
                    continue;
                };
                if nodes > room {
                    continue;
                }
                let cost = expected_cost(state, job, offering, nodes);
                let key = (cost, offering.boot, pool.name.clone(), at);
                if best.as_ref().is_none_or(|(other, _, _)| key < *other) {
                    best = Some((key, offering, nodes));
                }
            }
        }
        best.map(|((_, _, pool, _), offering, nodes)| (pool, offering.clone(), nodes))
    }
}
