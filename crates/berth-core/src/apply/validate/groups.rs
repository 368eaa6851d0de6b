//! The groups of tasks of a job.

use crate::apply::validate::limits::too_large;
use crate::state::State;
use berth_model::{GpuAsk, GroupSpec, JobId, MigProfile, Name, Rejected};

/// Whether a job is new, or part of a state that has taken it already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobOrigin {
    Submitted,
    Loaded,
}

pub(crate) fn group(
    state: &State,
    job: JobId,
    spec: &GroupSpec,
    origin: JobOrigin,
) -> Result<(), Rejected> {
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
        return spec.groups.iter().try_for_each(|child| group(state, job, child, origin));
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
            let lacking = match origin {
                JobOrigin::Submitted => !known && state.pools.is_empty(),
                // It was fine when it was submitted; the nodes it could use may come back.
                JobOrigin::Loaded => !known && !MigProfile::exists(profile),
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
pub(crate) fn all_levels<'a>(spec: &'a GroupSpec, found: &mut Vec<(Option<&'a Name>, &'a Name)>) {
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
