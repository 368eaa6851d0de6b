//! Releases parked jobs whose feasible nodes depend on where other pods are: see
//! [`dynamic`](crate::constraints::dynamic).

mod attach;
mod locks;
mod members;
mod preferred;

use super::{ClusterState, Pod};
use crate::constraints::dynamic::{
    self, FeasibleNodes, GangContext, GangRuleError, Infeasible, Locks, PlacedPod,
    PlacementContext, PodGroup, PodQuery, StorageUpdate, VolumeStep,
};
use crate::view::NodeViews;
use crate::view::PodView;
use berth_engine::{Core, Turn};
use berth_kube::pod::node_constraint;
use berth_model::{Event, JobChange, JobId, JobRequest, LeaseId, Name, Time};
use std::collections::BTreeSet;

/// Held jobs that are tried in one round.
const MAX_RELEASED_PER_ROUND: usize = 64;
/// Unused queries are dropped from this number of queries on.
const MAX_QUERIES: usize = 256;

impl ClusterState {
    /// Where a pod is, or will be as soon as it is bound.
    fn node_of_pod(&self, core: &Core, uid: &str) -> Option<Name> {
        let pod = self.pods.get(uid)?;
        let view = &pod.view;
        if view.phase.is_over() {
            return None;
        }
        let decided = || {
            let (job, task) = pod.task?;
            let leases = &core.jobs.get(&job)?.leases;
            let (_, live) = leases.iter().find(|(lease, _)| lease.task == task)?;
            Some(Name::new(&live.row.node))
        };
        view.node.clone().or_else(decided)
    }

    /// A pod was seen, or was given a place, or has lost it.
    pub(super) fn place(&mut self, core: &Core, uid: &str) {
        let node = self.node_of_pod(core, uid);
        let Some(pod) = self.pods.get_mut(uid) else { return };
        pod.placed = node;
        let waits = pod.placed.is_none() && !pod.view.is_leaving && !pod.view.phase.is_over();
        let request = pod.request().filter(|request| waits && request.tolerates_cordon);
        self.nodes.wait_for_cordoned(uid, request.map(|request| &request.rules[..]));
        let pod = &self.pods[uid];
        let carries = pod.placed.is_some() || pod.view.request.is_some();
        let constraints =
            pod.view.constraints.clone().filter(|_| carries && !pod.view.phase.is_over());
        for query in constraints.iter().flat_map(|constraints| constraints.carries()) {
            self.query(query);
        }
        let pod = &self.pods[uid];
        if let Some(constraints) = pod.view.constraints.as_deref() {
            self.constrained_jobs.volumes.place_pod(uid, constraints, pod.placed.as_ref());
        }
        self.constrained_jobs.index.moved(PlacedPod { view: &pod.view, node: pod.placed.as_ref() });
    }

    /// A pod is gone.
    pub(super) fn unplace(&mut self, view: &PodView) {
        self.nodes.wait_for_cordoned(&view.at.uid, None);
        if let Some(constraints) = view.constraints.as_deref() {
            self.constrained_jobs.volumes.place_pod(&view.at.uid, constraints, None);
        }
        self.constrained_jobs.index.moved(PlacedPod { view, node: None });
    }

    /// Adds a query to the index.
    fn query(&mut self, query: PodQuery) {
        if self.constrained_jobs.index.contains(&query) {
            return;
        }
        let all = self.pods.values();
        let all = all.map(|pod| PlacedPod { view: &pod.view, node: pod.placed.as_ref() });
        self.constrained_jobs.index.add(query.clone(), all);
        self.new_queries.push(query);
    }

    /// Whether the feasible nodes of these pods depend on other pods or on volumes.
    pub(super) fn is_constrained(&self, pods: &[&PodView]) -> bool {
        pods.iter().any(|pod| self.constrained_jobs.concerns(pod))
    }

    /// Gives a job that is about to be submitted the rules that its pods have about each other.
    pub(super) fn apply_gang_rules(
        &self,
        core: &Core,
        request: &mut JobRequest,
        pods: &[&PodView],
    ) -> Result<(), GangRuleError> {
        if !self.is_constrained(pods) {
            return Ok(());
        }
        let (index, nodes) = (&self.constrained_jobs.index, &self.nodes);
        let inside = GangContext { index, nodes, levels: core.state.levels() };
        let mut refs = request.workload.pods().iter();
        let views = request.groups.iter().map(|group| {
            let own = refs.by_ref().take(group.count as usize);
            own.filter_map(|pod| Some(&self.pods.get(&pod.uid)?.view)).collect()
        });
        let views: Vec<Vec<&PodView>> = views.collect();
        dynamic::gang_rules(&inside, &mut request.groups, &views)
    }

    /// Holds a job whose feasible nodes depend on other pods or on volumes.
    pub(super) fn constrain(&mut self, turn: &mut Turn<'_>, job: JobId) {
        self.count_for_budgets(turn, job);
        if self.constrained_jobs.is_constrained(job) || !self.is_constrained(&self.views(job)) {
            return;
        }
        self.constrained_jobs.constrain(job, self.queue_order(job));
        if turn.core.jobs.get(&job).is_some_and(|live| !live.leases.is_empty()) {
            self.constrained_jobs.place(job);
        }
        self.hold(turn, job, true);
    }

    /// Parks a job that misses pods, or that waits for the release of others.
    pub(super) fn hold(&self, turn: &mut Turn<'_>, job: JobId, hold: bool) {
        // One that keeps what it is promised while others have their turn need not be parked.
        let is_held = self.constrained_jobs.holds(job) && !turn.core.state.waits_turn(job);
        turn.park(job, hold || is_held);
    }

    fn views(&self, job: JobId) -> Vec<&PodView> {
        let pods = self.jobs.get(&job).into_iter().flat_map(|tasks| tasks.pods.iter().flatten());
        pods.filter_map(|uid| Some(&self.pods.get(uid)?.view)).collect()
    }

    pub(super) fn queue_order(&self, job: JobId) -> (i32, Time) {
        let request =
            self.views(job).into_iter().find_map(|pod| pod.request.as_ref()?.as_ref().ok());
        request.map_or((0, Time(0)), |request| (request.priority, request.created))
    }

    /// What has to be done for the volumes of a pod before it is bound there.
    pub(super) fn prepare(&mut self, uid: &str, node: &Name) -> Vec<VolumeStep> {
        let constraints = self.pods.get(uid).and_then(|pod| pod.view.constraints.as_deref());
        match (constraints, self.nodes.view(node)) {
            (Some(constraints), Some(there)) => self
                .constrained_jobs
                .volumes
                .prepare(constraints, &node_constraint::NodeView::from(&*there.object)),
            _ => Vec::new(),
        }
    }

    /// A lease came to nothing: what was given to its pod is free again.
    pub(super) fn lost(&mut self, core: &Core, lease: LeaseId) {
        let pods = self.jobs.get(&lease.job).map(|tasks| &tasks.pods);
        let uid = pods.and_then(|pods| pods.get(lease.task as usize)?.clone());
        if let Some(uid) = uid {
            let constraints = self.pods.get(&uid).and_then(|pod| pod.view.constraints.clone());
            if let Some(constraints) = constraints {
                self.constrained_jobs.volumes.give_up(&constraints);
            }
            self.place(core, &uid);
        }
        let order = self.queue_order(lease.job);
        self.constrained_jobs.lose(lease.job, order);
        // Rules that came while it had its place were not its concern.
        let is_known = self.constrained_jobs.is_constrained(lease.job);
        if !is_known && self.is_constrained(&self.views(lease.job)) {
            self.constrained_jobs.constrain(lease.job, order);
        }
    }

    /// Takes in what was seen of volumes and namespaces.
    pub fn observe_storage(&mut self, turn: &mut Turn<'_>, news: StorageUpdate) {
        if let Some(namespaces) = self.constrained_jobs.volumes.apply(news)
            && self.constrained_jobs.index.name(namespaces)
        {
            // Rules may mean other pods now.
            for query in self.constrained_jobs.index.queries() {
                let all = self.pods.values();
                let all = all.map(|pod| PlacedPod { view: &pod.view, node: pod.placed.as_ref() });
                self.constrained_jobs.index.add(query.clone(), all);
                self.new_queries.push(query);
            }
        }
        self.release_waiting(turn);
    }

    /// Time has passed: jobs that found no place try again.
    pub fn tick(&mut self, turn: &mut Turn<'_>) {
        self.report_incomplete(turn.at);
        self.constrained_jobs.retry();
        self.apply_preferred_affinity(turn);
        self.divide_again(turn);
        self.release_waiting(turn);
    }

    /// Whether other jobs may wait for the placement of a job.
    pub fn takes_turns(&self, job: JobId) -> bool {
        self.constrained_jobs.is_constrained(job)
    }

    /// Whether any job waits for its release, or may have to.
    pub fn has_waiting(&self) -> bool {
        !self.constrained_jobs.waiting.is_empty()
            || self.constrained_jobs.has_new_preferences()
            || !self.replacements.is_empty()
            || !self.rejoining.is_empty()
            || self.has_untold_gangs()
    }

    /// Releases the jobs that can be released.
    pub fn release_waiting(&mut self, turn: &mut Turn<'_>) {
        self.expire_replacements(turn);
        self.rejoin_gangs(turn);
        if self.constrained_jobs.waiting.is_empty() && self.new_queries.is_empty() {
            return;
        }
        self.drop_placed(turn.core);
        let changed = self.constrained_jobs.changed(self.nodes.version());
        let touched = self.constrained_jobs.touched();
        let line = self.constrained_jobs.line().into_iter().filter(|job| self.is_whole(*job));
        let line: Vec<JobId> = line.take(MAX_RELEASED_PER_ROUND).collect();
        let mut line: Vec<(JobId, Locks)> =
            line.into_iter().map(|job| (job, self.locks(job))).collect();
        if !self.new_queries.is_empty() {
            // What one of them asks about may mean those before it.
            for (job, locks) in &mut line {
                *locks = self.locks(*job);
            }
        }
        let new_queries = std::mem::take(&mut self.new_queries);
        self.constrain_newly_queried(turn, &new_queries);
        self.lock_newly_queried(turn, &new_queries);
        self.keep_held(turn);
        // Those of this turn, too: what they were released with was worked out before what is seen
        // now, and they are placed when the turn ends.
        let mut released = self.constrained_jobs.released(None);
        for (job, locks) in line {
            self.try_release(turn, job, locks);
        }
        if changed || !touched.is_empty() {
            released.retain(|job| changed || touched.contains(job));
            released.retain(|job| !self.constrained_jobs.holds(*job));
            self.recheck(turn, released);
        }
        self.forget_queries();
    }

    /// Removes jobs that are placed or over.
    fn drop_placed(&mut self, core: &Core) {
        let all: Vec<JobId> = self.constrained_jobs.waiting.keys().copied().collect();
        for job in all {
            match core.jobs.get(&job) {
                Some(live) if live.row.state.is_final() => self.constrained_jobs.forget(job),
                None => self.constrained_jobs.forget(job),
                Some(live) if !live.leases.is_empty() => self.constrained_jobs.place(job),
                Some(_) => {}
            }
        }
    }

    fn is_whole(&self, job: JobId) -> bool {
        self.jobs.get(&job).is_some_and(|tasks| tasks.is_whole())
    }

    /// The queries that a job depends on, all of them indexed from now on, and those that it
    /// changes.
    fn locks(&mut self, job: JobId) -> Locks {
        let mut locks = Locks::default();
        for view in self.views(job) {
            let barred = self.constrained_jobs.index.barred(view).cloned().map(PodQuery::Carrying);
            locks.reads.extend(barred);
            let Some(constraints) = view.constraints.as_deref() else { continue };
            let turns = self.constrained_jobs.volumes.turns(constraints);
            locks.reads.extend(constraints.reads());
            locks.reads.extend(turns.iter().cloned());
            locks.writes.extend(turns);
            locks.writes.extend(constraints.carries());
        }
        for query in locks.reads.iter().chain(&locks.writes) {
            self.query(query.clone());
        }
        for view in self.views(job) {
            locks.writes.extend(self.constrained_jobs.index.touched(view));
        }
        locks
    }

    /// Pending jobs that do not depend on other pods or on volumes.
    fn unconstrained(&self, core: &Core) -> impl Iterator<Item = JobId> {
        let waits = |job: &&JobId| {
            let live = core.jobs.get(job);
            live.is_some_and(|live| live.leases.is_empty() && !live.row.state.is_final())
        };
        self.jobs
            .keys()
            .filter(|job| !self.constrained_jobs.is_constrained(**job))
            .filter(waits)
            .copied()
    }

    /// Constrains pending jobs that a new query selects: they take turns, too.
    fn constrain_newly_queried(&mut self, turn: &mut Turn<'_>, new_queries: &[PodQuery]) {
        if new_queries.is_empty() {
            return;
        }
        let jobs = self.unconstrained(turn.core);
        let index = &self.constrained_jobs.index;
        let meant = |view: &PodView| {
            new_queries.iter().any(|query| match query {
                PodQuery::Carrying(rule) => index.is_meant(rule, view),
                _ => index.means(query, view),
            })
        };
        let jobs = jobs.filter(|job| self.views(*job).into_iter().any(meant));
        let jobs: Vec<JobId> = jobs.collect();
        for job in jobs {
            self.constrained_jobs.constrain(job, self.queue_order(job));
        }
    }

    /// Parks all jobs that are not released.
    fn keep_held(&mut self, turn: &mut Turn<'_>) {
        let held = self
            .constrained_jobs
            .waiting
            .iter()
            .filter(|(_, constrained)| constrained.since.is_none());
        let held: Vec<JobId> = held.map(|(job, _)| *job).collect();
        for job in held {
            let state = &turn.core.state;
            if !state.waits_turn(job) || !state.is_promised(job) {
                self.hold(turn, job, true);
                give_turn(turn, job);
            }
        }
    }

    /// Releases a job, unless a job that affects it is released and not placed yet.
    fn try_release(&mut self, turn: &mut Turn<'_>, job: JobId, mut locks: Locks) {
        self.lock_drivers(job, &mut locks);
        self.hold_again(turn, job, &locks);
        if self.constrained_jobs.clashes(job, &locks) {
            self.set_hold_reason(job, Infeasible::TakesTurns);
            return;
        }
        self.constrained_jobs.take_turn(job);
        let reached = match self.feasible_nodes(turn.core, job) {
            Ok(reached) => reached,
            Err(why) => {
                // Nothing can be kept for it where it may not be.
                self.hold(turn, job, true);
                give_turn(turn, job);
                return self.set_hold_reason(job, why);
            }
        };
        if !self.report_nodes(turn, job, reached) {
            return;
        }
        let at = turn.at;
        if let Some(constrained) = self.constrained_jobs.waiting.get_mut(&job) {
            constrained.since = Some(at);
            constrained.locks = locks;
            constrained.why = None;
        }
        self.hold(turn, job, false);
        give_turn(turn, job);
    }

    /// Holds released jobs again that clash with this one and have found no place: they go to the
    /// end of the line. One that has a place for later keeps it, and does not start meanwhile; one
    /// that others are being stopped for goes first.
    fn hold_again(&mut self, turn: &mut Turn<'_>, job: JobId, locks: &Locks) {
        let state = &turn.core.state;
        let (mut back, mut yields) = (Vec::new(), Vec::new());
        for (other, constrained) in &mut self.constrained_jobs.waiting {
            let before = constrained.since.is_some_and(|since| since < turn.at);
            if *other == job || !before || !constrained.locks.clashes(locks) {
                continue;
            }
            match state.promise_of(*other) {
                Some((_, true)) => continue,
                Some((_, false)) => yields.push(*other),
                None => back.push(*other),
            }
            constrained.since = None;
            constrained.tried = true;
        }
        for other in yields {
            let change = JobChange::Turn(false);
            turn.apply_observed(Event::JobChanged { job: other, change });
        }
        for other in back {
            self.hold(turn, other, true);
        }
    }

    /// Computes the feasible nodes of released jobs again that have found no place.
    fn recheck(&mut self, turn: &mut Turn<'_>, jobs: Vec<JobId>) {
        for job in jobs {
            let must_wait = !turn.core.state.is_promised(job) && self.clashes_by_now(job);
            let reached = if must_wait {
                Err(Infeasible::TakesTurns)
            } else {
                self.feasible_nodes(turn.core, job)
            };
            match reached {
                Ok(reached) => drop(self.report_nodes(turn, job, reached)),
                Err(why) => {
                    if let Some(constrained) = self.constrained_jobs.waiting.get_mut(&job) {
                        constrained.since = None;
                    }
                    self.hold(turn, job, true);
                    self.set_hold_reason(job, why);
                }
            }
        }
    }

    fn feasible_nodes(&self, core: &Core, job: JobId) -> Result<FeasibleNodes, Infeasible> {
        self.feasible_nodes_of(core, job, |_| true)
    }

    /// The same for those of its pods that are to be placed.
    fn feasible_nodes_of(
        &self,
        core: &Core,
        job: JobId,
        is_to_be: impl Fn(&Pod) -> bool,
    ) -> Result<FeasibleNodes, Infeasible> {
        let Some(tasks) = self.jobs.get(&job) else { return Err(Infeasible::NoPods) };
        let dynamic::ConstrainedJobs { index, volumes, .. } = &self.constrained_jobs;
        let free = |node: &str| core.state.free_gpus(node);
        let context = PlacementContext { nodes: &self.nodes, index, volumes, free: &free };
        let mut uids = tasks.pods.iter();
        let groups = core.state.groups_of(job).into_iter().map(|(count, at_most)| {
            let own = uids.by_ref().take(count as usize).flatten();
            let own = own.filter_map(|uid| self.pods.get(uid)).filter(|pod| is_to_be(pod));
            PodGroup { views: own.map(|pod| &pod.view).collect(), at_most }
        });
        let groups: Vec<PodGroup<'_>> = groups.collect();
        dynamic::feasible_nodes(&context, &groups)
    }

    /// Reports the feasible nodes of a job to the core. Returns whether the core knows them.
    fn report_nodes(&mut self, turn: &mut Turn<'_>, job: JobId, reached: FeasibleNodes) -> bool {
        let FeasibleNodes { asks, is_divided } = reached;
        if let Some(constrained) = self.constrained_jobs.waiting.get_mut(&job) {
            constrained.is_divided = is_divided;
            if constrained.reported == asks {
                return true;
            }
        }
        let change = JobChange::Nodes(asks.clone());
        if !turn.apply_observed(Event::JobChanged { job, change }) {
            return false;
        }
        if let Some(constrained) = self.constrained_jobs.waiting.get_mut(&job) {
            constrained.reported = asks;
        }
        true
    }

    /// Records why a job is held, for its pods.
    fn set_hold_reason(&mut self, job: JobId, why: Infeasible) {
        if let Some(constrained) = self.constrained_jobs.waiting.get_mut(&job) {
            constrained.tried = true;
            constrained.why = Some(why);
        }
    }

    fn forget_queries(&mut self) {
        let index = &self.constrained_jobs.index;
        if !self.constrained_jobs.waiting.is_empty() && index.len() < MAX_QUERIES {
            return;
        }
        let mut used: BTreeSet<PodQuery> = BTreeSet::new();
        for (job, constrained) in &self.constrained_jobs.waiting {
            used.extend(constrained.locks.reads.iter().chain(&constrained.locks.writes).cloned());
            for constraints in
                self.views(*job).into_iter().filter_map(|view| view.constraints.as_deref())
            {
                used.extend(constraints.reads());
                used.extend(constraints.carries());
            }
        }
        self.constrained_jobs.index.keep(&used);
    }
}

/// The job may start again, as far as its turn is concerned.
fn give_turn(turn: &mut Turn<'_>, job: JobId) {
    if turn.core.state.waits_turn(job) {
        turn.apply_observed(Event::JobChanged { job, change: JobChange::Turn(true) });
    }
}
