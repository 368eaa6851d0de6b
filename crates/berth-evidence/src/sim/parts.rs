//! The parts that stand on commands and modules that exist for themselves.

use super::figures;
use crate::baselines;
use crate::report::{Row, Target};
use anyhow::{Context, Result, ensure};
use berth_sim::faults::{self, Size};
use berth_sim::peers::Policy;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

type Part = (&'static str, &'static str, fn(&Path, u64) -> Result<Vec<Row>>);

pub const PARTS: &[Part] = &[
    (
        "baselines",
        "Known schedulers on known traces beside what their authors published (Muri, SIGCOMM'22), \
         a reference run of another simulator on the same files (ITP, Philly), or what the real \
         scheduler did (AAIC). The value is ours over theirs. Nothing of the core is in these: the \
         peers are written on their own.",
        baselines_part,
    ),
    (
        "queueing",
        "The core beside strict fifo, EASY and shortest first on recorded traces, all with the \
         same estimates; each figure is held against a peer's. A value is what was measured, its \
         target the most it may be.",
        queueing,
    ),
    (
        "packing",
        "Pods of openb that are placed until nothing fits, beside published figures of other \
         policies: GPUs allocated at a demand of 130 %.",
        packing,
    ),
    (
        "spot",
        "What a job of 48 h with a deadline costs on spot machines that come and go as recorded, \
         in percent of on demand, beside Uniform Progress (NSDI'24) and a bound that knows the \
         future.",
        crate::spot::rows,
    ),
    (
        "million",
        "A million made-up jobs over a year under the core, on 360 nodes of 8 GPUs: making them, \
         running them and working out the report.",
        figures::million,
    ),
    (
        "teams",
        "Teams as queues, each with a quota in proportion to what it asks for in all, under the \
         core. A gap is a team's share of what was used less its share of the quotas, over weeks \
         in which every team could have used its quota.",
        figures::teams,
    ),
    (
        "forecasts",
        "What jobs were told at submission, on a month that was held back. The corrected P90 is \
         multiplied by a factor learned from the months before it, for jobs that do not start at \
         once. Few of those that were asked had to wait, so the last figures are rough.",
        figures::forecasts,
    ),
    (
        "faults",
        "Made-up worlds in which machines, messages and the scheduler fail, each played twice and \
         compared, from seed 1 on.",
        fault_seeds,
    ),
];

/// What the figures of a part are about.
pub fn about(part: &str) -> String {
    let known = PARTS.iter().find(|(name, ..)| *name == part);
    known.map_or_else(String::new, |(_, text, _)| (*text).to_owned())
}

fn baselines_part(folder: &Path, _seed: u64) -> Result<Vec<Row>> {
    let found = baselines::all(folder)?;
    let mut rows: Vec<Row> = Vec::new();
    for figure in found.figures.iter().filter(|figure| figure.reference > 0.0) {
        let says = |policy: Policy| figure.name.contains(&format!(", {},", policy.word()));
        let exact = [Policy::Fifo, Policy::FifoSkip, Policy::SjfStrict].into_iter().any(says);
        let target = match figure.source {
            _ if exact => Target::Within(0.999, 1.001),
            baselines::PUBLISHED => Target::Within(0.92, 1.02),
            baselines::REFERENCE if says(Policy::EasyCounting) => Target::Within(0.97, 1.03),
            _ if figure.name.starts_with("aaic 2018Q1, 40") && says(Policy::Easy) => {
                Target::Within(0.5, 2.0)
            }
            _ => Target::None,
        };
        rows.push(Row::new(figure.name.clone(), figure.ratio(), "ours / theirs", target));
    }
    let timing = found.timings.iter().find(|timing| timing.name == "made from a recipe");
    if let Some(timing) = timing {
        let seconds = timing.time.as_secs_f64();
        rows.push(Row::new("a million jobs made from a recipe", seconds, "s", Target::None));
    }
    Ok(rows)
}

/// What another command of this program prints.
fn said(arguments: &[&str], folder: &Path) -> Result<String> {
    let output = Command::new(std::env::current_exe()?)
        .args(arguments)
        .arg("--traces")
        .arg(folder)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {}", arguments.join(" ")))?;
    ensure!(output.status.success(), "{} failed", arguments.join(" "));
    Ok(String::from_utf8(output.stdout)?)
}

fn command(arguments: &[&str]) -> String {
    format!("cargo run --release -p berth-evidence -- {} --traces FOLDER", arguments.join(" "))
}

/// Read from the command's own JSON, whatever sets and targets it has.
fn queueing(folder: &Path, seed: u64) -> Result<Vec<Row>> {
    let seed = seed.to_string();
    let arguments = ["sim-queueing", "--json", "--seed", &seed];
    let all: Value = serde_json::from_str(&said(&arguments, folder)?)?;
    let mut rows = Vec::new();
    for found in all.as_array().into_iter().flatten() {
        let set = found["set"].as_str().unwrap_or("?");
        for target in found["targets"].as_array().into_iter().flatten() {
            let word = |key: &str| target[key].as_str().unwrap_or("?");
            let name = format!("{set}, {}: {}", word("policy"), word("what"));
            let (value, bound) = (target["value"].as_f64(), target["bound"].as_f64());
            let (Some(value), Some(bound)) = (value, bound) else { continue };
            let unit = if word("what").contains('%') { "%" } else { "s" };
            rows.push(Row::new(name, value, unit, Target::AtMost(bound)));
        }
        let jobs = found["jobs"].as_f64().unwrap_or(0.0);
        for row in found["rows"].as_array().into_iter().flatten() {
            if row["policy"] == "berth"
                && let Some(ms) = row["ms"].as_f64()
            {
                let name = format!("{set}, berth: replay speed");
                rows.push(Row::new(
                    name,
                    jobs / (ms / 1_000.0).max(1e-9),
                    "jobs / CPU-s",
                    Target::None,
                ));
            }
        }
    }
    rows.iter_mut().for_each(|row| row.command = command(&arguments[..]));
    Ok(rows)
}

/// Read from the command's table: one row a contender, its first two numbers being what it
/// allocates at a demand of 100 % and of 130 %.
fn packing(folder: &Path, _seed: u64) -> Result<Vec<Row>> {
    let arguments = ["packing", "--variants", "default", "--seeds", "42..44"];
    let text = said(&arguments, folder)?;
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| !line.contains("allocated")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |word: &&str| word.trim_end_matches('%').parse::<f64>().ok();
        let Some(place) = words.iter().position(|word| number(word).is_some()) else { continue };
        let Some(value) = words.get(place + 1).and_then(number) else { continue };
        if place > 0 && (0.0..=100.0).contains(&value) {
            let name = format!("openb default, {}: allocated", words[..place].join(" "));
            rows.push(Row::new(name, value, "%", Target::None));
        }
    }
    ensure!(!rows.is_empty(), "the table of the packing command is not understood");
    rows.iter_mut().for_each(|row| row.command = command(&arguments));
    Ok(rows)
}

/// Seeds that are played.
const SEEDS: u64 = 200;

fn fault_seeds(_folder: &Path, _seed: u64) -> Result<Vec<Row>> {
    let verdicts: Vec<_> = (1..=SEEDS).map(|seed| faults::run(seed, Size::Small)).collect();
    let failed = verdicts.iter().filter(|verdict| !verdict.passed()).count();
    let sum = |of: fn(&faults::Verdict) -> usize| verdicts.iter().map(of).sum::<usize>() as f64;
    let mut rows = vec![
        Row::new("seeds played", SEEDS as f64, "seeds", Target::None),
        Row::new("seeds that failed", failed as f64, "seeds", Target::Exactly(0.0)),
        Row::new("faults", sum(|verdict| verdict.faults), "faults", Target::None),
        Row::new(
            "crashes of the scheduler",
            sum(|verdict| verdict.crashes),
            "crashes",
            Target::None,
        ),
        Row::new("events", sum(|verdict| verdict.events), "events", Target::None),
    ];
    rows.iter_mut().for_each(|row| row.command = format!("berth sim faults --seeds {SEEDS}"));
    Ok(rows)
}
