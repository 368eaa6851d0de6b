//! The cluster as it was last seen, and which pod is which task. What is seen becomes events of the
//! core; what the core decides becomes orders about pods. Nothing is chosen here.
//!
//! A mirror is only ever used inside a turn of the loop or when its orders are given, so it is never
//! ahead of the state or behind it.

use super::gang;
use super::nodes::{Nodes, Taken};
use super::orders::{Bound, Order};
use super::sight::{Asks, GangKey, NodeSight, Phase, PodSight, Wish};
use crate::engine::{Core, Turn};
use berth_kube::{Change, PodRef, Seen};
use berth_model::{Cause, Event, JobChange, JobId, LeaseId, Name, Span};
use berth_node::{Ended, Observed};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::mpsc;

type Uid = String;

pub struct Mirror {
    orders: mpsc::UnboundedSender<Order>,
    /// The queue of pods that name none.
    queue: Name,
    nodes: Nodes,
    pods: BTreeMap<Uid, Pod>,
    gangs: BTreeMap<GangKey, Gang>,
    jobs: BTreeMap<JobId, Tasks>,
}

struct Pod {
    sight: PodSight,
    task: Option<(JobId, u32)>,
    /// What is counted of it on its node, while it is no task.
    counted: Option<(Name, Taken)>,
}

/// Pods that belong together.
#[derive(Default)]
struct Gang {
    /// Those that are no task of a job yet.
    waiting: BTreeSet<Uid>,
    /// The job of the others.
    job: Option<JobId>,
}

/// The pods of a job.
struct Tasks {
    gang: GangKey,
    /// By task; nothing while a pod is missing.
    pods: Vec<Option<Uid>>,
    /// What a pod has to ask for to be this task.
    asks: Vec<Asks>,
    /// Tasks that ended well: nobody makes a pod for them again.
    done: Vec<bool>,
    /// Leases that wait for their pod.
    starts: BTreeMap<u32, (LeaseId, Name)>,
    /// Why it waits, as its pods say it.
    said: String,
}

impl Mirror {
    pub fn new(orders: mpsc::UnboundedSender<Order>, queue: Name) -> Mirror {
        Mirror {
            orders,
            queue,
            nodes: Nodes::default(),
            pods: BTreeMap::new(),
            gangs: BTreeMap::new(),
            jobs: BTreeMap::new(),
        }
    }

    /// Begins with what there is. Which pods are which tasks is in the rows of the jobs; what is
    /// not there any more is gone.
    pub fn begin(&mut self, turn: &mut Turn<'_>, nodes: Vec<NodeSight>, pods: Vec<PodSight>) {
        nodes.into_iter().for_each(|node| self.nodes.put(node));
        for sight in pods {
            self.pods.insert(sight.at.uid.clone(), Pod { sight, task: None, counted: None });
        }
        self.remember(turn);
        let free = self.pods.iter().filter(|(_, pod)| pod.task.is_none());
        let free: Vec<Uid> = free.map(|(uid, _)| uid.clone()).collect();
        for uid in free {
            self.count(&uid);
            self.of_nobody(turn, &uid);
        }
        self.nodes.tell(turn);
    }

    fn remember(&mut self, turn: &mut Turn<'_>) {
        let known = turn.core.jobs.iter().filter(|(_, job)| !job.detail.pods.is_empty());
        let known: Vec<(JobId, Vec<PodRef>)> =
            known.map(|(id, job)| (*id, job.detail.pods.clone())).collect();
        for (job, refs) in known {
            self.remember_job(turn, job, &refs);
        }
        for node in self.nodes.remember(turn.core) {
            self.lose_node(turn, &node);
        }
    }

    fn remember_job(&mut self, turn: &mut Turn<'_>, job: JobId, refs: &[PodRef]) {
        let seen = refs.iter().find_map(|pod| self.pods.get(&pod.uid));
        let Some(wish) = seen.and_then(|pod| pod.wish()) else {
            // None of its pods is left.
            self.end_all(turn, job, "its pods are gone");
            turn.apply_observed(Event::JobCancelled { job });
            return;
        };
        let gang = wish.gang.clone();
        let found = refs.iter().filter_map(|pod| self.pods.get(&pod.uid)?.wish());
        let rules = found.flat_map(|wish| wish.rules.iter().cloned()).collect();
        self.nodes.obey(rules);
        let mut tasks = Tasks {
            gang: gang.clone(),
            pods: Vec::with_capacity(refs.len()),
            asks: Vec::with_capacity(refs.len()),
            done: vec![false; refs.len()],
            starts: BTreeMap::new(),
            said: String::new(),
        };
        // A pod that is gone asked for what the others ask for, as far as anybody knows.
        let usual = refs.iter().find_map(|pod| Some(self.pods.get(&pod.uid)?.sight.asks.clone()));
        let usual = usual.unwrap_or_default();
        let mut missing = Vec::new();
        for (task, pod) in gang::refs(refs) {
            let found = self.pods.get_mut(&pod.uid);
            let asks = found.as_ref().map(|pod| pod.sight.asks.clone());
            tasks.asks.push(asks.unwrap_or_else(|| usual.clone()));
            tasks.pods.push(found.as_ref().map(|_| pod.uid.clone()));
            match found {
                Some(found) => found.task = Some((job, task)),
                None => missing.push(task),
            }
        }
        let known = self.gangs.entry(gang).or_default();
        known.job = Some(job);
        for uid in tasks.pods.iter().flatten() {
            known.waiting.remove(uid);
        }
        let seen: Vec<Uid> = tasks.pods.iter().flatten().cloned().collect();
        self.jobs.insert(job, tasks);
        for task in &missing {
            self.end(turn, job, *task, "its pod is gone");
        }
        if !missing.is_empty() {
            self.hold(turn, job, true);
        }
        for uid in seen {
            self.of_task(turn, &uid);
        }
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
                nodes.into_iter().for_each(|node| self.nodes.put(node));
            }
            Seen::Changes(changes) => {
                for change in changes {
                    match change {
                        Change::Put(node) => self.nodes.put(node),
                        Change::Gone(node) => self.lose_node(turn, &node.spec.name),
                    }
                }
            }
        }
        self.nodes.tell(turn);
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
    }

    fn see(&mut self, turn: &mut Turn<'_>, sight: PodSight) {
        let uid = sight.at.uid.clone();
        let task = match self.pods.get_mut(&uid) {
            Some(known) => {
                known.sight = sight;
                known.task
            }
            None => {
                self.pods.insert(uid.clone(), Pod { sight, task: None, counted: None });
                None
            }
        };
        match task {
            Some(_) => self.of_task(turn, &uid),
            None => {
                self.count(&uid);
                self.of_nobody(turn, &uid);
            }
        }
    }

    /// A pod that is no task takes what it takes from everybody.
    fn count(&mut self, uid: &Uid) {
        if let Some(Pod { sight, task, counted }) = self.pods.get_mut(uid) {
            self.nodes.count(counted, task.is_none().then_some(sight));
        }
    }

    /// A pod that is no task: one of another scheduler, or one that has to find its gang.
    fn of_nobody(&mut self, turn: &mut Turn<'_>, uid: &Uid) {
        let pod = &self.pods[uid];
        let sight = &pod.sight;
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
                let order = Order::SayWhy { pod: sight.at.clone(), message: why.clone() };
                self.order(order);
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
                Stage::Live => return self.fill(turn, key, job),
                // What comes now is for the job after it.
                Stage::Ending => return,
                Stage::Over => {}
            }
            gang.job = None;
            self.jobs.remove(&job);
        }
        let gang = &self.gangs[key];
        let pods: Vec<&PodSight> =
            gang.waiting.iter().filter_map(|uid| Some(&self.pods.get(uid)?.sight)).collect();
        let Some(wish) = pods.first().and_then(|pod| pod.wish.as_ref()?.as_ref().ok()) else {
            return;
        };
        if (pods.len() as u32) < wish.members {
            return;
        }
        let queue = wish.queue.clone().unwrap_or_else(|| self.queue.clone());
        let Some(submission) = gang::submission(&pods, &queue) else { return };
        let rules: Vec<_> = pods
            .iter()
            .filter_map(|pod| pod.wish.as_ref()?.as_ref().ok())
            .flat_map(|wish| wish.rules.iter().cloned())
            .collect();
        let refs = submission.pods.clone();
        match turn.submit(submission) {
            Ok(job) => {
                self.nodes.obey(rules);
                self.assign(key, job, &refs);
            }
            Err(refused) => {
                for pod in refs {
                    self.order(Order::SayWhy { pod, message: refused.to_string() });
                }
            }
        }
    }

    fn assign(&mut self, key: &GangKey, job: JobId, refs: &[PodRef]) {
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
        let (starts, said) = (BTreeMap::new(), String::new());
        let (gang, done) = (key.clone(), vec![false; refs.len()]);
        self.jobs.insert(job, Tasks { gang, pods, asks, done, starts, said });
    }

    /// Gives a job pods that came in the place of others.
    fn fill(&mut self, turn: &mut Turn<'_>, key: &GangKey, job: JobId) {
        let (Some(gang), Some(tasks)) = (self.gangs.get_mut(key), self.jobs.get_mut(&job)) else {
            return;
        };
        for uid in gang.waiting.clone() {
            let Some(pod) = self.pods.get_mut(&uid) else { continue };
            let free = |(at, slot): (usize, &Option<Uid>)| {
                slot.is_none() && !tasks.done[at] && tasks.asks[at] == pod.sight.asks
            };
            let Some(at) = tasks.pods.iter().enumerate().position(free) else { continue };
            let task = at as u32;
            tasks.pods[at] = Some(uid.clone());
            pod.task = Some((job, task));
            gang.waiting.remove(&uid);
            turn.amend_detail(job, |detail| detail.pods[at] = pod.sight.at.clone());
            if let Some((lease, node)) = tasks.starts.remove(&task) {
                let order = Order::Bind { lease, pod: pod.sight.at.clone(), node };
                let _ = self.orders.send(order);
            }
        }
        if tasks.is_whole() {
            self.hold(turn, job, false);
        }
    }

    /// A job that waits without all of its pods cannot be begun.
    fn hold(&self, turn: &mut Turn<'_>, job: JobId, hold: bool) {
        let Some(live) = turn.core.jobs.get(&job) else { return };
        if live.detail.held != hold && (live.leases.is_empty() || !hold) {
            turn.apply_observed(Event::JobChanged { job, change: JobChange::Hold(hold) });
        }
    }

    /// A pod that is a task was seen.
    fn of_task(&mut self, turn: &mut Turn<'_>, uid: &Uid) {
        let pod = &self.pods[uid];
        let (Some((job, task)), sight) = (pod.task, &pod.sight) else { return };
        let Some((lease, node)) = lease_of(turn.core, job, task) else {
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
                turn.observe(Observed::Ended(Box::new(ended)));
                if let Some(tasks) = self.jobs.get_mut(&job) {
                    tasks.done[task as usize] |= done;
                }
                self.leave(turn, uid, "its pod is over");
            }
            (_, Some(bound)) if *bound == node => {
                turn.observe(Observed::Started { lease, at: turn.at });
            }
            (_, Some(bound)) => {
                let why = format!("its pod was put on {bound}");
                self.leave(turn, uid, &why);
            }
            (_, None) => {}
        }
    }

    /// A pod is no task any more; from now on it is counted where it runs, if it does.
    fn forget_task(&mut self, uid: &Uid) -> Option<(JobId, u32)> {
        let pod = self.pods.get_mut(uid)?;
        let (job, task) = pod.task.take()?;
        if let Some(tasks) = self.jobs.get_mut(&job) {
            tasks.pods[task as usize] = None;
        }
        self.count(uid);
        Some((job, task))
    }

    /// The task of a pod has lost it.
    fn leave(&mut self, turn: &mut Turn<'_>, uid: &Uid, why: &str) {
        let Some((job, task)) = self.forget_task(uid) else { return };
        self.end(turn, job, task, why);
        let replaced = self.pods.get(uid).is_some_and(|pod| {
            // The one that comes in its place is a job of its own where it is no gang.
            pod.sight.is_replaced && pod.wish().is_some_and(|wish| !wish.alone)
        });
        let Some(tasks) = self.jobs.get(&job) else { return };
        let (gang, alone) = (tasks.gang.clone(), tasks.pods.iter().all(Option::is_none));
        if Stage::of(turn.core, job) == Stage::Live && !tasks.is_whole() {
            if alone && !replaced {
                // Nobody makes another one.
                turn.apply_observed(Event::JobCancelled { job });
            } else {
                self.hold(turn, job, true);
            }
        }
        self.gather(turn, &gang);
    }

    fn gone(&mut self, turn: &mut Turn<'_>, uid: &Uid) {
        self.leave(turn, uid, "its pod was deleted");
        let Some(mut pod) = self.pods.remove(uid) else { return };
        self.nodes.count(&mut pod.counted, None);
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
            }
            self.gangs.remove(&key);
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
        turn.observe(Observed::Ended(Box::new(ended)));
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
            self.leave(turn, &uid, "its node is gone");
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
        let live = core.jobs.get(&lease.job).and_then(|job| job.leases.get(&lease));
        let (Some(live), Some(tasks)) = (live, self.jobs.get_mut(&lease.job)) else { return };
        let node = Name::new(&live.row.node);
        let pod = tasks.pods.get(lease.task as usize).and_then(Option::as_ref);
        match pod.and_then(|uid| self.pods.get(uid)) {
            Some(pod) => {
                let pod = pod.sight.at.clone();
                self.order(Order::Bind { lease, pod, node });
            }
            None => {
                tasks.starts.insert(lease.task, (lease, node));
            }
        }
    }

    /// A lease is to end. Returns whether it ended at once, because it had no pod yet.
    pub fn stop(&mut self, lease: LeaseId, cause: Cause, grace: Span) -> bool {
        let Some(tasks) = self.jobs.get_mut(&lease.job) else { return true };
        tasks.starts.remove(&lease.task);
        let pod = tasks.pods.get(lease.task as usize).and_then(Option::as_ref);
        let Some(pod) = pod.and_then(|uid| self.pods.get(uid)) else { return true };
        let why = crate::engine::said(cause);
        let grace_secs = (grace.0 + 999) / 1_000;
        let pod = pod.sight.at.clone();
        self.order(Order::Displace { pod, grace_secs, why });
        false
    }

    /// Says on the pods of a job why it waits, if they do not say so already.
    pub fn explain(&mut self, job: JobId, why: String) {
        let Some(tasks) = self.jobs.get_mut(&job).filter(|tasks| tasks.said != why) else { return };
        for uid in tasks.pods.iter().flatten() {
            let Some(pod) = self.pods.get(uid) else { continue };
            let order = Order::SayWhy { pod: pod.sight.at.clone(), message: why.clone() };
            let _ = self.orders.send(order);
        }
        tasks.said = why;
    }

    /// What came of a binding.
    pub fn bound(turn: &mut Turn<'_>, bound: Bound) {
        match bound {
            Bound::Yes(lease) => turn.observe(Observed::Started { lease, at: turn.at }),
            Bound::Lost(lease, why) => {
                let mut ended = Ended::lost(lease, turn.at, why);
                ended.asked = turn.stop_cause(lease);
                turn.observe(Observed::Ended(Box::new(ended)));
            }
            Bound::Never(lease, why) => turn.not_started(lease, why),
        }
    }

    fn order(&self, order: Order) {
        // Only at the end of the server is there nobody to take it; the next one orders again.
        let _ = self.orders.send(order);
    }
}

impl Tasks {
    /// Whether every task that has not ended well has its pod.
    fn is_whole(&self) -> bool {
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
    fn wish(&self) -> Option<&Arc<Wish>> {
        self.sight.wish.as_ref()?.as_ref().ok()
    }
}

/// The lease of a task that has not been closed, and its node.
fn lease_of(core: &Core, job: JobId, task: u32) -> Option<(LeaseId, Name)> {
    let leases = &core.jobs.get(&job)?.leases;
    let (id, live) = leases.iter().find(|(id, _)| id.task == task)?;
    Some((*id, Name::new(&live.row.node)))
}
