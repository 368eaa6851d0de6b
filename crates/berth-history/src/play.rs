//! The history itself, from one moment to the next one at which anything happens.

use crate::load::Submission;
use crate::machine::Machine;
use crate::people::{ADMIN, People, fault};
use anyhow::{Context, Result, ensure};
use berth_api::wire;
use berth_engine::played::PlayedLoop;
use berth_model::{JobId, Micros, Span, Time};
use berth_service::{Book, JobHost, Service, figures, jobs, money};
use berth_sim::random::Rng;
use std::collections::BTreeMap;

/// How often GPUs are looked at, in the days that have figures.
pub const LOOK_EVERY: Span = Span::mins(1);
const HOUR: Span = Span::hours(1);
/// When what is left is stopped, before the end.
const STOP_ALL: Span = Span::mins(8);
/// When budgets get the limits that make them tight.
const TIGHTEN: Span = Span::mins(4);
/// How much of its limit each team has spent in the end, in thousandths.
const SPENT: &[(&str, i64)] = &[("vision", 970), ("nlp", 640), ("speech", 838), ("interns", 1_012)];

/// What somebody does to a job later.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Stop,
    Pause,
    Resume,
    /// It becomes more urgent.
    Raise,
}

pub struct Play<'a> {
    pub turns: PlayedLoop,
    pub service: Service,
    pub host: &'a PlayedHost,
    pub machine: Machine,
    pub people: People,
    pub rng: Rng,
    /// From when on there are figures.
    pub looks_from: Time,
    pub until: Time,
    pub deeds: Deeds,
}

/// By time, and in the order in which they were thought of.
#[derive(Default)]
pub struct Deeds {
    coming: BTreeMap<(Time, u64), (JobId, &'static str, Deed)>,
    counted: u64,
}

impl Deeds {
    fn add(&mut self, at: Time, job: JobId, who: &'static str, deed: Deed) {
        self.counted += 1;
        self.coming.insert((at, self.counted), (job, who, deed));
    }

    fn next(&self) -> Option<Time> {
        self.coming.keys().next().map(|(at, _)| *at)
    }
}

/// A machine as requests see it: nothing is known of it but figures.
#[derive(Default)]
pub struct PlayedHost {
    pub book: Book,
}

impl JobHost for PlayedHost {
    fn runs_containers(&self) -> bool {
        false
    }

    fn keeps_checkpoints(&self) -> bool {
        true
    }

    fn has_declared_gpus(&self) -> bool {
        true
    }

    fn figures(&self) -> Option<&Book> {
        Some(&self.book)
    }
}

impl Play<'_> {
    /// Plays all of it.
    pub async fn run(&mut self, from: Time, submissions: &[Submission]) -> Result<()> {
        let mut submissions = submissions.iter().peekable();
        let mut look = from + HOUR;
        let mut signed_in = BTreeMap::new();
        let (stop_all, tighten) = (self.until - STOP_ALL, self.until - TIGHTEN);
        let mut last_steps = vec![tighten, stop_all];
        let mut now = from;
        loop {
            let submission = submissions.peek().map(|one| one.at);
            let others = [submission, self.machine.next(), self.deeds.next()];
            let next = others.into_iter().flatten().chain(last_steps.last().copied());
            now = next.fold(self.turns.next().min(look), Time::min).max(now);
            if now >= self.until {
                break;
            }
            if self.machine.next().is_some_and(|at| at <= now) {
                let machine = &mut self.machine;
                self.turns.turn(now, |turn| machine.happen(turn)).await?;
                self.obey(now);
            }
            while let Some(one) = submissions.next_if(|one| one.at <= now) {
                let day = now.0.div_euclid(Span::days(1).0);
                if signed_in.insert(one.user, day) != Some(day) {
                    self.people.sign_in(&mut self.turns, &self.service, one.user, now).await?;
                }
                self.submit(one, now).await?;
            }
            while self.deeds.next().is_some_and(|at| at <= now) {
                let Some((_, (job, who, deed))) = self.deeds.coming.pop_first() else { break };
                self.act(job, who, deed, now).await?;
            }
            if self.turns.next() <= now {
                self.turns.turn(now, |_| {}).await?;
            }
            if look <= now {
                look = self.look(now).await?;
            }
            match last_steps.pop_if(|at| *at <= now) {
                Some(at) if at == stop_all => self.stop_all(now).await?,
                Some(_) => self.tighten_budgets(now).await?,
                None => {}
            }
            self.obey(now);
        }
        self.end().await
    }

    /// Has the machine carry out what was decided.
    fn obey(&mut self, at: Time) {
        let orders = self.turns.take_orders();
        if !orders.is_empty() {
            let handle = self.turns.handle();
            let core = handle.core();
            self.machine.obey(orders, &core, at);
        }
    }

    async fn submit(&mut self, one: &Submission, at: Time) -> Result<()> {
        let caller = self.people.asking(one.user, "submit_job");
        let query = wire::SubmitQuery::default();
        let asking = jobs::submit::submit(&self.service, &caller, None, query, &one.file);
        let submitted = self.turns.during(at, asking).await?;
        let submitted = submitted.map_err(fault).with_context(|| one.file.clone())?;
        let Some(wire::Id(id)) = submitted.id else { return Ok(()) };
        self.machine.expect(id, &one.fates);
        self.obey(at);
        if let Some(after) = one.stopped_after {
            self.deeds.add(at + after, id, one.user, Deed::Stop);
        }
        let later = |rng: &mut Rng, mins: u64| at + Span::secs(60 + rng.below(mins * 60) as i64);
        match self.rng.below(150) {
            0 => {
                let pause = later(&mut self.rng, 120);
                self.deeds.add(pause, id, one.user, Deed::Pause);
                self.deeds.add(pause + Span::mins(50), id, one.user, Deed::Resume);
            }
            1 | 2 => self.deeds.add(later(&mut self.rng, 30), id, "lena", Deed::Raise),
            _ => {}
        }
        Ok(())
    }

    /// What is over or may not be done is left alone, as people are told so.
    async fn act(&mut self, job: JobId, who: &'static str, deed: Deed, at: Time) -> Result<()> {
        let lives = {
            let handle = self.turns.handle();
            let core = handle.core();
            let until = JobId { number: job.number + 1, element: None };
            core.jobs.range(job..until).next().is_some()
        };
        if !lives {
            return Ok(());
        }
        // The request looks for the job in the store.
        self.turns.commit().await?;
        let (service, wanted) = (&self.service, job.to_string());
        let asking = async {
            match deed {
                Deed::Stop => {
                    let caller = self.people.asking(who, "stop_job");
                    let how = wire::JobStop { now: false };
                    jobs::act::stop(service, &caller, &wanted, how).await
                }
                Deed::Pause => {
                    let caller = self.people.asking(who, "pause_job");
                    jobs::act::pause(service, &caller, &wanted).await
                }
                Deed::Resume => {
                    let caller = self.people.asking(who, "resume_job");
                    jobs::act::resume(service, &caller, &wanted).await
                }
                Deed::Raise => {
                    let caller = self.people.asking(who, "set_job");
                    let priority = Some("high".to_owned());
                    let wish = wire::JobChange { priority, ..wire::JobChange::default() };
                    jobs::act::set(service, &caller, &wanted, wish).await
                }
            }
        };
        let _ = self.turns.during(at, asking).await?;
        Ok(())
    }

    /// Looks at the GPUs, writes what there is to write, and says when to look again.
    async fn look(&mut self, at: Time) -> Result<Time> {
        let book = &self.host.book;
        let measures = self.looks_from <= at;
        match measures {
            true => self.machine.gpus.look(book, at),
            false => self.machine.gpus.meter(book, at),
        }
        let hour = |at: Time| at.0.div_euclid(HOUR.0);
        let next = if measures {
            at + LOOK_EVERY
        } else {
            (at + HOUR).min(self.looks_from.max(at + LOOK_EVERY))
        };
        if !measures || hour(next) != hour(at) {
            self.flush(at).await?;
        }
        Ok(next)
    }

    async fn flush(&mut self, at: Time) -> Result<()> {
        let written = self.turns.during(at, figures::flush(&self.service)).await?;
        written.map_err(fault)
    }

    /// Whoever still has a job stops it.
    async fn stop_all(&mut self, at: Time) -> Result<()> {
        let left: Vec<JobId> = self.turns.handle().core().jobs.keys().copied().collect();
        for job in left {
            self.act(job, ADMIN, Deed::Stop, at).await?;
        }
        Ok(())
    }

    /// Gives budgets the limits by which one is nearly spent, and others are not.
    async fn tighten_budgets(&mut self, at: Time) -> Result<()> {
        let caller = self.people.asking(ADMIN, "list_budgets");
        let asking = money::budgets::list(&self.service, &caller);
        let listed = self.turns.during(at, asking).await?;
        for budget in listed.map_err(fault)?.items {
            let Some((_, part)) = SPENT.iter().find(|(name, _)| *name == budget.queue) else {
                continue;
            };
            let spent = budget.spent_micros;
            // Nobody thinks of a limit in cents.
            let round = if spent > Micros::dollars(2_000).0 { 10 } else { 1 };
            let unit = Micros::dollars(round).0;
            let least = i64::from(*part < 1_000);
            let wish = wire::BudgetSet {
                limit_micros: (spent / *part * 1_000 / unit).max(least) * unit,
                per: budget.per,
                action: budget.action,
                thresholds_milli: budget.thresholds_milli,
            };
            let caller = self.people.asking(ADMIN, "set_budget");
            let asking = money::budgets::set(&self.service, &caller, &budget.queue, wish);
            self.turns.during(at, asking).await?.map_err(fault)?;
        }
        Ok(())
    }

    async fn end(&mut self) -> Result<()> {
        let until = self.until;
        self.turns.turn(until, |turn| turn.bill()).await?;
        let left = self.turns.handle().core().jobs.len();
        ensure!(left == 0, "{left} jobs have not ended by the end of the history");
        self.machine.gpus.meter(&self.host.book, until);
        self.host.book.end_tasks(|_| false);
        self.flush(until).await
    }
}
