//! Pools: machines are claimed for jobs that cannot fit what is there, from the offering that
//! costs the least in expectation, and given back when they have been idle.

use super::order::Among;
use super::{Planner, Transaction, bound};
use crate::ix::JobIx;
use crate::shape::{Leaf, Shape};
use crate::state::State;
use berth_model::{Decision, Lifecycle, Name, Offering, Span, Time};

/// Blocked jobs for which machines are considered in one plan.
const JOBS: usize = 64;

impl Planner<'_> {
    pub(super) fn pools(&mut self) {
        if self.state().pools.is_empty() {
            return;
        }
        self.buy_minimum();
        self.buy_for_jobs();
        self.give_back();
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
    fn size(&self, pool: &Name) -> u32 {
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
        for leaf in leaves {
            while looked < JOBS {
                self.claiming = true;
                let next = self.next_of(leaf, Among::All);
                self.claiming = false;
                let Some(job) = next else { break };
                looked += 1;
                self.skipped.insert(job);
                self.buy_for(job);
            }
        }
        self.skipped = skipped;
    }

    fn buy_for(&mut self, job: JobIx) {
        let state = self.state();
        let known = state.jobs.get(job);
        // What a bound keeps from starting needs no machine.
        if !bound(state, job, false).is_empty() {
            return;
        }
        let shape = state.shapes[known.shape.at()].clone();
        let claimed = state.claims.values().filter(|c| c.for_job == Some(known.id)).count() as u32;
        let Some((pool, offering, nodes)) = self.cheapest(job, &shape, claimed) else { return };
        // Places promised before a machine could be there are as good.
        let ready = state.now + offering.boot;
        if state.promises.get(&job).is_some_and(|promised| promised.at <= ready) {
            return;
        }
        let id = known.id;
        if claimed >= nodes {
            self.wake(ready);
            return;
        }
        let decisions: Vec<Decision> =
            (claimed..nodes).map(|_| self.claim_one(&pool, &offering, Some(job))).collect();
        self.transactions.push(Transaction { job: Some(id), decisions });
    }

    /// The offering with the least expected cost that the pool has room for.
    fn cheapest(&self, job: JobIx, shape: &Shape, claimed: u32) -> Option<(Name, Offering, u32)> {
        let state = self.state();
        let mut best: Option<((i128, Span, Name, usize), Offering, u32)> = None;
        for pool in state.pools.values() {
            let room = pool.max.saturating_sub(self.size(&pool.name)) + claimed;
            for (at, offering) in pool.offerings.iter().enumerate() {
                if !on_offer(offering, state.now) {
                    continue;
                }
                let Some(nodes) = nodes_needed(state, job, shape, &pool.labels, offering) else {
                    continue;
                };
                if nodes > room {
                    continue;
                }
                let cost = expected_cost(state, job, offering, nodes);
                let key = (cost, offering.boot, pool.name.clone(), at);
                if best.as_ref().is_none_or(|(other, _, _)| key < *other) {
                    best = Some((key, offering.clone(), nodes));
                }
            }
        }
        best.map(|((_, _, pool, _), offering, nodes)| (pool, offering, nodes))
    }

    fn give_back(&mut self) {
        let state = self.state();
        let mut due: Vec<(Time, Name, Name)> = Vec::new();
        let mut wakes = Vec::new();
        for (_, node) in state.cluster.live() {
            let Some(pool) = node.spec.pool.as_ref().filter(|p| state.pools.contains_key(*p))
            else {
                continue;
            };
            let idle = node.tasks.is_empty() && node.kept.is_empty() && node.open();
            let Some(since) = node.idle_since.filter(|_| idle) else { continue };
            let at = since + state.policy.idle_after;
            if at <= state.now {
                due.push((since, node.spec.name.clone(), pool.clone()));
            } else {
                wakes.push(at);
            }
        }
        due.sort();
        for at in wakes {
            self.wake(at);
        }
        for (_, node, pool) in due {
            let returned =
                self.transactions.iter().flat_map(|t| &t.decisions).filter(
                    |d| matches!(d, Decision::Return { node } if self.in_pool(node, &pool)),
                );
            let left = self.size(&pool) - returned.count() as u32;
            if left > self.state().pools[&pool].min {
                let decisions = vec![Decision::Return { node }];
                self.transactions.push(Transaction { job: None, decisions });
            }
        }
    }

    fn in_pool(&self, node: &Name, pool: &Name) -> bool {
        let cluster = &self.state().cluster;
        cluster.find(node).is_some_and(|ix| cluster.node(ix).spec.pool.as_ref() == Some(pool))
    }
}

pub(crate) fn on_offer(offering: &Offering, now: Time) -> bool {
    offering.unavailable_until.is_none_or(|until| until <= now)
}

/// The boot time of the quickest pool that could serve the job.
pub(crate) fn boot_for(state: &State, job: JobIx) -> Option<Span> {
    let shape = state.shape_of(job);
    let mut best: Option<Span> = None;
    for pool in state.pools.values() {
        for offering in pool.offerings.iter().filter(|o| on_offer(o, state.now)) {
            let nodes = nodes_needed(state, job, shape, &pool.labels, offering);
            if nodes.is_some_and(|nodes| nodes <= pool.max) {
                best = Some(best.map_or(offering.boot, |boot| boot.min(offering.boot)));
            }
        }
    }
    best
}

/// How many machines of an offering the job's minimum needs; nothing if they would not do.
pub(crate) fn nodes_needed(
    state: &State,
    job: JobIx,
    shape: &Shape,
    labels: &std::collections::BTreeMap<Name, Name>,
    offering: &Offering,
) -> Option<u32> {
    let spec = &state.jobs.get(job).spec;
    if spec.lifecycle.is_some_and(|asked| asked != offering.lifecycle)
        || (!spec.preemptible && offering.lifecycle == Lifecycle::Spot)
    {
        return None;
    }
    let mut nodes = 0;
    for leaf in &shape.leaves {
        let each = tasks_per_machine(state, leaf, labels, offering);
        if each == 0 {
            return None;
        }
        nodes += leaf.min.div_ceil(each);
    }
    Some(nodes)
}

fn tasks_per_machine(
    state: &State,
    leaf: &Leaf,
    labels: &std::collections::BTreeMap<Name, Name>,
    offering: &Offering,
) -> u32 {
    let need = &leaf.need;
    let listed = need.models.is_empty()
        || need.models.iter().any(|model| *state.model_name(*model) == offering.model);
    let labelled = leaf.spec.labels.need.iter().all(|(key, value)| {
        labels.get(key) == Some(value) || (key.as_str() == "zone" && *value == offering.zone)
    });
    if !listed || !labelled || offering.memory_per_gpu.0 < need.min_gpu_memory {
        return 0;
    }
    let gpu = leaf.gpu_milli(&state.cluster);
    let mut each = u32::MAX;
    if need.ask.count() > 0 {
        let whole = i64::from(offering.gpus) * 1_000;
        each = each.min(if gpu > 0 { (whole / gpu) as u32 } else { 0 });
    }
    if need.cpu > 0
        && let Some(cpu) = offering.cpu
    {
        each = each.min((cpu.0 / need.cpu) as u32);
    }
    if need.memory > 0
        && let Some(memory) = offering.memory
    {
        each = each.min((memory.0 / need.memory) as u32);
    }
    if each == u32::MAX { leaf.min } else { each }
}

/// Price times nodes times the time they are needed, with restarts after interruptions.
fn expected_cost(state: &State, job: JobIx, offering: &Offering, nodes: u32) -> i128 {
    let known = state.jobs.get(job);
    let run = known.estimate_left();
    // Interruptions per thousand hours of one machine, any of which restarts the gang.
    let hit = i128::from(offering.interruptions) * i128::from(nodes) * i128::from(run.0)
        / (1_000 * 3_600_000);
    let redo = hit * i128::from(known.restart_cost(&state.policy).0);
    let span = i128::from(run.0) + i128::from(offering.boot.0) + redo;
    i128::from(offering.price.0) * i128::from(nodes) * span / 3_600_000
}
