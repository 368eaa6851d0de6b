//! What becomes of the job of a pod of no gang that had to give way. Its controller makes another
//! pod in its place, and that one is the same job: with its number, its age and what it has cost.

use super::{Mirror, Stage, Uid};
use crate::view::NodeViews;
use crate::view::{GangKey, PodSight, Wish};
use berth_engine::{Core, Turn};
use berth_kube::object::Text;
use berth_model::{Event, JobId, NodeState, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// How long a job waits for another pod, and such a pod for the one before it. The longest pause that
/// a Job's controller makes between two is six minutes.
const PATIENCE: Span = Span::mins(10);

/// Jobs that lose their pod and wait for another.
#[derive(Default)]
pub struct Heirs {
    jobs: BTreeMap<JobId, Legacy>,
    by_owner: BTreeMap<Text, BTreeSet<JobId>>,
}

struct Legacy {
    /// Who makes the other pod.
    owner: Text,
    /// The pod that was asked to end, as it was then.
    pod: Box<PodSight>,
    /// Since when the pod is gone, or another waits for it to be.
    since: Option<Time>,
    /// The pod that is there already, while the one before it has yet to end.
    heir: Option<GangKey>,
}

impl Legacy {
    /// Whether a pod is like the one before it in all but its name: whatever is said of that one's
    /// job is true of it.
    fn is_for(&self, pod: &PodSight) -> bool {
        let (Some(before), Some(now)) = (wish(&self.pod), wish(pod)) else { return false };
        let renamed = Wish {
            gang: now.gang.clone(),
            name: now.name.clone(),
            created: now.created,
            ..before.clone()
        };
        let (before, alike) = (&self.pod, renamed == *now);
        let alike = alike && before.asks == pod.asks && before.ties == pod.ties;
        // Of a template each pod has its own claim.
        let claims =
            |pod: &PodSight| pod.claims.iter().map(|one| one.source.clone()).collect::<Vec<_>>();
        alike && claims(before) == claims(pod) && before.rank() == pod.rank()
    }
}

fn wish(pod: &PodSight) -> Option<&Wish> {
    pod.wish.as_ref()?.as_deref().ok()
}

impl Heirs {
    fn expect(&mut self, job: JobId, owner: Text, pod: Box<PodSight>) {
        self.by_owner.entry(owner.clone()).or_default().insert(job);
        self.jobs.insert(job, Legacy { owner, pod, since: None, heir: None });
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub fn is_expected(&self, job: JobId) -> bool {
        self.jobs.contains_key(&job)
    }

    fn remove(&mut self, job: JobId) -> Option<Legacy> {
        let legacy = self.jobs.remove(&job)?;
        if let Some(jobs) = self.by_owner.get_mut(&legacy.owner) {
            jobs.remove(&job);
            if jobs.is_empty() {
                self.by_owner.remove(&legacy.owner);
            }
        }
        Some(legacy)
    }
}

impl Mirror {
    /// A pod is asked to end, and its job to go on.
    pub(super) fn expect_heir(&mut self, job: JobId, uid: &Uid) {
        let Some(pod) = self.pods.get(uid) else { return };
        let is_alone = pod.wish().is_some_and(|wish| wish.alone);
        if let Some(owner) = pod.sight.owner.clone().filter(|_| is_alone && pod.sight.is_replaced) {
            self.heirs.expect(job, owner, Box::new(pod.sight.clone()));
        }
    }

    /// The job whose pod this one comes in the place of: both were made by the same owner, and alike.
    pub(super) fn forebear(&self, core: &Core, key: &GangKey, uid: &Uid) -> Option<JobId> {
        let pod = &self.pods.get(uid)?.sight;
        let jobs = self.heirs.by_owner.get(pod.owner.as_ref()?)?;
        let is_there = |key: &GangKey| self.gangs.get(key).is_some_and(|it| !it.waiting.is_empty());
        let is_it = |job: &&JobId| {
            let legacy = &self.heirs.jobs[*job];
            legacy.heir.as_ref().is_none_or(|heir| heir == key || !is_there(heir))
                && legacy.is_for(pod)
                && Stage::of(core, **job) == Stage::Live
                && self.may_end(**job)
        };
        // The one it is promised already comes first.
        let promised = |job: &&JobId| self.heirs.jobs[*job].heir.as_ref() == Some(key);
        let mut fit = jobs.iter().filter(is_it);
        fit.clone().find(promised).or_else(|| fit.next()).copied()
    }

    /// On a node that is lost nothing comes to its end before somebody says so.
    fn may_end(&self, job: JobId) -> bool {
        let nodes =
            self.tasks_of(job).into_iter().filter_map(|uid| self.pods[&uid].sight.node.clone());
        let is_lost = |node: &NodeState| matches!(node, NodeState::Failed);
        !nodes
            .into_iter()
            .any(|node| self.nodes.view(&node).is_none_or(|sight| is_lost(&sight.spec.state)))
    }

    /// A pod takes the place of another, at once or when that one is gone.
    pub(super) fn succeed(&mut self, turn: &mut Turn<'_>, key: &GangKey, job: JobId, uid: &Uid) {
        let is_gone =
            self.jobs.get(&job).is_some_and(|tasks| tasks.pods.iter().all(Option::is_none));
        if is_gone {
            return self.inherit(turn, key, job);
        }
        if let Some(legacy) = self.heirs.jobs.get_mut(&job)
            && legacy.heir.as_ref() != Some(key)
        {
            (legacy.heir, legacy.since) = (Some(key.clone()), Some(turn.at));
        }
        self.say(uid, "it comes in the place of a pod that has yet to end");
    }

    fn inherit(&mut self, turn: &mut Turn<'_>, key: &GangKey, job: JobId) {
        self.heirs.remove(job);
        let Some(tasks) = self.jobs.get_mut(&job) else { return };
        let before = std::mem::replace(&mut tasks.gang, key.clone());
        let known = self.gangs.remove(&before);
        let Some(gang) = self.gangs.get_mut(key) else { return };
        (gang.job, gang.has_begun) = (Some(job), true);
        gang.owner = known.and_then(|known| known.owner);
        if let Some(owner) = &gang.owner {
            self.owners.insert(owner.clone(), key.clone());
        }
        self.fill(turn, key, job);
        // Others may have come meanwhile that it has to keep away from.
        self.tie(turn, job);
    }

    /// A job has lost its pod: the next one is there, or comes.
    pub(super) fn pass_on(&mut self, turn: &mut Turn<'_>, job: JobId) {
        // One that did its work while it was asked to end needs no other.
        let is_done = self.jobs.get(&job).is_none_or(crate::state::Tasks::is_whole);
        let is_live = !is_done && Stage::of(turn.core, job) == Stage::Live;
        let Some(legacy) = self.heirs.jobs.get_mut(&job) else { return };
        let heir = legacy.heir.take();
        let heir = heir.filter(|key| self.gangs.get(key).is_some_and(|it| !it.waiting.is_empty()));
        match heir {
            Some(heir) if is_live => self.inherit(turn, &heir, job),
            None if is_live => legacy.since = Some(turn.at),
            heir => {
                self.heirs.remove(job);
                if let Some(heir) = heir {
                    self.gather(turn, &heir);
                }
            }
        }
    }

    /// Jobs for which no pod comes are over, and pods that wait for others in vain are jobs of their
    /// own.
    pub fn give_up_heirs(&mut self, turn: &mut Turn<'_>) {
        let is_late =
            |legacy: &Legacy| legacy.since.is_some_and(|since| turn.at >= since + PATIENCE);
        let late = self.heirs.jobs.iter().filter(|(_, legacy)| is_late(legacy));
        let late: Vec<JobId> = late.map(|(job, _)| *job).collect();
        late.into_iter().for_each(|job| self.give_up(turn, job));
    }

    /// Who made pods makes none any more.
    pub(super) fn make_no_heirs(&mut self, turn: &mut Turn<'_>, owner: &str) {
        let jobs = self.heirs.by_owner.get(owner).cloned().unwrap_or_default();
        jobs.into_iter().for_each(|job| self.give_up(turn, job));
    }

    fn give_up(&mut self, turn: &mut Turn<'_>, job: JobId) {
        let Some(legacy) = self.heirs.remove(job) else { return };
        if let Some(heir) = legacy.heir {
            self.gather(turn, &heir);
        }
        let Some(tasks) = self.jobs.get(&job) else { return };
        if tasks.pods.iter().any(Option::is_some) {
            return;
        }
        let gang = tasks.gang.clone();
        if Stage::of(turn.core, job) == Stage::Live {
            turn.apply_observed(Event::JobCancelled { job });
        }
        self.gather(turn, &gang);
        let is_empty = |gang: &crate::state::Gang| {
            gang.job.is_none() && gang.waiting.is_empty() && gang.done.is_empty()
        };
        if self.gangs.get(&gang).is_some_and(is_empty)
            && let Some(gang) = self.gangs.remove(&gang)
            && let Some(owner) = gang.owner
        {
            self.owners.remove(&owner);
        }
    }
}
