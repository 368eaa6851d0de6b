//! Fair shares: what each queue is entitled to right now, from the root down, per resource.

use crate::amounts::{Amounts, Resource, UNBOUNDED};
use crate::ix::QueueIx;
use crate::state::State;
use berth_ledger::credit;
use berth_model::{Milli, Span, Time};
use std::cmp::Ordering;

/// Entitlements of all queues, by ordinal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shares {
    pub fair: Vec<Amounts>,
    pub demand: Vec<Amounts>,
}

/// A share that is used, as a fraction; a queue with no share uses infinitely much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ratio {
    pub used: i64,
    pub share: i64,
}

impl Ratio {
    pub fn cmp(self, other: Ratio) -> Ordering {
        match (self.share > 0, other.share > 0) {
            (true, true) => {
                let left = i128::from(self.used) * i128::from(other.share);
                left.cmp(&(i128::from(other.used) * i128::from(self.share)))
            }
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.used.cmp(&other.used),
        }
    }
}

impl Shares {
    /// Divides the cluster. Credits are left aside to tell what they buy.
    pub fn of(state: &State, with_credits: bool) -> Shares {
        let queues = &state.queues;
        let mut shares = Shares {
            fair: vec![Amounts::default(); queues.all.len()],
            demand: vec![Amounts::default(); queues.all.len()],
        };
        for leaf in queues.leaves() {
            let queue = queues.get(leaf);
            let mut demand = queue.usage.clone();
            for (shape, line) in &queue.pending.shapes {
                let shape = &state.shapes[shape.at()];
                if shape.possible {
                    demand.add(&shape.amounts, i64::from(line.count));
                }
            }
            for up in queues.path(leaf) {
                shares.demand[up.at()].add(&demand, 1);
            }
        }
        for resource in &queues.resources {
            let total = match resource {
                Resource::Gpu | Resource::Model(_) => state.cluster.capacity.get(*resource),
                // CPU and memory that no node bounds are there in any amount.
                _ => state.cluster.capacity.get(*resource).max(
                    queues.roots.iter().filter_map(|r| queues.get(*r).quota.get(*resource)).sum(),
                ),
            };
            divide(state, &mut shares, &queues.roots, total, *resource, with_credits);
        }
        shares
    }

    /// How much of its share a queue uses, by the resource it uses most of.
    pub fn ratio(&self, state: &State, queue: QueueIx) -> Ratio {
        let usage = &state.queues.get(queue).usage;
        let mut worst = Ratio { used: 0, share: 1 };
        for resource in &state.queues.resources {
            let used = usage.get(*resource);
            if used == 0 {
                continue;
            }
            let ratio = Ratio { used, share: self.fair[queue.at()].get(*resource) };
            if ratio.cmp(worst) == Ordering::Greater {
                worst = ratio;
            }
        }
        worst
    }

    /// Whether the queue uses more than its fair share of any resource.
    pub fn over(&self, state: &State, queue: QueueIx) -> bool {
        let usage = &state.queues.get(queue).usage;
        let fair = &self.fair[queue.at()];
        state.queues.resources.iter().any(|r| usage.get(*r) > fair.get(*r))
    }

    /// Whether the fair share of the queue is as large as that.
    pub fn holds(&self, state: &State, queue: QueueIx, amounts: &Amounts) -> bool {
        let fair = &self.fair[queue.at()];
        state.queues.resources.iter().all(|r| asked(amounts, *r) <= fair.get(*r))
    }

    /// Whether the queue would stay within its fair share of everything with that much more.
    pub fn within(&self, state: &State, queue: QueueIx, more: &Amounts) -> bool {
        self.stays_within(state, queue, |r| asked(more, r))
    }

    /// The same, whichever of its models it gets.
    pub fn surely_within(&self, state: &State, queue: QueueIx, more: &Amounts) -> bool {
        self.stays_within(state, queue, |r| more.get(r))
    }

    fn stays_within(&self, state: &State, queue: QueueIx, asks: impl Fn(Resource) -> i64) -> bool {
        let usage = &state.queues.get(queue).usage;
        let fair = &self.fair[queue.at()];
        state.queues.resources.iter().all(|r| match asks(*r) {
            0 => true,
            asks => usage.get(*r) + asks <= fair.get(*r),
        })
    }

    /// The queue's fair share of one resource.
    pub fn fair(&self, queue: QueueIx, resource: Resource) -> i64 {
        self.fair[queue.at()].get(resource)
    }
}

/// What a request means for a resource. Its model is open until it is placed, so only the total
/// counts for a job that takes several.
fn asked(more: &Amounts, resource: Resource) -> i64 {
    match resource {
        Resource::Model(_) if more.is_open() => 0,
        _ => more.get(resource),
    }
}

/// Whether the queue uses more than its quota of any resource.
pub(crate) fn over_quota(state: &State, queue: QueueIx) -> bool {
    let queue = state.queues.get(queue);
    state
        .queues
        .resources
        .iter()
        .any(|r| queue.quota.get(*r).is_some_and(|quota| queue.usage.get(*r) > quota))
}

/// Whether the quota of the queue is as large as that.
pub(crate) fn quota_holds(state: &State, queue: QueueIx, amounts: &Amounts) -> bool {
    let quota = &state.queues.get(queue).quota;
    let holds = |r: &Resource| quota.get(*r).is_none_or(|quota| asked(amounts, *r) <= quota);
    state.queues.resources.iter().all(holds)
}

/// Whether the queue would stay within its quota of everything with that much more.
pub(crate) fn within_quota(state: &State, queue: QueueIx, more: &Amounts) -> bool {
    stays_in_quota(state, queue, |r| asked(more, r))
}

/// The same, whichever of its models it gets.
pub(crate) fn surely_within_quota(state: &State, queue: QueueIx, more: &Amounts) -> bool {
    stays_in_quota(state, queue, |r| more.get(r))
}

fn stays_in_quota(state: &State, queue: QueueIx, asks: impl Fn(Resource) -> i64) -> bool {
    let queue = state.queues.get(queue);
    state.queues.resources.iter().all(|r| match asks(*r) {
        0 => true,
        asks => queue.quota.get(*r).is_none_or(|quota| queue.usage.get(*r) + asks <= quota),
    })
}

struct Part {
    queue: QueueIx,
    quota: i64,
    got: i64,
    most: i64,
}

fn divide(
    state: &State,
    shares: &mut Shares,
    siblings: &[QueueIx],
    total: i64,
    resource: Resource,
    with_credits: bool,
) {
    let queues = &state.queues;
    let mut parts: Vec<Part> = siblings
        .iter()
        .map(|ix| {
            let queue = queues.get(*ix);
            let quota = queue.quota.get(resource).unwrap_or(0);
            let limit = queue.limit.get(resource).unwrap_or(UNBOUNDED);
            let borrow = queue.borrow.get(resource).unwrap_or(UNBOUNDED);
            let most =
                shares.demand[ix.at()].get(resource).min(limit).min(quota.saturating_add(borrow));
            Part { queue: *ix, quota, got: quota.min(most).min(total), most }
        })
        .collect();
    parts.sort_by(|a, b| queues.get(a.queue).spec.name.cmp(&queues.get(b.queue).spec.name));
    let mut rest = total - parts.iter().map(|part| part.got).sum::<i64>();
    if rest < 0 {
        rest = overcommitted(&mut parts, total, resource);
    }
    if with_credits && resource == Resource::Gpu && state.policy.credits {
        for part in &mut parts {
            // As many GPUs as the credit pays for an hour; those it holds, to the end.
            let queue = queues.get(part.queue);
            let held = if queue.credits > 0 { queue.usage.gpu - part.got } else { 0 };
            let paid = (queue.credits / 3_600 / 1_000 * 1_000).max(held);
            let extra = paid.min(part.most - part.got).min(rest).max(0);
            part.got += extra;
            rest -= extra;
        }
    }
    let priority = |part: &Part| {
        let queue = queues.get(part.queue);
        (!queue.is_deprioritized(), queue.spec.priority)
    };
    let mut priorities: Vec<(bool, i32)> = parts.iter().map(priority).collect();
    priorities.sort_unstable_by(|a, b| b.cmp(a));
    priorities.dedup();
    for level in priorities {
        let bucket: Vec<usize> =
            (0..parts.len()).filter(|at| priority(&parts[*at]) == level).collect();
        let by_weight = |parts: &[Part], open: &[usize]| weights(state, parts, open);
        rest = water_fill(&mut parts, &bucket, rest, resource, by_weight);
    }
    for part in &parts {
        let fair = &mut shares.fair[part.queue.at()];
        match resource {
            Resource::Gpu => fair.gpu = part.got,
            Resource::Cpu => fair.cpu = part.got,
            Resource::Memory => fair.memory = part.got,
            Resource::Model(model) => {
                fair.models.resize(fair.models.len().max(model.at() + 1), 0);
                fair.models[model.at()] = part.got;
            }
        }
    }
    for part in parts {
        let children = &queues.get(part.queue).children;
        if !children.is_empty() {
            divide(state, shares, children, part.got, resource, with_credits);
        }
    }
}

/// Quotas that together are more than there is are kept in part, each by as much.
fn overcommitted(parts: &mut [Part], total: i64, resource: Resource) -> i64 {
    let most: Vec<i64> = parts.iter().map(|part| part.most).collect();
    for part in parts.iter_mut() {
        (part.got, part.most) = (0, part.got);
    }
    let all: Vec<usize> = (0..parts.len()).collect();
    let by_quota = |parts: &[Part], open: &[usize]| {
        open.iter().map(|at| i128::from(parts[*at].quota)).collect()
    };
    let rest = water_fill(parts, &all, total, resource, by_quota);
    for (part, most) in parts.iter_mut().zip(most) {
        part.most = most;
    }
    rest
}

/// Divides what is left among some queues by weights, as far as each wants, in whole GPUs;
/// returns what no queue wanted.
fn water_fill(
    parts: &mut [Part],
    bucket: &[usize],
    mut rest: i64,
    resource: Resource,
    weigh: impl Fn(&[Part], &[usize]) -> Vec<i128>,
) -> i64 {
    let unit = match resource {
        Resource::Gpu | Resource::Model(_) => 1_000,
        _ => 1,
    };
    loop {
        let open: Vec<usize> =
            bucket.iter().copied().filter(|at| parts[*at].most > parts[*at].got).collect();
        if open.is_empty() || rest <= 0 {
            return rest;
        }
        let weights = weigh(parts, &open);
        let sum: i128 = weights.iter().sum();
        if sum == 0 {
            return rest;
        }
        let before = rest;
        let mut capped = false;
        let mut remainders: Vec<(i128, usize)> = Vec::with_capacity(open.len());
        for (at, weight) in open.iter().zip(&weights) {
            let exact = i128::from(before) * weight;
            let offered = (exact / sum / i128::from(unit) * i128::from(unit)) as i64;
            let part = &mut parts[*at];
            let taken = offered.min(part.most - part.got);
            capped |= taken < offered;
            part.got += taken;
            rest -= taken;
            remainders.push((exact % (sum * i128::from(unit)), *at));
        }
        if capped {
            continue;
        }
        // Less than a unit for each is left: one unit at a time, by the largest remainder.
        remainders.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        for (_, at) in remainders {
            let part = &mut parts[at];
            let taken = unit.min(part.most - part.got).min(rest);
            part.got += taken;
            rest -= taken;
        }
        // Who wanted less than a whole unit has left the rest of it to the others.
        if rest == before {
            return rest;
        }
    }
}

/// Weights in millionths, corrected by how much each used in the past against its due. The past
/// counts as far as there is one: for as much of it as the cluster in full use would have.
fn weights(state: &State, parts: &[Part], open: &[usize]) -> Vec<i128> {
    const MILLION: i128 = 1_000_000;
    let queue = |at: usize| state.queues.get(parts[at].queue);
    let total: i128 = open.iter().map(|at| i128::from(queue(*at).spec.weight.0)).sum();
    let past: i128 = open.iter().map(|at| i128::from(queue(*at).past_use)).sum();
    let plain: Vec<i128> = open
        .iter()
        .map(|at| i128::from(queue(*at).spec.weight.0) * MILLION / total.max(1))
        .collect();
    if past == 0 || state.policy.past_use.0 == 0 {
        return plain;
    }
    let k = i128::from(state.policy.past_use.0);
    let capacity = Milli(state.cluster.capacity.gpu);
    let full = i128::from(credit::steady(capacity, state.policy.half_life)).max(past);
    let corrected: Vec<i128> = open
        .iter()
        .zip(&plain)
        .map(|(at, due)| {
            let owed = due * past - i128::from(queue(*at).past_use) * MILLION;
            (due + k * owed / full / 1_000).max(0)
        })
        .collect();
    if corrected.iter().sum::<i128>() == 0 { plain } else { corrected }
}

/// Lets past use decay and grow, and credits be earned and spent, up to that time.
pub(crate) fn accrue(state: &mut State, at: Time) {
    let span = at - state.now;
    state.queues.resolve(&state.cluster);
    if state.policy.credits {
        accrue_credits(state, span);
    }
    let half_life = state.policy.half_life;
    for queue in &mut state.queues.all {
        if !queue.removed && (queue.past_use != 0 || queue.usage.gpu != 0) {
            queue.past_use =
                credit::accrue(queue.past_use, Milli(queue.usage.gpu), span, half_life);
        }
    }
}

/// GPUs that leaves hold on credit: beyond their share without it, while others wait for them.
/// Most of the time no queue holds any.
fn on_credit(state: &State) -> Vec<(QueueIx, Milli)> {
    let holds = |leaf: &QueueIx| {
        let queue = state.queues.get(*leaf);
        queue.credits > 0 && queue.usage.gpu > queue.quota.gpu.unwrap_or(0)
    };
    let holders: Vec<QueueIx> = state.queues.leaves().filter(holds).collect();
    if holders.is_empty() {
        return Vec::new();
    }
    let shares = Shares::of(state, false);
    let wants = |leaf: QueueIx| {
        let queue = state.queues.get(leaf);
        !queue.pending.oldest.is_empty() && queue.usage.gpu < shares.fair[leaf.at()].gpu
    };
    let waiting: Vec<QueueIx> = state.queues.leaves().filter(|leaf| wants(*leaf)).collect();
    let mut found = Vec::new();
    for leaf in holders {
        let queue = state.queues.get(leaf);
        let share = shares.fair[leaf.at()].gpu.max(queue.quota.gpu.unwrap_or(0));
        if queue.usage.gpu > share && waiting.iter().any(|other| *other != leaf) {
            found.push((leaf, Milli(queue.usage.gpu - share)));
        }
    }
    found
}

/// When the first queue that holds GPUs on credit has none left.
pub(crate) fn credit_ends(state: &State) -> Option<Time> {
    if !state.policy.credits {
        return None;
    }
    let ends = on_credit(state)
        .into_iter()
        .map(|(leaf, gpus)| state.now + credit::lasts(state.queues.get(leaf).credits, gpus));
    ends.min()
}

fn accrue_credits(state: &mut State, span: Span) {
    let cap_span = state.policy.credit_cap;
    let leaves: Vec<QueueIx> = state.queues.leaves().collect();
    if leaves.iter().any(|leaf| state.queues.get(*leaf).credits > 0) {
        state.refresh();
        for (leaf, gpus) in on_credit(state) {
            let queue = state.queues.get_mut(leaf);
            queue.credits = credit::spend(queue.credits, gpus, span);
        }
    }
    for leaf in leaves {
        let queue = state.queues.get_mut(leaf);
        let Some(quota) = queue.quota.gpu.filter(|quota| *quota < UNBOUNDED) else { continue };
        if queue.usage.gpu < quota {
            let cap = credit::gpu_time(Milli(quota), cap_span);
            let unused = Milli(quota - queue.usage.gpu);
            queue.credits = credit::earn(queue.credits, unused, span, cap);
        }
    }
}
