//! The loop: what happens next, a plan, what was decided.

use super::market::{Market, MarketEvent};
use super::run::{Run, RunEvent};
use super::world::{self, BEGIN, JobMaker, id, number};
use super::{Counts, Error, ForecastRequests, Replayed, Rules, StartForecast};
use crate::engine::{Arrived, Ask, State, Transaction, forecast_with, vetted};
use crate::outcome::Outcome;
use crate::peers::{self, Job};
use crate::site::{Faults, Site};
use crate::workload::Workload;
use berth_model::{Decision, Event, LeaseId, Outcome as End, Span, Stamped, Time};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;

/// Plans at one moment before the replay gives up.
const PLANS_AT_ONCE: u32 = 10_000;
/// How far back submissions are kept for forecasts: two of each day of the week.
const RECENT: Span = Span::days(14);
/// Jobs between two reports of progress.
const REPORT_EVERY: usize = 1_024;

/// What is foreseen for a run of a job; void when that run is over.
pub(super) type Due = Reverse<(Time, RunEvent, u32, u32)>;

pub(super) struct Play<'a> {
    /// Moved to where the core's calendar has begun; outcomes are moved back.
    pub(super) jobs: Vec<Job>,
    moved: Span,
    pub(super) site: &'a Site,
    pub(super) job_maker: JobMaker,
    pub(super) state: State,
    pub(super) runs: Vec<Run>,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) agenda: BinaryHeap<Due>,
    pub(super) faults: Faults,
    pub(super) market: Market,
    /// The first job that is not submitted yet.
    next: usize,
    /// When the core wants to be asked again.
    wake: Option<Time>,
    /// Jobs that were submitted and are not through.
    open: usize,
    through: usize,
    pub(super) counts: Counts,
    /// Whether a plan that only starts jobs is the last of its moment: where none can be stopped,
    /// nothing can follow from a start.
    starts_only: bool,
    asks: Option<ForecastRequests>,
    /// Jobs that were submitted a moment ago and want to know when they start.
    asking: Vec<u32>,
    forecasts: Vec<StartForecast>,
    /// Submissions of the last days, for forecasts.
    recent: VecDeque<Arrived>,
}

impl<'a> Play<'a> {
    pub(super) fn new(
        rules: &'a Rules,
        site: &'a Site,
        workload: &'a Workload,
    ) -> Result<Play<'a>, Error> {
        let first = workload.jobs.first().map_or(BEGIN, |job| job.submit);
        let moved = BEGIN - first;
        let move_one = |job: &Job| Job { submit: job.submit + moved, ..*job };
        let jobs: Vec<Job> = workload.jobs.iter().map(move_one).collect();
        let (snapshot, job_maker) = world::world(rules, site, workload, BEGIN);
        let shop_preemptible = job_maker.preemptible();
        let run = |job: &Job| Run { limit: world::limit(job), ..Run::default() };
        Ok(Play {
            moved,
            site,
            job_maker,
            state: State::load(&snapshot)?,
            runs: jobs.iter().map(run).collect(),
            outcomes: jobs.iter().enumerate().map(|(at, job)| peers::blank(at, job)).collect(),
            jobs,
            agenda: BinaryHeap::new(),
            faults: Faults::new(site, BEGIN),
            market: Market::new(site),
            next: 0,
            wake: None,
            open: 0,
            through: 0,
            counts: Counts::default(),
            starts_only: !shop_preemptible,
            asks: rules.asks,
            asking: Vec::new(),
            forecasts: Vec::new(),
            recent: VecDeque::new(),
        })
    }

    pub(super) fn play_out(mut self, progress: &mut dyn FnMut(usize)) -> Result<Replayed, Error> {
        let mut reported = 0;
        let mut last = BEGIN;
        while let Some(at) = self.next_time() {
            last = at;
            self.happen(at)?;
            self.decide(at)?;
            self.tell(at);
            if self.through >= reported + REPORT_EVERY {
                reported = self.through;
                progress(reported);
            }
        }
        self.market.close(last);
        let moved = self.moved;
        for outcome in &mut self.outcomes {
            outcome.submit = outcome.submit - moved;
            outcome.end = outcome.end.map(|end| end - moved);
            for segment in &mut outcome.segments {
                (segment.from, segment.to) = (segment.from - moved, segment.to - moved);
            }
        }
        let (outages, bought) = self.market.moved_by(moved);
        let (outcomes, counts, forecasts) = (self.outcomes, self.counts, self.forecasts);
        Ok(Replayed { outcomes, outages, bought, counts, forecasts })
    }

    fn next_time(&self) -> Option<Time> {
        let due = self.agenda.peek().map(|Reverse((at, ..))| *at);
        let submit = self.jobs.get(self.next).map(|job| job.submit);
        // Machines go on failing when all jobs are through, and nobody looks.
        let machines = (self.open > 0 || submit.is_some())
            .then(|| [self.market.next_at(), self.faults.next_at()])
            .into_iter()
            .flatten()
            .flatten();
        let outside = [due, submit].into_iter().flatten().chain(machines).min();
        // When nothing runs and nobody comes, waking the core for ever would change nothing.
        outside.map(|at| self.wake.map_or(at, |wake| wake.min(at)))
    }

    pub(super) fn append(&mut self, at: Time, event: Event) -> Result<(), Error> {
        let stamped = Stamped { seq: self.state.seq() + 1, at, event };
        let applied =
            self.state.apply(&stamped).map_err(|rejected| Error::Refused { at, rejected })?;
        self.counts.events += 1;
        for (job, end) in applied.ended {
            self.through += 1;
            self.open -= 1;
            let at = (end == End::Done).then_some(at);
            self.outcomes[number(job)].end = at;
        }
        Ok(())
    }

    fn happen(&mut self, at: Time) -> Result<(), Error> {
        let woken = self.wake.take_if(|wake| *wake <= at).is_some();
        let before = self.counts.events;
        while let Some(Reverse((due, what, job, epoch))) = self.agenda.peek().copied()
            && due <= at
        {
            self.agenda.pop();
            let run = &self.runs[job as usize];
            if run.epoch != epoch || run.since.is_none() {
                continue;
            }
            match what {
                RunEvent::Done => self.done(at, job)?,
                RunEvent::LimitReached => self.raise(at, job)?,
                RunEvent::Saved => self.saved(at, job)?,
            }
        }
        while let Some(coming) = self.market.next_by(at) {
            self.come(at, coming)?;
        }
        while let Some(fault) = self.faults.next_by(at) {
            self.fail(fault)?;
        }
        while let Some(job) = self.jobs.get(self.next).copied().filter(|job| job.submit <= at) {
            let place = self.next as u32;
            self.next += 1;
            if !self.job_maker.can_ever(&job) {
                continue;
            }
            self.open += 1;
            let asked = |asks: ForecastRequests| {
                place.is_multiple_of(asks.every.max(1)) && at >= BEGIN + asks.after
            };
            if self.asks.is_some_and(asked) {
                self.asking.push(place);
            }
            let spec = Box::new(self.job_maker.spec(place, &job));
            if self.asks.is_some() {
                self.recent.push_back(Arrived { at, spec: Arc::new((*spec).clone()) });
                while self.recent.front().is_some_and(|first| first.at < at - RECENT) {
                    self.recent.pop_front();
                }
            }
            self.append(at, Event::JobSubmitted { spec })?;
        }
        // Only the clock goes on. A tick would settle every account too, which nobody looks at.
        if woken && self.counts.events == before {
            self.append(at, Event::Decided { job: None, decisions: Vec::new() })?;
        }
        Ok(())
    }

    /// Tells those who ask when they will start. One set of runs serves all of a moment.
    fn tell(&mut self, at: Time) {
        let Some(asks) = self.asks.filter(|_| !self.asking.is_empty()) else { return };
        let asking = std::mem::take(&mut self.asking);
        let waits = |job: &&u32| self.runs[**job as usize].since.is_none();
        let jobs: BTreeSet<_> = asking.iter().filter(waits).map(|job| id(*job)).collect();
        let forecast = (!jobs.is_empty()).then(|| {
            let arrivals = self.recent.make_contiguous();
            let ForecastRequests { runs, seed, .. } = asks;
            forecast_with(&self.state, &Ask { runs, seed, arrivals, jobs: Some(jobs) })
        });
        for job in asking {
            let eta = forecast.as_ref().and_then(|forecast| forecast.jobs.get(&id(job)));
            let forecast = match eta {
                Some(eta) => {
                    let after = |time: Option<Time>| time.map(|time| time - at);
                    StartForecast { job, p50: after(eta.p50), p90: after(eta.p90) }
                }
                None => StartForecast { job, p50: Some(Span::ZERO), p90: Some(Span::ZERO) },
            };
            self.forecasts.push(forecast);
        }
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
            let mut starts: Vec<(LeaseId, u32, Vec<u32>)> = Vec::new();
            let mut stops = Vec::new();
            let mut orders = Vec::new();
            for Transaction { job, decisions } in transactions {
                for decision in &decisions {
                    match decision {
                        Decision::Start { lease, node, slices, .. } => {
                            let gpus = slices.iter().map(|slice| slice.gpu).collect();
                            starts.push((*lease, self.market.number(node), gpus));
                        }
                        Decision::Stop { lease, .. } => stops.push(*lease),
                        Decision::Claim { .. } | Decision::Return { .. } => {
                            orders.push(decision.clone());
                        }
                        Decision::Reserve { .. }
                        | Decision::Unreserve { .. }
                        | Decision::SetAside { .. } => {}
                    }
                }
                self.append(at, Event::Decided { job, decisions })?;
            }
            // What only starts jobs makes room for nobody.
            let last = self.starts_only && stops.is_empty() && orders.is_empty();
            for lease in stops {
                self.stop(at, lease)?;
            }
            for (lease, node, gpus) in starts {
                self.start(at, lease, node, gpus)?;
            }
            if last {
                return Ok(());
            }
            for order in orders {
                self.order(at, order)?;
            }
        }
        Err(Error::Endless { at })
    }

    fn come(&mut self, at: Time, coming: MarketEvent) -> Result<(), Error> {
        match coming {
            MarketEvent::Repaired { node, gpu } => self.repaired(at, node, gpu),
            MarketEvent::Booted(claim) => self.booted(at, &claim),
            MarketEvent::Notice(machine) => self.notice(at, machine),
            MarketEvent::Gone(machine) => self.gone(at, machine),
            MarketEvent::Price { offer, price } => self.priced(at, offer, price),
            MarketEvent::Weather { offer, there } => self.weather(at, offer, there),
        }
    }
}
