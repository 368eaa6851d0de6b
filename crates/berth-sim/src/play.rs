//! One plan, or plans until nothing changes.

use crate::driver::{Driver, Settings};
use crate::engine::{self, LoadError};
use crate::record::Recorder;
use crate::report::{Labels, Material, Report, WhyReport, report, told_reasons};
use crate::world::{Error, Loaded, Position};
use berth_model::{JobId, Reason, Span};

/// Rounds of time passing before `settle` stops looking.
const MOST_TICKS: u32 = 1_000;

/// How `settle` goes on.
#[derive(Debug, Clone, Default)]
pub struct Settle {
    /// Time that passes between the rounds; none where left out.
    pub tick: Option<Span>,
    /// The most plans that decide something.
    pub rounds: Option<u32>,
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

/// One plan, with nothing carried out.
pub fn once(loaded: &Loaded) -> Result<Report, Error> {
    let mut driver = driver(loaded, Settings::default())?;
    driver.plan_only();
    Ok(tell(loaded, &mut driver))
}

/// Why a job waits after the first plan, when it will start, and what would start it now.
pub fn why(loaded: &Loaded, job: JobId) -> Result<WhyReport, Error> {
    let mut driver = driver(loaded, Settings::default())?;
    driver.plan_only();
    let reasons = told_reasons(&engine::reasons(driver.state_mut(), job));
    let labels = Labels::of([&loaded.snapshot]);
    let notes = engine::outlook(driver.state_mut(), job);
    Ok(WhyReport { job: labels.get(job), reasons, notes })
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
            if spent || !has_more_to_come(&mut driver) {
                break;
            }
            driver.run_until(driver.now() + tick);
        }
    }
    Ok(tell(loaded, &mut driver))
}

/// Whether time can still change something: machines have something to do, or somebody waits and
/// the core wants to look again.
fn has_more_to_come(driver: &mut Driver<Recorder>) -> bool {
    driver.has_agenda() || (!driver.is_idle() && !waiting(driver).is_empty())
}

/// The jobs that hold nothing, in the order of the world, with their reasons.
fn waiting(driver: &mut Driver<Recorder>) -> Vec<JobId> {
    let snapshot = driver.state().snapshot();
    snapshot
        .jobs
        .iter()
        .filter(|job| job.leases.is_empty())
        .map(berth_model::JobSnapshot::id)
        .collect()
}

fn tell(loaded: &Loaded, driver: &mut Driver<Recorder>) -> Report {
    let after = driver.state().snapshot();
    let jobs = waiting(driver);
    let reasons: Vec<(JobId, Vec<Reason>)> =
        jobs.into_iter().map(|job| (job, engine::reasons(driver.state_mut(), job))).collect();
    let (rounds, now) = (driver.rounds(), driver.now());
    report(&Material {
        before: &loaded.snapshot,
        after: &after,
        recorder: &driver.observer,
        rounds,
        now,
        waiting: reasons,
    })
}
