//! Where a job without leases stands: in line, or parked until something happens.

use crate::ix::JobIx;
use crate::jobs::{Parked, Standing};
use crate::state::{State, Wake};
use berth_model::{After, JobId, JobRef, JobSpec, Name, Outcome};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DependencyStatus {
    Yes,
    NotYet,
    Never,
}

impl Wake {
    /// Something happens to the job, or the jobs, that this names.
    fn on(job: &JobRef) -> Wake {
        match job {
            JobRef::Id(id) => Wake::Job(id.number),
            JobRef::Name(name) => Wake::Name(name.clone()),
        }
    }

    /// Another job of this name and user ends.
    fn same(spec: &JobSpec) -> Wake {
        Wake::Same(spec.name.clone(), spec.user.clone())
    }
}

impl State {
    /// What keeps a job out of line, if anything does; and what would change that.
    fn obstacle(&self, ix: JobIx) -> Option<(Parked, Vec<Wake>)> {
        let job = self.jobs.get(ix);
        let spec = &job.spec;
        if job.hold {
            return Some((Parked::Held, Vec::new()));
        }
        if job.set_aside.is_some() {
            return Some((Parked::SetAside, Vec::new()));
        }
        if let Some(begin) = spec.begin.filter(|begin| *begin > self.now) {
            return Some((Parked::Begin(begin), Vec::new()));
        }
        let mut wakes = Vec::new();
        let mut never = None;
        for dependency in spec.after.iter().filter(|_| !job.released) {
            let met = self.dependency_status(dependency.after, &dependency.job, job.id);
            if met == DependencyStatus::Yes {
                continue;
            }
            // A dependency that can never be met is met after all if such a job is submitted later.
            wakes.push(Wake::on(&dependency.job));
            if met == DependencyStatus::Never {
                never.get_or_insert_with(|| match &dependency.job {
                    JobRef::Id(id) => Name::from(format!("job {id}")),
                    JobRef::Name(name) => name.clone(),
                });
            }
        }
        if let Some(on) = never {
            return Some((Parked::Never(on), wakes));
        }
        if !wakes.is_empty() {
            return Some((Parked::Dependency, wakes));
        }
        if spec.singleton {
            let same = self.named.get(&(spec.name.clone(), spec.user.clone()));
            // Elements of one array are one job to it.
            let earlier = same.and_then(|ids| ids.first()).filter(|first| **first < job.id);
            if let Some(first) = earlier.filter(|first| first.number != job.id.number) {
                return Some((Parked::Singleton(*first), vec![Wake::same(spec)]));
            }
        }
        let at_most = spec.array.as_ref().and_then(|array| array.at_most);
        if let Some(at_most) = at_most
            && self.arrays.get(&job.id.number).copied().unwrap_or(0) >= at_most
        {
            return Some((Parked::Array, vec![Wake::Array(job.id.number)]));
        }
        None
    }

    pub(crate) fn dependency_status(
        &self,
        after: After,
        on: &JobRef,
        own: JobId,
    ) -> DependencyStatus {
        let mut alive: Vec<JobIx> = Vec::new();
        let mut ended: Vec<Outcome> = Vec::new();
        match on {
            JobRef::Id(id) => {
                alive.extend(self.jobs.find(*id));
                ended.extend(self.outcomes.get(id).map(|(_, outcome)| *outcome));
                if id.element.is_none() {
                    let all = JobId::new(id.number).element(0)..=id.element(u32::MAX);
                    alive.extend(self.jobs.by_id.range(all.clone()).map(|(_, ix)| *ix));
                    ended.extend(self.outcomes.range(all).map(|(_, (_, outcome))| *outcome));
                }
            }
            JobRef::Name(name) => {
                let from = (name.clone(), Name::default());
                let named = self.named.range(from..).take_while(|((n, _), _)| n == name);
                let ids = named.flat_map(|(_, ids)| ids).filter(|id| **id != own);
                alive.extend(ids.filter_map(|id| self.jobs.find(*id)));
                let ended_so = self.outcomes.values().filter(|(ended, _)| ended == name);
                ended.extend(ended_so.map(|(_, outcome)| *outcome));
            }
        }
        if after == After::Start {
            let started = alive.iter().all(|ix| self.jobs.get(*ix).first_start.is_some());
            return if started && (!alive.is_empty() || !ended.is_empty()) {
                DependencyStatus::Yes
            } else if alive.is_empty() {
                DependencyStatus::Never
            } else {
                DependencyStatus::NotYet
            };
        }
        let done = |outcome: &Outcome| *outcome == Outcome::Done;
        // An array has failed when it has ended and one of its elements has failed.
        let too_late = match after {
            After::Ok => !ended.iter().all(done),
            After::NotOk => alive.is_empty() && ended.iter().all(done),
            After::Any | After::Start => false,
        };
        if too_late {
            DependencyStatus::Never
        } else if !alive.is_empty() {
            DependencyStatus::NotYet
        } else if ended.is_empty() {
            DependencyStatus::Never
        } else {
            DependencyStatus::Yes
        }
    }

    /// Settles where a job without leases stands: in line, or parked.
    pub(crate) fn reconsider(&mut self, ix: JobIx) {
        let job = self.jobs.get(ix);
        if job.open > 0 || matches!(job.standing, Standing::Running | Standing::Ending) {
            return;
        }
        let was_waiting = job.standing == Standing::Waiting;
        let id = job.id;
        let capped = job.spec.array.as_ref().is_some_and(|array| array.at_most.is_some());
        // It is entered again if that is still what it waits for.
        let spec = job.spec.clone();
        self.stop_waiting_for_events(ix, id, &spec);
        if was_waiting {
            self.dequeue(ix);
            if capped {
                *self.arrays.entry(id.number).or_default() -= 1;
            }
        }
        let obstacle = self.obstacle(ix);
        // What has happened is not asked about again: little is remembered of jobs that have ended.
        let job = self.jobs.get_mut(ix);
        job.released |= obstacle.is_none() && !job.spec.after.is_empty();
        match obstacle {
            None => {
                self.jobs.get_mut(ix).standing = Standing::Waiting;
                self.enqueue(ix);
                if capped {
                    *self.arrays.entry(id.number).or_default() += 1;
                }
            }
            Some((parked, wakes)) => {
                self.unpromise(ix);
                self.dequeue(ix);
                if let Parked::Begin(at) = parked {
                    self.begins.insert((at, id, ix));
                }
                for wake in wakes {
                    self.wakes.entry(wake).or_default().insert(ix);
                }
                self.jobs.get_mut(ix).standing = Standing::Parked(parked);
            }
        }
    }

    /// Takes a job out from where it waits for something to happen. It looks only under what its
    /// own spec can wait for: others may wait for as much as there are jobs.
    pub(crate) fn stop_waiting_for_events(&mut self, ix: JobIx, id: JobId, spec: &JobSpec) {
        if let Some(begin) = spec.begin {
            self.begins.remove(&(begin, id, ix));
        }
        let on = spec.after.iter().map(|dependency| Wake::on(&dependency.job));
        let same = spec.singleton.then(|| Wake::same(spec));
        let array = spec.array.as_ref().map(|_| Wake::Array(id.number));
        for wake in on.chain(same).chain(array) {
            let Some(jobs) = self.wakes.get_mut(&wake) else { continue };
            jobs.remove(&ix);
            if jobs.is_empty() {
                self.wakes.remove(&wake);
            }
        }
    }

    /// Looks again at jobs that waited for something to happen.
    pub(crate) fn wake(&mut self, wake: &Wake) {
        let Some(jobs) = self.wakes.remove(wake) else { return };
        let mut ids: Vec<(JobId, JobIx)> =
            jobs.into_iter().map(|ix| (self.jobs.get(ix).id, ix)).collect();
        ids.sort();
        for (_, ix) in ids {
            self.reconsider(ix);
        }
    }

    /// Looks again at jobs that depend on one: by its number, or by its name.
    pub(crate) fn wake_dependents(&mut self, id: JobId, name: &Name) {
        self.wake(&Wake::Job(id.number));
        self.wake(&Wake::Name(name.clone()));
    }

    pub(crate) fn wake_for(&mut self, id: JobId, spec: &JobSpec) {
        self.wake_dependents(id, &spec.name);
        self.wake(&Wake::same(spec));
        self.wake(&Wake::Array(id.number));
    }

    /// Jobs set aside are tried again when the cluster has changed.
    pub(crate) fn wake_set_aside(&mut self) {
        for id in std::mem::take(&mut self.set_aside) {
            let Some(ix) = self.jobs.find(id) else { continue };
            self.jobs.get_mut(ix).set_aside = None;
            self.reconsider(ix);
        }
    }

    /// The lowest elements of an array that may run are the ones in line, whatever happened
    /// before: so a loaded state and a kept one agree.
    pub(crate) fn enqueue_elements(&mut self, id: JobId) {
        if !self.arrays.contains_key(&id.number) {
            return;
        }
        let all = self.jobs.by_id.range(id.array().element(0)..=id.array().element(u32::MAX));
        let all: Vec<JobIx> = all.map(|(_, ix)| *ix).collect();
        for ix in &all {
            if self.is_waiting(*ix) && !self.promises.contains_key(ix) {
                self.dequeue(*ix);
                self.jobs.get_mut(*ix).standing = Standing::Parked(Parked::Array);
                *self.arrays.entry(id.number).or_default() -= 1;
            }
        }
        for ix in all {
            self.reconsider(ix);
        }
    }

    /// The running element gives up its place; it takes one again when it is back in line.
    pub(crate) fn free_array_place(&mut self, ix: JobIx) {
        let job = self.jobs.get(ix);
        if job.spec.array.as_ref().is_some_and(|array| array.at_most.is_some()) {
            let places = self.arrays.entry(job.id.number).or_default();
            *places = places.saturating_sub(1);
        }
    }
}
