//! A job as a whole after a transaction: its minimum, and where its tasks lie to one another and
//! to other jobs.

use crate::check::finding::FindingCode;
use crate::check::overlay::Overlay;
use crate::check::place::{Fault, group_of, island};
use crate::ix::{JobIx, NodeIx, TaskIx};
use crate::state::State;
use berth_model::{GroupSpec, JobTarget, Name, NodeState, Slice};
use std::collections::{BTreeMap, BTreeSet};

/// Where one task is, or would be.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    pub task: u32,
    pub node: NodeIx,
    pub slices: Vec<Slice>,
}

/// Tasks of the job that run: ended ones count towards the minimum, but lie nowhere.
pub(super) fn spots_now(view: &Overlay<'_>, ix: JobIx) -> Vec<Spot> {
    let live = view.holds(ix).into_iter().filter(|(_, hold)| hold.stopping.is_none());
    live.map(|(task, hold)| Spot { task, node: hold.node, slices: hold.slices.clone() }).collect()
}

/// Tasks that count towards the minimum: those that run on a node that is there, and ended ones.
pub(super) fn counting(view: &Overlay<'_>, ix: JobIx) -> BTreeSet<u32> {
    let job = view.base(ix);
    let counts = |task: &u32| {
        if job.tasks[*task as usize].done {
            return true;
        }
        let hold = view.hold(TaskIx { job: ix, task: *task });
        hold.is_some_and(|hold| {
            let state = view.state.cluster.node(hold.node).spec.state;
            hold.stopping.is_none() && state != NodeState::Failed
        })
    };
    (0..job.tasks.len() as u32).filter(counts).collect()
}

/// Groups that have some of their tasks but not their minimum, or are missing altogether.
pub(super) fn below_minimum(groups: &[GroupSpec], has: &BTreeSet<u32>) -> Option<String> {
    let mut first = 0;
    let mut all = true;
    let mut half = None;
    for group in groups {
        let (whole, started) = complete(group, &mut first, has);
        all &= whole;
        half = half.or(started);
    }
    if !all {
        return Some("a group it cannot do without is below its minimum".to_owned());
    }
    half
}

/// Whether a group has its minimum; and a leaf below it that has started short of its own.
fn complete(group: &GroupSpec, first: &mut u32, has: &BTreeSet<u32>) -> (bool, Option<String>) {
    if group.is_leaf() {
        let own = *first..*first + group.count;
        *first += group.count;
        let n = has.range(own).count() as u32;
        let half = (n > 0 && n < group.min).then(|| {
            format!("group {} would run {n} of its minimum of {} tasks", group.name, group.min)
        });
        return (n >= group.min, half);
    }
    let mut whole = 0;
    let mut half = None;
    for child in &group.groups {
        let (is, started) = complete(child, first, has);
        whole += u32::from(is);
        half = half.or(started);
    }
    (whole >= group.min, half)
}

/// A domain: the values of a topology's labels from the top down, a node, or an island of one.
type Domain = (Vec<Name>, Option<NodeIx>, usize);

/// A level as a request names it.
enum Level<'a> {
    Nvlink,
    Node,
    /// The keys down to the one that was named.
    Labels(&'a [Name]),
}

fn level<'a>(state: &'a State, within: Option<&Name>, name: &str) -> Option<Level<'a>> {
    match name {
        "nvlink" => return Some(Level::Nvlink),
        "node" => return Some(Level::Node),
        _ => {}
    }
    let wanted = within.map_or("default", Name::as_str);
    let (_, keys) = state.cluster.topologies.iter().find(|(name, _)| name.as_str() == wanted)?;
    let depth = keys.iter().position(|key| key.as_str() == name)?;
    Some(Level::Labels(&keys[..=depth]))
}

/// The domains of the level that a node and its slices lie in: more than one only where GPUs of
/// several islands are held, none where the node lacks a label.
fn domains(state: &State, level: &Level<'_>, node: NodeIx, slices: &[Slice]) -> Vec<Domain> {
    let spec = &state.cluster.node(node).spec;
    match level {
        Level::Node => vec![(Vec::new(), Some(node), 0)],
        Level::Nvlink if slices.is_empty() => vec![(Vec::new(), Some(node), 0)],
        Level::Nvlink => {
            let islands: BTreeSet<usize> =
                slices.iter().map(|slice| island(spec, slice.gpu)).collect();
            islands.into_iter().map(|island| (Vec::new(), Some(node), island)).collect()
        }
        Level::Labels(keys) => {
            let path: Option<Vec<Name>> =
                keys.iter().map(|key| spec.labels.get(key).cloned()).collect();
            path.into_iter().map(|path| (path, None, 0)).collect()
        }
    }
}

fn together(state: &State, level: &Level<'_>, spots: &[&Spot]) -> bool {
    let nodes: BTreeSet<NodeIx> = spots.iter().map(|spot| spot.node).collect();
    // One node is in one rack, whether or not it says in which.
    if nodes.len() <= 1 && !matches!(level, Level::Nvlink) {
        return true;
    }
    let mut found: BTreeSet<Domain> = BTreeSet::new();
    for spot in spots {
        let here = domains(state, level, spot.node, &spot.slices);
        if here.is_empty() {
            return false;
        }
        found.extend(here);
    }
    found.len() <= 1
}

/// Required levels, segments and spread, over all tasks of each group.
pub(super) fn topology_faults(state: &State, groups: &[GroupSpec], spots: &[Spot]) -> Vec<Fault> {
    let mut found = Vec::new();
    let mut first = 0;
    for group in groups {
        of_group(state, group, &mut first, spots, &mut found);
    }
    found
}

fn of_group(
    state: &State,
    group: &GroupSpec,
    first: &mut u32,
    spots: &[Spot],
    found: &mut Vec<Fault>,
) {
    let begin = *first;
    match group.is_leaf() {
        true => *first += group.count,
        false => {
            for child in &group.groups {
                of_group(state, child, first, spots, found);
            }
        }
    }
    let own: Vec<&Spot> =
        spots.iter().filter(|spot| (begin..*first).contains(&spot.task)).collect();
    let within = group.topology.as_ref().and_then(|ask| ask.within.as_ref());
    if let Some(ask) = &group.topology {
        let required = ask.required.as_ref().and_then(|name| level(state, within, name));
        if required.is_some_and(|level| !together(state, &level, &own)) {
            let name = ask.required.as_ref().map_or("", Name::as_str);
            let text = format!("group {} must lie in one {name} and does not", group.name);
            found.push((FindingCode::Topology, text));
        }
        if let Some(segment) = ask.segment.as_ref().filter(|segment| segment.size > 0)
            && let Some(level) = level(state, within, &segment.within)
        {
            let mut blocks: BTreeMap<u32, Vec<&Spot>> = BTreeMap::new();
            for spot in &own {
                blocks.entry((spot.task - begin) / segment.size).or_default().push(spot);
            }
            if let Some((n, _)) = blocks.iter().find(|(_, own)| !together(state, &level, own)) {
                let text = format!("segment {n} of group {} is split up", group.name);
                found.push((FindingCode::Segment, text));
            }
        }
    }
    if let Some(spread) = &group.spread
        && let Some(level) = level(state, within, &spread.over)
    {
        let mut counts: BTreeMap<Domain, u32> = BTreeMap::new();
        for spot in &own {
            for domain in domains(state, &level, spot.node, &spot.slices) {
                *counts.entry(domain).or_default() += 1;
            }
        }
        if let Some(most) = counts.values().max().filter(|most| **most > spread.at_most) {
            let text = format!(
                "{most} tasks of group {} share one {}; {} may",
                group.name, spread.over, spread.at_most
            );
            found.push((FindingCode::Spread, text));
        }
    }
}

/// Near and away: where the tasks that start now lie to the jobs that are named.
pub(super) fn near_faults(view: &Overlay<'_>, ix: JobIx, started: &[Spot]) -> Vec<Fault> {
    let state = view.state;
    let mut found = Vec::new();
    let mut known: BTreeMap<(JobTarget, Name, Option<Name>), BTreeSet<Domain>> = BTreeMap::new();
    for spot in started {
        let Some((group, _)) = group_of(&view.base(ix).spec, spot.task) else { continue };
        let within = group.topology.as_ref().and_then(|ask| ask.within.as_ref());
        for near in &group.near {
            // Islands of other jobs differ by node only.
            let name = if near.within.as_str() == "nvlink" { "node" } else { &near.within };
            let Some(level) = level(state, within, name) else { continue };
            let theirs = known
                .entry((near.target.clone(), near.within.clone(), within.cloned()))
                .or_insert_with(|| where_they_run(view, ix, &near.target, &level));
            let here = domains(state, &level, spot.node, &[]);
            let there = here.iter().any(|domain| theirs.contains(domain));
            if there == near.away {
                let wish = if near.away { "away from" } else { "near" };
                let text =
                    format!("task {} must run {wish} {:?} and does not", spot.task, near.target);
                found.push((FindingCode::Near, text));
            }
        }
    }
    found
}

fn where_they_run(
    view: &Overlay<'_>,
    own: JobIx,
    target: &JobTarget,
    level: &Level<'_>,
) -> BTreeSet<Domain> {
    let state = view.state;
    let jobs: Vec<JobIx> = match target {
        JobTarget::Name(name) => {
            let from = (name.clone(), Name::default());
            let named = state.named.range(from..).take_while(|((other, _), _)| other == name);
            named.flat_map(|(_, ids)| ids).filter_map(|id| state.jobs.find(*id)).collect()
        }
        JobTarget::Label { key, value } => {
            let ids = state.labelled.get(&(key.clone(), value.clone()));
            ids.into_iter().flatten().filter_map(|id| state.jobs.find(*id)).collect()
        }
    };
    let mut found = BTreeSet::new();
    for job in jobs.into_iter().filter(|job| *job != own && view.has_leases(*job)) {
        for (_, hold) in view.holds(job) {
            found.extend(domains(state, level, hold.node, &[]));
        }
    }
    found
}
