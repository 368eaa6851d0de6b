//! Bounds of queues: limits, borrowing, lending, users, budgets. A start that would leave one
//! exceeded is not made, whatever is free.

use crate::amounts::{Amounts, Resource, UNBOUNDED};
use crate::ix::{JobIx, QueueIx};
use crate::state::State;
use berth_ledger::Standing as BudgetStanding;
use berth_model::{Bound, BudgetAction, Milli, Name, Reason};

/// What stands in the way of the job's start, as far as its queues are concerned. `firm`: what it
/// asks for is counted as used already.
pub(crate) fn bound(state: &State, job: JobIx, firm: bool) -> Vec<Reason> {
    let known = state.jobs.get(job);
    let more = if firm { Amounts::default() } else { state.shape_of(job).amounts.clone() };
    let mut found = Vec::new();
    exceeded(state, known.queue, &known.spec.user, &more, &mut found);
    if !known.preemptible() && !crate::fair_share::within_quota(state, known.queue, &more) {
        let queue = state.queues.get(known.queue);
        found.push(Reason::OverQuota {
            queue: queue.spec.name.clone(),
            used: Milli(queue.usage.gpu),
            quota: Milli(queue.quota.gpu.unwrap_or(0)),
            asks: Milli(more.gpu),
        });
    }
    found
}

/// The bounds that so much more would exceed, in the queue and those above it.
pub(crate) fn exceeded(
    state: &State,
    leaf: QueueIx,
    user: &Name,
    more: &Amounts,
    found: &mut Vec<Reason>,
) {
    for ix in state.queues.path(leaf) {
        let queue = state.queues.get(ix);
        let name = &queue.spec.name;
        if let Some(meter) = &queue.budget
            && let BudgetStanding::Spent(BudgetAction::Block | BudgetAction::Pause) =
                meter.standing()
        {
            found.push(Reason::Budget {
                queue: name.clone(),
                limit: meter.budget.limit,
                spent: meter.spent,
            });
        }
        for (resource, limit) in queue.limit.named() {
            check(
                state,
                name,
                Bound::Limit,
                resource,
                queue.usage.get(resource),
                limit,
                more,
                found,
            );
        }
        for (resource, borrow) in queue.borrow.named() {
            let allowed = queue.quota.get(resource).unwrap_or(0).saturating_add(borrow);
            let used = queue.usage.get(resource);
            check(state, name, Bound::Borrow, resource, used, allowed.min(UNBOUNDED), more, found);
        }
        if ix == leaf {
            let used = queue.users.get(user);
            for (resource, limit) in queue.user_limit.named() {
                let used = used.map_or(0, |used| used.get(resource));
                check(state, name, Bound::UserLimit, resource, used, limit, more, found);
            }
        }
    }
    if state.queues.some_lend {
        lending(state, leaf, more, more, found);
    }
}

/// Whether a bound is exceeded with what the job has been given on the draft: what it asks for was
/// counted before, which is less where the size of a share depends on the GPU, or the model on the
/// place.
pub(crate) fn overdraws(state: &State, job: JobIx) -> bool {
    let known = state.jobs.get(job);
    let over = |used: &Amounts, bounds: &crate::amounts::Bounds| {
        bounds.named().any(|(resource, most)| used.get(resource) > most)
    };
    let beyond = state.queues.path(known.queue).any(|ix| {
        let queue = state.queues.get(ix);
        let borrows = queue.borrow.named().any(|(resource, borrow)| {
            let quota = queue.quota.get(resource).unwrap_or(0);
            queue.usage.get(resource) > quota.saturating_add(borrow)
        });
        borrows || over(&queue.usage, &queue.limit)
    });
    let queue = state.queues.get(known.queue);
    let user = queue.users.get(&known.spec.user);
    if beyond || user.is_some_and(|used| over(used, &queue.user_limit)) {
        return true;
    }
    if known.preemptible() && !state.queues.some_lend {
        return false;
    }
    let mut got = Amounts::default();
    known.leases().for_each(|(_, lease)| got.charge(&lease.charge, 1));
    let named = |resource: &Resource| got.get(*resource) > 0;
    let guaranteed = |resource: &Resource| {
        let quota = queue.quota.get(*resource);
        quota.is_none_or(|quota| queue.usage.get(*resource) <= quota)
    };
    if !known.preemptible() && !state.queues.resources.iter().filter(|r| named(r)).all(guaranteed) {
        return true;
    }
    let mut found = Vec::new();
    if state.queues.some_lend {
        lending(state, known.queue, &got, &Amounts::default(), &mut found);
    }
    !found.is_empty()
}

/// The bounds that are exceeded with what the job has just been given on the draft. Which model a
/// job gets, of several that it accepts, is known only then.
pub(crate) fn overdrawn(state: &State, job: JobIx) -> Vec<Reason> {
    let known = state.jobs.get(job);
    let mut got = Amounts::default();
    for (_, lease) in known.leases() {
        got.charge(&lease.charge, 1);
    }
    let mut found = Vec::new();
    for ix in state.queues.path(known.queue) {
        let queue = state.queues.get(ix);
        let borrowed = queue.borrow.named().map(|(resource, borrow)| {
            let quota = queue.quota.get(resource).unwrap_or(0);
            (Bound::Borrow, resource, quota.saturating_add(borrow).min(UNBOUNDED))
        });
        let limits = queue.limit.named().map(|(resource, most)| (Bound::Limit, resource, most));
        for (bound, resource, most) in limits.chain(borrowed) {
            let used = queue.usage.get(resource) - got.get(resource);
            check(state, &queue.spec.name, bound, resource, used, most, &got, &mut found);
        }
    }
    found
}

#[allow(clippy::too_many_arguments, reason = "one row of a table, spelled out")]
fn check(
    state: &State,
    queue: &Name,
    bound: Bound,
    resource: Resource,
    used: i64,
    allowed: i64,
    more: &Amounts,
    found: &mut Vec<Reason>,
) {
    let asks = match resource {
        // A job that takes one of several models is counted when it is placed.
        Resource::Model(_) if more.models.iter().filter(|n| **n > 0).count() > 1 => 0,
        _ => more.get(resource),
    };
    if asks > 0 && used + asks > allowed {
        let scale = |amount: i64| shown(resource, amount);
        found.push(Reason::QueueBound {
            queue: queue.clone(),
            bound,
            resource: resource_name(state, resource),
            used: scale(used),
            allowed: scale(allowed),
            asks: scale(asks),
        });
    }
}

/// An amount as people see it: memory in GiB, in thousandths like everything else.
fn shown(resource: Resource, amount: i64) -> Milli {
    match resource {
        Resource::Memory => Milli((i128::from(amount) * 1_000 / (1 << 30)) as i64),
        _ => Milli(amount),
    }
}

pub(crate) fn resource_name(state: &State, resource: Resource) -> Name {
    match resource {
        Resource::Gpu => Name::new("GPUs"),
        Resource::Cpu => Name::new("CPU cores"),
        Resource::Memory => Name::new("GiB of memory"),
        Resource::Model(model) => Name::from(format!("{} GPUs", state.model_name(model))),
    }
}

/// Whether a start of that size, of which `more` is not counted as used yet, would use quota that
/// another queue keeps to itself.
fn lending(state: &State, leaf: QueueIx, size: &Amounts, more: &Amounts, found: &mut Vec<Reason>) {
    for resource in &state.queues.resources {
        if size.get(*resource) == 0 {
            continue;
        }
        let asks = more.get(*resource);
        let own: Vec<QueueIx> = state.queues.path(leaf).collect();
        let mut kept = 0;
        let mut largest: Option<(i64, Name)> = None;
        let mut siblings = state.queues.roots.clone();
        for step in own.iter().rev() {
            for sibling in siblings.iter().filter(|sibling| *sibling != step) {
                let back = held_back(state, *sibling, *resource);
                if back > 0 && largest.as_ref().is_none_or(|(most, _)| back > *most) {
                    largest = Some((back, state.queues.get(*sibling).spec.name.clone()));
                }
                kept += back;
            }
            siblings = state.queues.get(*step).children.clone();
        }
        let used: i64 = state
            .queues
            .roots
            .iter()
            .map(|root| state.queues.get(*root).usage.get(*resource))
            .sum();
        if let Some((_, queue)) = largest
            && used + asks + kept > state.cluster.capacity.get(*resource)
        {
            // No more can be kept than there is.
            let free = (state.cluster.capacity.get(*resource) - used).max(0);
            let kept = shown(*resource, kept.min(free));
            let resource = match resource {
                Resource::Gpu => Name::default(),
                resource => resource_name(state, *resource),
            };
            found.push(Reason::NotLent { queue, kept, resource });
        }
    }
}

/// Unused quota that a subtree does not lend.
fn held_back(state: &State, ix: QueueIx, resource: Resource) -> i64 {
    let queue = state.queues.get(ix);
    let own = match (queue.quota.get(resource), queue.lend.get(resource)) {
        (Some(quota), Some(lend)) => (quota - lend - queue.usage.get(resource)).max(0),
        _ => 0,
    };
    let below: i64 = queue.children.iter().map(|child| held_back(state, *child, resource)).sum();
    own.max(below)
}
