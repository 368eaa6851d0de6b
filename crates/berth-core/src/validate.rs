//! Whether an event makes sense, before anything changes.

use crate::cluster::gpu::{Gpu, Mode};
use crate::cluster::node::Node;
use crate::state::State;
use berth_model::{
    Amount, Division, Event, GpuAsk, GpuSpec, GroupSpec, JobChange, JobId, JobSpec, LeaseId,
    MigLayout, MigProfile, Name, NodeSpec, Policy, QueueSpec, Quota, Rejected, Span, Time,
};
use std::collections::BTreeSet;

pub(crate) fn event(state: &State, event: &Event, at: Time) -> Result<(), Rejected> {
    let node = |name: &Name| {
        state.cluster.find(name).ok_or_else(|| Rejected::UnknownNode { node: name.clone() })
    };
    match event {
        Event::JobSubmitted { spec } => {
            let taken =
                |id: JobId| state.jobs.find(id).is_some() || state.outcomes.contains_key(&id);
            let elements = spec.array.iter().flat_map(|array| &array.elements);
            if taken(spec.id) || elements.map(|e| spec.id.element(*e)).any(taken) {
                return Err(Rejected::JobExists { job: spec.id });
            }
            job(state, spec, When::Submitted)
        }
        Event::JobCancelled { job } => {
            let elements = state.jobs.by_id.range(job.element(0)..=job.element(u32::MAX));
            let any =
                state.jobs.find(*job).is_some() || (job.element.is_none() && elements.count() > 0);
            if any { Ok(()) } else { Err(Rejected::UnknownJob { job: *job }) }
        }
        Event::JobChanged { job, change } => {
            let ix = state.jobs.find(*job).ok_or(Rejected::UnknownJob { job: *job })?;
            match change {
                JobChange::Queue(queue) => {
                    leaf(state, queue)?;
                    if state.jobs.get(ix).open > 0 {
                        return Err(bad_job(
                            *job,
                            "it runs: move it to another queue while it waits, or stop it first",
                        ));
                    }
                    Ok(())
                }
                JobChange::TimeLimit(limit) if *limit <= Span::ZERO => {
                    Err(bad_job(*job, "its time limit must be longer than nothing"))
                }
                JobChange::TimeLimit(limit) if *limit > LONGEST => {
                    Err(bad_job(*job, "its time limit is over a hundred years; check its unit"))
                }
                JobChange::Deadline(Some(deadline)) if !sensible(*deadline) => {
                    Err(bad_job(*job, "its deadline is no time anybody means; check its unit"))
                }
                JobChange::Nodes(nodes) => {
                    let known = state.jobs.get(ix);
                    let leaves = known.spec.groups.iter().flat_map(GroupSpec::leaves).count();
                    if known.open > 0 {
                        return Err(bad_job(*job, "it runs: its nodes are chosen while it waits"));
                    }
                    if job.element.is_some() || nodes.len() != leaves {
                        return Err(bad_job(*job, "say for each group of tasks where it may lie"));
                    }
                    Ok(())
                }
                _ => Ok(()),
            }
        }
        Event::LeaseStarted { lease } | Event::LeaseEnded { lease, .. } => open(state, *lease),
        Event::LeaseSaved { job } => {
            let ix = state.jobs.find(*job).ok_or(Rejected::UnknownJob { job: *job })?;
            match state.jobs.get(ix).open {
                0 => Err(bad_job(*job, "it does not run, so it has nothing new to save")),
                _ => Ok(()),
            }
        }
        Event::NodeAdded { node } => self::node(state, node),
        Event::NodeChanged { node: name, state: new } => {
            node(name)?;
            if let berth_model::NodeState::Leaving { at: leaves } = new
                && *leaves < at
            {
                let why =
                    format!("it cannot leave at {leaves}, which is past; report it as failed");
                return Err(Rejected::BadNode { node: name.clone(), why });
            }
            Ok(())
        }
        Event::NodeRemoved { node: name } => {
            let ix = node(name)?;
            if !state.cluster.node(ix).tasks.is_empty() {
                return Err(Rejected::NodeInUse { node: name.clone() });
            }
            Ok(())
        }
        Event::GpuChanged { node: name, gpu, .. } => {
            let has = state.cluster.node(node(name)?).gpus.len() as u32;
            if *gpu >= has {
                return Err(Rejected::UnknownGpu { node: name.clone(), gpu: *gpu, has });
            }
            Ok(())
        }
        Event::QueueSet { queue: spec } => queue(state, spec),
        Event::QueueRemoved { queue } => {
            let unknown = || Rejected::UnknownQueue { queue: queue.clone() };
            let ix = state.queues.find(queue).ok_or_else(unknown)?;
            let used = !state.queues.get(ix).children.is_empty()
                || state.jobs.iter().any(|(_, job)| job.queue == ix);
            if used { Err(Rejected::QueueInUse { queue: queue.clone() }) } else { Ok(()) }
        }
        Event::PolicySet { policy } => self::policy(policy),
        Event::ClassesSet { .. } => Ok(()),
        Event::ModelsSet { prices, speeds, watts } => {
            let negative = prices.iter().find(|(_, price)| price.0 < 0).map(|(model, _)| model);
            let dear = prices.iter().find(|(_, price)| too_large(price.0)).map(|(model, _)| model);
            let fine = 1..=1_000_000_000;
            let still = speeds.iter().find(|(_, speed)| !fine.contains(&speed.0));
            let still = still.map(|(model, _)| model);
            let dark = watts.iter().find(|(_, watts)| !fine.contains(*watts));
            let dark = dark.map(|(model, _)| model);
            match negative.or(dear).or(still).or(dark) {
                Some(model) => Err(Rejected::BadPolicy {
                    why: format!(
                        "{model} needs a price of 0 or more, and a speed and watts above 0, none of them beyond reason"
                    ),
                }),
                None => Ok(()),
            }
        }
        Event::TopologySet { topologies } => {
            for (name, keys) in topologies {
                let distinct: BTreeSet<&Name> = keys.iter().collect();
                let reserved = keys.iter().find(|key| matches!(key.as_str(), "node" | "nvlink"));
                let why = if distinct.len() != keys.len() {
                    "a level is named twice".to_owned()
                } else if let Some(key) = reserved {
                    format!("{key} is always there below the last level; leave it out")
                } else {
                    continue;
                };
                return Err(Rejected::BadTopology { name: name.clone(), why });
            }
            let known = |within: &Name, level: &Name| {
                topologies.get(within).is_some_and(|keys| keys.contains(level))
            };
            // What a job relies on cannot go away under it.
            for (_, job) in state.jobs.iter() {
                let mut named = Vec::new();
                job.spec.groups.iter().for_each(|group| all_levels(group, &mut named));
                for (within, level) in named {
                    let within = within.cloned().unwrap_or(Name::new("default"));
                    if !matches!(level.as_str(), "node" | "nvlink") && !known(&within, level) {
                        let why =
                            format!("job {} asks for level {level}: keep it until then", job.id);
                        return Err(Rejected::BadTopology { name: within, why });
                    }
                }
            }
            Ok(())
        }
        Event::PoolSet { pool } => {
            let bad =
                |why: &str| Rejected::BadPool { pool: pool.name.clone(), why: why.to_owned() };
            if pool.min > pool.max {
                return Err(bad("its minimum is above its maximum"));
            }
            if pool.offerings.is_empty() {
                return Err(bad("it offers nothing; name at least one offering"));
            }
            if pool.offerings.iter().any(|o| o.price.0 < 0 || o.boot < Span::ZERO) {
                return Err(bad("an offering has a negative price or boot time"));
            }
            Ok(())
        }
        Event::PoolRemoved { pool } => match state.pools.contains_key(pool) {
            true => Ok(()),
            false => Err(Rejected::UnknownPool { pool: pool.clone() }),
        },
        Event::ClaimReady { claim, node } => {
            claim_known(state, claim)?;
            self::node(state, node)
        }
        Event::ClaimFailed { claim, .. } => claim_known(state, claim),
        Event::ReservationSet { reservation } => {
            if reservation.from >= reservation.to {
                return Err(Rejected::BadReservation {
                    name: reservation.name.clone(),
                    why: "it ends before it begins".to_owned(),
                });
            }
            for name in &reservation.nodes {
                node(name)?;
            }
            Ok(())
        }
        Event::ReservationRemoved { name } => match state.reservations.contains_key(name) {
            true => Ok(()),
            false => Err(Rejected::UnknownReservation { name: name.clone() }),
        },
        Event::Decided { .. } | Event::Tick => Ok(()),
    }
}

fn claim_known(state: &State, claim: &Name) -> Result<(), Rejected> {
    match state.claims.contains_key(claim) {
        true => Ok(()),
        false => Err(Rejected::UnknownClaim { claim: claim.clone() }),
    }
}

fn bad_job(job: JobId, why: &str) -> Rejected {
    Rejected::BadJob { what: format!("job {job}"), why: why.to_owned() }
}

fn open(state: &State, lease: LeaseId) -> Result<(), Rejected> {
    let unknown = Rejected::UnknownLease { lease };
    let Some(ix) = state.jobs.find(lease.job) else { return Err(unknown) };
    let task = state.jobs.get(ix).tasks.get(lease.task as usize);
    let held = task.and_then(|task| task.lease.as_ref());
    match held {
        Some(held) if held.attempt == lease.attempt => Ok(()),
        _ => Err(unknown),
    }
}

fn leaf(state: &State, queue: &Name) -> Result<(), Rejected> {
    let Some(ix) = state.queues.find(queue) else {
        return Err(Rejected::UnknownQueue { queue: queue.clone() });
    };
    match state.queues.get(ix).children.is_empty() {
        true => Ok(()),
        false => Err(Rejected::NotALeaf { queue: queue.clone() }),
    }
}

/// Amounts up to here can be added, multiplied by counts and compared without running over; nothing
/// real is larger.
const LARGEST: i64 = 1 << 53;
/// A hundred years.
const LONGEST: Span = Span::days(36_500);

fn too_large(amount: i64) -> bool {
    amount > LARGEST
}

/// Whether a moment is one that anybody means.
fn sensible(at: Time) -> bool {
    (0..LARGEST).contains(&at.0)
}

/// Whether a job is new, or part of a state that has taken it already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Submitted,
    Loaded,
}

pub(crate) fn job(state: &State, spec: &JobSpec, when: When) -> Result<(), Rejected> {
    leaf(state, &spec.queue)?;
    let bad = |why: &str| Err(bad_job(spec.id, why));
    if spec.time_limit.is_some_and(|limit| limit <= Span::ZERO) {
        return bad("its time limit must be longer than nothing");
    }
    let spans = [spec.restart_cost, spec.grace, spec.min_runtime, spec.preempt_after];
    if spans.into_iter().flatten().any(|span| span < Span::ZERO) {
        return bad("a length of time is negative");
    }
    if spans.into_iter().chain([spec.time_limit]).flatten().any(|span| span > LONGEST) {
        return bad("a length of time is over a hundred years; check its unit");
    }
    let times = [spec.deadline, spec.begin, Some(spec.submitted)];
    if !times.into_iter().flatten().all(sensible) {
        return bad("a time is not between 1970 and the year 287,000; check its unit");
    }
    if spec.groups.is_empty() {
        return bad("it asks for nothing; give it a group of tasks");
    }
    if let Some(array) = &spec.array {
        let distinct: BTreeSet<&u32> = array.elements.iter().collect();
        if array.elements.is_empty() || distinct.len() != array.elements.len() {
            return bad("its array needs elements, each named once");
        }
        if array.at_most == Some(0) {
            return bad("its array may run no element at a time; allow at least one");
        }
    }
    let mut tasks: u64 = 0;
    for top in &spec.groups {
        group(state, spec.id, top, when)?;
        tasks += top.leaves().iter().map(|leaf| u64::from(leaf.count)).sum::<u64>();
    }
    if tasks > 1_000_000 {
        return bad("it has more than a million tasks; split it");
    }
    Ok(())
}

fn group(state: &State, job: JobId, spec: &GroupSpec, when: When) -> Result<(), Rejected> {
    let bad = |why: String| {
        let what = if spec.name.is_empty() {
            format!("job {job}")
        } else {
            format!("group {} of job {job}", spec.name)
        };
        Err(Rejected::BadJob { what, why })
    };
    levels(state, job, spec)?;
    if !spec.is_leaf() {
        if spec.min as usize > spec.groups.len() || spec.min == 0 {
            return bad(format!(
                "its minimum of {} does not fit its {} groups",
                spec.min,
                spec.groups.len()
            ));
        }
        return spec.groups.iter().try_for_each(|child| group(state, job, child, when));
    }
    if spec.count == 0 {
        return bad("it has no tasks; give it a count of 1 or more".to_owned());
    }
    if spec.min == 0 || spec.min > spec.count {
        return bad(format!(
            "its minimum of {} is not between 1 and its count of {}",
            spec.min, spec.count
        ));
    }
    let memory = spec.min_gpu_memory.map_or(0, |memory| memory.0);
    if spec.cpu.0 < 0 || spec.memory.0 < 0 || memory < 0 {
        return bad("it asks for a negative amount of CPU or memory".to_owned());
    }
    if [spec.cpu.0, spec.memory.0, memory].into_iter().any(too_large) {
        return bad("it asks for more CPU or memory than can be; check the unit".to_owned());
    }
    if let Some((resource, _)) = spec.counted.iter().find(|(_, n)| **n <= 0 || too_large(**n)) {
        return bad(format!("it asks for an amount of {resource} that cannot be; leave 0 out"));
    }
    if let Some(ask) = spec.models.iter().find(|ask| !(1..=1_000_000).contains(&ask.speed.0)) {
        return bad(format!("the speed of {} is not between 0.001 and 1000", ask.model));
    }
    if spec.spread.as_ref().is_some_and(|spread| spread.at_most == 0) {
        return bad("it may put no task in a domain; allow at least one".to_owned());
    }
    match &spec.gpus {
        GpuAsk::Whole { count: 0 } => {
            bad("it asks for 0 GPUs; leave GPUs out for a CPU task".to_owned())
        }
        GpuAsk::Fraction { milli, .. } if !(1..=1_000).contains(&milli.0) => {
            bad(format!("a share of {milli} GPUs is not between 0.001 and 1"))
        }
        GpuAsk::Memory { bytes, .. } if bytes.0 <= 0 => bad("it asks for no GPU memory".to_owned()),
        GpuAsk::Memory { bytes, .. } if too_large(bytes.0) => {
            bad("it asks for more GPU memory than can be; check the unit".to_owned())
        }
        GpuAsk::Mps { percent, .. } if !(1..=100).contains(percent) => {
            bad(format!("an MPS share of {percent} % is not between 1 and 100"))
        }
        GpuAsk::TimeSlice { of, .. } if !(1..=1_000).contains(of) => {
            bad(format!("one of {of} time slices makes no sense"))
        }
        GpuAsk::Mig { profile, .. } => {
            // A model that is asked for by name must have the profile.
            for ask in &spec.models {
                if MigProfile::find(&ask.model, profile).is_none() {
                    return Err(no_profile(job, profile, &ask.model));
                }
            }
            // Of the nodes there are, not of those there were: a loaded state knows no others.
            let nodes = || state.cluster.live().flat_map(|(_, node)| &node.spec.gpus);
            let mut models = nodes().map(|gpu| &gpu.model);
            let known = nodes().any(|gpu| MigProfile::find(&gpu.model, profile).is_some());
            let with_mig = nodes().map(|gpu| &gpu.model).find(|m| MigProfile::names(m).is_some());
            let Some(model) = with_mig.or_else(|| models.next()) else { return Ok(()) };
            let lacking = match when {
                When::Submitted => !known && state.pools.is_empty(),
                // It was fine when it was submitted; the nodes it could use may come back.
                When::Loaded => !known && !MigProfile::exists(profile),
            };
            if spec.models.is_empty() && lacking {
                return Err(no_profile(job, profile, model));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn no_profile(job: JobId, profile: &Name, model: &Name) -> Rejected {
    let has = MigProfile::names(model).map_or("none".to_owned(), |names| names.join(", "));
    Rejected::NoSuchProfile { job, profile: profile.clone(), model: model.clone(), has }
}

/// The levels a group names itself.
fn own_levels(spec: &GroupSpec) -> Vec<&Name> {
    let mut named: Vec<&Name> = Vec::new();
    if let Some(topology) = &spec.topology {
        named.extend(&topology.required);
        named.extend(&topology.preferred);
        named.extend(topology.segment.as_ref().map(|segment| &segment.within));
    }
    named.extend(spec.spread.as_ref().map(|spread| &spread.over));
    named.extend(spec.near.iter().map(|near| &near.within));
    named
}

/// The levels a group and those in it name, each with the topology it is to be found in.
fn all_levels<'a>(spec: &'a GroupSpec, found: &mut Vec<(Option<&'a Name>, &'a Name)>) {
    let within = spec.topology.as_ref().and_then(|topology| topology.within.as_ref());
    found.extend(own_levels(spec).into_iter().map(|level| (within, level)));
    spec.groups.iter().for_each(|group| all_levels(group, found));
}

/// Every level a group names must exist.
fn levels(state: &State, job: JobId, spec: &GroupSpec) -> Result<(), Rejected> {
    let within = spec.topology.as_ref().and_then(|topology| topology.within.as_ref());
    if let Some(segment) = spec.topology.as_ref().and_then(|topology| topology.segment.as_ref())
        && (segment.size == 0
            || !spec.count.is_multiple_of(segment.size)
            || !spec.min.is_multiple_of(segment.size))
    {
        let why = format!("segments of {} do not divide its {} tasks", segment.size, spec.count);
        return Err(Rejected::BadJob { what: format!("job {job}"), why });
    }
    for name in own_levels(spec) {
        if state.cluster.level(within, name).is_none() {
            let keys: Vec<&str> = state
                .cluster
                .topologies
                .iter()
                .flat_map(|(_, keys)| keys)
                .map(Name::as_str)
                .collect();
            let why = format!(
                "there is no topology level {name}; there are {}",
                [keys, vec!["node", "nvlink"]].concat().join(", ")
            );
            return Err(Rejected::BadJob { what: format!("job {job}"), why });
        }
    }
    Ok(())
}

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
        if !known.tasks.is_empty() && !same_machine(known, spec) {
            return Err(Rejected::NodeInUse { node: spec.name.clone() });
        }
    }
    Ok(())
}

/// Whether what runs on a node can go on when it is described so: it has the same GPUs, and CPU and
/// memory bind as they did, whatever there is of them.
pub(crate) fn same_machine(node: &Node, spec: &NodeSpec) -> bool {
    let known = &node.spec;
    let alike = |((old, new), gpu): ((&GpuSpec, &GpuSpec), &Gpu)| {
        (&old.model, old.memory) == (&new.model, new.memory) && same_pieces(gpu, old, new)
    };
    known.gpus.len() == spec.gpus.len()
        && known.gpus.iter().zip(&spec.gpus).zip(&node.gpus).all(alike)
        && known.nvlink == spec.nvlink
        && known.pool == spec.pool
        && known.cpu.is_some() == spec.cpu.is_some()
        && known.memory.is_some() == spec.memory.is_some()
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

pub(crate) fn queue(state: &State, spec: &QueueSpec) -> Result<(), Rejected> {
    amounts(spec)?;
    // Those below it that have a percentage of its quota would have one of nothing.
    let children = state.queues.find(&spec.name).into_iter();
    for child in children.flat_map(|ix| &state.queues.get(ix).children) {
        percentages(&state.queues.get(*child).spec, &spec.quota, &spec.name)?;
    }
    let Some(parent) = &spec.parent else {
        return Ok(());
    };
    let unknown = || Rejected::UnknownQueue { queue: parent.clone() };
    let parent_ix = state.queues.find(parent).ok_or_else(unknown)?;
    let own = state.queues.find(&spec.name);
    if *parent == spec.name
        || own.is_some_and(|own| state.queues.path(parent_ix).any(|up| up == own))
    {
        return Err(Rejected::QueueCycle { queue: spec.name.clone(), parent: parent.clone() });
    }
    let above = state.queues.get(parent_ix);
    if own.is_none_or(|own| state.queues.get(own).parent != Some(parent_ix))
        && above.children.is_empty()
        && state.jobs.iter().any(|(_, job)| job.queue == parent_ix)
    {
        return Err(Rejected::QueueInUse { queue: parent.clone() });
    }
    percentages(spec, &above.spec.quota, parent)
}

pub(crate) fn percentages(spec: &QueueSpec, above: &Quota, parent: &Name) -> Result<(), Rejected> {
    let share =
        |amount: Option<&Amount<berth_model::Milli>>| matches!(amount, Some(Amount::Share(_)));
    let quota = &spec.quota;
    let without =
        (share(quota.gpu.total.as_ref()) && above.gpu.total.is_none())
            || quota.gpu.models.iter().any(|(model, amount)| {
                share(Some(amount)) && !above.gpu.models.contains_key(model)
            })
            || (matches!(quota.cpu, Some(Amount::Share(_))) && above.cpu.is_none())
            || (matches!(quota.memory, Some(Amount::Share(_))) && above.memory.is_none());
    if without {
        return Err(Rejected::PercentOfNothing {
            queue: spec.name.clone(),
            parent: parent.clone(),
        });
    }
    Ok(())
}

fn amounts(spec: &QueueSpec) -> Result<(), Rejected> {
    fn negative<T: Copy>(amount: &Amount<T>, value: impl Fn(T) -> i64) -> bool {
        match amount {
            Amount::Of(amount) => value(*amount) < 0,
            Amount::Share(milli) => milli.0 < 0,
            Amount::Unlimited => false,
        }
    }
    let bad = |quota: &Quota| {
        quota.gpu.total.iter().chain(quota.gpu.models.values()).any(|a| negative(a, |m| m.0))
            || quota.cpu.iter().any(|a| negative(a, |c| c.0))
            || quota.memory.iter().any(|a| negative(a, |m| m.0))
    };
    let fields = [
        ("quota", &spec.quota),
        ("limit", &spec.limit),
        ("borrow", &spec.borrow),
        ("lend", &spec.lend),
        ("user_limit", &spec.user_limit),
    ];
    let field = fields.into_iter().find(|(_, quota)| bad(quota)).map(|(field, _)| field);
    let field = field.or((spec.weight.0 < 0).then_some("weight")).or(spec
        .budget
        .as_ref()
        .is_some_and(|b| b.limit.0 < 0)
        .then_some("budget"));
    if let Some(field) = field {
        return Err(Rejected::NegativeAmount { queue: spec.name.clone(), field });
    }
    fn huge<T: Copy>(amount: &Amount<T>, value: impl Fn(T) -> i64) -> bool {
        match amount {
            Amount::Of(amount) => too_large(value(*amount)),
            Amount::Share(milli) => milli.0 > 1_000_000,
            Amount::Unlimited => false,
        }
    }
    let huge = |quota: &Quota| {
        quota.gpu.total.iter().chain(quota.gpu.models.values()).any(|a| huge(a, |m| m.0))
            || quota.cpu.iter().any(|a| huge(a, |c| c.0))
            || quota.memory.iter().any(|a| huge(a, |m| m.0))
    };
    let field = fields.into_iter().find(|(_, quota)| huge(quota)).map(|(field, _)| field);
    let field = field.or(too_large(spec.weight.0).then_some("weight")).or(spec
        .budget
        .as_ref()
        .is_some_and(|b| too_large(b.limit.0))
        .then_some("budget"));
    let spans = [("min_runtime", spec.min_runtime), ("preempt_after", spec.preempt_after)];
    let mut spans = spans.into_iter().filter_map(|(name, span)| Some((name, span?)));
    let field = field.or(spans.find(|(_, span)| *span > LONGEST).map(|(name, _)| name));
    match field {
        Some(field) => Err(Rejected::AmountTooLarge { queue: spec.name.clone(), field }),
        None => Ok(()),
    }
}

pub(crate) fn policy(policy: &Policy) -> Result<(), Rejected> {
    let spans = [
        ("grace", policy.grace),
        ("stale", policy.stale),
        ("aging_max", policy.aging_max),
        ("min_runtime", policy.min_runtime),
        ("preempt_after", policy.preempt_after),
        ("restart_cost", policy.restart_cost),
        ("quantum", policy.quantum),
        ("idle_after", policy.idle_after),
    ];
    if let Some((name, _)) = spans.into_iter().find(|(_, span)| *span < Span::ZERO) {
        return Err(Rejected::BadPolicy { why: format!("{name} is negative") });
    }
    let more = [
        ("default_time_limit", policy.default_time_limit),
        ("half_life", policy.half_life),
        ("credit_cap", policy.credit_cap),
        ("forecast_horizon", policy.forecast_horizon),
    ];
    if let Some((name, _)) = spans.into_iter().chain(more).find(|(_, span)| *span > LONGEST) {
        return Err(Rejected::BadPolicy {
            why: format!("{name} is over a hundred years; check its unit"),
        });
    }
    if policy.default_time_limit <= Span::ZERO || policy.half_life <= Span::ZERO {
        return Err(Rejected::BadPolicy {
            why: "default_time_limit and half_life must be longer than nothing".to_owned(),
        });
    }
    Ok(())
}
