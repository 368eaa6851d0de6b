//! The job of a preempted pod outside of any gang lives on: its controller creates a replacement,
//! which continues the job with its number, its age and its cost.

use super::orders::UNSCHEDULABLE;
use super::{ClusterState, Gang, Pod, Stage, Tasks, Uid};
use crate::view::NodeViews;
use crate::view::{GangKey, PodResources, PodView, SchedulingRequest};
use berth_engine::{Core, MadeBy, Turn};
use berth_kube::object::Text;
use berth_model::{Cause, Event, JobId, Name, NodeState, PodRef, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// How long a job waits for another pod, and such a pod for the one before it. The longest pause that
/// a Job's controller makes between two is six minutes.
const REPLACEMENT_TIMEOUT: Span = Span::mins(10);

/// Jobs that lose their pod and wait for another.
#[derive(Default)]
pub struct Replacements {
    jobs: BTreeMap<JobId, Predecessor>,
    by_owner: BTreeMap<Text, BTreeSet<JobId>>,
}

struct Predecessor {
    /// Who makes the other pod.
    owner: Text,
    /// What it is like: see [`likeness`].
    like: u64,
    /// Since when the pod is gone, or another waits for it to be.
    since: Option<Time>,
    /// The pod that is there already, while the one before it has yet to end.
    replacement: Option<GangKey>,
}

/// What pods have in common that one controller makes in the place of each other: all that is read
/// of them but their names. A pod may take over the job of another with the same one. It is a number,
/// so that it can be kept while the server restarts.
fn likeness(pod: &PodView) -> Option<u64> {
    let request = pod.request.as_ref()?.as_deref().ok()?;
    let GangKey { namespace, .. } = &request.gang;
    let renamed = SchedulingRequest {
        gang: GangKey { namespace: namespace.clone(), name: Name::default() },
        name: Name::default(),
        created: Time(0),
        ..request.clone()
    };
    // Of a template each pod has its own claim.
    let claims: Vec<_> = pod.claims.iter().map(|one| &one.source).collect();
    let all = (&renamed, &pod.asks, &pod.constraints, claims, pod.rank());
    let bytes = format!("{all:?}").into_bytes().into_iter();
    // FNV-1a: the same in every version of this program.
    Some(bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    }))
}

impl Replacements {
    fn expect(&mut self, job: JobId, owner: Text, like: u64, since: Option<Time>) {
        self.by_owner.entry(owner.clone()).or_default().insert(job);
        self.jobs.insert(job, Predecessor { owner, like, since, replacement: None });
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub fn is_expected(&self, job: JobId) -> bool {
        self.jobs.contains_key(&job)
    }

    fn remove(&mut self, job: JobId) -> Option<Predecessor> {
        let predecessor = self.jobs.remove(&job)?;
        if let Some(jobs) = self.by_owner.get_mut(&predecessor.owner) {
            jobs.remove(&job);
            if jobs.is_empty() {
                self.by_owner.remove(&predecessor.owner);
            }
        }
        Some(predecessor)
    }
}

/// Who makes a pod in the place of one that is in no gang, and what it is like.
fn successor_of(pod: &Pod) -> Option<(Text, u64)> {
    let is_alone = pod.request().is_some_and(|request| request.alone);
    let owner = pod.view.owner.clone().filter(|_| is_alone && pod.view.is_replaced)?;
    Some((owner, likeness(&pod.view)?))
}

impl ClusterState {
    /// A pod is asked to end, and its job to go on.
    pub(super) fn expect_replacement(&mut self, job: JobId, uid: &Uid) {
        let Some(pod) = self.pods.get(uid) else { return };
        if let Some((owner, like)) = successor_of(pod) {
            self.replacements.expect(job, owner, like, None);
        }
    }

    /// Keeps in the log what the pod after the only one of a job is like.
    pub(super) fn note_maker(&self, turn: &mut Turn<'_>, job: JobId) {
        let only = match self.jobs.get(&job).map(|tasks| &tasks.pods[..]) {
            Some([Some(only)]) => self.pods.get(only),
            _ => None,
        };
        let made_by = only.and_then(successor_of).map(|(owner, like)| MadeBy {
            owner: owner.to_string(),
            like,
            awaited: false,
        });
        if turn.core.jobs.get(&job).is_some_and(|live| live.detail.made_by != made_by) {
            turn.amend_detail(job, |detail| detail.made_by = made_by);
        }
    }

    /// A job of which no pod is left when the server starts. Returns whether another one is to come:
    /// the one before it was asked to end, and the job to go on.
    pub(super) fn await_after_restart(
        &mut self,
        turn: &mut Turn<'_>,
        job: JobId,
        refs: &[PodRef],
    ) -> bool {
        let ([pod], Some(live)) = (refs, turn.core.jobs.get(&job)) else { return false };
        let Some(made_by) = live.detail.made_by.clone() else { return false };
        let gives_way = |cause: Cause| cause.requeues() && cause != Cause::Stale;
        let was_asked = live.leases.values().any(|lease| lease.stopping.is_some_and(gives_way));
        if live.row.state.is_final() || !(was_asked || made_by.awaited) {
            return false;
        }
        let owner: Text = made_by.owner.as_str().into();
        let namespace = Name::new(&pod.namespace);
        let key = GangKey { namespace, name: Name::new(&format!("Pod/{}/{}", pod.name, pod.uid)) };
        let gang = self.gangs.entry(key.clone()).or_default();
        (gang.job, gang.has_begun, gang.owner) = (Some(job), true, Some(made_by.owner.clone()));
        self.owners.insert(made_by.owner, key.clone());
        let tasks = Tasks {
            gang: key,
            pods: vec![None],
            asks: vec![PodResources::default()],
            ranks: vec![None],
            done: vec![false],
            starts: BTreeMap::new(),
        };
        self.jobs.insert(job, tasks);
        self.replacements.expect(job, owner, made_by.like, Some(turn.at));
        turn.amend_detail(job, |detail| {
            detail.made_by.iter_mut().for_each(|made_by| made_by.awaited = true);
        });
        self.end(turn, job, 0, "its pod is gone");
        true
    }

    /// The job whose pod this one comes in the place of: both were made by the same owner, and alike.
    pub(super) fn predecessor_of(&self, core: &Core, key: &GangKey, uid: &Uid) -> Option<JobId> {
        let pod = &self.pods.get(uid)?.view;
        let jobs = self.replacements.by_owner.get(pod.owner.as_ref()?)?;
        let like = likeness(pod);
        let is_there = |key: &GangKey| self.gangs.get(key).is_some_and(|it| !it.waiting.is_empty());
        let is_it = |job: &&JobId| {
            let predecessor = &self.replacements.jobs[*job];
            predecessor
                .replacement
                .as_ref()
                .is_none_or(|replacement| replacement == key || !is_there(replacement))
                && like == Some(predecessor.like)
                && Stage::of(core, **job) == Stage::Live
                && self.may_end(**job)
        };
        // The one it is promised already comes first.
        let promised =
            |job: &&JobId| self.replacements.jobs[*job].replacement.as_ref() == Some(key);
        let mut fit = jobs.iter().filter(is_it);
        fit.clone().find(promised).or_else(|| fit.next()).copied()
    }

    /// Whether the pods of a job can end by themselves. On a failed node no kubelet ends them.
    fn may_end(&self, job: JobId) -> bool {
        let nodes =
            self.tasks_of(job).into_iter().filter_map(|uid| self.pods[&uid].view.node.clone());
        let is_lost = |node: &NodeState| matches!(node, NodeState::Failed);
        !nodes
            .into_iter()
            .any(|node| self.nodes.view(&node).is_none_or(|view| is_lost(&view.spec.state)))
    }

    /// A pod takes the place of another, at once or when that one is gone.
    pub(super) fn replace_predecessor(
        &mut self,
        turn: &mut Turn<'_>,
        key: &GangKey,
        job: JobId,
        uid: &Uid,
    ) {
        let is_gone =
            self.jobs.get(&job).is_some_and(|tasks| tasks.pods.iter().all(Option::is_none));
        if is_gone {
            return self.take_over(turn, key, job);
        }
        if let Some(predecessor) = self.replacements.jobs.get_mut(&job)
            && predecessor.replacement.as_ref() != Some(key)
        {
            (predecessor.replacement, predecessor.since) = (Some(key.clone()), Some(turn.at));
        }
        self.report(uid, UNSCHEDULABLE, "it comes in the place of a pod that has yet to end");
    }

    fn take_over(&mut self, turn: &mut Turn<'_>, key: &GangKey, job: JobId) {
        self.replacements.remove(job);
        let next = self.gangs.get(key).and_then(|gang| self.pods.get(gang.waiting.first()?));
        let Some(asks) = next.map(|pod| pod.view.asks.clone()) else { return };
        let Some(tasks) = self.jobs.get_mut(&job) else { return };
        // After a restart that is not known of the pod before it, and it is like that one.
        tasks.asks.fill(asks);
        let before = std::mem::replace(&mut tasks.gang, key.clone());
        let known = self.gangs.remove(&before);
        let Some(gang) = self.gangs.get_mut(key) else { return };
        (gang.job, gang.has_begun) = (Some(job), true);
        gang.owner = known.and_then(|known| known.owner);
        if let Some(owner) = &gang.owner {
            self.owners.insert(owner.clone(), key.clone());
        }
        self.fill(turn, key, job);
        self.note_maker(turn, job);
        // Others may have come meanwhile that it has to keep away from.
        self.constrain(turn, job);
    }

    /// A job has lost its pod: the next one is there, or comes.
    pub(super) fn hand_over(&mut self, turn: &mut Turn<'_>, job: JobId) {
        // One that did its work while it was asked to end needs no other.
        let is_done = self.jobs.get(&job).is_none_or(crate::state::Tasks::is_whole);
        let is_live = !is_done && Stage::of(turn.core, job) == Stage::Live;
        let Some(predecessor) = self.replacements.jobs.get_mut(&job) else { return };
        let replacement = predecessor.replacement.take();
        let replacement =
            replacement.filter(|key| self.gangs.get(key).is_some_and(|it| !it.waiting.is_empty()));
        match replacement {
            Some(replacement) if is_live => self.take_over(turn, &replacement, job),
            None if is_live => {
                predecessor.since = Some(turn.at);
                turn.amend_detail(job, |detail| {
                    detail.made_by.iter_mut().for_each(|made_by| made_by.awaited = true);
                });
            }
            replacement => {
                self.replacements.remove(job);
                if let Some(replacement) = replacement {
                    self.assemble_gang(turn, &replacement);
                }
            }
        }
    }

    /// Jobs for which no pod comes are over, and pods that wait for others in vain are jobs of their
    /// own.
    pub fn expire_replacements(&mut self, turn: &mut Turn<'_>) {
        let is_late = |predecessor: &Predecessor| {
            predecessor.since.is_some_and(|since| turn.at >= since + REPLACEMENT_TIMEOUT)
        };
        let late = self.replacements.jobs.iter().filter(|(_, predecessor)| is_late(predecessor));
        let late: Vec<JobId> = late.map(|(job, _)| *job).collect();
        late.into_iter().for_each(|job| self.give_up(turn, job));
    }

    /// Who made pods makes none any more.
    pub(super) fn cancel_replacements(&mut self, turn: &mut Turn<'_>, owner: &str) {
        let jobs = self.replacements.by_owner.get(owner).cloned().unwrap_or_default();
        jobs.into_iter().for_each(|job| self.give_up(turn, job));
    }

    fn give_up(&mut self, turn: &mut Turn<'_>, job: JobId) {
        let Some(predecessor) = self.replacements.remove(job) else { return };
        if let Some(replacement) = predecessor.replacement {
            self.assemble_gang(turn, &replacement);
        }
        let Some(tasks) = self.jobs.get(&job) else { return };
        if tasks.pods.iter().any(Option::is_some) {
            return;
        }
        let gang = tasks.gang.clone();
        if Stage::of(turn.core, job) == Stage::Live {
            turn.apply_observed(Event::JobCancelled { job });
        }
        self.assemble_gang(turn, &gang);
        if self.gangs.get(&gang).is_some_and(Gang::is_empty)
            && let Some(gang) = self.gangs.remove(&gang)
            && let Some(owner) = gang.owner
        {
            self.owners.remove(&owner);
        }
    }
}
