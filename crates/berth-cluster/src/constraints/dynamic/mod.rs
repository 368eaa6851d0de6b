//! Rules about other pods, and volumes: on which nodes a pod may be depends on where others are.
//!
//! A job whose pods have such rules, or are meant by those of others, is held until it is let go
//! with the nodes it may lie on, worked out from where everybody is at that moment. Jobs that
//! concern each other are let go one at a time, and the next one when the first has its places: so
//! what was worked out is still true when the core decides. Whoever finds no place goes to the end
//! of the line, so nobody blocks the others.

mod attach;
mod attached;
mod capacity;
mod choose;
mod index;
mod preferred;
mod reach;
mod storage_updates;
mod volumes;
mod within;
mod zones;

use index::Index;
pub use index::{Seen, Watch, Who};
pub use reach::{Pods, Reached, Scene, reach};
pub use storage_updates::News;
pub use volumes::Prepare;
use volumes::Volumes;
pub use within::{Inside, within};

use crate::view::{PodSight, Ties};
use berth_kube::dynamic::{Dynamic, Rule};
use berth_kube::object::Text;
use berth_model::{JobId, NodeAsk, Time};
use std::collections::{BTreeMap, BTreeSet};

/// What the affinity that a placed pod requires weighs for those to come: as little as it does by
/// default for kube-scheduler.
const MUST_BE_NEAR: i32 = 1;

impl Ties {
    /// Whom it asks about.
    pub fn reads(&self) -> BTreeSet<Watch> {
        let Dynamic { near, away, preferred, spread, .. } = &self.dynamic;
        let mut reads = BTreeSet::new();
        if !near.is_empty() {
            reads.insert(Watch::Matching(near.iter().map(Who::of).collect()));
        }
        let single = away.iter().chain(preferred.iter().map(|(_, rule)| rule));
        reads.extend(single.map(|rule| Watch::Matching(vec![Who::of(rule)])));
        let spread = spread.iter().map(|spread| Who::within(&self.namespace, &spread.pods));
        reads.extend(spread.map(Watch::Staying));
        reads
    }

    /// What it is looked at for by others.
    pub fn carries(&self) -> impl Iterator<Item = Watch> {
        self.dynamic.away.iter().cloned().map(Watch::Carrying)
    }

    /// What it would like of those that come when it is placed, by weight.
    pub fn leanings(&self) -> impl Iterator<Item = (i32, &Rule)> {
        let near = self.dynamic.near.iter().map(|rule| (MUST_BE_NEAR, rule));
        near.chain(self.dynamic.preferred.iter().map(|(weight, rule)| (*weight, rule)))
    }
}

/// A job that others, or volumes, have a say about.
#[derive(Debug, Default)]
pub struct Tied {
    pub order: (i32, Time),
    /// When it was let go; nothing while it is held.
    pub since: Option<Time>,
    /// It was let go and found no place since anything has changed.
    pub tried: bool,
    /// What it was let go by.
    pub locks: Locks,
    pub told: Vec<Option<NodeAsk>>,
    /// How many volumes it has attached, of each driver.
    pub attaches: BTreeMap<Text, i64>,
    /// Its groups were given nodes by what was free on them.
    pub is_divided: bool,
    /// Why it is held.
    pub why: String,
}

/// What a job asks about, and what changes when it is placed.
#[derive(Debug, Default, Clone)]
pub struct Locks {
    pub reads: BTreeSet<Watch>,
    pub writes: BTreeSet<Watch>,
}

impl Locks {
    pub fn clashes(&self, other: &Locks) -> bool {
        !self.writes.is_disjoint(&other.reads) || !self.reads.is_disjoint(&other.writes)
    }
}

/// All jobs that have such rules, and what they ask about.
#[derive(Default)]
pub struct Dynamics {
    pub index: Index,
    pub volumes: Volumes,
    pub waiting: BTreeMap<JobId, Tied>,
    placed: BTreeSet<JobId>,
    /// What had changed when everybody was last looked at.
    seen: (u64, u64, u64),
    /// What placed pods would like had changed so often when it was last looked at.
    leant: u64,
}

impl Dynamics {
    pub fn holds(&self, job: JobId) -> bool {
        self.waiting.get(&job).is_some_and(|tied| tied.since.is_none())
    }

    pub fn is_tied(&self, job: JobId) -> bool {
        self.waiting.contains_key(&job) || self.placed.contains(&job)
    }

    /// Whether others, or volumes, have a say about such a pod.
    pub fn concerns(&self, sight: &PodSight) -> bool {
        sight.ties.is_some()
            || !self.index.is_empty()
                && (self.index.barred(sight).next().is_some()
                    || !self.index.touched(sight).is_empty())
            || self.index.is_liked(sight)
    }

    /// Whether what placed pods would like has changed since this was last asked.
    pub fn has_leant(&self) -> bool {
        self.leant != self.index.leanings.version
    }

    /// The same, and from now on it is known.
    pub fn take_leant(&mut self) -> bool {
        let now = self.index.leanings.version;
        std::mem::replace(&mut self.leant, now) != now
    }

    /// Those that were let go before, and have found no place.
    pub fn let_go(&self, before: Time) -> Vec<JobId> {
        let gone = self.waiting.iter();
        let gone = gone.filter(|(_, tied)| tied.since.is_some_and(|since| since < before));
        gone.map(|(job, _)| *job).collect()
    }

    pub fn tie(&mut self, job: JobId, order: (i32, Time)) {
        self.waiting.insert(job, Tied { order, ..Tied::default() });
    }

    pub fn place(&mut self, job: JobId) {
        if self.waiting.remove(&job).is_some() {
            self.placed.insert(job);
        }
    }

    /// A job has lost its places; they are worked out anew before it gets others.
    pub fn lose(&mut self, job: JobId, order: (i32, Time)) {
        if self.placed.remove(&job) {
            self.tie(job, order);
        }
    }

    pub fn forget(&mut self, job: JobId) {
        self.waiting.remove(&job);
        self.placed.remove(&job);
    }

    /// Whether somebody who was let go, and has no place yet, must have one first.
    pub fn clashes(&self, job: JobId, locks: &Locks) -> bool {
        let mut others = self.waiting.iter().filter(|(other, _)| **other != job);
        others.any(|(_, tied)| tied.since.is_some() && tied.locks.clashes(locks))
    }

    /// Those that are held, who comes first in front.
    pub fn line(&self) -> Vec<JobId> {
        let held = self.waiting.iter().filter(|(_, tied)| tied.since.is_none() && !tied.tried);
        let mut line: Vec<_> =
            held.map(|(job, tied)| (std::cmp::Reverse(tied.order.0), tied.order.1, *job)).collect();
        line.sort();
        line.into_iter().map(|(_, _, job)| job).collect()
    }

    /// Whether anything has changed since this was last asked; then everybody may try again.
    pub fn changed(&mut self, nodes: u64) -> bool {
        let now = (self.index.version, self.volumes.version, nodes);
        let changed = std::mem::replace(&mut self.seen, now) != now;
        if changed {
            self.waiting.values_mut().for_each(|tied| tied.tried = false);
        }
        changed
    }

    /// Jobs that could be told of other nodes because some can attach more volumes than before, or
    /// fewer: than one of them wants, or all that were let go. They may try again.
    pub fn touched(&mut self) -> BTreeSet<JobId> {
        let changed = self.volumes.attached.take_changed();
        let mut touched = BTreeSet::new();
        if changed.is_empty() {
            return touched;
        }
        let mut let_go: BTreeMap<Text, i64> = BTreeMap::new();
        for tied in self.waiting.values().filter(|tied| tied.since.is_some()) {
            for (driver, wants) in &tied.attaches {
                *let_go.entry(driver.clone()).or_default() += wants;
            }
        }
        for (job, tied) in &mut self.waiting {
            let all = if tied.since.is_some() { &let_go } else { &tied.attaches };
            let is_short =
                |driver: &Text| changed.get(driver).is_some_and(|least| all[driver] > *least);
            if tied.attaches.keys().any(is_short) {
                tied.tried = false;
                touched.insert(*job);
            }
        }
        touched
    }

    /// How many volumes of a driver others may have attached that were let go and have no place.
    pub fn pending(&self, job: JobId, driver: &str) -> i64 {
        let others = self.waiting.iter().filter(|(other, _)| **other != job);
        let others = others.filter(|(_, tied)| tied.since.is_some());
        others.filter_map(|(_, tied)| tied.attaches.get(driver)).sum()
    }

    /// Time has passed: everybody may try again.
    pub fn retry(&mut self) {
        self.waiting.values_mut().for_each(|tied| tied.tried = false);
    }
}

#[cfg(test)]
mod tests;
