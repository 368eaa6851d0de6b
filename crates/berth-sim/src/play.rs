//! One plan, or plans until nothing changes.

use crate::driver::{Driver, Settings};
use crate::engine::{self, LoadError};
use crate::record::Recorder;
use crate::report::{
    ChangeReport, ForecastReport, Labels, PositionReport, Report, ReportInput, WhyReport, report,
    told_reasons,
};
use crate::world::{Error, Loaded, Position};
use berth_model::{JobId, JobSnapshot, JobSpec, Name, Reason, Snapshot, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Rounds of time passing before `settle` stops looking.
const MOST_TICKS: u32 = 1_000;

/// Waiting jobs whose reasons are each worked out on their own.
const EACH_EXPLAINED: usize = 500;

/// How `settle` goes on.
#[derive(Debug, Clone, Default)]
pub struct Settle {
    /// Time that passes between the rounds; none where left out.
    pub tick: Option<Span>,
    /// The most plans that decide something.
    pub rounds: Option<u32>,
    /// Asks more about one job.
    pub why: Option<JobId>,
}

/// What is wrong with a part of a snapshot, with its line.
pub(crate) fn refused(loaded: &Loaded, error: &LoadError) -> Error {
    let at = loaded.lines.find(&error.path).unwrap_or(Position { line: 1, column: 1 });
    Error { at, message: format!("{}: {}", error.path, error.rejected) }
}

pub(crate) fn driver(loaded: &Loaded, settings: Settings) -> Result<Driver<Recorder>, Error> {
    Driver::new(&loaded.snapshot, &loaded.scripts, settings, Recorder::default())
        .map_err(|error| refused(loaded, &error))
}

/// One plan, with nothing carried out. `why` asks more about one job.
pub fn once(loaded: &Loaded, why: Option<JobId>) -> Result<Report, Error> {
    let mut driver = driver(loaded, Settings::default())?;
    driver.plan_only();
    Ok(tell(loaded, &mut driver, why))
}

/// Plans and carries out at once, until nothing changes.
pub fn settle(loaded: &Loaded, options: &Settle) -> Result<Report, Error> {
    let settings = Settings { script: Default::default(), at_once: true, rounds: options.rounds };
    let mut driver = driver(loaded, settings)?;
    let start = driver.now();
    driver.run_until(start);
    if let Some(tick) = options.tick.filter(|tick| *tick > Span::ZERO) {
        for _ in 0..MOST_TICKS {
            let spent = options.rounds.is_some_and(|most| driver.rounds() >= most);
            if spent || !has_more_to_come(&driver) {
                break;
            }
            driver.run_until(driver.now() + tick);
        }
    }
    Ok(tell(loaded, &mut driver, options.why))
}

/// Whether time can still change something: machines have something to do, or somebody waits and
/// the core wants to look again.
fn has_more_to_come(driver: &Driver<Recorder>) -> bool {
    driver.has_agenda()
        || (!driver.is_idle() && waiting(&driver.state().snapshot()).next().is_some())
}

/// The jobs that hold nothing, in the order of the world.
fn waiting(snapshot: &Snapshot) -> impl Iterator<Item = &JobSnapshot> {
    snapshot.jobs.iter().filter(|job| job.leases.is_empty())
}

fn tell(loaded: &Loaded, driver: &mut Driver<Recorder>, why: Option<JobId>) -> Report {
    let after = driver.state().snapshot();
    let reasons = explain(driver, &after);
    let (rounds, now) = (driver.rounds(), driver.now());
    let mut summary = report(&ReportInput {
        before: &loaded.snapshot,
        after: &after,
        recorder: &driver.observer,
        rounds,
        now,
        waiting: reasons,
    });
    summary.why = why.map(|job| answer(driver, &after, job));
    summary
}

/// The reasons of every job that waits. Each is worked out by trying the job, so in a long line
/// those that ask for the same are told the same.
fn explain(driver: &mut Driver<Recorder>, snapshot: &Snapshot) -> Vec<(JobId, Vec<Reason>)> {
    let served: BTreeSet<JobId> = snapshot
        .promises
        .iter()
        .map(|promise| promise.job)
        .chain(snapshot.claims.iter().filter_map(|claim| claim.for_job))
        .collect();
    let mut known: BTreeMap<String, Vec<Reason>> = BTreeMap::new();
    let mut all = Vec::new();
    for (index, job) in waiting(snapshot).enumerate() {
        let id = job.id();
        if index < EACH_EXPLAINED || served.contains(&id) {
            all.push((id, engine::reasons(driver.state_mut(), id)));
            continue;
        }
        let alike = JobSpec {
            id: JobId::new(0),
            name: Name::default(),
            submitted: Time(0),
            ..job.spec.clone()
        };
        let reasons = known
            .entry(format!("{alike:?}"))
            .or_insert_with(|| engine::reasons(driver.state_mut(), id));
        all.push((id, reasons.clone()));
    }
    all
}

/// What one job waits for, when it will start, and what would start it now.
fn answer(driver: &mut Driver<Recorder>, snapshot: &Snapshot, asked: JobId) -> WhyReport {
    // Of an array, the element that waits first.
    let element = || waiting(snapshot).map(JobSnapshot::id).find(|id| id.array() == asked);
    let there = snapshot.jobs.iter().any(|job| job.id() == asked);
    let job = if there { asked } else { element().unwrap_or(asked) };
    let reasons = told_reasons(&engine::reasons(driver.state_mut(), job));
    let state = driver.state();
    let runs = snapshot.policy.forecast_runs;
    let forecast = engine::forecast(state, runs, job.number);
    let moment = |time: Time| time.to_string();
    WhyReport {
        job: Labels::of([snapshot]).get(job),
        reasons,
        position: state.position(job).map(|(ahead, waiting)| PositionReport { ahead, waiting }),
        forecast: forecast.jobs.get(&job).map(|eta| ForecastReport {
            p50: eta.p50.map(moment),
            p90: eta.p90.map(moment),
            runs,
            started: eta.runs_started,
            horizon: snapshot.policy.forecast_horizon.to_string(),
        }),
        would_start: engine::what_would_start(state, job)
            .iter()
            .map(|change| {
                let (at, stops) = match change.starts {
                    engine::Starts::Now => (moment(state.now()), 0),
                    engine::Starts::By { at, stops } => (moment(at), stops),
                };
                ChangeReport { text: change.to_string(), at, stops }
            })
            .collect(),
    }
}
