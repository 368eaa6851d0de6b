//! What becomes of the job of a pod of no gang that had to give way. Its controller makes another
//! pod in its place, and that one is the same job: with its number, its age and what it has cost.

use super::{Mirror, Stage, Uid};
use crate::engine::{Core, Submission, Turn};
use crate::kube::sight::GangKey;
use berth_kube::object::Text;
use berth_model::{Event, JobId, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// How long a job waits for another pod. The longest pause that a Job's controller makes between two
/// is six minutes.
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
    /// Since when the pod is gone.
    since: Option<Time>,
    /// The pod that is there already, while the one before it has yet to end.
    heir: Option<GangKey>,
}

impl Heirs {
    fn expect(&mut self, job: JobId, owner: Text) {
        self.by_owner.entry(owner.clone()).or_default().insert(job);
        self.jobs.insert(job, Legacy { owner, since: None, heir: None });
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
            self.heirs.expect(job, owner);
        }
    }

    /// The job whose pod this one comes in the place of: it asks for the same, does the same work,
    /// and was made by the same owner.
    pub(super) fn forebear(
        &self,
        core: &Core,
        key: &GangKey,
        uid: &Uid,
        submission: &Submission,
    ) -> Option<JobId> {
        let pod = self.pods.get(uid).filter(|pod| pod.wish().is_some_and(|wish| wish.alone))?;
        let spec = &submission.spec;
        let is_it = |job: &&JobId| {
            let (Some(legacy), Some(tasks)) = (self.heirs.jobs.get(job), self.jobs.get(job)) else {
                return false;
            };
            legacy.heir.as_ref().is_none_or(|heir| heir == key)
                && tasks.asks.first() == Some(&pod.sight.asks)
                && tasks.ranks.first() == Some(&pod.sight.rank())
                && core.state.asks_of(**job) == Some(&spec.groups[..])
                && core.jobs.get(job).is_some_and(|live| live.row.team == spec.queue.as_str())
                && Stage::of(core, **job) == Stage::Live
        };
        let jobs = self.heirs.by_owner.get(pod.sight.owner.as_ref()?)?;
        // The one it is promised already comes first.
        let promised = |job: &&JobId| self.heirs.jobs[*job].heir.is_some();
        let mut fit = jobs.iter().filter(is_it);
        fit.clone().find(promised).or_else(|| fit.next()).copied()
    }

    /// A pod takes the place of another, at once or when that one is gone.
    pub(super) fn succeed(&mut self, turn: &mut Turn<'_>, key: &GangKey, job: JobId, uid: &Uid) {
        let is_gone =
            self.jobs.get(&job).is_some_and(|tasks| tasks.pods.iter().all(Option::is_none));
        if is_gone {
            return self.inherit(turn, key, job);
        }
        if let Some(legacy) = self.heirs.jobs.get_mut(&job) {
            legacy.heir = Some(key.clone());
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
    }

    /// A job has lost its pod: the next one is there, or comes.
    pub(super) fn pass_on(&mut self, turn: &mut Turn<'_>, job: JobId) {
        let is_live = Stage::of(turn.core, job) == Stage::Live;
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

    /// Jobs for which no pod comes are over.
    pub fn give_up_heirs(&mut self, turn: &mut Turn<'_>) {
        let is_late =
            |legacy: &Legacy| legacy.since.is_some_and(|since| turn.at >= since + PATIENCE);
        let late = self.heirs.jobs.iter().filter(|(_, legacy)| is_late(legacy));
        let late: Vec<JobId> = late.map(|(job, _)| *job).collect();
        for job in late {
            self.heirs.remove(job);
            if Stage::of(turn.core, job) == Stage::Live {
                turn.apply_observed(Event::JobCancelled { job });
            }
            if let Some(gang) = self.jobs.get(&job).map(|tasks| tasks.gang.clone()) {
                self.gather(turn, &gang);
            }
        }
    }
}
