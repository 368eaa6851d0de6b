//! Looking through the books: at every moment when all that follows from it has been decided, and
//! at the end.

use super::{Auditor, Job};
use crate::faults::bounds::Bounds;
use crate::faults::{Class, Finding, Violation};
use berth_model::{BudgetAction, GpuAsk, GroupSpec, JobId, Name, Slice, Snapshot, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

impl Auditor {
    pub fn settled(&mut self, at: Time) -> Result<(), Violation> {
        let broken = |class, text| Err(Violation { class, at, text });
        let alive = self.jobs.iter().filter(|(_, job)| job.ended.is_none());
        let ids: Vec<JobId> = alive.map(|(id, _)| *id).collect();
        for id in ids {
            let holds = self.of(id).next().is_some();
            let live = self.of(id).any(|(_, open)| !open.stopping);
            let short = live && !self.is_whole(id);
            if live && let Some(finding) = self.overstays(id, at) {
                return Err(finding.at(at));
            }
            let stale = self.stale;
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            if job.cancelled && !holds {
                return broken(Class::LostJob, format!("job {id} was cancelled and never ended"));
            }
            if !short {
                job.short = None;
                continue;
            }
            let since = *job.short.get_or_insert(at);
            if since + stale <= at && since < at || stale == Span::ZERO {
                return broken(
                    Class::HalfGang,
                    format!("job {id} is below its minimum since {since}"),
                );
            }
        }
        Ok(())
    }

    /// Why a job that runs should have been stopped: its budget is spent, or somebody else keeps
    /// a node it is on.
    fn overstays(&self, id: JobId, at: Time) -> Option<Finding> {
        let spec = &self.jobs.get(&id)?.spec;
        if !spec.preemptible {
            return None;
        }
        if let Some((queue, BudgetAction::Pause)) = self.bounds.stops(&spec.queue, at) {
            let text = format!("job {id} runs on the spent budget of {queue}");
            return Some(Finding { class: Class::Bound, text });
        }
        let live = self.of(id).filter(|(_, open)| !open.stopping).map(|(_, open)| &open.node);
        let nodes: BTreeSet<&Name> = live.collect();
        let keeps = self.reservations.values().find(|reservation| {
            let now =
                reservation.from <= at && at < reservation.to && reservation.owner != spec.queue;
            now && reservation.nodes.iter().any(|node| nodes.contains(node))
        })?;
        let text = format!("job {id} runs where {} is kept", keeps.name);
        Some(Finding { class: Class::ClosedNode, text })
    }

    /// Every job is exactly where the state says it is, and all money is accounted for.
    pub fn compare(&self, snapshot: &Snapshot, at: Time) -> Result<(), Violation> {
        let found = self.differs(snapshot, at);
        found.map_err(|finding| finding.at(at))
    }

    fn differs(&self, snapshot: &Snapshot, at: Time) -> Result<(), Finding> {
        let lost = |text| super::wrong(Class::LostJob, text);
        let mut seen = BTreeSet::new();
        for job in &snapshot.jobs {
            let id = job.id();
            if !seen.insert(id) || self.jobs.get(&id).is_none_or(|job| job.ended.is_some()) {
                return lost(format!("job {id} is in the state and should not be"));
            }
            let held: BTreeMap<u32, (&Name, &[Slice])> =
                job.leases.iter().map(|l| (l.task, (&l.node, l.slices.as_slice()))).collect();
            let ours: BTreeMap<u32, (&Name, &[Slice])> = self
                .of(id)
                .map(|(l, open)| (l.task, (&open.node, open.slices.as_slice())))
                .collect();
            if held != ours {
                return lost(format!("job {id} holds other GPUs in the state than in the log"));
            }
        }
        let missing = self.jobs.iter().find(|(id, job)| job.ended.is_none() && !seen.contains(id));
        if let Some((id, _)) = missing {
            return lost(format!("job {id} was submitted and is nowhere"));
        }
        let theirs: BTreeSet<&Name> = snapshot.nodes.iter().map(|node| &node.spec.name).collect();
        if theirs != self.nodes.keys().collect() {
            let text = format!("{theirs:?} are in the state and other nodes in the log");
            return super::wrong(Class::Claims, text);
        }
        self.claims.agree(snapshot)?;
        for queue in snapshot.queues.iter().filter(|queue| queue.spec.budget.is_some()) {
            let ours = self.bounds.spent(&queue.spec, at);
            if ours != i128::from(queue.spent.0) {
                let name = &queue.spec.name;
                let text = format!("{name} has spent {} by its meter and {ours}", queue.spent.0);
                return super::wrong(Class::Money, format!("{text} by its rows"));
            }
        }
        self.money.all_settled(at)
    }

    /// Jobs that nothing keeps from running, if nothing at all is held: their turn has come, money
    /// is left, and what they ask for is plain enough to tell here whether it fits.
    pub fn left_waiting(&self, at: Time) -> Vec<(JobId, &[GroupSpec])> {
        if !self.open.is_empty() {
            return Vec::new();
        }
        let free = |job: &Job| {
            let spec = &job.spec;
            let bounded = |queue| Bounds::limit(queue).is_some();
            // One that may not be preempted does not borrow, so it may wait for ever.
            spec.preemptible
                && spec.lifecycle.is_none()
                && spec.groups.iter().all(plain)
                && self.released(spec)
                && self.bounds.stops(&spec.queue, at).is_none()
                && !self.bounds.path(&spec.queue).any(bounded)
        };
        let left = self.jobs.iter().filter(|(_, job)| job.ended.is_none() && free(job));
        left.map(|(id, job)| (*id, job.spec.groups.as_slice())).collect()
    }

    pub fn ended_count(&self) -> usize {
        self.jobs.values().filter(|job| job.ended.is_some()).count()
    }
}

/// Whether any GPUs will do, anywhere.
fn plain(group: &GroupSpec) -> bool {
    group.is_leaf()
        && group.topology.is_none()
        && group.spread.is_none()
        && group.models.is_empty()
        && !matches!(group.gpus, GpuAsk::Mig { .. })
}
