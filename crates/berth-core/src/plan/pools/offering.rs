//! What an offering of a pool can serve, and what it is expected to cost.

use crate::cluster::domain::Level;
use crate::ix::JobIx;
use crate::plan::pools::room::{Room, fill};
use crate::shape::Shape;
use crate::shape::leaf::Leaf;
use crate::shape::tree::Tree;
use crate::state::State;
use berth_model::{GpuAsk, Lifecycle, MigProfile, Name, Offering, Span, Time};
use std::collections::BTreeMap;

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

/// Whether machines of that lifecycle may serve the job at all.
pub(crate) fn serves(state: &State, job: JobIx, offering: &Offering) -> bool {
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
pub(crate) fn machines_for(
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
            // The rack of a machine is not known before it is there, unless the pool's labels name it.
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
pub(crate) fn milli_on(state: &State, leaf: &Leaf, offering: &Offering) -> i64 {
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

pub(crate) fn tasks_per_machine(
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
        // How many tasks are in one domain cannot be counted for a machine of an unknown domain.
        Some((level, most)) if names(state, labels, level) => each.min(most),
        Some(_) => 0,
    }
}

/// Price times nodes times the time they are needed, with restarts after interruptions.
pub(crate) fn expected_cost(state: &State, job: JobIx, offering: &Offering, nodes: u32) -> i128 {
    let known = state.jobs.get(job);
    let run = known.estimate_left();
    // Interruptions per thousand hours of one machine, any of which restarts the gang.
    let hits = i128::from(offering.interruptions) * i128::from(nodes) * i128::from(run.0);
    let redo = hits * i128::from(known.restart_cost(&state.policy).0) / (1_000 * 3_600_000);
    let span = i128::from(run.0) + i128::from(offering.boot.0) + redo;
    i128::from(offering.price.0) * i128::from(nodes) * span / 3_600_000
}
