//! Requests with something changed.

use crate::ix::JobIx;
use crate::jobs::Task;
use crate::state::State;
use berth_model::{GroupSpec, JobSpec, Name};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Gives a job that does not run another spec, in its place in line.
pub(super) fn respec(state: &mut State, ix: JobIx, spec: JobSpec) {
    state.unpromise(ix);
    let waiting = state.is_waiting(ix);
    if waiting {
        state.dequeue(ix);
    }
    let queue = state.jobs.get(ix).queue;
    let shape = state.intern_shape(&spec.groups, spec.lifecycle, queue);
    let tasks = state.shapes[shape.at()].tasks as usize;
    let elastic = state.shapes[shape.at()].elastic();
    let job = state.jobs.get_mut(ix);
    let before = std::mem::replace(&mut job.shape, shape);
    job.tasks = vec![Task::default(); tasks];
    job.spec = Arc::new(spec);
    let id = job.id;
    if elastic {
        state.elastic.insert(id);
    } else {
        state.elastic.remove(&id);
    }
    state.drop_shape(before);
    if waiting {
        state.enqueue(ix);
    }
}

/// The groups with a change made to each, those of groups too.
pub(super) fn each(groups: &[GroupSpec], change: &dyn Fn(&mut GroupSpec)) -> Vec<GroupSpec> {
    let changed = |group: &GroupSpec| {
        let mut group = GroupSpec { groups: each(&group.groups, change), ..group.clone() };
        change(&mut group);
        group
    };
    groups.iter().map(changed).collect()
}

pub(super) fn leaves(groups: &[GroupSpec]) -> Vec<&GroupSpec> {
    groups.iter().flat_map(GroupSpec::leaves).collect()
}

/// Levels inside one domain of which some tasks must lie.
pub(super) fn levels(groups: &[GroupSpec]) -> BTreeSet<Name> {
    let mut found = BTreeSet::new();
    for group in groups {
        if let Some(topology) = &group.topology {
            found.extend(topology.required.clone());
            found.extend(topology.segment.as_ref().map(|segment| segment.within.clone()));
        }
        found.extend(levels(&group.groups));
    }
    found
}
