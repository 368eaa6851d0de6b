//! Constraints that depend on where other pods are, and on volumes.
//!
//! A job with such constraints, or with pods that the rules of others select, is parked until it is
//! released with its feasible nodes, computed from where all pods are at that moment. Jobs that
//! affect each other are released one at a time, and the next one when the first is placed: so what
//! was computed still holds when the core decides. A job that finds no place goes to the end of the
//! line, so none blocks the others.

mod attach;
mod attached;
mod capacity;
mod choose;
mod context;
mod feasible;
mod gang_rules;
mod index;
mod infeasible;
mod preferred;
mod storage_updates;
mod volume_key;
mod volumes;
mod zones;

pub use context::{PlacementContext, PodGroup, label};
pub use feasible::{FeasibleNodes, feasible_nodes};
pub use gang_rules::{GangContext, GangRuleError, gang_rules};
use index::Index;
pub use index::{PlacedPod, PodQuery, PodSelector};
pub use infeasible::Infeasible;
pub use storage_updates::StorageUpdate;
pub use volumes::VolumeStep;
use volumes::Volumes;

use crate::view::{PodConstraints, PodView};
use berth_kube::object::Text;
use berth_kube::pod::interpod::{AffinityTerm, InterPodConstraints};
use berth_model::{JobId, NodeAsk, Time};
use std::collections::{BTreeMap, BTreeSet};

/// What the affinity that a placed pod requires weighs for those to come: as little as it does by
/// default for kube-scheduler.
const REQUIRED_TERM_WEIGHT: i32 = 1;

impl PodConstraints {
    /// The sets of pods that its rules are about.
    pub fn reads(&self) -> BTreeSet<PodQuery> {
        let InterPodConstraints { affinity: near, anti_affinity: away, preferred, spread, .. } =
            &self.dynamic;
        let mut reads = BTreeSet::new();
        if !near.is_empty() {
            reads.insert(PodQuery::Matching(near.iter().map(PodSelector::of).collect()));
        }
        let single = away.iter().chain(preferred.iter().map(|(_, rule)| rule));
        reads.extend(single.map(|rule| PodQuery::Matching(vec![PodSelector::of(rule)])));
        let spread = spread.iter().map(|spread| PodSelector::within(&self.namespace, &spread.pods));
        reads.extend(spread.map(PodQuery::Staying));
        reads
    }

    /// The queries of other pods that it is part of by its own anti-affinity.
    pub fn carries(&self) -> impl Iterator<Item = PodQuery> {
        self.dynamic.anti_affinity.iter().cloned().map(PodQuery::Carrying)
    }

    /// What it would like of those that come when it is placed, by weight.
    pub fn preferred(&self) -> impl Iterator<Item = (i32, &AffinityTerm)> {
        let near = self.dynamic.affinity.iter().map(|rule| (REQUIRED_TERM_WEIGHT, rule));
        near.chain(self.dynamic.preferred.iter().map(|(weight, rule)| (*weight, rule)))
    }
}

/// A job whose feasible nodes depend on other pods or on volumes.
#[derive(Debug, Default)]
pub struct ConstrainedJob {
    pub order: (i32, Time),
    /// When it was released; nothing while it is held.
    pub since: Option<Time>,
    /// It was tried without success since the last change.
    pub tried: bool,
    /// The round in which it last had its turn.
    pub round: u64,
    /// The locks that it was released with.
    pub locks: Locks,
    pub reported: Vec<Option<NodeAsk>>,
    /// How many volumes it has attached, of each driver.
    pub attaches: BTreeMap<Text, i64>,
    /// Its groups were given nodes by what was free on them.
    pub is_divided: bool,
    /// Why it is held, once that is known.
    pub why: Option<Infeasible>,
}

/// What a job asks about, and what changes when it is placed.
#[derive(Debug, Default, Clone)]
pub struct Locks {
    pub reads: BTreeSet<PodQuery>,
    pub writes: BTreeSet<PodQuery>,
}

impl Locks {
    pub fn clashes(&self, other: &Locks) -> bool {
        !self.writes.is_disjoint(&other.reads) || !self.reads.is_disjoint(&other.writes)
    }
}

/// All jobs that have such rules, and what they ask about.
#[derive(Default)]
pub struct ConstrainedJobs {
    pub index: Index,
    pub volumes: Volumes,
    pub waiting: BTreeMap<JobId, ConstrainedJob>,
    placed: BTreeSet<JobId>,
    /// The versions of the index, the volumes and the nodes at the last check.
    seen: (u64, u64, u64),
    /// The version of the placed pods' preferences at the last check.
    preferred_version: u64,
    /// Each has one turn in a round before any has a second one.
    round: u64,
}

impl ConstrainedJobs {
    pub fn holds(&self, job: JobId) -> bool {
        self.waiting.get(&job).is_some_and(|constrained| constrained.since.is_none())
    }

    pub fn is_constrained(&self, job: JobId) -> bool {
        self.waiting.contains_key(&job) || self.placed.contains(&job)
    }

    /// Whether the feasible nodes of a pod depend on other pods or on volumes.
    pub fn concerns(&self, view: &PodView) -> bool {
        view.constraints.is_some()
            || !self.index.is_empty()
                && (self.index.barred(view).next().is_some()
                    || !self.index.touched(view).is_empty())
            || self.index.is_preferred(view)
    }

    /// Whether the preferences of placed pods have changed since the last check.
    pub fn has_new_preferences(&self) -> bool {
        self.preferred_version != self.index.preferred.version
    }

    /// The same, and records the current version.
    pub fn take_new_preferences(&mut self) -> bool {
        let now = self.index.preferred.version;
        std::mem::replace(&mut self.preferred_version, now) != now
    }

    /// Jobs that were released, before this time if it is given, and are not placed.
    pub fn released(&self, before: Option<Time>) -> Vec<JobId> {
        let is_earlier = |since: Time| before.is_none_or(|before| since < before);
        let gone = self.waiting.iter();
        let gone = gone.filter(|(_, constrained)| constrained.since.is_some_and(is_earlier));
        gone.map(|(job, _)| *job).collect()
    }

    /// A released job waits for its turn again.
    pub fn take_back(&mut self, job: JobId) {
        if let Some(constrained) = self.waiting.get_mut(&job) {
            constrained.since = None;
        }
    }

    /// The same for each of these released jobs that clashes with one before it.
    pub fn take_back_clashing(&mut self, released: &[JobId]) {
        let mut stays: Vec<JobId> = Vec::new();
        for job in released {
            let Some(locks) = self.waiting.get(job).map(|constrained| &constrained.locks) else {
                continue;
            };
            if stays.iter().any(|other| self.waiting[other].locks.clashes(locks)) {
                self.take_back(*job);
            } else {
                stays.push(*job);
            }
        }
    }

    pub fn constrain(&mut self, job: JobId, order: (i32, Time)) {
        self.waiting.insert(job, ConstrainedJob { order, ..ConstrainedJob::default() });
    }

    pub fn place(&mut self, job: JobId) {
        if self.waiting.remove(&job).is_some() {
            self.placed.insert(job);
        }
    }

    /// A job has lost its places; they are worked out anew before it gets others.
    pub fn lose(&mut self, job: JobId, order: (i32, Time)) {
        if self.placed.remove(&job) {
            self.constrain(job, order);
        }
    }

    pub fn forget(&mut self, job: JobId) {
        self.waiting.remove(&job);
        self.placed.remove(&job);
    }

    /// Whether a released job that is not placed yet has to be placed first.
    pub fn clashes(&self, job: JobId, locks: &Locks) -> bool {
        let mut others = self.waiting.iter().filter(|(other, _)| **other != job);
        others
            .any(|(_, constrained)| constrained.since.is_some() && constrained.locks.clashes(locks))
    }

    /// The jobs that are held, in the order in which they are tried: those first that have not had
    /// their turn in this round, so that none waits for ever for one that finds no place.
    pub fn line(&mut self) -> Vec<JobId> {
        let is_held = |constrained: &&ConstrainedJob| constrained.since.is_none();
        if self.waiting.values().filter(is_held).all(|known| known.round > self.round) {
            self.round += 1;
        }
        let round = self.round;
        let held = self
            .waiting
            .iter()
            .filter(|(_, constrained)| constrained.since.is_none() && !constrained.tried);
        let mut line: Vec<_> = held
            .map(|(job, constrained)| {
                let had_turn = constrained.round > round;
                (had_turn, std::cmp::Reverse(constrained.order.0), constrained.order.1, *job)
            })
            .collect();
        line.sort();
        line.into_iter().map(|(_, _, _, job)| job).collect()
    }

    /// The job has its turn.
    pub fn take_turn(&mut self, job: JobId) {
        let round = self.round + 1;
        if let Some(constrained) = self.waiting.get_mut(&job) {
            constrained.round = round;
        }
    }

    /// Whether anything has changed since this was last asked; then all jobs may try again.
    pub fn changed(&mut self, nodes: u64) -> bool {
        let now = (self.index.version, self.volumes.version, nodes);
        let changed = std::mem::replace(&mut self.seen, now) != now;
        if changed {
            self.waiting.values_mut().for_each(|constrained| constrained.tried = false);
        }
        changed
    }

    /// Jobs whose feasible nodes may be others because some nodes can attach more or fewer volumes
    /// than before: fewer than one of these jobs wants, or than all released jobs want. They may
    /// try again.
    pub fn touched(&mut self) -> BTreeSet<JobId> {
        let changed = self.volumes.attached.take_changed();
        let mut touched = BTreeSet::new();
        if changed.is_empty() {
            return touched;
        }
        let mut released: BTreeMap<Text, i64> = BTreeMap::new();
        for constrained in self.waiting.values().filter(|constrained| constrained.since.is_some()) {
            for (driver, wants) in &constrained.attaches {
                *released.entry(driver.clone()).or_default() += wants;
            }
        }
        for (job, constrained) in &mut self.waiting {
            let all = if constrained.since.is_some() { &released } else { &constrained.attaches };
            let is_short =
                |driver: &Text| changed.get(driver).is_some_and(|least| all[driver] > *least);
            if constrained.attaches.keys().any(is_short) {
                constrained.tried = false;
                touched.insert(*job);
            }
        }
        touched
    }

    /// How many volumes of a driver the other released jobs will attach that are not placed yet.
    pub fn pending(&self, job: JobId, driver: &str) -> i64 {
        let others = self.waiting.iter().filter(|(other, _)| **other != job);
        let others = others.filter(|(_, constrained)| constrained.since.is_some());
        others.filter_map(|(_, constrained)| constrained.attaches.get(driver)).sum()
    }

    /// Time has passed: all jobs may try again.
    pub fn retry(&mut self) {
        self.waiting.values_mut().for_each(|constrained| constrained.tried = false);
    }
}

#[cfg(test)]
mod tests;
