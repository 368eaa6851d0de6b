//! Events about nodes and their GPUs.

use crate::apply::validate::limits::too_large;
use crate::cluster::gpu::{Gpu, Mode};
use crate::cluster::node::Node;
use crate::ix::NodeIx;
use crate::state::State;
use berth_model::{
    Bytes, Division, GpuSpec, MigLayout, MigProfile, Name, NodeSpec, NodeState, Rejected, Time,
};
use std::collections::{BTreeMap, BTreeSet};

/// Versions of data that one node keeps.
const MOST_DATA: usize = 10_000;

pub(crate) fn node(state: &State, spec: &NodeSpec) -> Result<(), Rejected> {
    let bad = |why: String| Err(Rejected::BadNode { node: spec.name.clone(), why });
    if spec.name.is_empty() {
        return bad("it has no name".to_owned());
    }
    if spec.gpus.len() > 64 {
        return bad(format!("{} GPUs on one node; 64 is the most", spec.gpus.len()));
    }
    if spec.cpu.is_some_and(|cpu| cpu.0 < 0) || spec.memory.is_some_and(|memory| memory.0 < 0) {
        return bad("its CPU or memory is negative".to_owned());
    }
    if spec.price.is_some_and(|price| price.0 < 0) {
        return bad("its price is negative".to_owned());
    }
    if let Some((resource, _)) = spec.counted.iter().find(|(_, n)| **n < 0 || too_large(**n)) {
        return bad(format!("its amount of {resource} cannot be; check the unit"));
    }
    let amounts = [spec.cpu.map(|cpu| cpu.0), spec.memory.map(|memory| memory.0)];
    let amounts = amounts.into_iter().chain([spec.price.map(|price| price.0)]).flatten();
    if amounts.chain(spec.gpus.iter().map(|gpu| gpu.memory.0)).any(too_large) {
        return bad(
            "it has more CPU or memory than can be, or costs more; check the unit".to_owned()
        );
    }
    let mut linked: BTreeSet<u32> = BTreeSet::new();
    for gpu in spec.nvlink.iter().flatten() {
        if *gpu as usize >= spec.gpus.len() {
            return bad(format!("nvlink names GPU {gpu}; it has {}", spec.gpus.len()));
        }
        if !linked.insert(*gpu) {
            return bad(format!("nvlink names GPU {gpu} twice"));
        }
    }
    for (at, gpu) in spec.gpus.iter().enumerate() {
        if gpu.memory.0 <= 0 {
            return bad(format!(
                "GPU {at} needs a memory size; {} is not a known model",
                gpu.model
            ));
        }
        if gpu.division.is_some_and(|division| (division == Division::Mig) != gpu.mig.is_some()) {
            return bad(format!("GPU {at} is either handed out in MIG instances or has none"));
        }
        let mut layout = MigLayout::default();
        for slot in gpu.mig.iter().flatten() {
            let Some(profile) = MigProfile::find(&gpu.model, &slot.profile) else {
                let has = MigProfile::names(&gpu.model).map_or("none".to_owned(), |n| n.join(", "));
                return bad(format!(
                    "GPU {at} has no MIG profile {}; {} has {has}",
                    slot.profile, gpu.model
                ));
            };
            if !layout.fits(profile, slot.start) {
                return bad(format!(
                    "MIG instance {} does not fit GPU {at} at start {}",
                    slot.profile, slot.start
                ));
            }
            layout.take(profile, slot.start);
        }
    }
    if let Some(ix) = state.cluster.find(&spec.name) {
        let known = state.cluster.node(ix);
        if !keeps_what_runs(known, spec) {
            return Err(Rejected::NodeInUse { node: spec.name.clone() });
        }
    }
    Ok(())
}

/// Whether what runs on a node can go on when it is described so: the GPUs that are held are the
/// same ones, and CPU and memory bind as they did, whatever there is of them.
pub(crate) fn keeps_what_runs(node: &Node, spec: &NodeSpec) -> bool {
    node.tasks.is_empty()
        || (binds_alike(&node.spec, spec)
            && (0..node.gpus.len())
                .all(|at| node.gpus[at].holders == 0 || is_alike(node, spec, at)))
}

/// Whether it is the same in all that a node keeps while something runs there.
pub(crate) fn same_machine(node: &Node, spec: &NodeSpec) -> bool {
    let known = &node.spec;
    known.gpus.len() == spec.gpus.len()
        && (0..known.gpus.len()).all(|at| is_alike(node, spec, at))
        && known.nvlink == spec.nvlink
        && binds_alike(known, spec)
}

/// Whether CPU and memory bind as they did.
pub(crate) fn binds_alike(known: &NodeSpec, spec: &NodeSpec) -> bool {
    known.pool == spec.pool
        && known.cpu.is_some() == spec.cpu.is_some()
        && known.memory.is_some() == spec.memory.is_some()
}

/// Whether the GPU at that place is still the same, with all that is held of it.
pub(crate) fn is_alike(node: &Node, spec: &NodeSpec, at: usize) -> bool {
    let (old, gpu) = (&node.spec.gpus[at], &node.gpus[at]);
    spec.gpus.get(at).is_some_and(|new| {
        (&old.model, old.memory) == (&new.model, new.memory) && same_pieces(gpu, old, new)
    })
}

/// Whether all that is held of a GPU is still among what is handed out of it.
fn same_pieces(gpu: &Gpu, old: &GpuSpec, new: &GpuSpec) -> bool {
    match (old.division, new.division) {
        (Some(old), Some(new)) if !old.is_alike(new) => false,
        (Some(_), Some(Division::Mig)) => gpu.mig.as_deref().is_none_or(|mig| {
            let there = new.mig.as_deref().unwrap_or_default();
            mig.held.iter().all(|slot| there.contains(slot))
        }),
        (Some(_), Some(Division::Mps { shares } | Division::TimeSlice { shares })) => {
            u32::from(gpu.holders) <= shares
        }
        (Some(_), Some(Division::Whole)) => old.mig == new.mig,
        (None, Some(Division::Whole)) => {
            old.mig == new.mig && !matches!(gpu.mode, Mode::Mps | Mode::TimeSlice | Mode::Mig)
        }
        (old_division, new_division) => old_division == new_division && old.mig == new.mig,
    }
}

pub(super) fn find(state: &State, name: &Name) -> Result<NodeIx, Rejected> {
    state.cluster.find(name).ok_or_else(|| Rejected::UnknownNode { node: name.clone() })
}

pub(super) fn changed(
    state: &State,
    name: &Name,
    new: &NodeState,
    at: Time,
) -> Result<(), Rejected> {
    find(state, name)?;
    if let NodeState::Leaving { at: leaves } = new
        && *leaves < at
    {
        let why = format!("it cannot leave at {leaves}, which is past; report it as failed");
        return Err(Rejected::BadNode { node: name.clone(), why });
    }
    Ok(())
}

pub(super) fn removed(state: &State, name: &Name) -> Result<(), Rejected> {
    let ix = find(state, name)?;
    if !state.cluster.node(ix).tasks.is_empty() {
        return Err(Rejected::NodeInUse { node: name.clone() });
    }
    Ok(())
}

pub(super) fn data_kept(
    state: &State,
    name: &Name,
    data: &BTreeMap<Name, Bytes>,
) -> Result<(), Rejected> {
    find(state, name)?;
    kept_data(name, data)
}

/// Whether a node can keep these versions of data.
pub(crate) fn kept_data(node: &Name, data: &BTreeMap<Name, Bytes>) -> Result<(), Rejected> {
    let bad = |why: String| Err(Rejected::BadNode { node: node.clone(), why });
    if data.len() > MOST_DATA {
        return bad(format!("it keeps {} versions of data; {MOST_DATA} is the most", data.len()));
    }
    match data.iter().find(|(_, bytes)| bytes.0 < 0 || too_large(bytes.0)) {
        Some((version, _)) => bad(format!("the size of its data {version} cannot be")),
        None => Ok(()),
    }
}

pub(super) fn gpu_changed(state: &State, name: &Name, gpu: u32) -> Result<(), Rejected> {
    let has = state.cluster.node(find(state, name)?).gpus.len() as u32;
    if gpu >= has {
        return Err(Rejected::UnknownGpu { node: name.clone(), gpu, has });
    }
    Ok(())
}
