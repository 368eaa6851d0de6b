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
            for (shape, line) in &queue.line.shapes {
                let shape = &state.shapes[shape.at()];
                if shape.possible {
                    demand.add(&shape.amounts, i64::from(line.count));
                }
            }
            for up in queues.path(leaf) {
                shares.demand[up.at()].add(&demand, 1);
            }
        }
        // What is firmly promised is counted as used, and its job is still in line.
        for (ix, promised) in &state.promises {
            if promised.firm && state.is_waiting(*ix) {
                let job = state.jobs.get(*ix);
                for up in queues.path(job.queue) {
                    shares.demand[up.at()].add(&state.shape_of(*ix).amounts, -1);
                }
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
        let usage = &state.queues.get(queue).usage;
        let fair = &self.fair[queue.at()];
        state.queues.resources.iter().all(|r| match asked(more, *r) {
            0 => true,
            asks => usage.get(*r) + asks <= fair.get(*r),
        })
    }
}

/// What a request means for a resource. Its model is open until it is placed, so only the total
/// counts for a job that takes several.
fn asked(more: &Amounts, resource: Resource) -> i64 {
    match resource {
        Resource::Model(_) if more.models.iter().filter(|n| **n > 0).count() > 1 => 0,
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

/// Whether the queue would stay within its quota of everything with that much more.
pub(crate) fn within_quota(state: &State, queue: QueueIx, more: &Amounts) -> bool {
    let queue = state.queues.get(queue);
    state.queues.resources.iter().all(|r| match asked(more, *r) {
        0 => true,
        asks => queue.quota.get(*r).is_none_or(|quota| queue.usage.get(*r) + asks <= quota),
    })
}

struct Part {
    queue: QueueIx,
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
            Part { queue: *ix, got: quota.min(most).min(total), most }
        })
        .collect();
    parts.sort_by(|a, b| queues.get(a.queue).spec.name.cmp(&queues.get(b.queue).spec.name));
    let mut rest = (total - parts.iter().map(|part| part.got).sum::<i64>()).max(0);
    if with_credits && resource == Resource::Gpu && state.policy.credits {
        for part in &mut parts {
            // As many GPUs as the credit pays for an hour.
            let queue = queues.get(part.queue);
            let paid = (queue.credits / 3_600 / 1_000 * 1_000).max(0);
            let extra = paid.min(part.most - part.got).min(rest).max(0);
            part.got += extra;
            rest -= extra;
        }
    }
    let mut priorities: Vec<i32> =
        parts.iter().map(|part| queues.get(part.queue).spec.priority).collect();
    priorities.sort_unstable_by(|a, b| b.cmp(a));
    priorities.dedup();
    for priority in priorities {
        let bucket: Vec<usize> = (0..parts.len())
            .filter(|at| queues.get(parts[*at].queue).spec.priority == priority)
            .collect();
        rest = surplus(state, &mut parts, &bucket, rest, resource);
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

/// Divides what is left among queues of one priority, by weight corrected by past use, in whole
/// GPUs; returns what nobody wanted.
fn surplus(
    state: &State,
    parts: &mut [Part],
    bucket: &[usize],
    mut rest: i64,
    resource: Resource,
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
        let weights = weights(state, parts, &open);
        let sum: i128 = weights.iter().sum();
        if sum == 0 {
            return rest;
        }
        let before = rest;
        let mut remainders: Vec<(i128, usize)> = Vec::with_capacity(open.len());
        for (at, weight) in open.iter().zip(&weights) {
            let exact = i128::from(before) * weight;
            let offered = (exact / sum / i128::from(unit) * i128::from(unit)) as i64;
            let part = &mut parts[*at];
            let taken = offered.min(part.most - part.got);
            part.got += taken;
            rest -= taken;
            remainders.push((exact % (sum * i128::from(unit)), *at));
        }
        if rest == before {
            // Less than a unit for each: one unit at a time, by the largest remainder.
            remainders.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
            for (_, at) in remainders {
                let part = &mut parts[at];
                let taken = unit.min(part.most - part.got).min(rest);
                part.got += taken;
                rest -= taken;
                if rest == 0 {
                    break;
                }
            }
            return rest;
        }
    }
}

/// Weights in millionths, corrected by how much each used in the past against its due.
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
    let corrected: Vec<i128> = open
        .iter()
        .zip(&plain)
        .map(|(at, due)| {
            let used = i128::from(queue(*at).past_use) * MILLION / past;
            (due + k * (due - used) / 1_000).max(0)
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

fn accrue_credits(state: &mut State, span: Span) {
    let cap_span = state.policy.credit_cap;
    let leaves: Vec<QueueIx> = state.queues.leaves().collect();
    // Spending needs the shares without credit; most of the time nobody spends.
    let spends = leaves.iter().any(|leaf| {
        let queue = state.queues.get(*leaf);
        queue.credits > 0 && queue.usage.gpu > queue.quota.gpu.unwrap_or(0)
    });
    let shares = spends.then(|| {
        state.refresh();
        Shares::of(state, false)
    });
    for leaf in &leaves {
        let queue = state.queues.get(*leaf);
        let Some(quota) = queue.quota.gpu.filter(|quota| *quota < UNBOUNDED) else { continue };
        let (used, credits) = (queue.usage.gpu, queue.credits);
        let after = if used < quota {
            let cap = credit::gpu_time(Milli(quota), cap_span);
            credit::earn(credits, Milli(quota - used), span, cap)
        } else if let (Some(shares), true) = (&shares, credits > 0) {
            let beyond = used - shares.fair[leaf.at()].gpu.max(quota);
            let wanted = leaves.iter().any(|other| {
                other != leaf
                    && !state.queues.get(*other).line.oldest.is_empty()
                    && state.queues.get(*other).usage.gpu < shares.fair[other.at()].gpu
            });
            if beyond > 0 && wanted { credit::spend(credits, Milli(beyond), span) } else { credits }
        } else {
            credits
        };
        state.queues.get_mut(*leaf).credits = after;
    }
}
