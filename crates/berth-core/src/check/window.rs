//! Time: what is promised to waiting jobs and kept by operators stays free when its time comes.

use crate::check::finding::FindingCode;
use crate::check::overlay::{Hold, Overlay};
use crate::check::place::{Fault, counted, crowded, group_of};
use crate::check::tenants;
use crate::ix::{JobIx, NodeIx, TaskIx};
use berth_model::{Name, NodeState, Place, Share, Slice, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A holding of places on one node for a time, by a task that starts or a promise.
pub(super) struct Window<'a> {
    pub job: JobIx,
    pub node: NodeIx,
    pub from: Time,
    pub until: Time,
    /// What the promise asks for itself; a start is already among the leases.
    pub places: Vec<&'a Place>,
    /// GPUs to look at.
    pub gpus: Vec<u32>,
}

/// What of one node is promised to another job at some time.
struct Other {
    task: TaskIx,
    from: Time,
    to: Time,
    slices: Vec<Slice>,
    cpu: i64,
    memory: i64,
}

impl Window<'_> {
    /// Whether the node may be held by the job for that time.
    pub fn node_faults(&self, view: &Overlay<'_>) -> Vec<Fault> {
        let node = view.state.cluster.node(self.node);
        let name = &node.spec.name;
        let mut found = Vec::new();
        let closed = match node.spec.state {
            _ if node.removed => Some(format!("{name} is gone")),
            NodeState::Ready => None,
            NodeState::Leaving { at } if self.until <= at => None,
            NodeState::Leaving { at } => Some(format!("{name} leaves at {at}, before it ends")),
            NodeState::Cordoned | NodeState::Draining | NodeState::Troubled | NodeState::Failed => {
                Some(format!("{name} takes no work"))
            }
        };
        found.extend(closed.map(|text| (FindingCode::NodeClosed, text)));
        let queue = view.base(self.job).queue;
        let in_the_way = node.blocks.iter().find(|block| {
            block.owner != Some(queue) && self.until > block.from && self.from < block.to
        });
        if let Some(block) = in_the_way {
            let text = format!("{name} is reserved by an operator from {}", block.from);
            found.push((FindingCode::NodeReserved, text));
        }
        found
    }

    /// Whether everything fits together whenever a promise to another job begins meanwhile.
    pub fn promise_faults(&self, view: &mut Overlay<'_>) -> Vec<Fault> {
        // A start so late that its own promise is over is owed the places all the same.
        if self.until <= self.from {
            return Vec::new();
        }
        let others = self.others(view);
        let mut instants: Vec<Time> = Vec::new();
        if !self.places.is_empty() {
            instants.push(self.from);
        }
        instants.extend(others.iter().map(|other| other.from.max(self.from)));
        instants.sort_unstable();
        instants.dedup();
        if instants.is_empty() {
            return Vec::new();
        }
        let tasks = view.node(self.node).tasks.clone();
        let mut found = Vec::new();
        for instant in instants {
            let there: Vec<&Other> =
                others.iter().filter(|o| o.from <= instant && instant < o.to).collect();
            found.extend(self.crowding(view, &tasks, &there, instant));
            found.extend(self.strangers(view, &tasks, &there, instant));
            found.extend(self.shortage(view, &tasks, &there, instant));
            found.extend(self.counts(view, &tasks, &there, instant));
            if !found.is_empty() {
                break;
            }
        }
        found
    }

    fn others(&self, view: &mut Overlay<'_>) -> Vec<Other> {
        let mut found = Vec::new();
        for job in view.node(self.node).kept.clone() {
            let Some(kept) = view.promised_places(job).filter(|_| job != self.job) else {
                continue;
            };
            if kept.at >= self.until || kept.to <= self.from {
                continue;
            }
            for (node, place) in &kept.places {
                if *node != self.node {
                    continue;
                }
                let group = group_of(&view.base(job).spec, place.task);
                found.push(Other {
                    task: TaskIx { job, task: place.task },
                    from: kept.at,
                    to: kept.to,
                    slices: place.slices.clone(),
                    cpu: group.map_or(0, |(group, _)| group.cpu.0),
                    memory: group.map_or(0, |(group, _)| group.memory.0),
                });
            }
        }
        found
    }

    /// GPUs that would be held beyond their capacity at that time.
    fn crowding(
        &self,
        view: &Overlay<'_>,
        tasks: &[TaskIx],
        others: &[&Other],
        instant: Time,
    ) -> Vec<Fault> {
        let node = &view.state.cluster.node(self.node).spec;
        let mut found = Vec::new();
        let touches =
            |task: &TaskIx| view.slices(*task).iter().any(|slice| self.gpus.contains(&slice.gpu));
        let holds = tasks
            .iter()
            .filter(|task| touches(task))
            .filter_map(|task| view.hold(*task).filter(|hold| view.ends(*task, hold) > instant));
        let holds: Vec<Arc<Hold>> = holds.collect();
        for gpu in &self.gpus {
            let Some(spec) = node.gpus.get(*gpu as usize) else { continue };
            let on_gpu = |slice: &&Slice| slice.gpu == *gpu;
            let slices = holds.iter().flat_map(|hold| &hold.slices);
            let mut held: Vec<Share> = slices.filter(on_gpu).map(|s| s.share.clone()).collect();
            let running = held.len();
            held.extend(
                self.places
                    .iter()
                    .flat_map(|place| &place.slices)
                    .filter(on_gpu)
                    .map(|slice| slice.share.clone()),
            );
            let own = held.len();
            for other in others {
                held.extend(other.slices.iter().filter(on_gpu).map(|s| s.share.clone()));
            }
            let all: Vec<&Share> = held.iter().collect();
            let Some(why) = crowded(spec, &all) else { continue };
            // Without the promises of others it would be its own or running tasks' fault.
            let promised = held.len() > own;
            let code = match promised {
                true => FindingCode::Promised,
                false => FindingCode::NotFree,
            };
            // A start beside nothing promised is judged where it takes the GPU.
            if promised || own > running {
                let text = format!("GPU {gpu} of {} at {instant}: {why}", node.name);
                found.push((code, text));
            }
        }
        found
    }

    /// Shares of other queues that its own would lie beside at that time and may not.
    fn strangers(
        &self,
        view: &Overlay<'_>,
        tasks: &[TaskIx],
        others: &[&Other],
        instant: Time,
    ) -> Vec<Fault> {
        let here = |slice: &&Slice| self.gpus.contains(&slice.gpu);
        let holds = view.holds(self.job);
        let held = holds.iter().filter(|(_, hold)| hold.node == self.node);
        let held = held.flat_map(|(_, hold)| &hold.slices).filter(here);
        let promised = self.places.iter().flat_map(|place| &place.slices);
        let own: Vec<Slice> = promised.chain(held).cloned().collect();
        let running = |task: &TaskIx| {
            let hold = view.hold(*task).filter(|hold| view.ends(*task, hold) > instant)?;
            Some((task.job, hold))
        };
        // What runs beside a start is judged where it takes the GPU.
        let tasks = if self.places.is_empty() { &[] } else { tasks };
        let running: Vec<(JobIx, Arc<Hold>)> = tasks.iter().filter_map(running).collect();
        let running =
            running.iter().flat_map(|(job, hold)| hold.slices.iter().map(|slice| (*job, slice)));
        let kept = others.iter().flat_map(|other| other.slices.iter().map(|s| (other.task.job, s)));
        tenants::faults(view, self.job, self.node, &own, running.chain(kept))
    }

    /// CPU and memory that would be short at that time.
    fn shortage(
        &self,
        view: &Overlay<'_>,
        tasks: &[TaskIx],
        others: &[&Other],
        instant: Time,
    ) -> Vec<Fault> {
        let node = &view.state.cluster.node(self.node).spec;
        if (node.cpu.is_none() && node.memory.is_none())
            || (others.is_empty() && self.places.is_empty())
        {
            return Vec::new();
        }
        let (mut cpu, mut memory) = (0, 0);
        for task in tasks {
            let Some(hold) = view.hold(*task) else { continue };
            if view.ends(*task, &hold) > instant {
                cpu += hold.amounts.cpu;
                memory += hold.amounts.memory;
            }
        }
        let (mut own_cpu, mut own_memory) = (0, 0);
        for place in &self.places {
            if let Some((group, _)) = group_of(&view.base(self.job).spec, place.task) {
                own_cpu += group.cpu.0;
                own_memory += group.memory.0;
            }
        }
        if self.places.is_empty() {
            // The task that starts is among the leases: does it ask for any at all?
            let own = |task: &&TaskIx| task.job == self.job;
            let asks = |task: &TaskIx| view.hold(*task).map(|hold| hold.amounts.clone());
            let asked: Vec<_> = tasks.iter().filter(own).filter_map(asks).collect();
            own_cpu = asked.iter().map(|amounts| amounts.cpu).sum();
            own_memory = asked.iter().map(|amounts| amounts.memory).sum();
        } else {
            cpu += own_cpu;
            memory += own_memory;
        }
        cpu += others.iter().map(|other| other.cpu).sum::<i64>();
        memory += others.iter().map(|other| other.memory).sum::<i64>();
        let mut found = Vec::new();
        if own_cpu > 0 && node.cpu.is_some_and(|has| cpu > has.0) {
            found.push((FindingCode::Cpu, format!("{} is short of CPU at {instant}", node.name)));
        }
        if own_memory > 0 && node.memory.is_some_and(|has| memory > has.0) {
            let text = format!("{} is short of memory at {instant}", node.name);
            found.push((FindingCode::Memory, text));
        }
        found
    }

    /// Tasks beyond what the node takes at that time, and what it would be short of that it counts.
    fn counts(
        &self,
        view: &Overlay<'_>,
        tasks: &[TaskIx],
        others: &[&Other],
        instant: Time,
    ) -> Vec<Fault> {
        let node = &view.state.cluster.node(self.node).spec;
        if others.is_empty() && self.places.is_empty() {
            return Vec::new();
        }
        let there = |task: &&TaskIx| {
            view.hold(**task).is_some_and(|hold| view.ends(**task, &hold) > instant)
        };
        let mut all: Vec<TaskIx> = tasks.iter().filter(there).copied().collect();
        all.extend(self.places.iter().map(|place| TaskIx { job: self.job, task: place.task }));
        all.extend(others.iter().map(|other| other.task));
        let mut found = Vec::new();
        if node.tasks.is_some_and(|most| all.len() > most as usize) {
            let text = format!("{} takes fewer tasks at {instant}", node.name);
            found.push((FindingCode::Tasks, text));
        }
        let group = |task: &TaskIx| Some(group_of(&view.base(task.job).spec, task.task)?.0);
        let own = all.iter().filter(|task| task.job == self.job).filter_map(group);
        let own: BTreeSet<&Name> = own.flat_map(|group| group.counted.keys()).collect();
        if own.is_empty() {
            return found;
        }
        for (resource, sum) in counted(all.iter().filter_map(group)) {
            let has = node.counted.get(resource).copied().unwrap_or(0);
            if own.contains(resource) && sum > has {
                let text = format!("{} is short of {resource} at {instant}", node.name);
                found.push((FindingCode::Counted, text));
            }
        }
        found
    }
}
