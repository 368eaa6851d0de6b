//! PodDisruptionBudgets: which jobs count for which of them, and how many of their pods may be
//! stopped now.

use super::ClusterState;
use crate::view::PodView;
use berth_engine::Turn;
use berth_kube::object::PodDisruptionBudget;
use berth_kube::selector::LabelMatcher;
use berth_kube::{Change, WatchUpdate};
use berth_model::{Event, JobChange, JobId, Name};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the budgets, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    known: BTreeMap<Name, Budget>,
    /// Until the first list, the budgets from before the restart hold.
    is_listed: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Budget {
    namespace: String,
    pods: LabelMatcher,
    allowed: u32,
}

impl Budget {
    /// Nothing where its selector is not understood: then nothing is known to break it.
    fn of(written: &PodDisruptionBudget) -> Option<Budget> {
        let selector = written.spec.selector.as_ref()?;
        let pods = LabelMatcher::of("selector", Some(selector)).ok()?;
        let allowed = written.status.disruptions_allowed.clamp(0, i64::from(u32::MAX));
        let namespace = written.metadata.namespace.to_string();
        Some(Budget { namespace, pods, allowed: allowed as u32 })
    }

    fn covers(&self, pod: &PodView) -> bool {
        pod.at.namespace.as_str() == self.namespace && self.pods.matches(&pod.labels)
    }
}

impl Budgets {
    fn name(written: &PodDisruptionBudget) -> Name {
        Name::from(format!("{}/{}", written.metadata.namespace, written.metadata.name))
    }

    /// Takes in one of them. Returns whether other pods count for it now.
    fn set(&mut self, name: &Name, now: Option<Budget>) -> bool {
        let before = match now {
            Some(now) => self.known.insert(name.clone(), now),
            None => self.known.remove(name),
        };
        let reach = |budget: &Budget| (budget.namespace.clone(), budget.pods.clone());
        before.as_ref().map(reach) != self.known.get(name).map(reach)
    }
}

impl ClusterState {
    /// Takes in what was seen of the budgets.
    pub fn observe_budgets(&mut self, turn: &mut Turn<'_>, seen: WatchUpdate<PodDisruptionBudget>) {
        let mut touched: BTreeSet<Name> = BTreeSet::new();
        // The first time, jobs are looked at whatever has changed.
        let mut reaches_others = !std::mem::replace(&mut self.budgets.is_listed, true);
        let changes = match seen {
            WatchUpdate::Snapshot(all) => {
                let there: BTreeSet<Name> = all.iter().map(Budgets::name).collect();
                let known: Vec<Name> = self.budgets.known.keys().cloned().collect();
                // Those of before a restart, too.
                let told = turn.core.state.disruption_budgets();
                for gone in known.into_iter().chain(told).filter(|name| !there.contains(name)) {
                    reaches_others |= self.budgets.set(&gone, None);
                    touched.insert(gone);
                }
                all.into_iter().map(Change::Applied).collect()
            }
            WatchUpdate::Changes(changes) => changes,
        };
        for change in changes {
            let (written, is_there) = match change {
                Change::Applied(written) => (written, true),
                Change::Deleted(written) => (written, false),
            };
            let name = Budgets::name(&written);
            let now = if is_there { Budget::of(&written) } else { None };
            reaches_others |= self.budgets.set(&name, now);
            touched.insert(name);
        }
        if reaches_others {
            let jobs: Vec<JobId> = self.jobs.keys().copied().collect();
            jobs.into_iter().for_each(|job| self.count_for_budgets(turn, job));
        }
        touched.iter().for_each(|name| self.tell_budget(turn, name));
    }

    /// Tells the core for which budgets a job's pods count, if that is news.
    pub(super) fn count_for_budgets(&mut self, turn: &mut Turn<'_>, job: JobId) {
        if !self.budgets.is_listed {
            return;
        }
        let counts: Vec<Name> = {
            let pods =
                self.jobs.get(&job).into_iter().flat_map(|tasks| tasks.pods.iter().flatten());
            let pods: Vec<&PodView> =
                pods.filter_map(|uid| Some(&self.pods.get(uid)?.view)).collect();
            let known = self.budgets.known.iter();
            let covers = |budget: &Budget| pods.iter().any(|pod| budget.covers(pod));
            known.filter(|(_, budget)| covers(budget)).map(|(name, _)| name.clone()).collect()
        };
        if turn.core.state.budgets_of(job) == counts.as_slice() {
            return;
        }
        let change = JobChange::Budgets(counts.clone());
        if turn.apply_observed(Event::JobChanged { job, change }) {
            counts.iter().for_each(|name| self.tell_budget(turn, name));
        }
    }

    /// Tells the core how many pods of a budget may be stopped, if jobs count for it and that is
    /// news. What Berth stops itself it counts until its controller has.
    fn tell_budget(&self, turn: &mut Turn<'_>, name: &Name) {
        let is_used = |job: &JobId| turn.core.state.budgets_of(*job).contains(name);
        let allowed = self.budgets.known.get(name).map(|budget| budget.allowed);
        let allowed = allowed.filter(|_| self.jobs.keys().any(is_used));
        if turn.core.state.disruptions_allowed(name) != allowed {
            turn.apply_observed(Event::DisruptionsSet { budget: name.clone(), allowed });
        }
    }
}
