//! One task on one node: whether the node will do, the slices are what its group asks for, and
//! the GPUs have room for them.

use crate::amounts::Amounts;
use crate::check::finding::FindingCode;
use crate::ix::{JobIx, NodeIx};
use crate::state::State;
use berth_model::{
    Division, Effect, GpuAsk, GpuSpec, GroupSpec, Health, JobSpec, MigProfile, Milli, Name,
    NodeSpec, Share, Slice,
};
use std::collections::{BTreeMap, BTreeSet};

/// A fault, before it is known which transaction it belongs to.
pub(super) type Fault = (FindingCode, String);

/// The group a task belongs to, with the number of the group's first task.
pub(super) fn group_of(spec: &JobSpec, task: u32) -> Option<(&GroupSpec, u32)> {
    let mut first = 0;
    for leaf in spec.groups.iter().flat_map(GroupSpec::leaves) {
        if task < first + leaf.count {
            return Some((leaf, first));
        }
        first += leaf.count;
    }
    None
}

/// The thousandths of a GPU that a share stands for.
fn milli(share: &Share, model: &str) -> i64 {
    match share {
        Share::Whole => 1_000,
        Share::Fraction(milli) | Share::Mps(milli) | Share::TimeSlice(milli) => milli.0,
        Share::Mig(slot) => match MigProfile::find(model, &slot.profile) {
            Some(profile) => i64::from(profile.compute) * 1_000 / 7,
            None => 1_000,
        },
    }
}

/// What the queue is charged for a task on these slices: each slice counts for its own model.
pub(super) fn amounts(
    state: &State,
    job: JobIx,
    task: u32,
    node: NodeIx,
    slices: &[Slice],
) -> Amounts {
    let mut amounts = Amounts::default();
    if let Some((group, _)) = group_of(&state.jobs.get(job).spec, task) {
        amounts.cpu = group.cpu.0;
        amounts.memory = group.memory.0;
    }
    let gpus = &state.cluster.node(node).spec.gpus;
    for slice in slices {
        let Some(gpu) = gpus.get(slice.gpu as usize) else { continue };
        let held = milli(&slice.share, &gpu.model);
        amounts.gpu += held;
        if let Some(model) = state.cluster.find_model(&gpu.model) {
            amounts.models.resize(amounts.models.len().max(model.at() + 1), 0);
            amounts.models[model.at()] += held;
        }
    }
    amounts
}

/// Whether the node has what the group needs: labels, tolerated taints, the lifecycle, a model.
pub(super) fn node_faults(job: &JobSpec, group: &GroupSpec, node: &NodeSpec) -> Vec<Fault> {
    let mut found = Vec::new();
    for (key, value) in &group.labels.need {
        if node.labels.get(key) != Some(value) {
            let text = format!("{} does not carry the label {key}={value}", node.name);
            found.push((FindingCode::Label, text));
        }
    }
    if let Some(nodes) = &group.nodes {
        let listed = nodes.only.as_ref().is_none_or(|only| only.contains(&node.name));
        if !listed || nodes.never.contains(&node.name) {
            found.push((FindingCode::Node, format!("it may not lie on {}", node.name)));
        }
    }
    for taint in node.taints.iter().filter(|taint| taint.effect != Effect::PreferNoSchedule) {
        let tolerated = group.tolerations.iter().any(|toleration| {
            toleration.key == taint.key
                && toleration.value.as_ref().is_none_or(|value| *value == taint.value)
        });
        if !tolerated {
            let text = format!("{} is tainted {}={}", node.name, taint.key, taint.value);
            found.push((FindingCode::Taint, text));
        }
    }
    if job.lifecycle.is_some_and(|asked| asked != node.lifecycle) {
        let text = format!("{} is of another lifecycle than the job asks for", node.name);
        found.push((FindingCode::Lifecycle, text));
    }
    if group.gpus == GpuAsk::None
        && !group.models.is_empty()
        && !node.gpus.iter().any(|gpu| group.models.iter().any(|ask| ask.model == gpu.model))
    {
        let text = format!("{} has no GPU of a model the group accepts", node.name);
        found.push((FindingCode::Slices, text));
    }
    found
}

/// Whether the slices are what a task of the group asks for: their number, size and model.
pub(super) fn slice_faults(group: &GroupSpec, node: &NodeSpec, slices: &[Slice]) -> Vec<Fault> {
    let mut found = Vec::new();
    let mut fault = |text: String| found.push((FindingCode::Slices, text));
    let asked = group.gpus.count();
    if slices.len() != asked as usize {
        fault(format!("it asks for {asked} slices and gets {}", slices.len()));
    }
    let mut seen: BTreeSet<u32> = BTreeSet::new();
    for slice in slices {
        let at = slice.gpu;
        let Some(gpu) = node.gpus.get(at as usize) else {
            fault(format!("{} has no GPU {at}", node.name));
            continue;
        };
        if !seen.insert(at) && !matches!(group.gpus, GpuAsk::Mig { .. }) {
            fault(format!("two slices of one task lie on GPU {at} of {}", node.name));
        }
        if !group.models.is_empty() && !group.models.iter().any(|ask| ask.model == gpu.model) {
            fault(format!(
                "GPU {at} of {} is a {}, which it does not accept",
                node.name, gpu.model
            ));
        }
        if group.min_gpu_memory.is_some_and(|least| gpu.memory < least) {
            fault(format!("GPU {at} of {} has too little memory", node.name));
        }
        let right = match &group.gpus {
            GpuAsk::None => false,
            GpuAsk::Whole { .. } => slice.share == Share::Whole,
            GpuAsk::Fraction { milli, .. } => slice.share == Share::Fraction(*milli),
            GpuAsk::Memory { bytes, .. } => {
                // At least as much as was asked for, and not a thousandth more than that needs.
                let (asked, has) = (i128::from(bytes.0) * 1_000, i128::from(gpu.memory.0));
                matches!(slice.share, Share::Fraction(Milli(n)) if n <= 1_000
                    && i128::from(n) * has >= asked && i128::from(n - 1) * has < asked)
            }
            GpuAsk::Mig { profile, .. } => {
                matches!(&slice.share, Share::Mig(slot) if slot.profile == *profile)
            }
            GpuAsk::Mps { percent, .. } => {
                slice.share == Share::Mps(Milli(i64::from(*percent) * 10))
            }
            GpuAsk::TimeSlice { of, .. } => {
                slice.share == Share::TimeSlice(Milli(1_000 / i64::from((*of).max(1))))
            }
        };
        if !right {
            fault(format!("it gets {:?} of GPU {at}, which it did not ask for", slice.share));
        }
    }
    found
}

/// Why the shares cannot be on one GPU together.
pub(super) fn crowded(gpu: &GpuSpec, shares: &[&Share]) -> Option<String> {
    if gpu.health != Health::Ok {
        return Some("it has failed".to_owned());
    }
    let kind = |share: &Share| match share {
        Share::Whole => "whole",
        Share::Fraction(_) => "fractions",
        Share::Mps(_) => "MPS",
        Share::TimeSlice(_) => "time slices",
        Share::Mig(_) => "MIG",
    };
    let first = kind(shares.first()?);
    if let Some(other) = shares.iter().find(|share| kind(share) != first) {
        return Some(format!("it would be shared as {first} and as {}", kind(other)));
    }
    if gpu.mig.is_some() && first != "MIG" {
        return Some("MIG is on, so nothing else can be held of it".to_owned());
    }
    if let Some(why) = gpu.division.and_then(|division| not_handed_out(gpu, division, shares)) {
        return Some(why);
    }
    let total: i64 = shares.iter().map(|share| milli(share, &gpu.model)).sum();
    match shares[0] {
        Share::Whole if shares.len() > 1 => Some("it would be held whole twice".to_owned()),
        Share::Whole => None,
        Share::Mig(_) => crowded_mig(gpu, shares),
        Share::Fraction(_) | Share::Mps(_) | Share::TimeSlice(_) => {
            (total > 1_000).then(|| format!("{total} thousandths of it would be held"))
        }
    }
}

/// Why a GPU that is divided outside Berth does not have these pieces, which are all of one kind.
fn not_handed_out(gpu: &GpuSpec, division: Division, shares: &[&Share]) -> Option<String> {
    let most = match (division, shares.first()?) {
        (Division::Whole, Share::Whole | Share::Fraction(_)) => return None,
        (Division::Mig, Share::Mig(_)) => {
            let there = gpu.mig.as_deref().unwrap_or_default();
            let missing = shares.iter().find_map(|share| match share {
                Share::Mig(slot) if !there.contains(slot) => Some(slot),
                _ => None,
            })?;
            return Some(format!("it has no {} at {}", missing.profile, missing.start));
        }
        (Division::Mps { shares }, Share::Mps(_)) => shares,
        (Division::TimeSlice { shares }, Share::TimeSlice(_)) => shares,
        _ => return Some("it is handed out in another way".to_owned()),
    };
    let held = shares.len();
    (held > most as usize).then(|| format!("it is handed out to {most}, and {held} would hold it"))
}

/// Eight memory slices, seven compute slices, starts and numbers as the profiles say.
fn crowded_mig(gpu: &GpuSpec, shares: &[&Share]) -> Option<String> {
    let mut memory = [false; 8];
    let mut compute = 0;
    let mut profiles: Vec<&str> = Vec::new();
    for share in shares {
        let Share::Mig(slot) = share else { continue };
        let name = slot.profile.as_str();
        let Some(profile) = MigProfile::find(&gpu.model, name) else {
            return Some(format!("{} has no MIG profile {name}", gpu.model));
        };
        if !profile.starts.contains(&slot.start) {
            return Some(format!("a {name} cannot start at {}", slot.start));
        }
        for at in slot.start..slot.start + profile.size {
            match memory.get_mut(at as usize) {
                Some(taken) if !*taken => *taken = true,
                _ => return Some(format!("memory slice {at} would be in two instances")),
            }
        }
        compute += profile.compute;
        profiles.push(name);
        let alike = profiles.iter().filter(|other| **other == name).count();
        if alike > profile.at_most as usize {
            return Some(format!("it holds at most {} of {name}", profile.at_most));
        }
    }
    (compute > 7).then(|| format!("{compute} of its 7 compute slices would be held"))
}

/// Which NVLink island a GPU lies in; a GPU in no list is one of its own.
pub(super) fn island(node: &NodeSpec, gpu: u32) -> usize {
    if node.nvlink.is_empty() {
        return 0;
    }
    let listed = node.nvlink.iter().position(|island| island.contains(&gpu));
    listed.unwrap_or(node.nvlink.len() + gpu as usize)
}

/// What these tasks take together of each thing that nodes count.
pub(super) fn counted<'a>(groups: impl Iterator<Item = &'a GroupSpec>) -> BTreeMap<&'a Name, i64> {
    let mut sums: BTreeMap<&Name, i64> = BTreeMap::new();
    for (resource, amount) in groups.flat_map(|group| &group.counted) {
        *sums.entry(resource).or_default() += amount;
    }
    sums
}
