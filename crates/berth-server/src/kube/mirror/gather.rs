//! How pods find their gang, and gangs become jobs.

use super::{Gang, Mirror, Stage, Tasks, Uid};
use crate::engine::Turn;
use crate::kube::claims::Wanted;
use crate::kube::gang;
use crate::kube::sight::{GangKey, Later, PodSight};
use berth_kube::PodRef;
use berth_model::JobId;
use std::collections::BTreeMap;

impl Mirror {
    /// A pod that is no task: one of another scheduler, or one that has to find its gang.
    pub(super) fn of_nobody(&mut self, turn: &mut Turn<'_>, uid: &Uid) {
        let pod = &self.pods[uid];
        let sight = &pod.sight;
        if sight.own.is_some() {
            return self.stray(turn.core, uid);
        }
        let Some(wish) = &sight.wish else { return };
        if sight.node.is_some() || sight.phase.is_over() || sight.is_leaving || sight.is_gated {
            let Some(wish) = pod.wish() else { return };
            if sight.is_done() && !wish.alone {
                let gang = self.gangs.entry(wish.gang.clone()).or_default();
                gang.waiting.remove(uid);
                gang.done.insert(uid.clone());
            } else if let Some(gang) = self.gangs.get_mut(&wish.gang) {
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
    pub(super) fn gather(&mut self, turn: &mut Turn<'_>, key: &GangKey) {
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
        let missing = (wish.members as usize).saturating_sub(pods.len());
        if missing > 0 && missing > self.done_before(gang, pods[0]) {
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
        match turn.submit(submission) {
            Ok(job) => {
                self.heed(refs.iter().map(|pod| &pod.uid));
                self.tell_left_out(&refs);
                self.refused.remove(key);
                self.assign(key, job, &refs);
                self.tie(turn, job);
            }
            Err(refused) => self.refuse(key, &refs, refused.to_string()),
        }
    }

    /// How many pods of the same owner have ended well: it makes none for those again.
    fn done_before(&self, gang: &Gang, pod: &PodSight) -> usize {
        let same = |uid: &&Uid| {
            let done = self.pods.get(*uid);
            pod.owner.is_some() && done.is_some_and(|done| done.sight.owner == pod.owner)
        };
        gang.done.iter().filter(same).count()
    }

    /// Nodes are told apart by what these pods ask of them, for as long as they are there.
    pub fn heed<'a>(&mut self, pods: impl IntoIterator<Item = &'a Uid>) {
        for uid in pods {
            let Some(pod) = self.pods.get_mut(uid) else { continue };
            let Some(wish) = pod.wish().cloned() else { continue };
            let claimed = self.claims.wanted(&pod.sight).ok().flatten();
            let heeded = match claimed {
                None => self.nodes.heed(&wish.rules, &wish.ports),
                Some(Wanted { rules, .. }) => {
                    self.nodes.heed(&[&wish.rules[..], &rules[..]].concat(), &wish.ports)
                }
            };
            self.nodes.give_back(std::mem::replace(&mut pod.heeded, heeded));
        }
    }

    /// A gang cannot be made a job for now.
    pub(super) fn not_ready(&mut self, key: &GangKey, pods: &[Uid], why: &gang::Unready) {
        if matches!(why, gang::Unready::Claim(_)) {
            self.without_claims.insert(key.clone());
        }
        let why = why.to_string();
        pods.iter().for_each(|uid| self.say(uid, &why));
    }

    /// The pods of a job, as far as they are there.
    pub fn tasks_of(&self, job: JobId) -> Vec<Uid> {
        let tasks = self.jobs.get(&job).into_iter().flat_map(|tasks| &tasks.pods);
        tasks.flatten().cloned().collect()
    }

    pub fn forget_job(&mut self, key: &GangKey, job: JobId) {
        self.jobs.remove(&job);
        self.dynamics.forget(job);
        self.gangs.remove(key);
    }

    pub fn assign(&mut self, key: &GangKey, job: JobId, refs: &[PodRef]) {
        let mut asks = Vec::with_capacity(refs.len());
        for (task, pod) in gang::refs(refs) {
            let known = self.pods.get_mut(&pod.uid).expect("it was gathered just now");
            known.task = Some((job, task));
            asks.push(known.sight.asks.clone());
        }
        let pods = refs.iter().map(|pod| Some(pod.uid.clone())).collect();
        let owner = refs.first().and_then(|pod| self.pods[&pod.uid].sight.owner.clone());
        let gang = self.gangs.get_mut(key).expect("it was gathered just now");
        gang.waiting.clear();
        gang.owner = owner.map(|owner| owner.to_string());
        if let Some(owner) = &gang.owner {
            self.owners.insert(owner.clone(), key.clone());
        }
        gang.job = Some(job);
        gang.has_begun = true;
        let (gang, done) = (key.clone(), vec![false; refs.len()]);
        self.jobs.insert(job, Tasks { gang, pods, asks, done, starts: BTreeMap::new() });
    }

    /// Gives a job pods that came in the place of others.
    pub(super) fn fill(&mut self, turn: &mut Turn<'_>, key: &GangKey, job: JobId) {
        // What was read from a template may have been given more by the API server.
        let is_held = self.is_held_by_us(key);
        let (Some(gang), Some(tasks)) = (self.gangs.get_mut(key), self.jobs.get_mut(&job)) else {
            return;
        };
        let mut filled = Vec::new();
        for uid in gang.waiting.clone() {
            let Some(pod) = self.pods.get_mut(&uid) else { continue };
            let asks = &pod.sight.asks;
            let fits = |at: &usize| {
                let wanted = &tasks.asks[*at];
                tasks.pods[*at].is_none() && (wanted == asks || is_held && wanted.gpus == asks.gpus)
            };
            let mut places = (0..tasks.pods.len()).filter(fits);
            // A pod for a task that ended well: whoever makes pods did not count that one.
            let free = places.clone().find(|at| !tasks.done[*at]).or_else(|| places.next());
            let Some(at) = free else { continue };
            let task = at as u32;
            if std::mem::take(&mut tasks.done[at]) {
                turn.amend_detail(job, |detail| detail.done.retain(|done| *done != task));
            }
            tasks.pods[at] = Some(uid.clone());
            pod.task = Some((job, task));
            gang.waiting.remove(&uid);
            turn.amend_detail(job, |detail| detail.pods[at] = pod.sight.at.clone());
            if let Some(lease) = tasks.starts.remove(&task) {
                // Not before it is in the log which pod it is.
                turn.start_again(lease);
            }
            filled.push(uid);
        }
        let (is_whole, spare) = (tasks.is_whole(), gang.waiting.clone());
        self.heed(&filled);
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
}
