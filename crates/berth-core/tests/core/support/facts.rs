//! Plain facts about a snapshot, worked out here and not by the core: what is held of each GPU,
//! whether a gang has its minimum, where a job stands.

use berth_model::*;
use std::collections::{BTreeMap, BTreeSet};

/// The first GPU or node that is leased beyond what it has.
pub fn overcommitted(snapshot: &Snapshot) -> Option<String> {
    let mut on_gpu: BTreeMap<(&Name, u32), Vec<&Share>> = BTreeMap::new();
    let mut on_node: BTreeMap<&Name, (i64, i64)> = BTreeMap::new();
    for job in &snapshot.jobs {
        for lease in &job.leases {
            for slice in &lease.slices {
                on_gpu.entry((&lease.node, slice.gpu)).or_default().push(&slice.share);
            }
            let leaf = leaf_of(&job.spec, lease.task)?;
            let used = on_node.entry(&lease.node).or_default();
            used.0 += leaf.cpu.0;
            used.1 += leaf.memory.0;
        }
    }
    for ((name, gpu), shares) in on_gpu {
        let Some(node) = snapshot.nodes.iter().find(|node| node.spec.name == *name) else {
            return Some(format!("a lease is on {name}, which is not there"));
        };
        let Some(spec) = node.spec.gpus.get(gpu as usize) else {
            return Some(format!("a lease is on GPU {gpu} of {name}, which it has not"));
        };
        if let Some(why) = too_much(&spec.model, &shares) {
            return Some(format!("GPU {gpu} of {name}: {why}: {shares:?}"));
        }
    }
    for (name, (cpu, memory)) in on_node {
        let node = snapshot.nodes.iter().find(|node| node.spec.name == *name)?;
        if node.spec.cpu.is_some_and(|has| cpu > has.0) {
            return Some(format!("{name} has less CPU than is held there"));
        }
        if node.spec.memory.is_some_and(|has| memory > has.0) {
            return Some(format!("{name} has less memory than is held there"));
        }
    }
    None
}

fn too_much(model: &Name, shares: &[&Share]) -> Option<&'static str> {
    let kind = |share: &Share| match share {
        Share::Whole => 0,
        Share::Fraction(_) => 1,
        Share::Mps(_) => 2,
        Share::TimeSlice(_) => 3,
        Share::Mig(_) => 4,
    };
    if shares.iter().any(|share| kind(share) != kind(shares[0])) {
        return Some("it is shared in two ways at once");
    }
    let mut milli = 0;
    let (mut memory, mut compute) = (0u16, 0);
    for share in shares {
        match share {
            Share::Whole => milli += 1_000,
            Share::Fraction(part) | Share::Mps(part) | Share::TimeSlice(part) => milli += part.0,
            Share::Mig(slot) => {
                let Some(profile) = MigProfile::find(model, &slot.profile) else {
                    return Some("it has no such MIG profile");
                };
                if !profile.starts.contains(&slot.start) {
                    return Some("a MIG instance starts where it cannot");
                }
                let slices = ((1u16 << profile.size) - 1) << slot.start;
                if memory & slices != 0 {
                    return Some("two MIG instances overlap");
                }
                memory |= slices;
                compute += profile.compute;
            }
        }
    }
    if milli > 1_000 || compute > 7 {
        return Some("more is held than it has");
    }
    None
}

/// Two jobs of different queues with shares of one GPU, or of GPUs that somebody else hands out and
/// chooses among.
pub type Mix = (Name, u32, JobId, JobId);

/// Those that the policy does not allow.
pub fn mixes(snapshot: &Snapshot) -> BTreeSet<Mix> {
    let mut by_gpu: BTreeMap<(&Name, u32), Vec<(&JobSnapshot, &Share)>> = BTreeMap::new();
    for job in &snapshot.jobs {
        for lease in &job.leases {
            for slice in &lease.slices {
                let node = snapshot.nodes.iter().find(|node| node.spec.name == lease.node);
                let gpu = node.and_then(|node| node.spec.gpus.get(slice.gpu as usize));
                let is_pooled = matches!(
                    gpu.and_then(|gpu| gpu.division),
                    Some(Division::Mps { .. } | Division::TimeSlice { .. })
                );
                let at = if is_pooled { u32::MAX } else { slice.gpu };
                by_gpu.entry((&lease.node, at)).or_default().push((job, &slice.share));
            }
        }
    }
    let anyone = snapshot.policy.share_gpus == ShareGpus::Anyone;
    let mut found = BTreeSet::new();
    for ((node, gpu), shares) in by_gpu {
        let apart = |share: &Share| match share {
            Share::Whole | Share::Mig(_) => false,
            Share::Mps(_) => !anyone || gpu != u32::MAX,
            Share::Fraction(_) | Share::TimeSlice(_) => !anyone,
        };
        let shares: Vec<_> = shares.into_iter().filter(|(_, share)| apart(share)).collect();
        for (one, _) in &shares {
            let others = shares.iter().filter(|(other, _)| other.id() > one.id());
            let strangers = others.filter(|(other, _)| other.spec.queue != one.spec.queue);
            found.extend(strangers.map(|(other, _)| (node.clone(), gpu, one.id(), other.id())));
        }
    }
    found
}

/// The leaf group a task belongs to.
pub fn leaf_of(spec: &JobSpec, task: u32) -> Option<&GroupSpec> {
    let mut first = 0;
    for leaf in spec.groups.iter().flat_map(|group| group.leaves()) {
        first += leaf.count;
        if task < first {
            return Some(leaf);
        }
    }
    None
}

/// Whether every group has its minimum of tasks that run, or have run to their end.
pub fn has_minimum(job: &JobSnapshot) -> bool {
    let mut first = 0;
    job.spec.groups.iter().filter(|group| !group_runs(group, job, &mut first)).count() == 0
}

fn group_runs(group: &GroupSpec, job: &JobSnapshot, first: &mut u32) -> bool {
    if !group.groups.is_empty() {
        let runs: Vec<bool> =
            group.groups.iter().map(|child| group_runs(child, job, first)).collect();
        return runs.iter().filter(|runs| **runs).count() >= group.min as usize;
    }
    let tasks = *first..*first + group.count;
    *first += group.count;
    let live = job.leases.iter().filter(|lease| lease.stopping.is_none());
    let live = live.filter(|lease| tasks.contains(&lease.task)).count();
    let done = job.done.iter().filter(|task| tasks.contains(task)).count();
    live + done >= group.min as usize
}

/// Where two values that should be the same begin to differ.
pub fn difference<T: std::fmt::Debug>(fresh: &T, kept: &T) -> String {
    let (fresh, kept) = (format!("{fresh:?}"), format!("{kept:?}"));
    let at = fresh.bytes().zip(kept.bytes()).take_while(|(a, b)| a == b).count();
    let part = |text: &str| {
        let bytes = &text.as_bytes()[at.saturating_sub(400).min(text.len())..];
        String::from_utf8_lossy(&bytes[..bytes.len().min(900)]).into_owned()
    };
    format!("\nfresh …{}\nkept  …{}", part(&fresh), part(&kept))
}
