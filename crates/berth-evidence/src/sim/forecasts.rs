//! What jobs were told at submission, beside when they started.

use crate::report::{Row, Target};
use crate::traces;
use anyhow::Result;
use berth_model::{Span, Time};
use berth_sim::calibration::{Accuracy, Calibration};
use berth_sim::estimate::Estimate;
use berth_sim::fleet::Fleet;
use berth_sim::replay::{self, ForecastRequests, Preset};
use berth_sim::trace::{self, Select};
use berth_sim::workload::Workload;
use std::path::Path;

/// A trace of which the last month is held back.
struct Set {
    name: &'static str,
    file: &'static str,
    team: Option<&'static str>,
    nodes: u32,
    /// Users said how long their jobs may run; elsewhere that is made up.
    limits: bool,
    /// When the month that is held back begins, from the first submission on.
    held_back: Span,
    /// Every so many-th job asks.
    every: u32,
}

const SETS: [Set; 3] = [
    Set {
        name: "aaic 2018Q1, 36 nodes, March",
        file: "aaic_jobs_2018Q1",
        team: None,
        nodes: 36,
        limits: true,
        held_back: Span::days(59),
        every: 25,
    },
    Set {
        name: "itp cluster04, 68 nodes, second month",
        file: "itp2021_jobs",
        team: Some("cluster04"),
        nodes: 68,
        limits: false,
        held_back: Span::days(30),
        every: 8,
    },
    Set {
        name: "philly, 80 nodes, last 30 days",
        file: "philly_jobs",
        team: None,
        nodes: 80,
        limits: false,
        held_back: Span::days(27),
        every: 50,
    },
];

/// What comes before that is only learned from as far as this.
const LEARNED: Span = Span::days(7);
const RUNS: u32 = 20;

pub fn rows(folder: &Path, seed: u64) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut accuracy = Vec::new();
    for set in &SETS {
        let calibration = run(set, folder, seed)?;
        rows.extend(accuracy_rows(set.name, &calibration.held_back, Target::None));
        rows.push(Row::new(
            format!("{}: factor of the correction, median", set.name),
            calibration.factor,
            "",
            Target::None,
        ));
        accuracy.push(calibration.held_back);
    }
    let all = Accuracy::together(&accuracy);
    rows.extend(accuracy_rows("all of them", &all, Target::Within(85.0, 95.0)));
    Ok(rows)
}

fn run(set: &Set, folder: &Path, seed: u64) -> Result<Calibration> {
    let text = traces::read(folder, set.file)?;
    let select = set.team.map_or_else(Select::default, Select::team);
    let jobs = trace::jobs(set.file, &text, &select)?;
    let estimate = if set.limits { Estimate::Limit } else { Estimate::noisy(seed) };
    let workload = Workload::new(&jobs, estimate)?;
    let asks =
        ForecastRequests { every: set.every, runs: RUNS, seed, after: set.held_back - LEARNED };
    let rules = Preset::Berth.rules().with_forecasts(asks);
    let fleet = Fleet::like(set.nodes, 8, "GPU");
    let replayed = replay::run(&rules, fleet, &workload, &mut |_| ())?;
    let first = workload.jobs.first().map_or(Time(0), |job| job.submit);
    Ok(Calibration::new(&replayed.forecasts, &replayed.outcomes, first + set.held_back))
}

fn accuracy_rows(name: &str, accuracy: &Accuracy, aim: Target) -> Vec<Row> {
    let row = |what: &str, value: f64, unit: &str, target| {
        Row::new(format!("{name}: {what}"), value, unit, target)
    };
    vec![
        row("jobs that asked", accuracy.jobs as f64, "jobs", Target::None),
        row("of them had to wait", accuracy.waited as f64, "jobs", Target::None),
        row("by their P90 as the runs say", 100.0 * accuracy.by_p90, "%", Target::None),
        row("that had to wait, by it", 100.0 * accuracy.waited_by_p90, "%", Target::None),
        row("by their P90, corrected", 100.0 * accuracy.by_corrected, "%", aim),
        row("that had to wait, by it, corrected", 100.0 * accuracy.waited_by_corrected, "%", aim),
    ]
}
