//! Pools: machines are claimed for jobs that cannot fit what is there, from the offering that
//! costs the least in expectation, and given back when they have been idle.

use crate::cluster::domain::Level;
use crate::ix::{JobIx, NodeIx};
use crate::plan::bounds::bound;
use crate::plan::order::Among;
use crate::plan::planner::Planner;
use crate::shape::Shape;
use crate::shape::leaf::Leaf;
use crate::shape::tree::Tree;
use crate::state::State;
use crate::transaction::Transaction;
use berth_model::{
    Decision, GpuAsk, JobId, Lifecycle, MigProfile, Name, NodeState, Offering, Span, Time,
};
use std::collections::BTreeMap;

/// Blocked jobs for which machines are considered in one plan.
const JOBS: usize = 64;

impl Planner<'_> {
    pub(super) fn pools(&mut self) {
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
        let mut supply = Supply::coming(self.state());
        for leaf in leaves {
            while looked < JOBS {
                self.claiming = true;
                let next = self.next_of(leaf, Among::Every);
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
    pub(super) fn own_free(&self, job: JobIx, leaf: &Leaf, g: u32) -> u32 {
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

    /// Returns what stands idle. It comes after everything that may still use a machine.
    pub(super) fn give_back(&mut self) {
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
            // Those that came first wait for the others.
            if self.completes(pool) {
                continue;
            }
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
            // Those on their way out are counted by nobody any more.
            let leaving = self.state().cluster.live().filter(|(_, node)| {
                node.spec.pool.as_ref() == Some(&pool)
                    && !matches!(node.spec.state, NodeState::Ready | NodeState::Leaving { .. })
            });
            let gone = returned.count() + leaving.count();
            if self.size(&pool).saturating_sub(gone as u32) > self.state().pools[&pool].min {
                let decisions = vec![Decision::Return { node }];
                self.transactions.push(Transaction { job: None, decisions });
            }
        }
    }

    /// Whether machines of the pool are still to come for a job that waits.
    fn completes(&self, pool: &Name) -> bool {
        let state = self.state();
        let waits = |id: &JobId| state.jobs.find(*id).is_some_and(|ix| state.is_waiting(ix));
        let coming = state.claims.values().filter(|claim| claim.pool == *pool);
        let coming = coming.filter_map(|claim| claim.for_job);
        let decided = self.transactions.iter().flat_map(|made| &made.decisions);
        let planned = decided.filter_map(|decision| match decision {
            Decision::Claim { pool: of, for_job, .. } if of == pool => *for_job,
            _ => None,
        });
        coming.chain(planned).any(|id| waits(&id))
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

/// What is left of a machine.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// Thousandths of GPUs.
    gpu: i64,
    cpu: Option<i64>,
    memory: Option<i64>,
}

impl Room {
    fn of(offering: &Offering) -> Room {
        Room {
            gpu: i64::from(offering.gpus) * 1_000,
            cpu: offering.cpu.map(|cpu| cpu.0),
            memory: offering.memory.map(|memory| memory.0),
        }
    }

    /// How many tasks fit; a share of a GPU does not reach over two.
    fn holds(&self, leaf: &Leaf, milli: i64) -> i64 {
        // What else such a machine has nobody says, nor what it will be called.
        if !leaf.need.counted.is_empty() || leaf.nodes.as_ref().is_some_and(|n| n.only.is_some()) {
            return 0;
        }
        let by_gpu = match milli {
            0 => i64::MAX,
            1_000.. => self.gpu / milli,
            share => self.gpu / 1_000 * (1_000 / share) + self.gpu % 1_000 / share,
        };
        let by = |room: Option<i64>, need: i64| match room {
            Some(room) if need > 0 => room / need,
            _ => i64::MAX,
        };
        by_gpu.min(by(self.cpu, leaf.need.cpu)).min(by(self.memory, leaf.need.memory))
    }
}

/// Puts up to `n` tasks into the rooms, in order; returns how many.
fn fill(rooms: &mut [Room], leaf: &Leaf, milli: i64, n: u32) -> u32 {
    let mut left = i64::from(n);
    for room in rooms {
        let take = room.holds(leaf, milli).min(left);
        room.gpu -= milli * take;
        room.cpu = room.cpu.map(|cpu| cpu - leaf.need.cpu * take);
        room.memory = room.memory.map(|memory| memory - leaf.need.memory * take);
        left -= take;
    }
    n - left as u32
}

/// A machine being bought, with what nobody needs of it yet.
struct Machine {
    labels: BTreeMap<Name, Name>,
    offering: Offering,
    room: Room,
}

impl Machine {
    /// Takes as many of the missing tasks as it has room for.
    fn serve(&mut self, state: &State, job: JobIx, shape: &Shape, missing: &mut [u32]) {
        if !serves(state, job, &self.offering) {
            return;
        }
        for (leaf, left) in shape.leaves.iter().zip(missing) {
            let most = tasks_per_machine(state, leaf, &self.labels, &self.offering);
            if most > 0 {
                let milli = milli_on(state, leaf, &self.offering);
                *left -= fill(std::slice::from_mut(&mut self.room), leaf, milli, most.min(*left));
            }
        }
    }
}

/// What blocked jobs can count on without another machine.
struct Supply {
    machines: Vec<Machine>,
    /// What jobs that machines are bought for lack beyond those.
    served: BTreeMap<JobId, Vec<u32>>,
    /// Free GPUs that earlier jobs of the plan count on.
    free_taken: u32,
}

impl Supply {
    fn coming(state: &State) -> Supply {
        let mut machines = Vec::new();
        let mut served: BTreeMap<JobId, Vec<u32>> = BTreeMap::new();
        for claim in state.claims.values() {
            let Some(pool) = state.pools.get(&claim.pool) else { continue };
            let offering = pool.offerings.iter().find(|offering| {
                offering.instance == claim.instance
                    && offering.zone == claim.zone
                    && offering.lifecycle == claim.lifecycle
            });
            let Some(offering) = offering else { continue };
            let mut machine = Machine {
                labels: pool.labels.clone(),
                offering: offering.clone(),
                room: Room::of(offering),
            };
            if let Some(id) = claim.for_job
                && let Some(job) = state.jobs.find(id).filter(|ix| state.is_waiting(*ix))
            {
                let shape = state.shape_of(job);
                let missing = served
                    .entry(id)
                    .or_insert_with(|| shape.leaves.iter().map(|leaf| leaf.min).collect());
                machine.serve(state, job, shape, missing);
            }
            machines.push(machine);
        }
        Supply { machines, served, free_taken: 0 }
    }
}

/// Whether machines of that lifecycle may serve the job at all.
fn serves(state: &State, job: JobIx, offering: &Offering) -> bool {
    let spec = &state.jobs.get(job).spec;
    spec.lifecycle.is_none_or(|asked| asked == offering.lifecycle)
        && (spec.preemptible || offering.lifecycle != Lifecycle::Spot)
}

/// How many machines of an offering the job's minimum needs; nothing if they would not do.
pub(crate) fn nodes_needed(
    state: &State,
    job: JobIx,
    shape: &Shape,
    labels: &BTreeMap<Name, Name>,
    offering: &Offering,
) -> Option<u32> {
    let all: Vec<u32> = shape.leaves.iter().map(|leaf| leaf.min).collect();
    machines_for(state, job, shape, &all, labels, offering)
}

/// How many machines of an offering so many tasks of each group need.
fn machines_for(
    state: &State,
    job: JobIx,
    shape: &Shape,
    tasks: &[u32],
    labels: &BTreeMap<Name, Name>,
    offering: &Offering,
) -> Option<u32> {
    if !serves(state, job, offering) {
        return None;
    }
    let mut rooms: Vec<Room> = Vec::new();
    for (leaf, n) in shape.leaves.iter().zip(tasks).filter(|(_, n)| **n > 0) {
        let each = tasks_per_machine(state, leaf, labels, offering);
        let bound = match leaf.together.required {
            None => false,
            Some(Level::Node | Level::Nvlink) => each < *n,
            // Nobody knows in which rack a machine will stand that does not say so.
            Some(level) => !names(state, labels, level),
        };
        if each == 0 || bound {
            return None;
        }
        // All machines of an offering lie in the same zone, or whatever else they are labelled.
        if leaf.spread.is_some_and(|(level, most)| names(state, labels, level) && *n > most) {
            return None;
        }
        let milli = milli_on(state, leaf, offering);
        let left = n - fill(&mut rooms, leaf, milli, *n);
        let from = rooms.len();
        rooms.extend(std::iter::repeat_n(Room::of(offering), left.div_ceil(each) as usize));
        let _ = fill(&mut rooms[from..], leaf, milli, left);
    }
    let nodes = rooms.len() as u32;
    (!torn(state, &shape.tree, labels, nodes)).then_some(nodes)
}

/// Whether the machines of an offering are known to lie in one domain of the level.
fn names(state: &State, labels: &BTreeMap<Name, Name>, level: Level) -> bool {
    let Level::Label { topology, depth } = level else { return false };
    let Some((_, keys)) = state.cluster.topologies.get(topology as usize) else { return false };
    let known = |key: &Name| labels.contains_key(key) || key.as_str() == "zone";
    keys.iter().take(depth as usize + 1).all(known)
}

/// Whether so many machines could not hold some group of groups, because it must lie in one domain
/// that they are not known to share.
fn torn(state: &State, tree: &Tree, labels: &BTreeMap<Name, Name>, nodes: u32) -> bool {
    let Tree::Group { children, together, .. } = tree else { return false };
    let apart = match together.required {
        None => false,
        Some(Level::Node | Level::Nvlink) => nodes > 1,
        Some(level) => !names(state, labels, level),
    };
    apart || children.iter().any(|child| torn(state, child, labels, nodes))
}

/// What a task takes of the GPUs of such a machine, which may be unlike any that is there; nothing
/// where they cannot give it.
fn milli_on(state: &State, leaf: &Leaf, offering: &Offering) -> i64 {
    match &leaf.need.ask {
        GpuAsk::Mig { profile, count } => {
            let profile = MigProfile::find(&offering.model, profile);
            profile.map_or(0, |profile| {
                let share = profile.milli().max(1_000 / i64::from(profile.at_most.max(1)));
                share * i64::from(*count)
            })
        }
        GpuAsk::Memory { bytes, count } => {
            let has = i128::from(offering.memory_per_gpu.0.max(1));
            let share = (i128::from(bytes.0) * 1_000 + has - 1) / has;
            if share > 1_000 { 0 } else { share as i64 * i64::from(*count) }
        }
        _ => leaf.gpu_milli(&state.cluster),
    }
}

fn tasks_per_machine(
    state: &State,
    leaf: &Leaf,
    labels: &BTreeMap<Name, Name>,
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
    let gpu = milli_on(state, leaf, offering);
    if need.ask.count() > 0 && gpu == 0 {
        return 0;
    }
    let each = Room::of(offering).holds(leaf, gpu);
    let each = u32::try_from(each).unwrap_or(leaf.min);
    match leaf.spread {
        None => each,
        Some((Level::Node | Level::Nvlink, most)) => each.min(most),
        // A machine of which nobody knows where it will stand is of no use to those who must know.
        Some((level, most)) if names(state, labels, level) => each.min(most),
        Some(_) => 0,
    }
}

/// Price times nodes times the time they are needed, with restarts after interruptions.
fn expected_cost(state: &State, job: JobIx, offering: &Offering, nodes: u32) -> i128 {
    let known = state.jobs.get(job);
    let run = known.estimate_left();
    // Interruptions per thousand hours of one machine, any of which restarts the gang.
    let hits = i128::from(offering.interruptions) * i128::from(nodes) * i128::from(run.0);
    let redo = hits * i128::from(known.restart_cost(&state.policy).0) / (1_000 * 3_600_000);
    let span = i128::from(run.0) + i128::from(offering.boot.0) + redo;
    i128::from(offering.price.0) * i128::from(nodes) * span / 3_600_000
}
