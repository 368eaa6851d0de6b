//! Bounds of queues after a transaction. A bound that was exceeded before is no fault of a start
//! that does not add to it.

use crate::amounts::{Bounds, Resource};
use crate::check::finding::FindingCode;
use crate::check::overlay::Overlay;
use crate::check::place::Fault;
use crate::ix::{JobIx, QueueIx};
use berth_model::{BudgetAction, Name};

/// What the queues of a job that starts, or is firmly promised places, do not allow.
pub(super) fn faults(view: &mut Overlay<'_>, ix: JobIx) -> Vec<Fault> {
    let job = view.base(ix);
    let mut found = Vec::new();
    for queue in view.usage.path(job.queue) {
        found.extend(budget_spent(view, queue));
        found.extend(exceeded(view, queue));
    }
    found.extend(user_exceeded(view, job.queue, &job.spec.user));
    found.extend(not_lent(view, job.queue));
    if !job.spec.preemptible {
        found.extend(over_quota(view, job.queue));
    }
    found
}

fn named(bounds: &Bounds) -> Vec<(Resource, i64)> {
    bounds.named().collect()
}

fn text(
    view: &Overlay<'_>,
    ix: QueueIx,
    what: &str,
    resource: Resource,
    used: i64,
    most: i64,
) -> String {
    let queue = &view.state.queues.get(ix).spec.name;
    let resource = match resource {
        Resource::Gpu => "GPU thousandths".to_owned(),
        Resource::Cpu => "CPU thousandths".to_owned(),
        Resource::Memory => "bytes of memory".to_owned(),
        Resource::Model(model) => format!("{} thousandths", view.state.cluster.models[model.at()]),
    };
    format!("queue {queue} would use {used} {resource}; {what} is {most}")
}

fn exceeded(view: &mut Overlay<'_>, ix: QueueIx) -> Vec<Fault> {
    let plain = &view.usage.tree().plain[ix.at()];
    let limits = named(&plain.limit);
    let borrows: Vec<(Resource, i64)> = named(&plain.borrow)
        .into_iter()
        .map(|(r, borrow)| (r, borrow.saturating_add(plain.quota.get(r).unwrap_or(0))))
        .collect();
    let mut found = Vec::new();
    let each = [
        (FindingCode::Limit, "its limit", limits),
        (FindingCode::Borrow, "its quota and what it may borrow", borrows),
    ];
    for (code, what, bounds) in each {
        for (resource, most) in bounds {
            let used = view.usage.used(ix, resource);
            if view.usage.added(ix, resource) > 0 && used > most {
                found.push((code, text(view, ix, what, resource, used, most)));
            }
        }
    }
    found
}

fn user_exceeded(view: &mut Overlay<'_>, leaf: QueueIx, user: &Name) -> Vec<Fault> {
    let limits = named(&view.usage.tree().plain[leaf.at()].user);
    let mut found = Vec::new();
    for (resource, most) in limits {
        let (used, added) = view.usage.of_user(leaf, user, resource);
        if added > 0 && used > most {
            let what = format!("of which {user} would use {used}; a user's limit");
            found.push((FindingCode::UserLimit, text(view, leaf, &what, resource, used, most)));
        }
    }
    found
}

/// Quota that others keep to themselves must stay free.
fn not_lent(view: &mut Overlay<'_>, leaf: QueueIx) -> Vec<Fault> {
    let tree = view.usage.tree();
    if !tree.some_lend {
        return Vec::new();
    }
    let mut found = Vec::new();
    for resource in tree.named.clone() {
        if view.usage.added(leaf, resource) <= 0 {
            continue;
        }
        let (kept, used) = view.usage.unlent_quota(leaf, resource);
        let has = view.state.cluster.capacity.get(resource);
        if kept > 0 && used + kept > has {
            let what = format!("others keep {kept}, and what is there");
            found.push((FindingCode::NotLent, text(view, leaf, &what, resource, used, has)));
        }
    }
    found
}

fn over_quota(view: &mut Overlay<'_>, leaf: QueueIx) -> Vec<Fault> {
    let tree = view.usage.tree();
    let quota = tree.plain[leaf.at()].quota.clone();
    let mut found = Vec::new();
    for resource in tree.named.clone() {
        let Some(quota) = quota.get(resource) else { continue };
        let used = view.usage.used(leaf, resource) - view.usage.grown(leaf, resource);
        if view.usage.added(leaf, resource) > 0 && used > quota {
            let what = "it cannot be stopped, and the quota";
            found.push((FindingCode::OverQuota, text(view, leaf, what, resource, used, quota)));
        }
    }
    found
}

/// Whether the queue's budget is spent, with the action that follows.
pub(super) fn spent(view: &Overlay<'_>, ix: QueueIx) -> Option<BudgetAction> {
    let meter = view.state.queues.get(ix).budget.as_ref()?;
    (meter.spent >= meter.budget.limit).then_some(meter.budget.action)
}

fn budget_spent(view: &Overlay<'_>, ix: QueueIx) -> Option<Fault> {
    match spent(view, ix)? {
        BudgetAction::Block | BudgetAction::Pause => {
            let name = &view.state.queues.get(ix).spec.name;
            Some((FindingCode::Budget, format!("the budget of queue {name} is spent")))
        }
        BudgetAction::Notify | BudgetAction::LowerPriority => None,
    }
}
