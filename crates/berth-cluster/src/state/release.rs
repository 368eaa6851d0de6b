//! Letting jobs go whose places depend on those of others: see [`dynamic`](super::dynamic).

mod attach;
mod preferred;

use super::Mirror;
use crate::constraints::dynamic::{
    self, Inside, Locks, News, Pods, Prepare, Reached, Scene, Seen, Watch,
};
use crate::view::NodeViews;
use crate::view::PodSight;
use berth_engine::{Core, Submission, Turn};
use berth_kube::constraint::NodeView;
use berth_model::{Event, JobChange, JobId, LeaseId, Name, Time};
use std::collections::BTreeSet;

/// Jobs of a line that are looked at in one go.
const AT_ONCE: usize = 64;
const TAKES_TURNS: &str = "it takes its turn among pods that have rules about each other";
/// What is looked at is gone over for what nobody asks about from here on.
const MANY: usize = 256;

impl Mirror {
    /// Where a pod is, or will be as soon as it is bound.
    fn whereabouts(&self, core: &Core, uid: &str) -> Option<Name> {
        let pod = self.pods.get(uid)?;
        let sight = &pod.sight;
        if sight.phase.is_over() {
            return None;
        }
        let decided = || {
            let (job, task) = pod.task?;
            let leases = &core.jobs.get(&job)?.leases;
            let (_, live) = leases.iter().find(|(lease, _)| lease.task == task)?;
            Some(Name::new(&live.row.node))
        };
        sight.node.clone().or_else(decided)
    }

    /// A pod was seen, or was given a place, or has lost it.
    pub(super) fn place(&mut self, core: &Core, uid: &str) {
        let node = self.whereabouts(core, uid);
        let Some(pod) = self.pods.get_mut(uid) else { return };
        pod.placed = node;
        let pod = &self.pods[uid];
        let carries = pod.placed.is_some() || pod.sight.wish.is_some();
        let ties = pod.sight.ties.clone().filter(|_| carries && !pod.sight.phase.is_over());
        for watch in ties.iter().flat_map(|ties| ties.carries()) {
            self.watch(watch);
        }
        let pod = &self.pods[uid];
        if let Some(ties) = pod.sight.ties.as_deref() {
            self.dynamics.volumes.place_pod(uid, ties, pod.placed.as_ref());
        }
        self.dynamics.index.moved(Seen { sight: &pod.sight, node: pod.placed.as_ref() });
    }

    /// A pod is gone.
    pub(super) fn unplace(&mut self, sight: &PodSight) {
        if let Some(ties) = sight.ties.as_deref() {
            self.dynamics.volumes.place_pod(&sight.at.uid, ties, None);
        }
        self.dynamics.index.moved(Seen { sight, node: None });
    }

    /// From now on somebody asks about these.
    fn watch(&mut self, watch: Watch) {
        if self.dynamics.index.contains(&watch) {
            return;
        }
        let all = self.pods.values();
        let all = all.map(|pod| Seen { sight: &pod.sight, node: pod.placed.as_ref() });
        self.dynamics.index.add(watch.clone(), all);
        self.fresh.push(watch);
    }

    /// Whether others have a say about where these pods may be.
    pub(super) fn is_tied(&self, pods: &[&PodSight]) -> bool {
        pods.iter().any(|pod| self.dynamics.concerns(pod))
    }

    /// Gives a job that is about to be submitted the rules that its pods have about each other.
    pub(super) fn bind_together(
        &self,
        core: &Core,
        submission: &mut Submission,
        pods: &[&PodSight],
    ) -> Result<(), String> {
        if !self.is_tied(pods) {
            return Ok(());
        }
        let (index, nodes) = (&self.dynamics.index, &self.nodes);
        let inside = Inside { index, nodes, levels: core.state.levels() };
        let mut refs = submission.pods.iter();
        let sights = submission.spec.groups.iter().map(|group| {
            let own = refs.by_ref().take(group.count as usize);
            own.filter_map(|pod| Some(&self.pods.get(&pod.uid)?.sight)).collect()
        });
        let sights: Vec<Vec<&PodSight>> = sights.collect();
        dynamic::within(&inside, &mut submission.spec.groups, &sights)
    }

    /// Notes that others have a say about a job, if they have.
    pub(super) fn tie(&mut self, turn: &mut Turn<'_>, job: JobId) {
        if self.dynamics.is_tied(job) || !self.is_tied(&self.sights(job)) {
            return;
        }
        self.dynamics.tie(job, self.order_of(job));
        if turn.core.jobs.get(&job).is_some_and(|live| !live.leases.is_empty()) {
            self.dynamics.place(job);
        }
        self.hold(turn, job, true);
    }

    /// A job without all of its pods, or that others have to be let go before, is not begun.
    pub(super) fn hold(&self, turn: &mut Turn<'_>, job: JobId, hold: bool) {
        turn.park(job, hold || self.dynamics.holds(job));
    }

    fn sights(&self, job: JobId) -> Vec<&PodSight> {
        let pods = self.jobs.get(&job).into_iter().flat_map(|tasks| tasks.pods.iter().flatten());
        pods.filter_map(|uid| Some(&self.pods.get(uid)?.sight)).collect()
    }

    pub(super) fn order_of(&self, job: JobId) -> (i32, Time) {
        let wish = self.sights(job).into_iter().find_map(|pod| pod.wish.as_ref()?.as_ref().ok());
        wish.map_or((0, Time(0)), |wish| (wish.priority, wish.created))
    }

    /// What has to be done for the volumes of a pod before it is bound there.
    pub(super) fn prepare(&mut self, uid: &str, node: &Name) -> Vec<Prepare> {
        let ties = self.pods.get(uid).and_then(|pod| pod.sight.ties.as_deref());
        match (ties, self.nodes.view(node)) {
            (Some(ties), Some(there)) => {
                self.dynamics.volumes.prepare(ties, &NodeView::from(&*there.object))
            }
            _ => Vec::new(),
        }
    }

    /// A lease came to nothing: what was given to its pod is free again.
    pub(super) fn lost(&mut self, core: &Core, lease: LeaseId) {
        let pods = self.jobs.get(&lease.job).map(|tasks| &tasks.pods);
        let uid = pods.and_then(|pods| pods.get(lease.task as usize)?.clone());
        if let Some(uid) = uid {
            let ties = self.pods.get(&uid).and_then(|pod| pod.sight.ties.clone());
            if let Some(ties) = ties {
                self.dynamics.volumes.give_up(&ties);
            }
            self.place(core, &uid);
        }
        let order = self.order_of(lease.job);
        self.dynamics.lose(lease.job, order);
    }

    /// Takes in what was seen of volumes and namespaces.
    pub fn see_storage(&mut self, turn: &mut Turn<'_>, news: News) {
        if let Some(namespaces) = self.dynamics.volumes.see(news)
            && self.dynamics.index.name(namespaces)
        {
            // Rules may mean other pods now.
            for watch in self.dynamics.index.watches() {
                let all = self.pods.values();
                let all = all.map(|pod| Seen { sight: &pod.sight, node: pod.placed.as_ref() });
                self.dynamics.index.add(watch, all);
            }
        }
        self.settle(turn);
    }

    /// Time has passed: whoever found no place tries again.
    pub fn tick(&mut self, turn: &mut Turn<'_>) {
        self.dynamics.retry();
        self.heed_leanings(turn);
        self.divide_again(turn);
        self.settle(turn);
    }

    /// Whether others wait for what becomes of a job.
    pub fn takes_turns(&self, job: JobId) -> bool {
        self.dynamics.is_tied(job)
    }

    /// Whether somebody waits to be let go, or may have to.
    pub fn has_line(&self) -> bool {
        !self.dynamics.waiting.is_empty() || self.dynamics.has_leant() || !self.heirs.is_empty()
    }

    /// Lets go whoever can be.
    pub fn settle(&mut self, turn: &mut Turn<'_>) {
        self.give_up_heirs(turn);
        if self.dynamics.waiting.is_empty() && self.fresh.is_empty() {
            return;
        }
        self.sort_out(turn.core);
        let changed = self.dynamics.changed(self.nodes.version());
        let touched = self.dynamics.touched();
        let line = self.dynamics.line().into_iter().filter(|job| self.is_whole(*job));
        let line: Vec<JobId> = line.take(AT_ONCE).collect();
        let line: Vec<(JobId, Locks)> =
            line.into_iter().map(|job| (job, self.locks(job))).collect();
        self.tie_fresh(turn);
        self.keep_waiting(turn);
        for (job, locks) in line {
            self.give_turn(turn, job, locks);
        }
        if changed || !touched.is_empty() {
            let mut jobs = self.dynamics.let_go(turn.at);
            jobs.retain(|job| changed || touched.contains(job));
            self.look_again(turn, jobs);
        }
        self.forget_watches();
    }

    /// Takes out whoever has places, or is over.
    fn sort_out(&mut self, core: &Core) {
        let all: Vec<JobId> = self.dynamics.waiting.keys().copied().collect();
        for job in all {
            match core.jobs.get(&job) {
                Some(live) if live.row.state.is_final() => self.dynamics.forget(job),
                None => self.dynamics.forget(job),
                Some(live) if !live.leases.is_empty() => self.dynamics.place(job),
                Some(_) => {}
            }
        }
    }

    fn is_whole(&self, job: JobId) -> bool {
        self.jobs.get(&job).is_some_and(|tasks| tasks.is_whole())
    }

    /// What a job asks about, all of it looked at from now on, and what it would change.
    fn locks(&mut self, job: JobId) -> Locks {
        let mut locks = Locks::default();
        for sight in self.sights(job) {
            let barred = self.dynamics.index.barred(sight).cloned().map(Watch::Carrying);
            locks.reads.extend(barred);
            let Some(ties) = sight.ties.as_deref() else { continue };
            let turns = self.dynamics.volumes.turns(ties);
            locks.reads.extend(ties.reads());
            locks.reads.extend(turns.iter().cloned());
            locks.writes.extend(turns);
            locks.writes.extend(ties.carries());
        }
        for watch in locks.reads.iter().chain(&locks.writes) {
            self.watch(watch.clone());
        }
        for sight in self.sights(job) {
            locks.writes.extend(self.dynamics.index.touched(sight));
        }
        locks
    }

    /// Jobs in line that nobody has a say about.
    fn untied(&self, core: &Core) -> impl Iterator<Item = JobId> {
        let waits = |job: &&JobId| {
            let live = core.jobs.get(job);
            live.is_some_and(|live| live.leases.is_empty() && !live.row.state.is_final())
        };
        self.jobs.keys().filter(|job| !self.dynamics.is_tied(**job)).filter(waits).copied()
    }

    /// Jobs in line that somebody has begun to ask about take turns, too.
    fn tie_fresh(&mut self, turn: &mut Turn<'_>) {
        let fresh = std::mem::take(&mut self.fresh);
        if fresh.is_empty() {
            return;
        }
        let jobs = self.untied(turn.core);
        let index = &self.dynamics.index;
        let meant = |sight: &PodSight| {
            fresh.iter().any(|watch| match watch {
                Watch::Carrying(rule) => index.is_meant(rule, sight),
                _ => index.means(watch, sight),
            })
        };
        let jobs = jobs.filter(|job| self.sights(*job).into_iter().any(meant));
        let jobs: Vec<JobId> = jobs.collect();
        for job in jobs {
            self.dynamics.tie(job, self.order_of(job));
        }
    }

    /// Whoever is not let go is held.
    fn keep_waiting(&mut self, turn: &mut Turn<'_>) {
        let held = self.dynamics.waiting.iter().filter(|(_, tied)| tied.since.is_none());
        let held: Vec<JobId> = held.map(|(job, _)| *job).collect();
        for job in held {
            self.hold(turn, job, true);
        }
    }

    /// Lets a job go, unless somebody it has to do with has been and may find its places now.
    fn give_turn(&mut self, turn: &mut Turn<'_>, job: JobId, mut locks: Locks) {
        self.lock_drivers(job, &mut locks);
        self.take_back(turn, job, &locks);
        if self.dynamics.clashes(job, &locks) {
            self.because(job, TAKES_TURNS);
            return;
        }
        let reached = match self.reach(turn.core, job) {
            Ok(reached) => reached,
            Err(why) => return self.because(job, &why),
        };
        if !self.tell_nodes(turn, job, reached) {
            return;
        }
        let at = turn.at;
        if let Some(tied) = self.dynamics.waiting.get_mut(&job) {
            tied.since = Some(at);
            tied.locks = locks;
            tied.why.clear();
        }
        self.hold(turn, job, false);
    }

    /// Those that were let go before, are in the way and have found no place go to the end.
    fn take_back(&mut self, turn: &mut Turn<'_>, job: JobId, locks: &Locks) {
        let state = &turn.core.state;
        let mut back = Vec::new();
        for (other, tied) in &mut self.dynamics.waiting {
            let before = tied.since.is_some_and(|since| since < turn.at);
            if *other == job || !before || !tied.locks.clashes(locks) || state.is_promised(*other) {
                continue;
            }
            tied.since = None;
            tied.tried = true;
            back.push(*other);
        }
        for other in back {
            self.hold(turn, other, true);
        }
    }

    /// Those that were let go and have found no place may have other nodes by now.
    fn look_again(&mut self, turn: &mut Turn<'_>, jobs: Vec<JobId>) {
        for job in jobs {
            let must_wait = !turn.core.state.is_promised(job) && self.clashes_by_now(job);
            let reached =
                if must_wait { Err(TAKES_TURNS.to_owned()) } else { self.reach(turn.core, job) };
            match reached {
                Ok(reached) => drop(self.tell_nodes(turn, job, reached)),
                Err(why) => {
                    if let Some(tied) = self.dynamics.waiting.get_mut(&job) {
                        tied.since = None;
                    }
                    self.hold(turn, job, true);
                    self.because(job, &why);
                }
            }
        }
    }

    fn reach(&self, core: &Core, job: JobId) -> Result<Reached, String> {
        let Some(tasks) = self.jobs.get(&job) else { return Err("its pods are gone".to_owned()) };
        let dynamic::Dynamics { index, volumes, .. } = &self.dynamics;
        let free = |node: &str| core.state.free_gpus(node);
        let scene = Scene { nodes: &self.nodes, index, volumes, free: &free };
        let mut uids = tasks.pods.iter();
        let groups = core.state.groups_of(job).into_iter().map(|(count, at_most)| {
            let own = uids.by_ref().take(count as usize).flatten();
            let sights = own.filter_map(|uid| Some(&self.pods.get(uid)?.sight)).collect();
            Pods { sights, at_most }
        });
        let groups: Vec<Pods<'_>> = groups.collect();
        dynamic::reach(&scene, &groups)
    }

    /// Tells the core where a job may lie. Returns whether it knows.
    fn tell_nodes(&mut self, turn: &mut Turn<'_>, job: JobId, reached: Reached) -> bool {
        let Reached { asks, is_divided } = reached;
        if let Some(tied) = self.dynamics.waiting.get_mut(&job) {
            tied.is_divided = is_divided;
            if tied.told == asks {
                return true;
            }
        }
        let change = JobChange::Nodes(asks.clone());
        if !turn.apply_observed(Event::JobChanged { job, change }) {
            return false;
        }
        if let Some(tied) = self.dynamics.waiting.get_mut(&job) {
            tied.told = asks;
        }
        true
    }

    /// Why a job is held, to be said on its pods.
    fn because(&mut self, job: JobId, why: &str) {
        if let Some(tied) = self.dynamics.waiting.get_mut(&job) {
            tied.tried = true;
            why.clone_into(&mut tied.why);
        }
    }

    fn forget_watches(&mut self) {
        let index = &self.dynamics.index;
        if !self.dynamics.waiting.is_empty() && index.len() < MANY {
            return;
        }
        let mut used: BTreeSet<Watch> = BTreeSet::new();
        for (job, tied) in &self.dynamics.waiting {
            used.extend(tied.locks.reads.iter().chain(&tied.locks.writes).cloned());
            for ties in self.sights(*job).into_iter().filter_map(|sight| sight.ties.as_deref()) {
                used.extend(ties.reads());
                used.extend(ties.carries());
            }
        }
        self.dynamics.index.keep(&used);
    }
}
