//! The core beside strict fifo, EASY and shortest first on recorded traces, all with the same
//! estimates: what a user would have. One set of policy values for all of them, the default.

use crate::baselines::Set;
use crate::measure::{Clock, milliseconds};
use crate::report;
use anyhow::{Result, ensure};
use berth_model::Milli;
use berth_sim::estimate::Estimate;
use berth_sim::metrics::{Report, Setting};
use berth_sim::peers::{self, Policy};
use berth_sim::replay::{self, Counts, Preset};
use berth_sim::trace;
use berth_sim::workload::Workload;
use clap::Args;
use comfy_table::{Table, presets::NOTHING};
use serde::Serialize;
use std::path::PathBuf;

#[derive(Args)]
pub struct Queueing {
    /// The folder with the traces
    #[arg(long)]
    traces: PathBuf,
    /// Only sets whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// What errors of estimates are drawn from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Put jobs of the same second into an order by chance, drawn from this
    #[arg(long)]
    shuffle: Option<u64>,
    /// Leave out the run with time sharing
    #[arg(long)]
    no_sharing: bool,
    /// Print figures as JSON
    #[arg(long)]
    json: bool,
    /// Print rows as JSON: the figures that have a target, and what they cost
    #[arg(long, conflicts_with = "json")]
    rows: bool,
}

const SETS: [Set; 11] = [
    Set::Itp { cluster: "cluster08", nodes: 9 },
    Set::Itp { cluster: "cluster06", nodes: 12 },
    Set::Itp { cluster: "cluster02", nodes: 12 },
    Set::Itp { cluster: "cluster04", nodes: 68 },
    Set::Muri { trace: "muri_trace1" },
    Set::Muri { trace: "muri_trace3" },
    Set::PhillyOctober { nodes: 80 },
    Set::Aaic { quarter: "2018Q3", nodes: 36 },
    Set::Aaic { quarter: "2018Q3", nodes: 40 },
    Set::Aaic { quarter: "2018Q1", nodes: 36 },
    Set::Aaic { quarter: "2018Q1", nodes: 40 },
];

const PEERS: [Policy; 3] = [Policy::Fifo, Policy::Easy, Policy::Sjf];

/// A policy on a set.
#[derive(Debug, Serialize)]
struct Row {
    policy: &'static str,
    report: Report,
    ms: f64,
    counts: Option<Counts>,
}

impl Row {
    fn mean(&self) -> f64 {
        self.report.all.wait.mean
    }

    fn longest(&self) -> f64 {
        self.report.all.wait.max
    }

    fn large_p95(&self) -> f64 {
        self.report.largest().map_or(0.0, |(_, group)| group.wait.p95)
    }
}

/// A figure of ours with the most it may be.
#[derive(Debug, Serialize)]
struct Target {
    policy: &'static str,
    what: &'static str,
    value: f64,
    bound: f64,
    holds: bool,
}

#[derive(Debug, Serialize)]
struct Found {
    set: String,
    jobs: usize,
    estimates: Estimate,
    rows: Vec<Row>,
    targets: Vec<Target>,
}

pub fn command(args: &Queueing) -> Result<()> {
    let wanted = |set: &Set| args.only.as_ref().is_none_or(|only| set.name().contains(only));
    let sets: Vec<Set> = SETS.into_iter().filter(wanted).collect();
    ensure!(!sets.is_empty(), "no set has that in its name: {}", SETS.map(Set::name).join("; "));
    let mut all = Vec::new();
    for set in sets {
        let found = run(set, args)?;
        if !args.json && !args.rows {
            println!("{}\n", table(&found));
        }
        all.push(found);
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&all)?);
    }
    if args.rows {
        let rows: Vec<report::Row> = all.iter().flat_map(|found| published(found, args)).collect();
        println!("{}", serde_json::to_string_pretty(&rows)?);
    }
    Ok(())
}

fn run(set: Set, args: &Queueing) -> Result<Found> {
    let mut jobs = set.jobs(&args.traces)?;
    if let Some(seed) = args.shuffle {
        trace::shuffle_ties(&mut jobs, seed);
    }
    let estimates = match set {
        Set::Aaic { .. } => Estimate::Limit,
        Set::Itp { .. } | Set::PhillyOctober { .. } | Set::Muri { .. } => {
            Estimate::noisy(args.seed)
        }
    };
    let workload = Workload::new(&jobs, estimates)?;
    let setting = Setting { gpus: set.pool().gpus(), trim: Milli::ZERO, ..Setting::default() };
    let mut rows = Vec::new();
    for policy in PEERS {
        let clock = Clock::start(true);
        let outcomes = peers::run(policy, set.pool(), &workload.jobs, &[]);
        let ms = milliseconds(clock.elapsed());
        let report = Report::new(&outcomes, &setting);
        rows.push(Row { policy: policy.word(), report, ms, counts: None });
    }
    for preset in Preset::ALL {
        if preset == Preset::BerthSharing && args.no_sharing {
            continue;
        }
        let clock = Clock::start(true);
        let replayed = replay::run(&preset.rules(), set.pool(), &workload, &mut |_| ())?;
        let ms = milliseconds(clock.elapsed());
        let report = Report::new(&replayed.outcomes, &setting);
        rows.push(Row { policy: preset.word(), report, ms, counts: Some(replayed.counts) });
    }
    let targets = targets(&rows);
    Ok(Found { set: set.name(), jobs: workload.jobs.len(), estimates, rows, targets })
}

fn targets(rows: &[Row]) -> Vec<Target> {
    let of = |policy: Policy| rows.iter().find(|row| row.policy == policy.word());
    let (Some(fifo), Some(easy), Some(sjf)) = (of(Policy::Fifo), of(Policy::Easy), of(Policy::Sjf))
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for row in rows {
        let Some(preset) = Preset::from_word(row.policy) else { continue };
        let mut at_most = |what, value: f64, bound: f64| {
            let holds = value <= bound;
            found.push(Target { policy: row.policy, what, value, bound, holds });
        };
        match preset {
            Preset::Berth => {
                at_most("mean wait, that of sjf", row.mean(), sjf.mean());
                at_most("mean wait, that of easy", row.mean(), easy.mean());
            }
            Preset::BerthSharing => {
                at_most("mean wait, a fifth of fifo's", row.mean(), fifo.mean() / 5.0);
            }
        }
        at_most("P95 wait of the largest, that of easy", row.large_p95(), easy.large_p95());
        at_most("longest wait, that of easy", row.longest(), easy.longest());
        let idle = |row: &Row| 100.0 * (1.0 - row.report.usage.utilization);
        at_most("idle % in the span, that of easy", idle(row), idle(easy));
    }
    found
}

/// The figures of a set that have a target, then what is only told.
fn published(found: &Found, args: &Queueing) -> Vec<report::Row> {
    let mut rows = Vec::new();
    for Target { policy, what, value, bound, .. } in &found.targets {
        let unit = if what.contains('%') { "%" } else { "s" };
        let name = format!("{}: {policy}: {what}", found.set);
        rows.push(report::Row::new(name, *value, unit, report::Target::AtMost(*bound)));
    }
    for row in found.rows.iter().filter(|row| row.counts.is_some()) {
        let figures = [
            ("pauses", row.report.preemptions as f64, "pauses"),
            ("lost work", row.report.lost_gpu_hours, "GPU-h"),
            ("replay", row.ms / 1_000.0, "s of CPU"),
        ];
        rows.extend(figures.into_iter().map(|(what, value, unit)| {
            let name = format!("{}: {}: {what}", found.set, row.policy);
            report::Row::new(name, value, unit, report::Target::None)
        }));
        let name = format!("{}: {}: jobs that did not end", found.set, row.policy);
        let (left, none) = (row.report.unfinished as f64, report::Target::Exactly(0.0));
        rows.push(report::Row::new(name, left, "jobs", none));
    }
    for row in &mut rows {
        row.command = format!(
            "cargo run --release -p berth-evidence -- sim-queueing --traces … --only '{}'",
            found.set
        );
        row.seed = args.seed;
    }
    rows
}

fn table(found: &Found) -> String {
    let mut rows = Table::new();
    rows.load_style(NOTHING);
    rows.set_header([
        "policy",
        "mean",
        "less",
        "P50",
        "P95",
        "max",
        "large P95",
        "JCT",
        "slowdown",
        "util %",
        "pauses",
        "lost GPU-h",
        "CPU s",
        "plans",
    ]);
    let fifo = found.rows.first().map_or(0.0, Row::mean);
    for row in &found.rows {
        let (all, usage) = (&row.report.all, &row.report.usage);
        rows.add_row([
            row.policy.to_owned(),
            format!("{:.0}", all.wait.mean),
            format!("{:.1} %", 100.0 * (1.0 - row.mean() / fifo.max(1e-9))),
            format!("{:.0}", all.wait.p50),
            format!("{:.0}", all.wait.p95),
            format!("{:.0}", all.wait.max),
            format!("{:.0}", row.large_p95()),
            format!("{:.0}", all.completion.mean),
            format!("{:.1}", all.slowdown.mean),
            format!("{:.2}", 100.0 * usage.utilization),
            row.report.preemptions.to_string(),
            format!("{:.0}", row.report.lost_gpu_hours),
            format!("{:.2}", row.ms / 1_000.0),
            row.counts.map_or(String::new(), |counts| counts.plans.to_string()),
        ]);
    }
    let mut text = format!("{}, {} jobs; waits in seconds\n{}", found.set, found.jobs, rows);
    for Target { policy, what, value, bound, holds } in &found.targets {
        let word = if *holds { "holds " } else { "MISSED" };
        text += &format!("\n  {word} {policy}: {what}: {value:.1} of at most {bound:.1}");
    }
    text
}
