//! What fits on a GPU and where the tasks of a group may lie, worked out here from names and labels
//! alone, so that a mistake in the scheduler's own geometry shows.

use super::shares::{mig_profile, milli};
use berth_model::{GpuAsk, GpuSpec, GroupSpec, JobSpec, Name, NodeSpec, Share, Slice};
use std::collections::{BTreeMap, BTreeSet};

fn kind(share: &Share) -> u8 {
    match share {
        Share::Whole => 0,
        Share::Fraction(_) => 1,
        Share::Mig(_) => 2,
        Share::Mps(_) => 3,
        Share::TimeSlice(_) => 4,
    }
}

/// Whether one GPU can hold these shares together.
pub(super) fn room(gpu: &GpuSpec, shares: &[&Share]) -> bool {
    let Some(first) = shares.first() else { return true };
    let mig = matches!(first, Share::Mig(_));
    if shares.iter().any(|share| kind(share) != kind(first)) || gpu.mig.is_some() && !mig {
        return false;
    }
    shares.iter().map(|share| milli(share)).sum::<i64>() <= 1_000 && (!mig || cut(gpu, shares))
}

/// Whether MIG instances lie beside one another: `3g.20gb` takes 3 of 7 compute slices and as many
/// of 8 memory slices as 20 GB are of the GPU's. Memory slices above the seventh have no compute
/// slice beside them, so an instance must begin where its compute slices still fit.
fn cut(gpu: &GpuSpec, shares: &[&Share]) -> bool {
    let mut taken = [false; 8];
    let mut compute = 0;
    for share in shares {
        let Share::Mig(slot) = share else { return false };
        let Some((own, gb)) = mig_profile(&slot.profile) else { return false };
        let size = (gb * 8_000_000_000 / gpu.memory.0.max(1)) as usize;
        let start = usize::from(slot.start);
        let lies = size > 0 && start.is_multiple_of(size) && start + own as usize <= 7;
        let Some(slices) = taken.get_mut(start..start + size).filter(|_| lies) else {
            return false;
        };
        if slices.contains(&true) {
            return false;
        }
        slices.fill(true);
        compute += own;
    }
    compute <= 7
}

/// Why a task may not be on this node with these slices, whoever else is there.
pub(super) fn unsuited(
    job: &JobSpec,
    task: u32,
    node: &NodeSpec,
    slices: &[Slice],
) -> Option<String> {
    let Some(group) = GroupSpec::of_task(&job.groups, task) else {
        return Some("the job has no such task".to_owned());
    };
    if job.lifecycle.is_some_and(|asked| asked != node.lifecycle) {
        return Some("it is of another lifecycle".to_owned());
    }
    if slices.len() != group.gpus.count() as usize {
        return Some(format!("{} slices are not what was asked for", slices.len()));
    }
    let gpus: BTreeSet<u32> = slices.iter().map(|slice| slice.gpu).collect();
    if gpus.len() != slices.len() && !matches!(group.gpus, GpuAsk::Mig { .. }) {
        return Some("two of its slices are on one GPU".to_owned());
    }
    for slice in slices {
        let gpu = node.gpus.get(slice.gpu as usize)?;
        if !group.models.is_empty() && !group.models.iter().any(|ask| ask.model == gpu.model) {
            return Some(format!("a {} is not what was asked for", gpu.model));
        }
        if !asked(&group.gpus, &slice.share, gpu) {
            return Some(format!("{:?} is not what was asked for", slice.share));
        }
    }
    None
}

fn asked(ask: &GpuAsk, share: &Share, gpu: &GpuSpec) -> bool {
    match (ask, share) {
        (GpuAsk::Whole { .. }, Share::Whole) => true,
        (GpuAsk::Fraction { milli, .. }, Share::Fraction(held)) => milli == held,
        (GpuAsk::Memory { bytes, .. }, Share::Fraction(held)) => {
            i128::from(held.0) * i128::from(gpu.memory.0) >= i128::from(bytes.0) * 1_000
        }
        (GpuAsk::Mig { profile, .. }, Share::Mig(slot)) => *profile == slot.profile,
        (GpuAsk::Mps { percent, .. }, Share::Mps(held)) => held.0 == i64::from(*percent) * 10,
        (GpuAsk::TimeSlice { of, .. }, Share::TimeSlice(held)) => held.0 == 1_000 / i64::from(*of),
        _ => false,
    }
}

/// Whether every group has its minimum among these tasks.
pub(super) fn whole(groups: &[GroupSpec], tasks: &BTreeSet<u32>) -> bool {
    let mut first = 0;
    // Each is looked at, since each moves on to the tasks of the next.
    groups.iter().filter(|group| has_minimum(group, &mut first, tasks)).count() == groups.len()
}

fn has_minimum(group: &GroupSpec, first: &mut u32, tasks: &BTreeSet<u32>) -> bool {
    let found = if group.is_leaf() {
        let own = *first..*first + group.count;
        *first += group.count;
        tasks.range(own).count()
    } else {
        group.groups.iter().filter(|child| has_minimum(child, first, tasks)).count()
    };
    found >= group.min as usize
}

/// A group whose running tasks lie where they must not: apart though bound to one domain, or too
/// many in one though they are to be spread.
pub(super) fn misplaced(groups: &[GroupSpec], tasks: &BTreeMap<u32, &NodeSpec>) -> Option<String> {
    let mut first = 0;
    groups.iter().find_map(|group| scattered(group, &mut first, tasks))
}

fn scattered(
    group: &GroupSpec,
    first: &mut u32,
    tasks: &BTreeMap<u32, &NodeSpec>,
) -> Option<String> {
    let begin = *first;
    if group.is_leaf() {
        *first += group.count;
    }
    let mut below = None;
    for child in &group.groups {
        below = below.or(scattered(child, first, tasks));
    }
    let nodes: Vec<&NodeSpec> = tasks.range(begin..*first).map(|(_, node)| *node).collect();
    let required = group.topology.as_ref().and_then(|ask| ask.required.as_ref());
    if let Some(level) = required {
        let on: BTreeSet<&Name> = nodes.iter().map(|node| &node.name).collect();
        let in_: BTreeSet<Option<&Name>> = nodes.iter().map(|node| domain(node, level)).collect();
        // One node is in one rack, whether or not it says in which.
        if on.len() > 1 && (in_.len() > 1 || in_.contains(&None)) {
            return Some(format!("group {} is not in one {level}", group.name));
        }
    }
    if let Some(spread) = &group.spread {
        let mut counts: BTreeMap<&Name, u32> = BTreeMap::new();
        for place in nodes.iter().filter_map(|node| domain(node, &spread.over)) {
            *counts.entry(place).or_default() += 1;
        }
        if counts.values().any(|count| *count > spread.at_most) {
            return Some(format!("group {} is not spread over each {}", group.name, spread.over));
        }
    }
    below
}

fn domain<'a>(node: &'a NodeSpec, level: &Name) -> Option<&'a Name> {
    match level.as_str() {
        "node" => Some(&node.name),
        _ => node.labels.get(level),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{Bytes, Health, MigSlot};

    fn holds(slots: &[(&str, u8)]) -> bool {
        let (model, memory) = (Name::new("A100-40GB"), Bytes::gb(40));
        let gpu = GpuSpec { model, memory, health: Health::Ok, mig: None, division: None };
        let share = |(profile, start): &(&str, u8)| {
            Share::Mig(MigSlot { profile: Name::new(profile), start: *start })
        };
        let shares: Vec<Share> = slots.iter().map(share).collect();
        room(&gpu, &shares.iter().collect::<Vec<_>>())
    }

    #[test]
    fn instances_lie_beside_one_another_and_begin_where_they_may() {
        assert!(holds(&[("4g.20gb", 0), ("3g.20gb", 4)]));
        assert!(holds(&[("1g.5gb", 6), ("2g.10gb", 4), ("4g.20gb", 0)]));
        assert!(!holds(&[("3g.20gb", 0), ("4g.20gb", 0)]));
        assert!(!holds(&[("4g.20gb", 4)]));
        assert!(!holds(&[("2g.10gb", 6)]));
        assert!(!holds(&[("1g.5gb", 7)]));
        assert!(!holds(&[("2g.10gb", 1)]));
    }

    #[test]
    fn an_instance_and_a_share_never_meet_on_a_gpu() {
        let (model, memory) = (Name::new("A100-40GB"), Bytes::gb(40));
        let on =
            GpuSpec { model, memory, health: Health::Ok, mig: Some(Vec::new()), division: None };
        assert!(!room(&on, &[&Share::Whole]));
        let mig = Share::Mig(MigSlot { profile: Name::new("1g.5gb"), start: 0 });
        assert!(!room(
            &GpuSpec { mig: None, ..on },
            &[&mig, &Share::Fraction(berth_model::Milli(100))]
        ));
    }
}
