//! Fair shares, worked out from the specs alone: the quota as far as there is demand, then credit,
//! then the rest by priority and weight. Only made when a stop claims by it.

use crate::amounts::{Amounts, Resource, UNBOUNDED};
use crate::check::usage::Tree;
use crate::ix::QueueIx;
use crate::queues::Queue;
use crate::state::State;
use berth_model::{GpuAsk, GroupSpec, MigProfile};
use std::collections::BTreeMap;

/// Shares of every queue.
pub(super) struct FairShares {
    of: Vec<BTreeMap<Resource, i64>>,
    /// Jobs in line ask for GPU memory, and what that is of a GPU depends on where they go.
    vague: bool,
}

impl FairShares {
    pub fn of(state: &State, tree: &Tree) -> FairShares {
        let (demand, vague) = demands(state);
        let mut fair = FairShares { of: vec![BTreeMap::new(); state.queues.all.len()], vague };
        for resource in &tree.named {
            let roots = &state.queues.roots;
            let there = state.cluster.capacity.get(*resource);
            let total = match resource {
                Resource::Gpu | Resource::Model(_) => there,
                // Nodes need not say how much CPU and memory they have.
                Resource::Cpu | Resource::Memory => {
                    let quota = |root: &QueueIx| tree.plain[root.at()].quota.get(*resource);
                    there.max(roots.iter().filter_map(quota).sum())
                }
            };
            let mut open: Vec<(&[QueueIx], i64)> = vec![(roots, total)];
            while let Some((siblings, total)) = open.pop() {
                let got = divide(state, tree, &demand, siblings, total, *resource);
                for (ix, got) in siblings.iter().zip(got) {
                    fair.of[ix.at()].insert(*resource, got);
                    open.push((&state.queues.get(*ix).children, got));
                }
            }
        }
        fair
    }

    pub fn get(&self, ix: QueueIx, resource: Resource) -> i64 {
        self.of[ix.at()].get(&resource).copied().unwrap_or(0)
    }

    /// By how much a share may be off, because demand can only be guessed.
    pub const fn slack(&self, resource: Resource) -> i64 {
        match resource {
            Resource::Gpu if !self.vague => 0,
            Resource::Gpu | Resource::Model(_) => 1_000,
            Resource::Cpu | Resource::Memory => 0,
        }
    }
}

/// What queues use, and what the jobs in line ask for that could ever fit.
fn demands(state: &State) -> (Vec<Amounts>, bool) {
    let queues = &state.queues;
    let mut demand = vec![Amounts::default(); queues.all.len()];
    let mut vague = false;
    for (at, queue) in queues.all.iter().enumerate() {
        if queue.removed || !queue.children.is_empty() {
            continue;
        }
        let mut own = queue.usage.clone();
        for (shape, line) in &queue.pending.shapes {
            let shape = &state.shapes[shape.at()];
            if shape.possible {
                let groups = shape.key.groups.iter().flat_map(GroupSpec::leaves);
                for group in groups {
                    vague |= matches!(group.gpus, GpuAsk::Memory { .. });
                    own.add(&minimum(state, group), i64::from(line.count));
                }
            }
        }
        add_up(state, &mut demand, QueueIx(at as u32), &own, 1);
    }
    (demand, vague)
}

fn add_up(state: &State, to: &mut [Amounts], leaf: QueueIx, amounts: &Amounts, times: i64) {
    let mut up = Some(leaf);
    while let Some(ix) = up {
        to[ix.at()].add(amounts, times);
        up = state.queues.get(ix).parent;
    }
}

/// What a group's minimum asks for; of every model it accepts.
fn minimum(state: &State, group: &GroupSpec) -> Amounts {
    let min = i64::from(group.min);
    let each = match &group.gpus {
        GpuAsk::None => 0,
        GpuAsk::Whole { .. } => 1_000,
        GpuAsk::Fraction { milli, .. } => milli.0,
        GpuAsk::Mps { percent, .. } => i64::from(*percent) * 10,
        GpuAsk::TimeSlice { of, .. } => 1_000 / i64::from((*of).max(1)),
        GpuAsk::Mig { profile, .. } => {
            let of = |model: &berth_model::Name| MigProfile::find(model, profile);
            let found = state.cluster.models.iter().find_map(of);
            found.map_or(1_000 / 7, |profile| i64::from(profile.compute) * 1_000 / 7)
        }
        GpuAsk::Memory { bytes, .. } => {
            let classes = state.cluster.classes.iter().flat_map(|class| &class.key.gpus);
            let largest = classes.map(|(_, memory)| *memory).max().unwrap_or(1).max(1);
            (i128::from(bytes.0) * 1_000 / i128::from(largest)) as i64
        }
    };
    let gpu = each * i64::from(group.gpus.count()) * min;
    let mut amounts =
        Amounts { gpu, cpu: group.cpu.0 * min, memory: group.memory.0 * min, models: Vec::new() };
    if gpu > 0 {
        let accepts = |model: &berth_model::Name| {
            group.models.is_empty() || group.models.iter().any(|ask| ask.model == *model)
        };
        let models = state.cluster.models.iter();
        amounts.models = models.map(|model| if accepts(model) { gpu } else { 0 }).collect();
    }
    amounts
}

/// One queue's part in a division among siblings.
struct Part<'a> {
    queue: &'a Queue,
    quota: i64,
    got: i64,
    wants: i64,
}

fn divide(
    state: &State,
    tree: &Tree,
    demand: &[Amounts],
    siblings: &[QueueIx],
    total: i64,
    resource: Resource,
) -> Vec<i64> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    for ix in siblings {
        let plain = &tree.plain[ix.at()];
        let quota = plain.quota.get(resource).unwrap_or(0);
        let borrow = plain.borrow.get(resource).unwrap_or(UNBOUNDED);
        let limit = plain.limit.get(resource).unwrap_or(UNBOUNDED);
        let most = limit.min(quota.saturating_add(borrow));
        let wants = demand[ix.at()].get(resource).min(most);
        let got = quota.min(wants).min(total);
        parts.push(Part { queue: state.queues.get(*ix), quota, got, wants });
    }
    let guaranteed: i64 = parts.iter().map(|part| part.got).sum();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by(|a, b| parts[*a].queue.spec.name.cmp(&parts[*b].queue.spec.name));
    let mut rest = total - guaranteed;
    if rest < 0 {
        // More is promised than there is: all of it goes by quota.
        let wants: Vec<i64> = parts.iter().map(|part| part.wants).collect();
        for part in &mut parts {
            part.wants = part.got;
            part.got = 0;
        }
        let quotas = |parts: &[Part<'_>], open: &[usize]| {
            open.iter().map(|at| i128::from(parts[*at].quota)).collect()
        };
        rest = hand_out(&mut parts, &order, total, resource, &quotas);
        for (part, wants) in parts.iter_mut().zip(wants) {
            part.wants = wants;
        }
    }
    if resource == Resource::Gpu && state.policy.credits {
        for at in &order {
            let part = &mut parts[*at];
            // Credit pays for whole GPUs for an hour at a time, or for what is held to the end.
            let hours = part.queue.credits / 3_600_000;
            let holds = part.queue.usage.gpu - part.got;
            let paid = if part.queue.credits > 0 { (hours * 1_000).max(holds) } else { 0 };
            let more = paid.min(part.wants - part.got).min(rest).max(0);
            part.got += more;
            rest -= more;
        }
    }
    let rank = |at: &usize| {
        let queue = parts[*at].queue;
        (queue.is_deprioritized(), -i64::from(queue.spec.priority))
    };
    order.sort_by_key(rank);
    let alike: Vec<Vec<usize>> =
        order.chunk_by(|a, b| rank(a) == rank(b)).map(<[usize]>::to_vec).collect();
    let weigh = |parts: &[Part<'_>], open: &[usize]| weights(state, parts, open);
    for alike in alike {
        rest = hand_out(&mut parts, &alike, rest, resource, &weigh);
    }
    parts.iter().map(|part| part.got).collect()
}

/// The weights of those parts that still want something.
type Weigh<'a> = dyn Fn(&[Part<'_>], &[usize]) -> Vec<i128> + 'a;

/// Rounds of handing out by weight until all have what they want. In a round in which no queue
/// wants less than its due, the few units that are left go to the largest remainders.
fn hand_out(
    parts: &mut [Part<'_>],
    alike: &[usize],
    mut rest: i64,
    resource: Resource,
    weigh: &Weigh<'_>,
) -> i64 {
    let unit: i128 = match resource {
        Resource::Gpu | Resource::Model(_) => 1_000,
        Resource::Cpu | Resource::Memory => 1,
    };
    loop {
        let open: Vec<usize> =
            alike.iter().copied().filter(|at| parts[*at].got < parts[*at].wants).collect();
        let weights = weigh(parts, &open);
        let sum: i128 = weights.iter().sum();
        if rest <= 0 || sum == 0 {
            return rest;
        }
        let before = rest;
        let dues: Vec<i64> = weights
            .iter()
            .map(|weight| (i128::from(before) * weight / sum / unit * unit) as i64)
            .collect();
        let content = |(at, due): (&usize, &i64)| parts[*at].wants - parts[*at].got < *due;
        let some_content = open.iter().zip(&dues).any(content);
        for (at, due) in open.iter().zip(&dues) {
            let part = &mut parts[*at];
            let more = (*due).min(part.wants - part.got);
            part.got += more;
            rest -= more;
        }
        if some_content {
            continue;
        }
        let left = |n: &usize| i128::from(before) * weights[*n] % (sum * unit);
        let mut last: Vec<usize> = (0..open.len()).collect();
        last.sort_by_key(|n| (std::cmp::Reverse(left(n)), *n));
        for n in last {
            let part = &mut parts[open[n]];
            let more = (unit as i64).min(part.wants - part.got).min(rest);
            part.got += more;
            rest -= more;
        }
        if rest == before {
            return rest;
        }
    }
}

/// Weights in millionths, less for those that used more than their due, more for those with less.
fn weights(state: &State, parts: &[Part<'_>], open: &[usize]) -> Vec<i128> {
    let of = |at: &usize| i128::from(parts[*at].queue.spec.weight.0);
    let past = |at: &usize| i128::from(parts[*at].queue.past_use);
    let all: i128 = open.iter().map(of).sum::<i128>().max(1);
    let due: Vec<i128> = open.iter().map(|at| of(at) * 1_000_000 / all).collect();
    let used: i128 = open.iter().map(past).sum();
    if used == 0 {
        return due;
    }
    let strength = i128::from(state.policy.past_use.0);
    // As long as there is less of a past than a cluster in full use would have, it counts less.
    let gpus = berth_model::Milli(state.cluster.capacity.gpu);
    let full = berth_ledger::credit::steady(gpus, state.policy.half_life);
    let full = used.max(i128::from(full));
    let corrected: Vec<i128> = open
        .iter()
        .zip(&due)
        .map(|(at, due)| {
            let short = due * used - past(at) * 1_000_000;
            (due + strength * short / full / 1_000).max(0)
        })
        .collect();
    if corrected.iter().all(|weight| *weight == 0) { due } else { corrected }
}
