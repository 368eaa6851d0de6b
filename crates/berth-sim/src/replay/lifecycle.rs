//! Jobs as their machines see them: they start, save, end, are stopped and are thrown out.

use super::Error;
use super::play::Play;
use super::run::{Run, RunEvent, Task};
use super::world::{id_of, number};
use crate::outcome::{Place, Segment};
use berth_model::{Event, JobChange, LeaseId, LeaseOutcome, Span, Time};
use std::cmp::Reverse;

/// Run time after which a job that saves only when it is stopped has saved itself for the first
/// time; without one it is never paused. Later checkpoints change nothing, because a job that is
/// stopped saves itself then.
const FIRST_SAVE: Span = Span::mins(15);

impl Play<'_> {
    pub(super) fn start(
        &mut self,
        at: Time,
        lease: LeaseId,
        node: u32,
        gpus: Vec<u32>,
    ) -> Result<(), Error> {
        self.append(at, Event::LeaseStarted { lease })?;
        let place = number(lease.job);
        let job = &self.jobs[place];
        let run = &mut self.runs[place];
        run.tasks.push(Task { lease, node, gpus });
        self.market.here(node, place as u32);
        if run.tasks.len() < self.job_maker.tasks(job) as usize {
            return Ok(());
        }
        let again = !self.outcomes[place].segments.is_empty();
        run.restart = if again { self.job_maker.restart() } else { Span::ZERO };
        run.since = Some(at);
        run.saved = None;
        let (number, epoch) = (place as u32, run.epoch);
        let begins = at + run.restart;
        let saves = &self.site.saves;
        let done = begins + saves.time_for(job.duration - run.progress);
        let ends = at + (run.limit - run.behind);
        self.agenda.push(Reverse((done, RunEvent::Done, number, epoch)));
        // Paused when its time was up: its limit is raised before the core can see that.
        if ends <= at {
            self.raise(at, number)?;
        } else if ends < done {
            self.agenda.push(Reverse((ends, RunEvent::LimitReached, number, epoch)));
        }
        let first_save = match saves.every {
            Some(every) => every + saves.cost,
            None => FIRST_SAVE,
        };
        if (self.job_maker.preemptible() || saves.every.is_some()) && begins + first_save < done {
            self.agenda.push(Reverse((begins + first_save, RunEvent::Saved, number, epoch)));
        }
        Ok(())
    }

    pub(super) fn saved(&mut self, at: Time, job: u32) -> Result<(), Error> {
        let run = &mut self.runs[job as usize];
        run.saved = Some(at);
        let epoch = run.epoch;
        if let Some(every) = self.site.saves.every {
            let next = at + every + self.site.saves.cost;
            self.agenda.push(Reverse((next, RunEvent::Saved, job, epoch)));
        }
        self.append(at, Event::LeaseSaved { job: id_of(job as usize) })
    }

    pub(super) fn done(&mut self, at: Time, job: u32) -> Result<(), Error> {
        let place = job as usize;
        let run = &self.runs[place];
        let left = self.jobs[place].duration - run.progress;
        let saving = self.site.saves.time_for(left) - left;
        self.write_down(at, job, Span::ZERO, saving);
        for task in std::mem::take(&mut self.runs[place].tasks) {
            self.market.left(task.node, job);
            let outcome = LeaseOutcome::Done;
            self.append(at, Event::LeaseEnded { lease: task.lease, outcome })?;
        }
        self.runs[place] = Run::default();
        Ok(())
    }

    /// The job runs no longer: what it has done is written down.
    fn write_down(&mut self, at: Time, job: u32, lost: Span, saving: Span) {
        let run = &mut self.runs[job as usize];
        run.epoch += 1;
        let Some(from) = run.since.take() else { return };
        let restart = run.restart.min(at - from);
        let place = place_of(&run.tasks);
        let segment = Segment { restart, lost, saving, place, ..Segment::new(from, at) };
        run.progress += segment.length() - segment.wasted();
        self.outcomes[job as usize].segments.push(segment);
    }

    pub(super) fn raise(&mut self, at: Time, job: u32) -> Result<(), Error> {
        let run = &mut self.runs[job as usize];
        let since = run.since.expect("only of a job that runs");
        let used = run.behind + (at - since);
        while run.limit <= used {
            run.limit = run.limit + run.limit;
        }
        let (limit, epoch) = (run.limit, run.epoch);
        let ends = at + (limit - used);
        self.agenda.push(Reverse((ends, RunEvent::LimitReached, job, epoch)));
        self.counts.raised += 1;
        let change = JobChange::TimeLimit(limit);
        self.append(at, Event::JobChanged { job: id_of(job as usize), change })
    }

    /// The first task of a job that is stopped stops the job: it saves itself.
    pub(super) fn stop(&mut self, at: Time, lease: LeaseId) -> Result<(), Error> {
        let place = number(lease.job);
        if let Some(since) = self.runs[place].since {
            let ran = at - since;
            let restart = self.runs[place].restart;
            let mut saving = Span::ZERO;
            if ran > restart {
                self.append(at, Event::LeaseSaved { job: lease.job })?;
                self.runs[place].behind += ran;
                saving = self.site.saves.progress_in(ran - restart).1;
            }
            self.write_down(at, place as u32, Span::ZERO, saving);
            self.outcomes[place].preemptions += 1;
        }
        self.end_task(at, lease, LeaseOutcome::Stopped)
    }

    fn end_task(&mut self, at: Time, lease: LeaseId, outcome: LeaseOutcome) -> Result<(), Error> {
        let place = number(lease.job);
        let tasks = &mut self.runs[place].tasks;
        if let Some(found) = tasks.iter().position(|task| task.lease == lease) {
            let task = tasks.remove(found);
            self.market.left(task.node, place as u32);
        }
        self.append(at, Event::LeaseEnded { lease, outcome })
    }

    /// What a job has on a node, or on one GPU of it, is lost, and with it what was not saved.
    pub(super) fn lose(&mut self, at: Time, node: u32, gpu: Option<u32>) -> Result<(), Error> {
        for job in self.market.on(node) {
            let place = job as usize;
            let hit =
                |task: &&Task| task.node == node && gpu.is_none_or(|gpu| task.gpus.contains(&gpu));
            let lost: Vec<LeaseId> =
                self.runs[place].tasks.iter().filter(hit).map(|task| task.lease).collect();
            if lost.is_empty() {
                continue;
            }
            if let Some(since) = self.runs[place].since {
                let run = &mut self.runs[place];
                let ran = (at - since - run.restart).max(Span::ZERO);
                // A job that only saves itself when stopped has perhaps saved itself once.
                let (safe, saving) = match (self.site.saves.every, run.saved) {
                    (None, Some(saved)) => (saved - since - run.restart, Span::ZERO),
                    _ => self.site.saves.safe_after(ran),
                };
                run.behind += run.saved.map_or(Span::ZERO, |saved| saved - since);
                self.write_down(at, job, ran - safe - saving, saving);
                self.outcomes[place].interruptions += 1;
            }
            for lease in lost {
                self.end_task(at, lease, LeaseOutcome::Lost)?;
            }
        }
        Ok(())
    }
}

/// GPUs by node, several tasks on one node together.
fn place_of(tasks: &[Task]) -> Place {
    if let [task] = tasks {
        return Place::One(task.node, task.gpus.len() as u32);
    }
    let mut parts: Vec<(u32, u32)> = Vec::with_capacity(tasks.len());
    for task in tasks {
        let gpus = task.gpus.len() as u32;
        match parts.iter_mut().find(|(node, _)| *node == task.node) {
            Some((_, held)) => *held += gpus,
            None => parts.push((task.node, gpus)),
        }
    }
    Place::Many(parts.into())
}
