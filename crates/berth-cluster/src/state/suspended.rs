//! Jobs that wait without pods: they are jobs of the core from the start, are let go when they have
//! got their place, and held back again when they lose it.

use super::gang_annotations::{ROUNDS, Refusal};
use super::orders::{ApiOrder, Open};
use super::submission as gang;
use super::{Mirror, Stage, Tasks, Uid};
use crate::constraints::predicates::Heeded;
use crate::view::Note;
use crate::view::{Asks, GangKey, JobAt, PodSight, Queued, Rule, to_be};
use berth_engine::Turn;
use berth_model::PodRef;
use berth_model::{Cause, Event, JobId, Name};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) struct Held {
    job: Queued,
    /// Whether it is to be suspended. Whoever writes that looks here when it is written.
    suspended: Arc<AtomicBool>,
    /// Somebody ended it here: it is not submitted again by itself.
    is_over: bool,
    /// Its pods have rules about other pods or about volumes, or claim devices, which is read from
    /// pods alone. So it is let go at once, and its pods wait behind their gate.
    is_tied: bool,
    /// What nodes are told apart by for its sake.
    heeded: Heeded,
}

impl Mirror {
    /// Jobs that wait, before anything is remembered of them.
    pub fn expect(&mut self, queued: Vec<Queued>) {
        for job in queued.into_iter().filter(|job| !job.is_over) {
            self.note(job);
        }
    }

    /// Submits those that nobody remembers.
    pub(super) fn enqueue_all(&mut self, turn: &mut Turn<'_>) {
        let all: Vec<GangKey> = self.held.keys().cloned().collect();
        for key in all {
            self.enqueue(turn, &key);
        }
    }

    /// Takes in what was seen of jobs that wait for us to let them go.
    pub fn see_queued(&mut self, turn: &mut Turn<'_>, queued: Vec<Queued>, gone: &[Uid]) {
        for job in queued {
            if job.is_over {
                self.job_is_gone(turn, &job.at.uid);
                continue;
            }
            let Some((key, is_other)) = self.note(job) else { continue };
            if is_other {
                self.withdraw(turn, &key);
            }
            self.enqueue(turn, &key);
        }
        for uid in gone {
            self.job_is_gone(turn, uid);
        }
        self.nodes.tell(turn);
    }

    /// Keeps a job in mind. Returns its gang, and whether it asks for something else than before.
    fn note(&mut self, job: Queued) -> Option<(GangKey, bool)> {
        if let Err(why) = &job.pods {
            self.tell_why(&job.at, why);
            return None;
        }
        let gangs = job.gangs();
        let [key] = &gangs[..] else {
            // Its pods come one after the other, each lot as a gang of its own.
            if job.is_suspended && !job.is_over {
                let (job, suspended) = (Box::new(job.at), Arc::new(AtomicBool::new(false)));
                self.order(ApiOrder::Hold { job, suspended });
            }
            return None;
        };
        let key = key.clone();
        self.held_by.insert(job.at.uid.clone(), key.clone());
        let before = match self.held.remove(&key) {
            Some(other) if other.job.at.uid != job.at.uid => {
                self.nodes.give_back(other.heeded);
                None
            }
            before => before,
        };
        let is_other = before.as_ref().is_some_and(|before| !is_alike(&before.job, &job));
        let (suspended, is_over, heeded) = match before {
            None => (Arc::new(AtomicBool::new(job.is_suspended)), false, Heeded::default()),
            Some(before) => (before.suspended, before.is_over && !is_other, before.heeded),
        };
        if suspended.load(Ordering::SeqCst) != job.is_suspended {
            // What was ordered was not written yet, or somebody else has written something else.
            let (job, suspended) = (Box::new(job.at.clone()), suspended.clone());
            self.order(ApiOrder::Hold { job, suspended });
        }
        let is_tied = |pod: &PodSight| pod.ties.is_some() || !pod.claims.is_empty();
        let is_tied = job.pods.iter().flatten().any(is_tied);
        self.held.insert(key.clone(), Held { job, suspended, is_over, is_tied, heeded });
        Some((key, is_other))
    }

    /// Submits a job that waits, if it is not known already.
    fn enqueue(&mut self, turn: &mut Turn<'_>, key: &GangKey) {
        let Some(held) = self.held.get(key) else { return };
        let Ok(pods) = &held.job.pods else { return };
        if held.is_tied {
            if !held.is_over {
                self.let_begin(key);
            }
            return;
        }
        let known = self.gangs.get(key).and_then(|gang| gang.job);
        let is_known = known.is_some_and(|job| Stage::of(turn.core, job) != Stage::Over);
        if !held.job.is_suspended || held.is_over || is_known {
            return;
        }
        let sights: Vec<&PodSight> = pods.iter().collect();
        let Some(wish) = sights.first().and_then(|pod| pod.wish.as_ref()?.as_ref().ok()) else {
            return;
        };
        let queue = wish.queue.clone().unwrap_or_else(|| self.queue.clone());
        let submission = gang::submission(&sights, &queue, &self.nodes, &self.claims);
        let at = held.job.at.clone();
        let submission = match submission {
            Ok(submission) => submission,
            Err(unready) => return self.leave_suspended(key, &at, unready.to_string()),
        };
        let asks: Vec<Asks> = submission.pods.iter().map(|pod| asks_of(pods, pod)).collect();
        let left_out = wish.left_out.clone();
        match turn.submit(submission) {
            Ok(job) => {
                self.obey_held(key);
                self.note_all(left_out.into_iter().map(|left_out| Note {
                    about: (&at).into(),
                    reason: "LeftOut",
                    note: format!("it has no effect that {left_out}"),
                    apart: None,
                }));
                self.refused.remove(key);
                if let Some(old) = known {
                    self.jobs.remove(&old);
                }
                let gang = self.gangs.entry(key.clone()).or_default();
                gang.job = Some(job);
                gang.has_begun = true;
                let count = asks.len();
                let tasks = Tasks {
                    gang: key.clone(),
                    pods: vec![None; count],
                    asks,
                    ranks: vec![None; count],
                    done: vec![false; count],
                    starts: BTreeMap::new(),
                };
                self.jobs.insert(job, tasks);
            }
            Err(refused) => self.leave_suspended(key, &at, refused.to_string()),
        }
    }

    /// A job that waits cannot be submitted for now. It is tried again; why is said once.
    fn leave_suspended(&mut self, key: &GangKey, at: &JobAt, why: String) {
        if self.refused.get(key).is_none_or(|refusal| refusal.why != why) {
            self.tell_why(at, &why);
            // It has just been told.
            let refusal = Refusal { why, reason: "Waiting", rounds: ROUNDS };
            self.refused.insert(key.clone(), refusal);
        }
    }

    /// Says on a job why it stays suspended: it has no pods that could say so.
    fn tell_why(&self, job: &JobAt, why: &str) {
        let note = format!("it stays suspended: {why}");
        self.order(ApiOrder::Note(Note {
            about: job.into(),
            reason: "Waiting",
            note,
            apart: None,
        }));
    }

    /// A job that has no pods is not wanted any more as it is.
    fn withdraw(&mut self, turn: &mut Turn<'_>, key: &GangKey) {
        let Some(job) = self.gangs.get(key).and_then(|gang| gang.job) else { return };
        let has_pods =
            self.jobs.get(&job).is_some_and(|tasks| tasks.pods.iter().any(Option::is_some));
        if has_pods || Stage::of(turn.core, job) != Stage::Live {
            return;
        }
        self.end_all(turn, job, "its job is gone or was changed");
        turn.apply_observed(Event::JobCancelled { job });
        self.jobs.remove(&job);
        if let Some(gang) = self.gangs.get_mut(key) {
            gang.job = None;
        }
    }

    fn job_is_gone(&mut self, turn: &mut Turn<'_>, uid: &Uid) {
        self.make_no_heirs(turn, uid);
        let held = self.held_by.remove(uid);
        if let Some(key) = &held {
            if let Some(held) = self.held.remove(key) {
                self.nodes.give_back(held.heeded);
            }
            self.refused.remove(key);
        }
        let Some(key) = self.owners.remove(uid).or(held) else { return };
        // Nobody makes other pods in the place of those that are left.
        let job = self.gangs.get(&key).and_then(|gang| gang.job);
        for uid in job.map(|job| self.tasks_of(job)).unwrap_or_default() {
            if let Some(pod) = self.pods.get_mut(&uid) {
                pod.sight.is_replaced = false;
            }
        }
        self.withdraw(turn, &key);
    }

    /// Tries again those that the core would not have.
    pub(super) fn enqueue_refused(&mut self, turn: &mut Turn<'_>) {
        let refused = self.refused.keys().filter(|key| self.held.contains_key(*key));
        for key in refused.cloned().collect::<Vec<GangKey>>() {
            self.enqueue(turn, &key);
        }
    }

    /// Whether a job goes on without the pods it has lost: it makes others when it is let go again.
    pub(super) fn is_held_by_us(&self, key: &GangKey) -> bool {
        self.held.get(key).is_some_and(|held| !held.is_tied)
    }

    /// A job has got its place, and can make its pods.
    pub(super) fn let_begin(&self, key: &GangKey) {
        let Some(held) = self.held.get(key) else { return };
        if held.suspended.swap(false, Ordering::SeqCst) {
            let (job, suspended) = (Box::new(held.job.at.clone()), held.suspended.clone());
            self.order(ApiOrder::Hold { job, suspended });
        }
    }

    /// A job loses its place: it is suspended, and its controller asks its pods to end, each with
    /// its grace. Returns whether that is so; a job that only loses members goes on.
    pub(super) fn hold_back(&mut self, key: &GangKey, cause: Cause) -> bool {
        let Some(held) = self.held.get_mut(key) else { return false };
        // Pods of one that is tied are made again at once, and wait.
        if matches!(cause, Cause::Shrink | Cause::PeerFailed) || held.is_tied && cause.requeues() {
            return false;
        }
        held.is_over |= !cause.requeues();
        let (job, suspended) = (Box::new(held.job.at.clone()), held.suspended.clone());
        if !suspended.swap(true, Ordering::SeqCst) {
            self.order(ApiOrder::Hold { job, suspended });
        }
        true
    }

    /// The gang of a job whose pods were not made yet.
    pub(super) fn gang_to_be(&self, refs: &[PodRef]) -> Option<GangKey> {
        let owner = refs.iter().find_map(|pod| to_be(&pod.uid));
        self.held_by.get(owner?.0).cloned()
    }

    /// What a pod asks for that is not there, if it is known from its job.
    pub(super) fn asks_to_be(&self, key: &GangKey, pod: &PodRef) -> Option<Asks> {
        let held = self.held.get(key)?;
        let pods = held.job.pods.as_ref().ok()?;
        to_be(&pod.uid).map(|_| asks_of(pods, pod))
    }

    /// Rules that pods will have which were not made yet.
    pub(super) fn obey_held(&mut self, key: &GangKey) {
        let Some(held) = self.held.get_mut(key) else { return };
        let (mut rules, mut ports) = (BTreeMap::new(), BTreeMap::new());
        let pods = held.job.pods.iter().flatten();
        for wish in pods.filter_map(|pod| pod.wish.as_ref()?.as_ref().ok()) {
            rules.extend(wish.rules.iter().map(|rule| (&rule.name, rule)));
            ports.extend(wish.ports.clone());
        }
        let rules: Vec<Rule> = rules.into_values().cloned().collect();
        let heeded = self.nodes.heed(&rules, &ports);
        self.nodes.give_back(std::mem::replace(&mut held.heeded, heeded));
    }

    /// The place of a pod that is gone is free for the next one that its job makes.
    pub(super) fn make_room(&self, turn: &mut Turn<'_>, key: &GangKey, job: JobId, task: u32) {
        let held = self.held.get(key).filter(|held| !held.is_tied);
        let Some(Ok(pods)) = held.map(|held| &held.job.pods) else { return };
        let Some(tasks) = self.jobs.get(&job) else { return };
        let Some(wanted) = tasks.asks.get(task as usize) else { return };
        let Some(template) = pods.iter().find(|pod| pod.asks == *wanted) else { return };
        let at = template.at.clone();
        turn.amend_detail(job, |detail| {
            if let Some(pod) = detail.pods.get_mut(task as usize) {
                *pod = at;
            }
        });
    }

    /// What has to be lifted before a pod can get its node.
    pub(super) fn open(&self, pod: &PodSight, node: &Name) -> Option<Open> {
        let hostname = || self.nodes.label(node, "kubernetes.io/hostname");
        pod.is_ours_to_open.then(|| Open { hostname: hostname() })
    }
}

fn asks_of(pods: &[PodSight], pod: &PodRef) -> Asks {
    let at = to_be(&pod.uid).map(|(_, at)| at);
    at.and_then(|at| pods.get(at)).map(|pod| pod.asks.clone()).unwrap_or_default()
}

/// Whether two readings of a job ask for the same.
fn is_alike(before: &Queued, now: &Queued) -> bool {
    let (Ok(before), Ok(now)) = (&before.pods, &now.pods) else { return false };
    let is_same = |(a, b): (&PodSight, &PodSight)| a.asks == b.asks && a.wish == b.wish;
    before.len() == now.len() && before.iter().zip(now).all(is_same)
}
