//! Whether the simulator can be trusted: known schedulers on known traces, beside the figures that
//! others have published and the waits that a real scheduler gave.
//!
//! The rules behind a figure matter more than its code. With the same rules (consolidated best fit,
//! ends before submissions, order of the file inside a second) strict fifo, fifo that skips and
//! shortest first agree with the references to the second. Where a rule is not known, both readings
//! are shown; `docs/evidence/sim.md` has them all.

use crate::measure::Clock;
use crate::traces;
use anyhow::{Context, Result};
use berth_model::{Milli, Span, Time};
use berth_sim::estimate::Estimate;
use berth_sim::fleet::Pool;
use berth_sim::metrics::{Report, Setting};
use berth_sim::peers::{self, Policy};
use berth_sim::synthetic::{self, Recipe};
use berth_sim::trace::{self, Job, Select};
use berth_sim::workload::Workload;
use comfy_table::{Table, presets::NOTHING};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// One figure beside the one it is held against.
#[derive(Debug, Serialize)]
pub struct Figure {
    pub name: String,
    pub ours: f64,
    pub reference: f64,
    pub source: &'static str,
}

impl Figure {
    pub fn ratio(&self) -> f64 {
        self.ours / self.reference
    }
}

/// How long a policy took for a trace.
#[derive(Debug)]
pub struct Timing {
    pub name: String,
    jobs: usize,
    pub time: Duration,
}

#[derive(Debug, Default)]
pub struct Baselines {
    pub figures: Vec<Figure>,
    pub timings: Vec<Timing>,
}

pub const PUBLISHED: &str = "Muri, SIGCOMM'22";
pub const REFERENCE: &str = "trace notes";
const REAL: &str = "the real scheduler";

/// Mean and P95 wait by column of [`COLUMNS`].
pub const REFERENCES: [(Set, [(f64, f64); 5]); 4] = [
    (
        Set::Itp { cluster: "cluster04", nodes: 68 },
        [
            (58_439.0, 110_694.0),
            (16_956.0, 60_909.0),
            (33_786.0, 83_025.0),
            (6_810.0, 32_640.0),
            (2_403.0, 855.0),
        ],
    ),
    (
        Set::Itp { cluster: "cluster02", nodes: 12 },
        [
            (574_955.0, 1_242_524.0),
            (114_530.0, 627_278.0),
            (148_637.0, 640_972.0),
            (21_209.0, 98_776.0),
            (9_618.0, 30_661.0),
        ],
    ),
    (
        Set::Itp { cluster: "cluster06", nodes: 12 },
        [
            (359_688.0, 811_607.0),
            (115_580.0, 315_531.0),
            (167_707.0, 675_583.0),
            (29_576.0, 150_242.0),
            (16_361.0, 62_921.0),
        ],
    ),
    (
        Set::PhillyOctober { nodes: 80 },
        [
            (14_318.0, 98_876.0),
            (2_652.0, 13_061.0),
            (2_759.0, 13_215.0),
            (1_901.0, 8_743.0),
            (515.0, 0.0),
        ],
    ),
];

/// The policies that a reference may mean: strict fifo, fifo that skips, EASY with exact limits,
/// shortest first and shortest remaining first knowing the truth. The first reading is the nearest.
const COLUMNS: [&[Policy]; 5] = [
    &[Policy::Fifo],
    &[Policy::FifoSkip],
    &[Policy::EasyCounting, Policy::Easy],
    &[Policy::SjfStrict, Policy::Sjf],
    &[Policy::Srtf, Policy::SrtfStrict],
];

/// A part of a trace, and the pool it is run on.
#[derive(Debug, Clone, Copy)]
pub enum Set {
    Itp { cluster: &'static str, nodes: u32 },
    PhillyOctober { nodes: u32 },
    Muri { trace: &'static str },
    Aaic { quarter: &'static str, nodes: u32 },
}

impl Set {
    pub fn name(self) -> String {
        match self {
            Set::Itp { cluster, nodes } => format!("itp {cluster}, {nodes} nodes"),
            Set::PhillyOctober { nodes } => format!("philly october, {nodes} nodes"),
            Set::Muri { trace } => format!("{trace}, 8 nodes"),
            Set::Aaic { quarter, nodes } => format!("aaic {quarter}, {nodes} nodes"),
        }
    }

    pub fn pool(self) -> Pool {
        let nodes = match self {
            Set::Itp { nodes, .. } | Set::PhillyOctober { nodes } | Set::Aaic { nodes, .. } => {
                nodes
            }
            Set::Muri { .. } => 8,
        };
        Pool { nodes, gpus_per_node: 8 }
    }

    pub fn jobs(self, folder: &Path) -> Result<Vec<Job>> {
        let (file, select) = match self {
            Set::Itp { cluster, .. } => ("itp2021_jobs".to_owned(), Select::team(cluster)),
            Set::PhillyOctober { .. } => {
                // The trace begins on 4 September, so October on its 28th day.
                let october = Time(0) + Span::days(27);
                let until = october + Span::days(31);
                let select =
                    Select { from: Some(october), until: Some(until), ..Select::default() };
                ("philly_jobs".to_owned(), select)
            }
            Set::Muri { trace } => ("paper_workloads".to_owned(), Select::set(trace)),
            Set::Aaic { quarter, .. } => (format!("aaic_jobs_{quarter}"), Select::default()),
        };
        let text = traces::read(folder, &file)?;
        trace::jobs(&file, &text, &select).with_context(|| format!("reading {}", self.name()))
    }
}

pub fn all(folder: &Path) -> Result<Baselines> {
    let mut found = Baselines::default();
    found.muri(folder)?;
    found.references(folder)?;
    found.real(folder)?;
    found.synthetic();
    Ok(found)
}

impl Baselines {
    fn run(
        &mut self,
        set: Set,
        jobs: &[Job],
        policy: Policy,
        estimate: Estimate,
    ) -> Result<Report> {
        let workload = Workload::new(jobs, estimate)?;
        let clock = Clock::start(false);
        let outcomes = peers::run(policy, set.pool(), &workload.jobs, &[]);
        self.timings.push(Timing {
            name: format!("{}, {}", set.name(), policy.word()),
            jobs: workload.jobs.len(),
            time: clock.elapsed(),
        });
        let setting = Setting {
            gpus: set.pool().gpus(),
            teams: workload.teams,
            trim: Milli::ZERO,
            ..Setting::default()
        };
        Ok(Report::new(&outcomes, &setting))
    }

    fn add(&mut self, name: String, ours: f64, reference: f64, source: &'static str) {
        self.figures.push(Figure { name, ours, reference, source });
    }

    fn muri(&mut self, folder: &Path) -> Result<()> {
        let published =
            [("muri_trace1", 1_370_603.0, 980_141.0), ("muri_trace3", 193_082.0, 185_022.0)];
        for (trace, srtf, srsf) in published {
            let set = Set::Muri { trace };
            let jobs = set.jobs(folder)?;
            for (policy, mean) in [(Policy::Srtf, srtf), (Policy::Srsf, srsf)] {
                let report = self.run(set, &jobs, policy, Estimate::Exact)?;
                let name = format!("{}, {}, mean JCT", set.name(), policy.word());
                self.add(name, report.all.completion.mean, mean, PUBLISHED);
            }
        }
        Ok(())
    }

    fn references(&mut self, folder: &Path) -> Result<()> {
        for (set, waits) in REFERENCES {
            let jobs = set.jobs(folder)?;
            for (readings, (mean, p95)) in COLUMNS.into_iter().zip(waits) {
                for policy in readings {
                    let wait = self.run(set, &jobs, *policy, Estimate::Exact)?.all.wait;
                    let name = |what| format!("{}, {}, {what} wait", set.name(), policy.word());
                    self.add(name("mean"), wait.mean, mean, REFERENCE);
                    self.add(name("P95"), wait.p95, p95, REFERENCE);
                }
            }
        }
        Ok(())
    }

    /// Against what the real scheduler gave, with the limits its users asked for.
    fn real(&mut self, folder: &Path) -> Result<()> {
        for quarter in ["2018Q1", "2018Q3"] {
            for nodes in [36, 40] {
                let set = Set::Aaic { quarter, nodes };
                let jobs = set.jobs(folder)?;
                let (mean, p95) = real_waits(&jobs);
                for policy in [Policy::Easy, Policy::EasyCounting] {
                    let wait = self.run(set, &jobs, policy, Estimate::Limit)?.all.wait;
                    let name = |what| format!("{}, {}, {what} wait", set.name(), policy.word());
                    self.add(name("mean"), wait.mean, mean, REAL);
                    self.add(name("P95"), wait.p95, p95, REAL);
                }
            }
        }
        // Timed only: reading the largest trace, and the other peers on it.
        let set = Set::Aaic { quarter: "2018Q1", nodes: 36 };
        let clock = Clock::start(false);
        let jobs = set.jobs(folder)?;
        let time = clock.elapsed();
        self.timings.push(Timing { name: "aaic 2018Q1, read".into(), jobs: jobs.len(), time });
        let timed = |policy: &Policy| !matches!(policy, Policy::Easy | Policy::EasyCounting);
        for policy in Policy::ALL.into_iter().filter(timed) {
            self.run(set, &jobs, policy, Estimate::Limit)?;
        }
        Ok(())
    }

    /// How long it takes to make a large workload. Nothing is compared.
    fn synthetic(&mut self) {
        let clock = Clock::start(false);
        let recipe = Recipe { jobs: 1_000_000, days: 90, ..Recipe::default() };
        let jobs = synthetic::jobs(&recipe).len();
        self.timings.push(Timing {
            name: "made from a recipe".into(),
            jobs,
            time: clock.elapsed(),
        });
    }
}

fn real_waits(jobs: &[Job]) -> (f64, f64) {
    let mut waits: Vec<i64> = jobs.iter().filter_map(|job| job.wait).map(|wait| wait.0).collect();
    waits.sort_unstable();
    let sum: i128 = waits.iter().map(|wait| i128::from(*wait)).sum();
    let p95 = waits[(waits.len() * 95).div_ceil(100) - 1];
    (sum as f64 / (waits.len() as f64 * 1_000.0), p95 as f64 / 1_000.0)
}

pub fn figures(found: &Baselines) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(["figure", "ours", "reference", "ratio", "source"]);
    for figure in &found.figures {
        let ratio =
            if figure.reference > 0.0 { format!("{:.3}", figure.ratio()) } else { String::new() };
        let ours = format!("{:.0}", figure.ours);
        let reference = format!("{:.0}", figure.reference);
        table.add_row([&figure.name, &ours, &reference, &ratio, figure.source]);
    }
    table.to_string()
}

pub fn timings(found: &Baselines) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(["run", "jobs", "ms"]);
    for timing in &found.timings {
        let time = format!("{:.0}", crate::measure::milliseconds(timing.time));
        table.add_row([&timing.name, &timing.jobs.to_string(), &time]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs where the traces are: `BERTH_TRACES=folder cargo test -p berth-evidence`.
    #[test]
    fn known_schedulers_on_known_traces_give_the_known_figures() {
        let Some(folder) = std::env::var_os("BERTH_TRACES") else { return };
        let found = all(Path::new(&folder)).unwrap();
        for figure in found.figures.iter().filter(|figure| figure.reference > 0.0) {
            let says = |policy: Policy| figure.name.contains(&format!(", {},", policy.word()));
            let bounds =
                if [Policy::Fifo, Policy::FifoSkip, Policy::SjfStrict].into_iter().any(says) {
                    0.999..1.001
                } else if figure.source == REFERENCE && says(Policy::EasyCounting) {
                    0.97..1.03
                } else if figure.source == PUBLISHED {
                    0.92..1.02
                } else if figure.name.starts_with("aaic 2018Q1, 40") && says(Policy::Easy) {
                    0.5..2.0
                } else {
                    continue;
                };
            assert!(bounds.contains(&figure.ratio()), "{figure:?} is {}", figure.ratio());
        }
    }
}
