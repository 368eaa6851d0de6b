//! The loop: what happens next, a plan, what was decided.

use super::world::{self, Shop, id, number};
use super::{Counts, Error, Replayed, Rules};
use crate::engine::{State, Transaction, vetted};
use crate::outcome::{Outcome, Segment};
use crate::peers::{self, Job, Pool};
use crate::workload::Workload;
use berth_model::{
    Decision, Event, JobChange, LeaseId, LeaseOutcome, Outcome as End, Span, Stamped, Time,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Plans at one moment before the replay gives up.
const PLANS_AT_ONCE: u32 = 10_000;
/// Run time after which a job has saved itself for the first time; without one it is never
/// paused. Later checkpoints change nothing, because a job that is stopped saves itself then.
const FIRST_SAVE: Span = Span::mins(15);
/// When every replay begins. A trace may count from any time, even from one after its first job,
/// and the core takes no time before 1970.
const BEGIN: Time = Time(Span::days(10_957).0);
/// Jobs between two reports of progress.
const REPORT_EVERY: usize = 1_024;

/// In the order in which they are taken at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Done,
    LimitReached,
    Saved,
}

/// What is foreseen for a run of a job; void when that run is over.
type Due = Reverse<(Time, What, u32, u32)>;

/// One job as its machines see it.
#[derive(Debug, Clone, Default)]
struct Run {
    leases: Vec<LeaseId>,
    /// Since when all of it runs.
    since: Option<Time>,
    /// Part of this run that is no progress.
    restart: Span,
    progress: Span,
    /// Run time behind it as the core counts it, restarts included.
    behind: Span,
    limit: Span,
    /// Counts runs.
    epoch: u32,
}

pub(super) struct Play<'a> {
    /// Moved to where the core's calendar has begun; outcomes are moved back.
    jobs: Vec<Job>,
    moved: Span,
    rules: &'a Rules,
    shop: Shop,
    state: State,
    runs: Vec<Run>,
    outcomes: Vec<Outcome>,
    agenda: BinaryHeap<Due>,
    /// The first job that is not submitted yet.
    next: usize,
    gpus: u64,
    /// When the core wants to be asked again.
    wake: Option<Time>,
    through: usize,
    counts: Counts,
}

impl<'a> Play<'a> {
    pub(super) fn new(
        rules: &'a Rules,
        pool: Pool,
        workload: &'a Workload,
    ) -> Result<Play<'a>, Error> {
        let first = workload.jobs.first().map_or(BEGIN, |job| job.submit);
        let moved = BEGIN - first;
        let move_one = |job: &Job| Job { submit: job.submit + moved, ..*job };
        let jobs: Vec<Job> = workload.jobs.iter().map(move_one).collect();
        let (snapshot, shop) = world::world(rules, pool, workload, BEGIN);
        let run = |job: &Job| Run { limit: world::limit(job), ..Run::default() };
        Ok(Play {
            moved,
            rules,
            shop,
            state: State::load(&snapshot)?,
            runs: jobs.iter().map(run).collect(),
            outcomes: jobs.iter().enumerate().map(|(at, job)| peers::blank(at, job)).collect(),
            jobs,
            agenda: BinaryHeap::new(),
            next: 0,
            gpus: pool.gpus(),
            wake: None,
            through: 0,
            counts: Counts::default(),
        })
    }

    pub(super) fn play_out(mut self, progress: &mut dyn FnMut(usize)) -> Result<Replayed, Error> {
        let mut told = 0;
        while let Some(at) = self.next_time() {
            self.happen(at)?;
            self.decide(at)?;
            if self.through >= told + REPORT_EVERY {
                told = self.through;
                progress(told);
            }
        }
        for outcome in &mut self.outcomes {
            outcome.submit = outcome.submit - self.moved;
            outcome.end = outcome.end.map(|end| end - self.moved);
            for segment in &mut outcome.segments {
                (segment.from, segment.to) = (segment.from - self.moved, segment.to - self.moved);
            }
        }
        Ok(Replayed { outcomes: self.outcomes, counts: self.counts })
    }

    fn next_time(&self) -> Option<Time> {
        let due = self.agenda.peek().map(|Reverse((at, ..))| *at);
        let submit = self.jobs.get(self.next).map(|job| job.submit);
        let outside = [due, submit].into_iter().flatten().min();
        // When nothing runs and nobody comes, waking the core for ever would change nothing.
        outside.map(|at| self.wake.map_or(at, |wake| wake.min(at)))
    }

    fn append(&mut self, at: Time, event: Event) -> Result<(), Error> {
        let stamped = Stamped { seq: self.state.seq() + 1, at, event };
        let applied =
            self.state.apply(&stamped).map_err(|rejected| Error::Refused { at, rejected })?;
        self.counts.events += 1;
        for (job, end) in applied.ended {
            self.through += 1;
            let at = (end == End::Done).then_some(at);
            self.outcomes[number(job)].end = at;
        }
        Ok(())
    }

    fn happen(&mut self, at: Time) -> Result<(), Error> {
        if self.wake.take_if(|wake| *wake <= at).is_some() {
            self.append(at, Event::Tick)?;
        }
        while let Some(Reverse((due, what, job, epoch))) = self.agenda.peek().copied()
            && due <= at
        {
            self.agenda.pop();
            let run = &self.runs[job as usize];
            if run.epoch != epoch || run.since.is_none() {
                continue;
            }
            match what {
                What::Done => self.done(at, job)?,
                What::LimitReached => self.raise(at, job)?,
                What::Saved => self.append(at, Event::LeaseSaved { job: id(job) })?,
            }
        }
        while let Some(job) = self.jobs.get(self.next).copied().filter(|job| job.submit <= at) {
            let place = self.next as u32;
            self.next += 1;
            if u64::from(job.gpus) > self.gpus {
                continue;
            }
            let spec = Box::new(self.shop.spec(place, &job));
            self.append(at, Event::JobSubmitted { spec })?;
        }
        Ok(())
    }

    fn done(&mut self, at: Time, job: u32) -> Result<(), Error> {
        let leases = self.halt(at, job);
        for lease in leases {
            self.append(at, Event::LeaseEnded { lease, outcome: LeaseOutcome::Done })?;
        }
        self.runs[job as usize] = Run::default();
        Ok(())
    }

    /// The job holds its GPUs no longer: what it has done is written down.
    fn halt(&mut self, at: Time, job: u32) -> Vec<LeaseId> {
        let run = &mut self.runs[job as usize];
        if let Some(from) = run.since.take() {
            let restart = run.restart;
            let segment = Segment { restart, ..Segment::new(from, at) };
            run.progress += segment.length() - segment.wasted();
            self.outcomes[job as usize].segments.push(segment);
        }
        run.epoch += 1;
        std::mem::take(&mut run.leases)
    }

    fn raise(&mut self, at: Time, job: u32) -> Result<(), Error> {
        let run = &mut self.runs[job as usize];
        let since = run.since.expect("only of a job that runs");
        let used = run.behind + (at - since);
        while run.limit <= used {
            run.limit = run.limit + run.limit;
        }
        let (limit, epoch) = (run.limit, run.epoch);
        let ends = at + (limit - used);
        self.agenda.push(Reverse((ends, What::LimitReached, job, epoch)));
        self.counts.raised += 1;
        let change = JobChange::TimeLimit(limit);
        self.append(at, Event::JobChanged { job: id(job), change })
    }

    /// Plans until nothing more follows at this moment.
    fn decide(&mut self, at: Time) -> Result<(), Error> {
        for _ in 0..PLANS_AT_ONCE {
            let plan = self.state.plan();
            self.counts.plans += 1;
            self.wake = plan.next.filter(|next| *next > at);
            if plan.is_empty() {
                return Ok(());
            }
            let (transactions, findings) = vetted(&self.state, &plan);
            self.counts.findings += findings.len() as u64;
            if transactions.is_empty() {
                return Ok(());
            }
            let mut starts = Vec::new();
            let mut stops = Vec::new();
            for Transaction { job, decisions } in transactions {
                for decision in &decisions {
                    match decision {
                        Decision::Start { lease, .. } => starts.push(*lease),
                        Decision::Stop { lease, .. } => stops.push(*lease),
                        Decision::Reserve { .. }
                        | Decision::Unreserve { .. }
                        | Decision::SetAside { .. }
                        | Decision::Claim { .. }
                        | Decision::Return { .. } => {}
                    }
                }
                self.append(at, Event::Decided { job, decisions })?;
            }
            for lease in stops {
                self.stop(at, lease)?;
            }
            for lease in starts {
                self.start(at, lease)?;
            }
        }
        Err(Error::Endless { at })
    }

    fn start(&mut self, at: Time, lease: LeaseId) -> Result<(), Error> {
        self.append(at, Event::LeaseStarted { lease })?;
        let place = number(lease.job);
        let job = &self.jobs[place];
        let run = &mut self.runs[place];
        run.leases.push(lease);
        if run.leases.len() < self.shop.tasks(job) as usize {
            return Ok(());
        }
        let again = !self.outcomes[place].segments.is_empty();
        run.restart = if again { self.rules.restart } else { Span::ZERO };
        run.since = Some(at);
        let (number, epoch) = (place as u32, run.epoch);
        let begins = at + run.restart;
        let done = begins + (job.duration - run.progress);
        let ends = at + (run.limit - run.behind).max(Span::secs(1));
        self.agenda.push(Reverse((done, What::Done, number, epoch)));
        if ends < done {
            self.agenda.push(Reverse((ends, What::LimitReached, number, epoch)));
        }
        if self.rules.preemptible && begins + FIRST_SAVE < done {
            self.agenda.push(Reverse((begins + FIRST_SAVE, What::Saved, number, epoch)));
        }
        Ok(())
    }

    /// The first task of a job that is stopped stops the job: it saves itself.
    fn stop(&mut self, at: Time, lease: LeaseId) -> Result<(), Error> {
        let place = number(lease.job);
        if let Some(since) = self.runs[place].since {
            let ran = at - since;
            if ran > self.runs[place].restart {
                self.append(at, Event::LeaseSaved { job: lease.job })?;
                self.runs[place].behind += ran;
            }
            self.halt(at, place as u32);
            self.outcomes[place].preemptions += 1;
        }
        self.append(at, Event::LeaseEnded { lease, outcome: LeaseOutcome::Stopped })
    }
}
