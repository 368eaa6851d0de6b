//! `berth sim faults`: seeds to verdicts, and a failing one made short.

use crate::show::ReportFormat;
use anyhow::Result;
use berth_sim::faults::{self, Case, Honest, Size, Verdict};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use std::process::ExitCode;

#[derive(Args)]
pub struct Options {
    /// How many seeds to run
    #[arg(long, value_name = "N", default_value_t = 200)]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    from: u64,
    /// Run only this seed and print its log
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
    /// The size of the worlds
    #[arg(long, value_enum, default_value_t = Scale::Small)]
    size: Scale,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scale {
    Small,
    Medium,
}

impl From<Scale> for Size {
    fn from(scale: Scale) -> Size {
        match scale {
            Scale::Small => Size::Small,
            Scale::Medium => Size::Medium,
        }
    }
}

pub fn run(options: &Options, output: ReportFormat) -> Result<ExitCode> {
    let size = Size::from(options.size);
    let seeds = match options.seed {
        Some(seed) => seed..seed.saturating_add(1),
        None => options.from..options.from.saturating_add(options.seeds),
    };
    let all = seeds.end - seeds.start;
    let mut verdicts = Vec::new();
    let mut failed = 0;
    let progress = progress(all);
    for seed in seeds {
        let mut verdict = match options.seed {
            Some(_) => faults::run_with_log(seed, size),
            None => faults::run(seed, size),
        };
        failed += u64::from(!verdict.passed());
        // The first failure is made short; the others only have their command.
        if failed == 1
            && let Some(broken) = &verdict.broken
        {
            let case = Case::new(seed, size);
            verdict = faults::shrink(&case, &mut || Honest, broken.class).1;
        } else if options.seed.is_none() {
            verdict.log.clear();
        }
        verdicts.push(verdict);
        progress.set_message(failed.to_string());
        progress.inc(1);
    }
    progress.abandon();
    match output {
        ReportFormat::Json => println!("{}", serde_json::to_string_pretty(&summary(&verdicts))?),
        ReportFormat::Table => print_table(&verdicts),
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A line on standard error, where that is a terminal.
fn progress(seeds: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{pos} of {len} seeds, {msg} failed")
        .expect("the template is fixed and valid");
    ProgressBar::new(seeds).with_style(style).with_message("0")
}

fn total(verdicts: &[Verdict], of: impl Fn(&Verdict) -> usize) -> usize {
    verdicts.iter().map(of).sum()
}

fn summary(verdicts: &[Verdict]) -> serde_json::Value {
    let failures: Vec<serde_json::Value> = verdicts
        .iter()
        .filter(|verdict| !verdict.passed())
        .map(|verdict| serde_json::json!({ "command": verdict.command(), "verdict": verdict }))
        .collect();
    serde_json::json!({
        "seeds": verdicts.len(),
        "passed": failures.is_empty(),
        "events": total(verdicts, |v| v.events),
        "starts": total(verdicts, |v| v.starts),
        "faults": total(verdicts, |v| v.faults),
        "crashes": total(verdicts, |v| v.crashes),
        "ended": total(verdicts, |v| v.ended),
        "hashes": verdicts.iter().map(|v| format!("{:016x}", v.hash)).collect::<Vec<_>>(),
        "failures": failures,
    })
}

fn print_table(verdicts: &[Verdict]) {
    for verdict in verdicts {
        if let Some(broken) = &verdict.broken {
            println!(
                "FAIL  seed {}: {:?} at {}: {}",
                verdict.seed, broken.class, broken.at, broken.text
            );
            println!("      replay: {}", verdict.command());
        }
        verdict.log.iter().for_each(|line| println!("      {line}"));
    }
    let failed = verdicts.iter().filter(|verdict| !verdict.passed()).count();
    println!(
        "{} seeds, each played twice: {failed} failed; {} events, {} starts, {} jobs ended, {} faults, {} crashes",
        verdicts.len(),
        total(verdicts, |v| v.events),
        total(verdicts, |v| v.starts),
        total(verdicts, |v| v.ended),
        total(verdicts, |v| v.faults),
        total(verdicts, |v| v.crashes),
    );
}
