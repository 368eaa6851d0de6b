//! Jobs with volumes of drivers that limit how many volumes a node attaches.

use crate::constraints::dynamic::{Locks, PodQuery};
use crate::state::ClusterState;
use berth_engine::Turn;
use berth_kube::object::{Attachable, Text};
use berth_model::JobId;
use std::collections::{BTreeMap, BTreeSet};

impl ClusterState {
    /// Jobs with volumes of one driver wait for one another only where some node can attach the
    /// volumes of one of them, but not of all released jobs. Elsewhere they fit on any node.
    pub(super) fn lock_drivers(&mut self, job: JobId, locks: &mut Locks) {
        let attaches = self.attaches(job);
        for (driver, wants) in &attaches {
            let many = wants + self.constrained_jobs.pending(job, driver);
            if self.constrained_jobs.volumes.attached.is_tight(driver, many) {
                locks.reads.insert(PodQuery::Driver(driver.clone()));
            }
            locks.writes.insert(PodQuery::Driver(driver.clone()));
        }
        if let Some(constrained) = self.constrained_jobs.waiting.get_mut(&job) {
            constrained.attaches = attaches;
        }
    }

    /// How many volumes the pods of a job have attached, of each driver: one that no node limits may
    /// be limited later.
    fn attaches(&self, job: JobId) -> BTreeMap<Text, i64> {
        let volumes = &self.constrained_jobs.volumes;
        let views = self.views(job);
        let constraints = views.iter().filter_map(|view| view.constraints.as_deref());
        let all: BTreeSet<Attachable> =
            constraints.flat_map(|constraints| volumes.attachables(constraints)).collect();
        let mut counts = BTreeMap::new();
        for what in all {
            *counts.entry(what.driver).or_default() += 1;
        }
        counts
    }

    /// Computes the nodes again of released gangs whose nodes were divided among their pods: other
    /// nodes may have room by now, and no event reports that.
    pub(super) fn divide_again(&mut self, turn: &mut Turn<'_>) {
        let mut jobs = self.constrained_jobs.released(Some(turn.at));
        jobs.retain(|job| {
            self.constrained_jobs.waiting.get(job).is_some_and(|constrained| constrained.is_divided)
        });
        // Places that are kept for a job are not taken from it for others that may be better.
        jobs.retain(|job| !turn.core.state.is_promised(*job));
        self.recheck(turn, jobs);
    }

    /// Whether a released job has to wait again, because other released jobs want volumes of the
    /// same driver and nodes can attach fewer by now than all of them want.
    pub(super) fn clashes_by_now(&mut self, job: JobId) -> bool {
        let Some(constrained) = self.constrained_jobs.waiting.get_mut(&job) else { return false };
        if constrained.attaches.is_empty() {
            return false;
        }
        let mut locks = std::mem::take(&mut constrained.locks);
        locks.reads.retain(|read| !matches!(read, PodQuery::Driver(_)));
        self.lock_drivers(job, &mut locks);
        let clashes = self.constrained_jobs.clashes(job, &locks);
        if let Some(constrained) = self.constrained_jobs.waiting.get_mut(&job) {
            constrained.locks = locks;
        }
        clashes
    }
}
