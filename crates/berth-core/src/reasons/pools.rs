//! Machines that are being bought for a job, or could be.

use crate::ix::JobIx;
use crate::plan::pools::offering::{nodes_needed, on_offer};
use crate::state::State;
use berth_model::{Pass, Reason};

pub(super) fn reasons(state: &State, job: JobIx) -> Vec<Reason> {
    let id = state.jobs.get(job).id;
    let mut claims = 0;
    let mut ready = state.now;
    for claim in state.claims.values().filter(|claim| claim.for_job == Some(id)) {
        claims += 1;
        let boot = state.pools.get(&claim.pool).and_then(|pool| {
            let same = pool.offerings.iter().find(|offering| {
                offering.instance == claim.instance
                    && offering.zone == claim.zone
                    && offering.lifecycle == claim.lifecycle
            });
            same.map(|offering| offering.boot)
        });
        ready = ready.max(boot.map_or(state.now, |boot| claim.since + boot));
    }
    if claims > 0 {
        return vec![Reason::Buying { claims, ready }];
    }
    if !state.policy.runs(Pass::Pools) {
        return Vec::new();
    }
    state.pools.keys().filter_map(|pool| hindrance(state, job, pool)).collect()
}

/// Why a pool that could serve the job does not.
fn hindrance(state: &State, job: JobIx, name: &berth_model::Name) -> Option<Reason> {
    let pool = &state.pools[name];
    let shape = state.shape_of(job);
    let nodes = state.cluster.live().filter(|(_, node)| node.spec.pool.as_ref() == Some(name));
    let claimed = state.claims.values().filter(|claim| claim.pool == *name);
    let room = pool.max.saturating_sub((nodes.count() + claimed.count()) as u32);
    let mut full = false;
    let mut until = None;
    for offering in &pool.offerings {
        let Some(needed) = nodes_needed(state, job, shape, &pool.labels, offering) else {
            continue;
        };
        if needed > room {
            full = true;
        } else if on_offer(offering, state.now) {
            return None;
        } else {
            until = until.into_iter().chain(offering.unavailable_until).min();
        }
    }
    match until {
        Some(until) => Some(Reason::NotOnOffer { pool: name.clone(), until }),
        None => full.then(|| Reason::PoolFull { pool: name.clone(), max: pool.max }),
    }
}
