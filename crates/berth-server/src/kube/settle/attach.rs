//! Jobs whose pods have volumes of drivers of which a node attaches so many and no more.

use crate::engine::Turn;
use crate::kube::dynamic::{Locks, Watch};
use crate::kube::mirror::Mirror;
use berth_kube::object::{Attachable, Text};
use berth_model::JobId;
use std::collections::{BTreeMap, BTreeSet};

impl Mirror {
    /// Those that have volumes of one driver attached wait for one another only where some node has
    /// room for one of them, and not for all that were let go: elsewhere they fit, wherever they
    /// come to lie.
    pub(super) fn lock_drivers(&mut self, job: JobId, locks: &mut Locks) {
        let attaches = self.attaches(job);
        for (driver, wants) in &attaches {
            let many = wants + self.dynamics.pending(job, driver);
            if self.dynamics.volumes.attached.is_tight(driver, many) {
                locks.reads.insert(Watch::Driver(driver.clone()));
            }
            locks.writes.insert(Watch::Driver(driver.clone()));
        }
        if let Some(tied) = self.dynamics.waiting.get_mut(&job) {
            tied.attaches = attaches;
        }
    }

    /// How many volumes the pods of a job have attached, of each driver that some node limits.
    fn attaches(&self, job: JobId) -> BTreeMap<Text, i64> {
        let volumes = &self.dynamics.volumes;
        let sights = self.sights(job);
        let ties = sights.iter().filter_map(|sight| sight.ties.as_deref());
        let all = ties.flat_map(|ties| volumes.attachables(ties));
        let all = all.filter(|what| volumes.attached.is_limited(&what.driver));
        let all: BTreeSet<Attachable> = all.collect();
        let mut counts = BTreeMap::new();
        for what in all {
            *counts.entry(what.driver).or_default() += 1;
        }
        counts
    }

    /// Gangs that were let go on nodes that were divided among their pods: other nodes have room by
    /// now, of which nobody tells.
    pub(super) fn divide_again(&mut self, turn: &mut Turn<'_>) {
        let mut jobs = self.dynamics.let_go(turn.at);
        jobs.retain(|job| self.dynamics.waiting.get(job).is_some_and(|tied| tied.is_divided));
        self.look_again(turn, jobs);
    }
}
