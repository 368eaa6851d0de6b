//! What a job is expected to cost.

use berth_core::State;
use berth_engine::{Core, LiveJob, clock};
use berth_ledger::cost::cumulative;
use berth_model::{GroupSpec, JobKind, Micros, Name, Span};

/// What it will have cost when it ends as expected. Its own budget ends it earlier. A service without
/// a time limit has no expected end.
pub fn cost(core: &Core, live: &LiveJob) -> Option<Micros> {
    if is_endless(live) {
        return None;
    }
    let cost = unbounded(core, live)?;
    Some(live.budget().map_or(cost, |budget| cost.min(budget)))
}

fn is_endless(live: &LiveJob) -> bool {
    match live.detail.time_limit {
        None => live.row.kind == JobKind::Service,
        // Also of pods that name no limit.
        Some(limit) => {
            limit.is_unlimited() && (live.row.kind == JobKind::Service || is_of_pods(live))
        }
    }
}

fn is_of_pods(live: &LiveJob) -> bool {
    !live.detail.workload.pods().is_empty()
}

fn unbounded(core: &Core, live: &LiveJob) -> Option<Micros> {
    let id = live.row.id;
    if live.leases.is_empty() {
        let price = asking_price(&core.state, core.state.asks_of(id)?)?;
        return Some(live.row.cost + cumulative(price, core.state.estimate(id)?));
    }
    let price = live.price();
    if price <= Micros::ZERO {
        return None;
    }
    let now = clock::now();
    let left = match core.state.progress(id).and_then(|progress| progress.ends) {
        Some(ends) => (ends - now).max(Span::ZERO),
        None => core.state.estimate(id)?,
    };
    Some(core.cost(live, now) + cumulative(price, left))
}

/// What an hour of the cheapest GPUs it takes costs, where they have a price.
pub fn asking_price(state: &State, groups: &[GroupSpec]) -> Option<Micros> {
    let prices = state.prices();
    if prices.is_empty() {
        return None;
    }
    let mut sum = 0;
    for group in groups {
        let gpus = i64::from(group.gpus.count()) * i64::from(group.count);
        if gpus == 0 {
            continue;
        }
        let named: Vec<&Name> = group.models.iter().map(|ask| &ask.model).collect();
        let there = match named.is_empty() {
            true => state.gpu_models().keys().filter_map(|model| prices.get(model)).min(),
            false => named.into_iter().filter_map(|model| prices.get(model)).min(),
        };
        sum += there?.0 * gpus;
    }
    Some(Micros(sum))
}
