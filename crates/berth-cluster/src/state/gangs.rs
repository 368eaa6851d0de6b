//! How pods are assembled into gangs, and gangs become jobs of the core.

use super::device_claims::ClaimedDevices;
use super::submission as gang;
use super::{ClusterState, Gang, Stage, Tasks, Uid};
use crate::view::{GangKey, LateMember, PodView, SchedulingRequest};
use berth_engine::Turn;
use berth_model::PodRef;
use berth_model::{JobId, Name};
use std::collections::{BTreeMap, BTreeSet};

impl ClusterState {
    /// A pod that is no task: one of another scheduler, or one that has to find its gang.
    pub(super) fn observe_unassigned(&mut self, turn: &mut Turn<'_>, uid: &Uid) {
        let pod = &self.pods[uid];
        let view = &pod.view;
        if view.managed.is_some() {
            return self.stray(turn.core, uid);
        }
        let Some(request) = &view.request else { return };
        if view.node.is_some() || view.phase.is_over() || view.is_leaving || view.is_gated {
            let Some(key) = pod.request().map(|request| request.gang.clone()) else { return };
            if self.note_done(uid) {
                // The rest of its gang may have waited for that.
                self.assemble_gang(turn, &key);
            } else if let Some(gang) = self.gangs.get_mut(&key)
                && gang.waiting.remove(uid)
            {
                self.tell_incomplete(&key);
            }
            return;
        }
        match request {
            Err(why) => {
                let why = why.to_string();
                self.report_invalid(uid, &why);
            }
            Ok(request) => {
                let gang = request.gang.clone();
                self.gangs.entry(gang.clone()).or_default().waiting.insert(uid.clone());
                self.assemble_gang(turn, &gang);
            }
        }
    }

    /// Makes a job of a gang that has become whole, or gives a job the pods that it misses.
    pub(super) fn assemble_gang(&mut self, turn: &mut Turn<'_>, key: &GangKey) {
        let Some(gang) = self.gangs.get_mut(key) else { return };
        if let Some(job) = gang.job {
            match Stage::of(turn.core, job) {
                Stage::Live => {
                    self.fill(turn, key, job);
                    return self.release_surplus(turn, key, Some(job));
                }
                // What comes now is for the job after it.
                Stage::Ending => return,
                Stage::Over => {}
            }
            gang.job = None;
            self.jobs.remove(&job);
            self.constrained_jobs.forget(job);
        }
        if self.gangs[key].has_begun {
            self.release_surplus(turn, key, None);
        }
        let Some(gang) = self.gangs.get(key) else { return };
        // Most of the time the gang is not all there, and counting tells.
        let first = gang.waiting.iter().find_map(|uid| self.pods.get(uid)?.request());
        let there = gang.waiting.len() + gang.done.len();
        if first.is_none_or(|request| there < request.members as usize) {
            let misses = first.is_some();
            return self.note_incomplete(key, misses.then_some(turn.at));
        }
        self.incomplete.remove(key);
        // Of several that do the same work one is enough.
        let mut work = self.work_done(gang);
        let is_new = |pod: &&PodView| pod.rank().is_none_or(|rank| work.insert(rank));
        let pods = gang.waiting.iter().filter_map(|uid| Some(&self.pods.get(uid)?.view));
        let pods: Vec<&PodView> = pods.filter(is_new).collect();
        let Some(request) = pods.first().and_then(|pod| pod.request.as_ref()?.as_ref().ok()) else {
            return;
        };
        let missing = (request.members as usize).saturating_sub(pods.len());
        if missing > 0 && missing > self.done_before(gang, pods[0]) {
            return;
        }
        // Controllers make no pods again for work that is done, so parts may be incomplete then.
        let part = if gang.done.is_empty() { missing_part(&pods, request) } else { None };
        if let Some(part) = part {
            let why = format!("its gang waits for more pods of its part {part}");
            let pods: Vec<Uid> = pods.iter().map(|pod| pod.at.uid.clone()).collect();
            return pods.iter().for_each(|uid| self.report_missing_pods(uid, &why, &why));
        }
        let queue = request.queue.clone().unwrap_or_else(|| self.queue.clone());
        let policy = turn.core.state.policy();
        let job_request = gang::request(&pods, &queue, &self.nodes, &self.claims, policy);
        let mut job_request = match job_request {
            Ok(job_request) => job_request,
            Err(why) => {
                let pods: Vec<Uid> = pods.iter().map(|pod| pod.at.uid.clone()).collect();
                return self.not_ready(key, &pods, &why);
            }
        };
        let refs = job_request.workload.pods().to_vec();
        if let Err(why) = self.apply_gang_rules(turn.core, &mut job_request, &pods) {
            let why = why.to_string();
            refs.iter().for_each(|pod| self.report_reason(&pod.uid, &why));
            return;
        }
        if let [pod] = &refs[..]
            && let Some(job) = self.predecessor_of(turn.core, key, &pod.uid)
        {
            return self.replace_predecessor(turn, key, job, &pod.uid);
        }
        match turn.submit(job_request) {
            Ok(job) => {
                self.track_predicates(refs.iter().map(|pod| &pod.uid));
                self.report_ignored_annotations(&refs);
                self.refused.remove(key);
                self.assign(key, job, &refs);
                self.note_maker(turn, job);
                self.constrain(turn, job);
            }
            Err(refused) => self.refuse(key, &refs, &refused),
        }
    }

    /// How many pods of the same owner have ended well, each work once: it makes none for those
    /// again.
    fn done_before(&self, gang: &Gang, pod: &PodView) -> usize {
        let mut work = BTreeSet::new();
        let done = gang.done.iter().filter_map(|uid| Some(&self.pods.get(uid)?.view));
        // A JobSet that begins anew does all of its work again.
        let attempt = |pod: &PodView| pod.labels.get("jobset.sigs.k8s.io/restart-attempt").cloned();
        done.filter(|done| pod.owner.is_some() && done.owner == pod.owner)
            .filter(|done| attempt(done) == attempt(pod))
            .filter(|done| done.rank().is_none_or(|rank| work.insert(rank)))
            .count()
    }

    /// Keeps the node predicates of these pods for as long as the pods exist.
    pub fn track_predicates<'a>(&mut self, pods: impl IntoIterator<Item = &'a Uid>) {
        for uid in pods {
            let Some(pod) = self.pods.get_mut(uid) else { continue };
            let Some(request) = pod.request().cloned() else { continue };
            let claimed = self.claims.wanted(&pod.view).ok().flatten();
            let predicate_refs = match claimed {
                None => self.nodes.track_predicates(&request.rules, &request.ports),
                Some(ClaimedDevices { rules, .. }) => self
                    .nodes
                    .track_predicates(&[&request.rules[..], &rules[..]].concat(), &request.ports),
            };
            self.nodes
                .release_predicates(std::mem::replace(&mut pod.predicate_refs, predicate_refs));
        }
    }

    /// A gang cannot be made a job for now.
    pub(super) fn not_ready(&mut self, key: &GangKey, pods: &[Uid], why: &gang::Unready) {
        if matches!(why, gang::Unready::Claim(_) | gang::Unready::ClaimedAndRequested) {
            self.without_claims.insert(key.clone());
        }
        let why = why.to_string();
        pods.iter().for_each(|uid| self.report_reason(uid, &why));
    }

    /// The pods of a job, as far as they are there.
    pub fn tasks_of(&self, job: JobId) -> Vec<Uid> {
        let tasks = self.jobs.get(&job).into_iter().flat_map(|tasks| &tasks.pods);
        tasks.flatten().cloned().collect()
    }

    pub fn forget_job(&mut self, key: &GangKey, job: JobId) {
        self.jobs.remove(&job);
        self.constrained_jobs.forget(job);
        self.gangs.remove(key);
    }

    pub fn assign(&mut self, key: &GangKey, job: JobId, refs: &[PodRef]) {
        let (mut asks, mut ranks) = (Vec::with_capacity(refs.len()), Vec::new());
        for (task, pod) in gang::refs(refs) {
            let known = self.pods.get_mut(&pod.uid).expect("it was gathered just now");
            known.task = Some((job, task));
            asks.push(known.view.asks.clone());
            ranks.push(known.view.rank());
        }
        let pods = refs.iter().map(|pod| Some(pod.uid.clone())).collect();
        let owner = refs.first().and_then(|pod| self.pods[&pod.uid].view.owner.clone());
        let gang = self.gangs.get_mut(key).expect("it was gathered just now");
        for pod in refs {
            gang.waiting.remove(&pod.uid);
        }
        gang.owner = owner.map(|owner| owner.to_string());
        if let Some(owner) = &gang.owner {
            self.owners.insert(owner.clone(), key.clone());
        }
        gang.job = Some(job);
        gang.has_begun = true;
        let (gang, done) = (key.clone(), vec![false; refs.len()]);
        self.jobs.insert(job, Tasks { gang, pods, asks, ranks, done, starts: BTreeMap::new() });
    }

    /// Gives a job pods that came in the place of others.
    pub(super) fn fill(&mut self, turn: &mut Turn<'_>, key: &GangKey, job: JobId) {
        // What was read from a template may have been given more by the API server.
        let is_held = self.is_held_by_us(key);
        let Some(gang) = self.gangs.get(key) else { return };
        let done = if gang.waiting.is_empty() { BTreeSet::new() } else { self.work_done(gang) };
        let (Some(gang), Some(tasks)) = (self.gangs.get_mut(key), self.jobs.get_mut(&job)) else {
            return;
        };
        let mut filled = Vec::new();
        // Pods whose rank has a task already come first, so that no other pod takes that task.
        let is_new = |uid: &&Uid| {
            let rank = self.pods.get(*uid).and_then(|pod| pod.view.rank());
            rank.is_some_and(|rank| !tasks.is_known(&rank))
        };
        let (new, known): (Vec<&Uid>, Vec<&Uid>) = gang.waiting.iter().partition(is_new);
        let waiting: Vec<Uid> = known.into_iter().chain(new).cloned().collect();
        for uid in waiting {
            let Some(pod) = self.pods.get_mut(&uid) else { continue };
            let (asks, rank) = (&pod.view.asks, pod.view.rank());
            if rank.as_ref().is_some_and(|rank| done.contains(rank)) {
                continue;
            }
            let fits = |at: &usize| {
                let wanted = &tasks.asks[*at];
                tasks.pods[*at].is_none()
                    && (wanted == asks || is_held && wanted.gpus == asks.gpus)
                    && tasks.is_work_of(*at, rank.as_ref())
            };
            // A pod for a task that ended well: its controller did not count that end, or has more
            // work than tasks.
            let last = |at: &usize| (tasks.done[*at], tasks.ranks[*at].is_some());
            let free = (0..tasks.pods.len()).filter(fits).min_by_key(last);
            let Some(at) = free else { continue };
            let task = at as u32;
            if std::mem::take(&mut tasks.done[at]) {
                turn.amend_detail(job, |detail| detail.done.retain(|done| *done != task));
            }
            tasks.pods[at] = Some(uid.clone());
            tasks.ranks[at] = rank.or(tasks.ranks[at].take());
            pod.task = Some((job, task));
            gang.waiting.remove(&uid);
            turn.amend_detail(job, |detail| detail.workload.pods_mut()[at] = pod.view.at.clone());
            if let Some(lease) = tasks.starts.remove(&task) {
                // Not before it is in the log which pod it is.
                turn.start_again(lease);
            }
            filled.push(uid);
        }
        let (is_whole, spare) = (tasks.is_whole(), gang.waiting.clone());
        self.track_predicates(&filled);
        if is_whole {
            self.hold(turn, job, false);
        }
        let waits = |uid: &Uid| {
            self.pods[uid].request().is_some_and(|request| request.later == LateMember::Waits)
        };
        let spare: Vec<Uid> = spare.into_iter().filter(waits).collect();
        for uid in spare {
            self.report_reason(
                &uid,
                "its gang has all the pods it is made of, and this one is more",
            );
        }
    }
}

/// A part of a gang of which there are fewer pods than it needs.
fn missing_part<'a>(pods: &[&PodView], request: &'a SchedulingRequest) -> Option<&'a Name> {
    let part = |pod: &PodView| Some(pod.request.as_ref()?.as_ref().ok()?.part.as_ref()?.0.clone());
    let is_missing = |(name, least): &&(Name, u32)| {
        pods.iter().filter(|pod| part(pod).as_ref() == Some(name)).count() < *least as usize
    };
    request.needed.iter().find(is_missing).map(|(name, _)| name)
}
