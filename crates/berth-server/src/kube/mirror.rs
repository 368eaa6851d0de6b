//! The cluster as it was last seen, and which pod is which task. What is seen becomes events of the
//! core; what the core decides becomes orders about pods. Nothing is chosen here.
//!
//! A mirror is only ever used inside a turn of the loop or when its orders are given, so it is never
//! ahead of the state or behind it.

mod claims;
mod fractions;
mod offers;

pub use own::Own;

use super::claims::Claims;
use super::dynamic::{Dynamics, Watch};
use super::gang;
use super::nodes::{Nodes, Taken};
use super::orders::{Bind, Done, Order, Wanted};
use super::shares::Shares;
use super::sight::{Asks, GangKey, Later, NodeSight, Phase, PodSight, Rule, Wish};
use crate::engine::{Core, Turn};
use berth_kube::{Change, PodRef, Seen};
use berth_model::{Cause, Event, JobId, LeaseId, Name, Span};
use berth_node::{Ended, Observed};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::mpsc;

mod foreign;
mod marks;
mod own;
mod queued;

pub(super) type Uid = String;

pub struct Mirror {
    orders: mpsc::UnboundedSender<Order>,
    /// The queue of pods that name none.
    pub(super) queue: Name,
    pub(super) nodes: Nodes,
    pub(super) pods: BTreeMap<Uid, Pod>,
    pub(super) gangs: BTreeMap<GangKey, Gang>,
    pub(super) jobs: BTreeMap<JobId, Tasks>,
    /// Bindings that are under way.
    pub(super) binds: BTreeMap<LeaseId, Wanted>,
    /// Gangs that the core would not have, and why.
    refused: BTreeMap<GangKey, String>,
    /// Queues that other schedulers have described.
    foreign_queues: BTreeSet<Name>,
    /// Jobs that are held back until they have got their place.
    held: BTreeMap<GangKey, queued::Held>,
    held_by: BTreeMap<Uid, GangKey>,
    pub(super) dynamics: Dynamics,
    /// What somebody has begun to ask about, and nobody has been told.
    pub(super) fresh: Vec<Watch>,
    own: Own,
    shares: Shares,
    pub(super) claims: Claims,
    /// Those that wait because of a claim.
    without_claims: BTreeSet<GangKey>,
}

pub(super) struct Pod {
    pub(super) sight: PodSight,
    pub(super) task: Option<(JobId, u32)>,
    /// It came when its gang had begun, and is a job of its own.
    is_apart: bool,
    /// Where it is, or will be.
    pub(super) placed: Option<Name>,
    /// What is counted of it on its node, while it is no task.
    counted: Option<(Name, Taken)>,
    /// Why it waits, as it says itself.
    said: String,
}

/// Pods that belong together.
#[derive(Default)]
pub(super) struct Gang {
    /// Those that are no task of a job yet.
    pub(super) waiting: BTreeSet<Uid>,
    /// The job of the others.
    pub(super) job: Option<JobId>,
    /// It was a job before.
    has_begun: bool,
}

/// The pods of a job.
pub(super) struct Tasks {
    gang: GangKey,
    /// By task; nothing while a pod is missing.
    pub(super) pods: Vec<Option<Uid>>,
    /// What a pod has to ask for to be this task.
    asks: Vec<Asks>,
    /// Tasks that ended well: nobody makes a pod for them again.
    done: Vec<bool>,
    /// Leases that wait for their pod.
    starts: BTreeMap<u32, LeaseId>,
}

impl Mirror {
    pub fn new(
        orders: mpsc::UnboundedSender<Order>,
        own: Own,
        queue: Name,
        claims: Claims,
    ) -> Mirror {
        Mirror {
            orders,
            queue,
            nodes: Nodes::default(),
            pods: BTreeMap::new(),
            gangs: BTreeMap::new(),
            jobs: BTreeMap::new(),
            binds: BTreeMap::new(),
            refused: BTreeMap::new(),
            foreign_queues: BTreeSet::new(),
            held: BTreeMap::new(),
            held_by: BTreeMap::new(),
            dynamics: Dynamics::default(),
            fresh: Vec::new(),
            own,
            shares: Shares::default(),
            claims,
            without_claims: BTreeSet::new(),
        }
    }

    /// From now on nodes are told apart by these rules, too.
    pub fn obey(&mut self, rules: &[Rule]) {
        self.nodes.obey(rules);
    }

    /// Begins with what there is. Which pods are which tasks is in the rows of the jobs; what is
    /// not there any more is gone.
    pub fn begin(&mut self, turn: &mut Turn<'_>, nodes: Vec<NodeSight>, pods: Vec<PodSight>) {
        let names: Vec<Name> = nodes.iter().map(|node| node.spec.name.clone()).collect();
        nodes.into_iter().for_each(|node| self.put_node(node));
        for sight in pods {
            self.pods.insert(sight.at.uid.clone(), Pod::new(sight));
        }
        let seen: Vec<Uid> = self.pods.keys().cloned().collect();
        seen.iter().for_each(|uid| self.see_sharing(uid));
        let unbooked = self.remember(turn);
        self.remember_fractions(turn.core);
        names.iter().for_each(|node| self.count_claims(node));
        self.begin_own(turn);
        let free = self.pods.iter().filter(|(_, pod)| pod.task.is_none());
        let free: Vec<Uid> = free.map(|(uid, _)| uid.clone()).collect();
        for uid in &free {
            if !self.pods[uid].runs_unknown() {
                self.count(uid);
            }
        }
        self.nodes.tell(turn);
        self.adopt_known(turn, unbooked);
        self.adopt_unknown(turn);
        self.remember_fractions(turn.core);
        self.give_back_idle();
        names.iter().for_each(|node| self.count_claims(node));
        for uid in free {
            if self.pods[&uid].task.is_none() {
                self.count(&uid);
                self.of_nobody(turn, &uid);
            }
        }
        self.enqueue_all(turn);
        let all: Vec<Uid> = self.pods.keys().cloned().collect();
        all.iter().for_each(|uid| self.place(turn.core, uid));
        let jobs: Vec<JobId> = self.jobs.keys().copied().collect();
        for job in jobs {
            self.tie(turn, job);
            let tasks = &self.jobs[&job];
            // Pods of a suspended job come when it has its place.
            let misses = !tasks.is_whole() && !self.is_held_by_us(&tasks.gang);
            self.hold(turn, job, misses);
        }
        self.nodes.tell(turn);
        self.settle(turn);
    }

    /// Returns the jobs of which pods run without a lease.
    fn remember(&mut self, turn: &mut Turn<'_>) -> Vec<JobId> {
        let known = turn.core.jobs.iter().filter(|(_, job)| !job.detail.pods.is_empty());
        let known: Vec<(JobId, Vec<PodRef>)> =
            known.map(|(id, job)| (*id, job.detail.pods.clone())).collect();
        let mut unbooked = Vec::new();
        for (job, refs) in known {
            if !self.remember_job(turn, job, &refs) {
                unbooked.push(job);
            }
        }
        for node in self.nodes.remember(turn.core) {
            self.lose_node(turn, &node);
        }
        unbooked
    }

    /// Whether every pod of it that runs has a lease.
    fn remember_job(&mut self, turn: &mut Turn<'_>, job: JobId, refs: &[PodRef]) -> bool {
        let seen = refs.iter().find_map(|pod| self.pods.get(&pod.uid));
        let gang = seen.and_then(|pod| pod.wish()).map(|wish| wish.gang.clone());
        let Some(gang) = gang.or_else(|| self.gang_to_be(refs)) else {
            // None of its pods is left.
            self.end_all(turn, job, "its pods are gone");
            turn.apply_observed(Event::JobCancelled { job });
            return true;
        };
        // A pod that came later than the rest of its gang.
        let taken = self.gangs.get(&gang).is_some_and(|gang| gang.job.is_some());
        let gang = if taken { self.part_with(refs).unwrap_or(gang) } else { gang };
        let found = refs.iter().filter_map(|pod| self.pods.get(&pod.uid)?.wish());
        let found: Vec<Arc<Wish>> = found.cloned().collect();
        self.heed(&found);
        refs.iter().for_each(|pod| self.heed_claims(&pod.uid));
        self.obey_held(&gang);
        let is_held = self.is_held_by_us(&gang);
        let mut tasks = Tasks {
            gang: gang.clone(),
            pods: Vec::with_capacity(refs.len()),
            asks: Vec::with_capacity(refs.len()),
            done: vec![false; refs.len()],
            starts: BTreeMap::new(),
        };
        // A pod that is gone asked for what the others ask for, as far as anybody knows.
        let usual = refs.iter().find_map(|pod| Some(self.pods.get(&pod.uid)?.sight.asks.clone()));
        let usual = usual.unwrap_or_default();
        let mut missing = Vec::new();
        for (task, pod) in gang::refs(refs) {
            let to_be = self.asks_to_be(&gang, pod);
            let is_to_be = to_be.is_some();
            let found = self.pods.get_mut(&pod.uid);
            let asks = found.as_ref().map(|pod| pod.sight.asks.clone()).or(to_be);
            tasks.asks.push(asks.unwrap_or_else(|| usual.clone()));
            tasks.pods.push(found.as_ref().map(|_| pod.uid.clone()));
            match found {
                Some(found) => found.task = Some((job, task)),
                None if is_to_be => {}
                None => missing.push(task),
            }
        }
        let known = self.gangs.entry(gang.clone()).or_default();
        known.job = Some(job);
        known.has_begun = true;
        for uid in tasks.pods.iter().flatten() {
            known.waiting.remove(uid);
        }
        let seen: Vec<Uid> = tasks.pods.iter().flatten().cloned().collect();
        self.jobs.insert(job, tasks);
        for task in &missing {
            self.end(turn, job, *task, "its pod is gone");
            self.make_room(turn, &gang, job, *task);
        }
        if !missing.is_empty() && !is_held {
            turn.park(job, true);
        }
        let mut booked = true;
        for uid in seen {
            if self.runs_unbooked(turn.core, &uid) {
                booked = false;
            } else {
                self.of_task(turn, &uid);
            }
        }
        booked
    }

    /// Whether a pod that is a task runs without a lease.
    pub(super) fn runs_unbooked(&self, core: &Core, uid: &Uid) -> bool {
        let pod = &self.pods[uid];
        let leased = |(job, task)| lease_of(core, job, task).is_some();
        pod.sight.is_placed() && pod.task.is_some_and(|task| !leased(task))
    }

    /// Takes in what was seen of nodes.
    pub fn see_nodes(&mut self, turn: &mut Turn<'_>, seen: Seen<NodeSight>) {
        match seen {
            Seen::All(nodes) => {
                let there: BTreeSet<Name> =
                    nodes.iter().map(|node| node.spec.name.clone()).collect();
                for gone in self.nodes.names().difference(&there) {
                    self.lose_node(turn, gone);
                }
                nodes.into_iter().for_each(|node| self.put_node(node));
            }
            Seen::Changes(changes) => {
                for change in changes {
                    match change {
                        Change::Put(node) => self.put_node(node),
                        Change::Gone(node) => self.lose_node(turn, &node.spec.name),
                    }
                }
            }
        }
        self.nodes.tell(turn);
        self.reconsider(turn);
        self.settle(turn);
    }

    /// Takes in what was seen of pods.
    pub fn see_pods(&mut self, turn: &mut Turn<'_>, seen: Seen<PodSight>) {
        match seen {
            Seen::All(pods) => {
                let there: BTreeSet<&Uid> = pods.iter().map(|pod| &pod.at.uid).collect();
                let gone: Vec<Uid> =
                    self.pods.keys().filter(|uid| !there.contains(uid)).cloned().collect();
                drop(there);
                for uid in gone {
                    self.gone(turn, &uid);
                }
                for pod in pods {
                    self.see(turn, pod);
                }
            }
            Seen::Changes(changes) => {
                for change in changes {
                    match change {
                        Change::Put(pod) => self.see(turn, pod),
                        Change::Gone(pod) => {
                            // How it ended may be news too.
                            let uid = pod.at.uid.clone();
                            self.see(turn, pod);
                            self.gone(turn, &uid);
                        }
                    }
                }
            }
        }
        self.nodes.tell(turn);
        self.settle(turn);
    }

    fn see(&mut self, turn: &mut Turn<'_>, sight: PodSight) {
        let uid = sight.at.uid.clone();
        let task = match self.pods.get_mut(&uid) {
            Some(known) => {
                let before = known.renew(sight);
                let task = known.task;
                match task {
                    Some((job, _)) => self.change(turn, &uid, job, before.as_deref()),
                    None => self.change_gang(&uid, before.as_deref()),
                }
                task
            }
            None => {
                self.pods.insert(uid.clone(), Pod::new(sight));
                None
            }
        };
        self.see_sharing(&uid);
        let is_own = self.pods[&uid].sight.own.is_some();
        let task = if is_own { self.know_own(turn.core, &uid) } else { task };
        match task {
            Some(_) if is_own => self.of_own(turn, &uid),
            Some(_) => self.of_task(turn, &uid),
            None => {
                self.count(&uid);
                self.of_nobody(turn, &uid);
            }
        }
        self.place(turn.core, &uid);
    }

    /// A pod that is no task takes what it takes from everybody.
    fn count(&mut self, uid: &Uid) {
        if let Some(Pod { sight, task, counted, .. }) = self.pods.get_mut(uid) {
            let is_taken = task.is_none() && !self.shares.is_used(sight);
            self.nodes.count(counted, is_taken.then_some(sight));
        }
    }

    /// A pod that is no task: one of another scheduler, or one that has to find its gang.
    fn of_nobody(&mut self, turn: &mut Turn<'_>, uid: &Uid) {
        let pod = &self.pods[uid];
        let sight = &pod.sight;
        if sight.own.is_some() {
            return self.stray(uid);
        }
        let Some(wish) = &sight.wish else { return };
        if sight.node.is_some() || sight.phase.is_over() || sight.is_leaving || sight.is_gated {
            let gang = pod.wish().map(|wish| wish.gang.clone());
            if let Some(gang) = gang.and_then(|gang| self.gangs.get_mut(&gang)) {
                gang.waiting.remove(uid);
            }
            return;
        }
        match wish {
            Err(why) => {
                let why = why.clone();
                self.complain(uid, &why);
            }
            Ok(wish) => {
                let gang = wish.gang.clone();
                self.gangs.entry(gang.clone()).or_default().waiting.insert(uid.clone());
                self.gather(turn, &gang);
            }
        }
    }

    /// Makes a job of a gang that has become whole, or gives a job the pods that it misses.
    fn gather(&mut self, turn: &mut Turn<'_>, key: &GangKey) {
        let Some(gang) = self.gangs.get_mut(key) else { return };
        if let Some(job) = gang.job {
            match Stage::of(turn.core, job) {
                Stage::Live => {
                    self.fill(turn, key, job);
                    return self.let_go(turn, key, Some(job));
                }
                // What comes now is for the job after it.
                Stage::Ending => return,
                Stage::Over => {}
            }
            gang.job = None;
            self.jobs.remove(&job);
            self.dynamics.forget(job);
        }
        if self.gangs[key].has_begun {
            self.let_go(turn, key, None);
        }
        let Some(gang) = self.gangs.get(key) else { return };
        let pods: Vec<&PodSight> =
            gang.waiting.iter().filter_map(|uid| Some(&self.pods.get(uid)?.sight)).collect();
        let Some(wish) = pods.first().and_then(|pod| pod.wish.as_ref()?.as_ref().ok()) else {
            return;
        };
        if (pods.len() as u32) < wish.members {
            return;
        }
        let queue = wish.queue.clone().unwrap_or_else(|| self.queue.clone());
        let mut submission = match gang::submission(&pods, &queue, &self.nodes, &self.claims) {
            Ok(submission) => submission,
            Err(why) => {
                let pods: Vec<Uid> = pods.iter().map(|pod| pod.at.uid.clone()).collect();
                return self.not_ready(key, &pods, &why);
            }
        };
        let refs = submission.pods.clone();
        if let Err(why) = self.bind_together(turn.core, &mut submission, &pods) {
            refs.iter().for_each(|pod| self.say(&pod.uid, &why));
            return;
        }
        let wishes = pods.iter().filter_map(|pod| pod.wish.as_ref()?.as_ref().ok());
        let wishes: Vec<Arc<Wish>> = wishes.cloned().collect();
        match turn.submit(submission) {
            Ok(job) => {
                self.heed(&wishes);
                refs.iter().for_each(|pod| self.heed_claims(&pod.uid));
                self.refused.remove(key);
                self.assign(key, job, &refs);
                self.tie(turn, job);
            }
            Err(refused) => self.refuse(key, &refs, refused.to_string()),
        }
    }

    /// Nodes are told apart by what these pods ask of them.
    pub(super) fn heed(&mut self, wishes: &[Arc<Wish>]) {
        for wish in wishes {
            self.nodes.obey(&wish.rules);
            self.nodes.count_ports(&wish.ports);
        }
    }

    /// A gang cannot be made a job for now.
    fn not_ready(&mut self, key: &GangKey, pods: &[Uid], why: &gang::Unready) {
        if matches!(why, gang::Unready::Claim(_)) {
            self.without_claims.insert(key.clone());
        }
        let why = why.to_string();
        pods.iter().for_each(|uid| self.say(uid, &why));
    }

    /// The pods of a job, as far as they are there.
    pub(super) fn tasks_of(&self, job: JobId) -> Vec<Uid> {
        let tasks = self.jobs.get(&job).into_iter().flat_map(|tasks| &tasks.pods);
        tasks.flatten().cloned().collect()
    }

    pub(super) fn forget_job(&mut self, key: &GangKey, job: JobId) {
        self.jobs.remove(&job);
        self.dynamics.forget(job);
        self.gangs.remove(key);
    }

    pub(super) fn assign(&mut self, key: &GangKey, job: JobId, refs: &[PodRef]) {
        let mut asks = Vec::with_capacity(refs.len());
        for (task, pod) in gang::refs(refs) {
            let known = self.pods.get_mut(&pod.uid).expect("it was gathered just now");
            known.task = Some((job, task));
            asks.push(known.sight.asks.clone());
        }
        let pods = refs.iter().map(|pod| Some(pod.uid.clone())).collect();
        let gang = self.gangs.get_mut(key).expect("it was gathered just now");
        gang.waiting.clear();
        gang.job = Some(job);
        gang.has_begun = true;
        let (gang, done) = (key.clone(), vec![false; refs.len()]);
        self.jobs.insert(job, Tasks { gang, pods, asks, done, starts: BTreeMap::new() });
    }

    /// Gives a job pods that came in the place of others.
    fn fill(&mut self, turn: &mut Turn<'_>, key: &GangKey, job: JobId) {
        // What was read from a template may have been given more by the API server.
        let is_held = self.is_held_by_us(key);
        let (Some(gang), Some(tasks)) = (self.gangs.get_mut(key), self.jobs.get_mut(&job)) else {
            return;
        };
        for uid in gang.waiting.clone() {
            let Some(pod) = self.pods.get_mut(&uid) else { continue };
            let free = |(at, slot): (usize, &Option<Uid>)| {
                let (wanted, asks) = (&tasks.asks[at], &pod.sight.asks);
                let fits = wanted == asks || is_held && wanted.gpus == asks.gpus;
                slot.is_none() && !tasks.done[at] && fits
            };
            let Some(at) = tasks.pods.iter().enumerate().position(free) else { continue };
            let task = at as u32;
            tasks.pods[at] = Some(uid.clone());
            pod.task = Some((job, task));
            gang.waiting.remove(&uid);
            turn.amend_detail(job, |detail| detail.pods[at] = pod.sight.at.clone());
            if let Some(lease) = tasks.starts.remove(&task) {
                // Not before it is in the log which pod it is.
                turn.start_again(lease);
            }
        }
        let (is_whole, spare) = (tasks.is_whole(), gang.waiting.clone());
        if is_whole {
            self.hold(turn, job, false);
        }
        let waits =
            |uid: &Uid| self.pods[uid].wish().is_some_and(|wish| wish.later == Later::Waits);
        let spare: Vec<Uid> = spare.into_iter().filter(waits).collect();
        for uid in spare {
            self.say(&uid, "its gang has all the pods it is made of, and this one is more");
        }
    }

    /// A pod that is a task was seen.
    pub(super) fn of_task(&mut self, turn: &mut Turn<'_>, uid: &Uid) {
        let pod = &self.pods[uid];
        let (Some((job, task)), sight) = (pod.task, &pod.sight) else { return };
        let Some((lease, node)) = lease_of(turn.core, job, task) else {
            if sight.is_placed() {
                // It was bound too late: what it was to hold is somebody else's by now.
                let (pod, why) = (sight.at.clone(), "it was bound after its lease had ended");
                self.order(Order::Displace { pod, grace_secs: 0, why });
            }
            // It holds nothing, so it must not run, and it cannot be begun any more.
            if sight.phase.is_over() || sight.node.is_some() || sight.is_leaving {
                self.leave(turn, uid, "its pod is over");
            }
            return;
        };
        match (&sight.phase, &sight.node) {
            (Phase::Succeeded | Phase::Failed { .. }, _) => {
                let mut ended = Ended::lost(lease, turn.at, String::new());
                ended.lost = None;
                ended.started_at = Some(turn.at);
                match sight.phase {
                    Phase::Failed { code, out_of_memory } => {
                        ended.code = Some(code.unwrap_or(1));
                        ended.oom = out_of_memory;
                    }
                    _ => ended.code = Some(0),
                }
                ended.asked = turn.stop_cause(lease);
                let done = ended.asked.is_none() && sight.phase == Phase::Succeeded;
                self.ended(turn, ended);
                if let Some(tasks) = self.jobs.get_mut(&job) {
                    tasks.done[task as usize] |= done;
                }
                self.leave(turn, uid, "its pod is over");
            }
            (_, Some(bound)) if *bound == node => {
                turn.observe(Observed::Started { lease, at: turn.at });
                self.began(turn, job);
            }
            (_, Some(bound)) => {
                let why = format!("its pod was put on {bound}");
                self.leave(turn, uid, &why);
            }
            (_, None) => {}
        }
    }

    /// A pod is no task any more; from now on it is counted where it runs, if it does.
    pub(super) fn forget_task(&mut self, uid: &Uid) -> Option<(JobId, u32)> {
        let pod = self.pods.get_mut(uid)?;
        let (job, task) = pod.task.take()?;
        if let Some(tasks) = self.jobs.get_mut(&job) {
            tasks.pods[task as usize] = None;
        }
        self.count(uid);
        self.count_claims_of(uid);
        Some((job, task))
    }

    /// The task of a pod has lost it.
    fn leave(&mut self, turn: &mut Turn<'_>, uid: &Uid, why: &str) {
        if self.pods.get(uid).is_some_and(|pod| pod.sight.own.is_some()) {
            return self.leave_own(turn, uid, why);
        }
        let Some((job, task)) = self.forget_task(uid) else { return };
        self.end(turn, job, task, why);
        let replaced = self.pods.get(uid).is_some_and(|pod| {
            // The one that comes in its place is a job of its own where it is no gang.
            pod.sight.is_replaced && pod.wish().is_some_and(|wish| !wish.alone)
        });
        let Some(tasks) = self.jobs.get(&job) else { return };
        let (gang, alone) = (tasks.gang.clone(), tasks.pods.iter().all(Option::is_none));
        if self.is_held_by_us(&gang) {
            self.make_room(turn, &gang, job, task);
        } else if Stage::of(turn.core, job) == Stage::Live && !tasks.is_whole() {
            if alone && !replaced {
                // Nobody makes another one.
                turn.apply_observed(Event::JobCancelled { job });
            } else {
                turn.park(job, true);
            }
        }
        self.gather(turn, &gang);
    }

    fn gone(&mut self, turn: &mut Turn<'_>, uid: &Uid) {
        self.lose_user(uid);
        self.leave(turn, uid, "its pod was deleted");
        self.gone_own(uid);
        let Some(mut pod) = self.pods.remove(uid) else { return };
        self.nodes.count(&mut pod.counted, None);
        for order in self.shares.gone(&pod.sight) {
            self.order(order);
        }
        self.unplace(&pod.sight);
        let Some(key) = pod.wish().map(|wish| wish.gang.clone()) else { return };
        let Some(gang) = self.gangs.get_mut(&key) else { return };
        gang.waiting.remove(uid);
        let over = |job: &JobId| {
            self.jobs.get(job).is_none_or(|tasks| tasks.pods.iter().all(Option::is_none))
        };
        let ended =
            |job: &JobId| turn.core.jobs.get(job).is_none_or(|job| job.row.state.is_final());
        if gang.waiting.is_empty() && gang.job.as_ref().is_none_or(|job| over(job) && ended(job)) {
            if let Some(job) = gang.job {
                self.jobs.remove(&job);
                self.dynamics.forget(job);
            }
            self.gangs.remove(&key);
            self.refused.remove(&key);
        }
    }

    /// The lease of a task has ended, if it had one.
    fn end(&mut self, turn: &mut Turn<'_>, job: JobId, task: u32, why: &str) {
        if let Some(tasks) = self.jobs.get_mut(&job) {
            tasks.starts.remove(&task);
        }
        let Some((lease, _)) = lease_of(turn.core, job, task) else { return };
        let mut ended = Ended::lost(lease, turn.at, why.to_owned());
        ended.asked = turn.stop_cause(lease);
        self.ended(turn, ended);
        self.lost(turn.core, lease);
    }

    fn end_all(&mut self, turn: &mut Turn<'_>, job: JobId, why: &str) {
        let tasks = turn.core.jobs.get(&job).map(|job| job.leases.keys().map(|id| id.task));
        let tasks: BTreeSet<u32> = tasks.into_iter().flatten().collect();
        for task in tasks {
            self.end(turn, job, task, why);
        }
    }

    fn lose_node(&mut self, turn: &mut Turn<'_>, name: &Name) {
        let there: Vec<Uid> = self
            .pods
            .iter()
            .filter(|(_, pod)| pod.task.is_some() && pod.sight.node.as_ref() == Some(name))
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in there {
            // Nobody is left there to say that it has ended, and its controller waits for that.
            let (pod, why) = (self.pods[&uid].sight.at.clone(), "its node is gone");
            self.order(Order::Displace { pod, grace_secs: 0, why });
            self.leave(turn, &uid, why);
        }
        // Those that were decided and not bound yet.
        let leases = turn.core.jobs.values().flat_map(|job| &job.leases);
        let leases: Vec<LeaseId> = leases
            .filter(|(_, live)| live.row.node == name.as_str())
            .map(|(lease, _)| *lease)
            .collect();
        for lease in leases {
            self.end(turn, lease.job, lease.task, "its node is gone");
        }
        self.nodes.remove(turn, name);
    }

    /// A lease was decided.
    pub fn start(&mut self, core: &Core, lease: LeaseId) {
        if self.start_own(core, lease) {
            return;
        }
        let live = core.jobs.get(&lease.job).and_then(|job| job.leases.get(&lease));
        let (Some(live), Some(tasks)) = (live, self.jobs.get_mut(&lease.job)) else { return };
        let pod = tasks.pods.get(lease.task as usize).and_then(Option::as_ref);
        let Some(pod) = pod.and_then(|uid| self.pods.get(uid)) else {
            tasks.starts.insert(lease.task, lease);
            let gang = tasks.gang.clone();
            return self.let_begin(&gang);
        };
        // It was adopted where it runs, or is on its way.
        if pod.sight.node.is_some() || self.binds.contains_key(&lease) {
            return;
        }
        let node = Name::new(&live.row.node);
        let open = self.open(&pod.sight, &node);
        let pod = pod.sight.at.clone();
        self.place(core, &pod.uid);
        let claims = self.prepare(&pod.uid, &node);
        let wanted = Wanted::default();
        self.binds.insert(lease, wanted.clone());
        let devices = self.steps(core, lease, &pod.uid);
        let bind = Bind { lease, pod, node, open, claims, wanted, gpus: None, devices };
        self.bind(core, bind);
    }

    /// The end of a lease is in the log: what is not bound yet must not be any more.
    pub fn acknowledge(&mut self, lease: LeaseId) {
        if let Some(wanted) = self.binds.remove(&lease) {
            wanted.revoke();
        }
        self.unshare(lease);
        self.acknowledge_own(lease);
    }

    /// A job was cancelled, also before it ran: its pods are not to run.
    pub fn cancelled(&mut self, job: JobId) {
        let Some(tasks) = self.jobs.get(&job) else { return };
        let gang = tasks.gang.clone();
        if self.hold_back(&gang, Cause::Cancelled) {
            return;
        }
        let Some(tasks) = self.jobs.get(&job) else { return };
        for pod in tasks.pods.iter().flatten().filter_map(|uid| self.pods.get(uid)) {
            if !pod.sight.is_leaving && !pod.sight.phase.is_over() && pod.sight.node.is_none() {
                let (pod, why) = (pod.sight.at.clone(), "its job was cancelled");
                self.order(Order::Displace { pod, grace_secs: 0, why });
            }
        }
    }

    /// A lease is to end. Returns whether it ended at once, because it had no pod yet.
    pub fn stop(&mut self, lease: LeaseId, cause: Cause, grace: Span) -> bool {
        if self.stop_own(lease, cause, grace) {
            return false;
        }
        let Some(tasks) = self.jobs.get_mut(&lease.job) else { return true };
        tasks.starts.remove(&lease.task);
        self.shares.forget(lease);
        let (gang, pod) = (tasks.gang.clone(), tasks.pods.get(lease.task as usize));
        let pod = pod.and_then(Option::as_ref).cloned();
        let is_held_back = self.hold_back(&gang, cause);
        let Some(pod) = pod.and_then(|uid| self.pods.get(&uid)) else { return true };
        if is_held_back {
            return false;
        }
        let why = crate::engine::said(cause);
        let grace_secs = (grace.0 + 999) / 1_000;
        let pod = pod.sight.at.clone();
        self.order(Order::Displace { pod, grace_secs, why });
        false
    }

    /// Says on the pods of a job why it waits.
    pub fn explain(&mut self, job: JobId, why: &str) {
        // Where it is held for others the core knows no more than that.
        let held = self.dynamics.waiting.get(&job).filter(|tied| tied.since.is_none());
        let own = held.map(|tied| tied.why.clone()).filter(|why| !why.is_empty());
        let why = own.as_deref().unwrap_or(why);
        for uid in self.tasks_of(job) {
            self.say(&uid, why);
        }
    }

    /// Says on a pod why it waits, if it does not say so already.
    pub(super) fn say(&mut self, uid: &Uid, why: &str) {
        let Some(pod) = self.pods.get_mut(uid).filter(|pod| pod.said != why) else { return };
        pod.said = why.to_owned();
        let (at, version) = (pod.sight.at.clone(), pod.sight.version.clone());
        self.order(Order::SayWhy { pod: at, version, message: why.to_owned() });
    }

    /// What came of an order.
    pub fn done(&mut self, turn: &mut Turn<'_>, done: Done) {
        match done {
            Done::Bound(lease) => {
                self.binds.remove(&lease);
                turn.observe(Observed::Started { lease, at: turn.at });
            }
            Done::Lost { lease, pod, why } => {
                self.binds.remove(&lease);
                let task = Some((lease.job, lease.task));
                if self.pods.get(&pod.uid).is_some_and(|pod| pod.task == task) {
                    // It is no use to try it again.
                    self.leave(turn, &pod.uid, &why);
                } else {
                    self.end(turn, lease.job, lease.task, &why);
                }
                self.settle(turn);
            }
            Done::NotThere(lease, why) => {
                self.binds.remove(&lease);
                self.end(turn, lease.job, lease.task, &why);
                self.settle(turn);
            }
            Done::Never(lease, why) => {
                self.binds.remove(&lease);
                turn.not_started(lease, why);
                self.unshare(lease);
                self.lost(turn.core, lease);
                self.settle(turn);
            }
            Done::Unready { lease, pod, why } => {
                self.binds.remove(&lease);
                self.claim_later(turn, &pod.uid, &why);
            }
            Done::NotReserved(spot, why) => self.not_reserved(&spot, &why),
            Done::Unsaid(pod) => {
                if let Some(pod) = self.pods.get_mut(&pod.uid) {
                    pod.said.clear();
                }
            }
        }
    }

    pub(super) fn order(&self, order: Order) {
        // Only at the end of the server is there nobody to take it; the next one orders again.
        let _ = self.orders.send(order);
    }
}

impl Tasks {
    /// Whether every task that has not ended well has its pod.
    pub(super) fn is_whole(&self) -> bool {
        self.pods.iter().zip(&self.done).all(|(pod, done)| *done || pod.is_some())
    }
}

/// How far a job has got, as far as its pods are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Live,
    /// It failed or was cancelled, and what is left of it is being stopped.
    Ending,
    Over,
}

impl Stage {
    fn of(core: &Core, job: JobId) -> Stage {
        let Some(live) = core.jobs.get(&job) else { return Stage::Over };
        if live.row.state.is_final() {
            return Stage::Over;
        }
        let for_good = |cause: Cause| !cause.requeues();
        match live.leases.values().any(|lease| lease.stopping.is_some_and(for_good)) {
            true => Stage::Ending,
            false => Stage::Live,
        }
    }
}

impl Pod {
    fn new(sight: PodSight) -> Pod {
        Pod { sight, task: None, is_apart: false, placed: None, counted: None, said: String::new() }
    }

    /// One of ours that runs and is no task of anything.
    pub(super) fn runs_unknown(&self) -> bool {
        self.task.is_none() && self.sight.is_placed() && self.wish().is_some()
    }

    /// Takes a newer sight and returns the wish before. What was understood once is not forgotten
    /// because something around the pod is gone or makes no sense any more.
    fn renew(&mut self, sight: PodSight) -> Option<Arc<Wish>> {
        let before = std::mem::replace(&mut self.sight, sight);
        let is_task = self.task.is_some();
        let is_read = matches!(self.sight.wish, Some(Ok(_)));
        let keeps = match &before.wish {
            Some(Ok(_)) => !is_read && (is_task || self.sight.wish.is_none()),
            Some(Err(_)) => self.sight.wish.is_none(),
            None => false,
        };
        let wish = before.wish.as_ref().and_then(|wish| wish.as_ref().ok()).cloned();
        if keeps {
            self.sight.wish = before.wish;
        } else if self.is_apart {
            self.part();
        }
        wish
    }

    /// From now on it is a job of its own.
    fn part(&mut self) {
        self.is_apart = true;
        if let Some(Ok(wish)) = &mut self.sight.wish {
            *wish = Arc::new(wish.apart(&self.sight.at));
        }
    }

    pub(super) fn wish(&self) -> Option<&Arc<Wish>> {
        self.sight.wish.as_ref()?.as_ref().ok()
    }
}

/// The lease of a task that has not been closed, and its node.
fn lease_of(core: &Core, job: JobId, task: u32) -> Option<(LeaseId, Name)> {
    let leases = &core.jobs.get(&job)?.leases;
    let (id, live) = leases.iter().find(|(id, _)| id.task == task)?;
    Some((*id, Name::new(&live.row.node)))
}
