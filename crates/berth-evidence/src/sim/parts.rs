//! The parts that stand on commands and modules that exist for themselves.

use super::{figures, forecasts};
use crate::baselines;
use crate::report::{Row, Target};
use anyhow::{Context, Result, ensure};
use berth_sim::faults::{self, Size};
use berth_sim::peers::Policy;
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
         target the most it may be.\n\n\
         Why targets are missed. The core's mean wait lies between EASY's and SJF's (median over \
         the sets 0.75 of EASY's and 1.45 of SJF's), and so does its longest wait. That is its \
         order at work: a job rises with the time it has waited, and one that has waited for \
         `aging_max` holds a reservation, which SJF gives to nobody and EASY to everybody in \
         turn. Without both (`--set order=shortest --set reservations=0 --set aging_max=60d`) \
         the core does what SJF does: on itp cluster06 a mean of 42,331 s (SJF 40,376) and on \
         cluster02 of 15,210 s (SJF 15,284), and there a longest wait of 3.4 and 2.9 times \
         EASY's. So the mean of SJF and the longest wait of EASY are not to be had together by \
         moving along this line, and no value was chosen on these sets.\n\n\
         Where the mean wait is longer than a day (cluster02, 06 and 08, Muri) nearly every job \
         is past `aging_max`, age tells nobody apart any more, and reservations for the oldest \
         keep GPUs idle: the two to five points of idle time beyond EASY's on cluster06 and 02. \
         With `--set aging_max=60d` alone the mean on cluster06 falls from 73,690 to 47,171 s and \
         the P95 of the largest jobs from 613,178 to 358,460 s. An age that is measured against \
         what waits would do that by itself; it is not built.\n\n\
         Time sharing meets its mean on eight of eleven sets. On aaic 2018Q3 with 40 nodes hardly \
         anybody waits (13 s). On cluster08 and Muri 3 jobs are long and alike: few have less than \
         a quarter of the work of one that runs. The bound on pauses explains little: with \
         `pauses_per_day=48` cluster08 comes from 6.4 to 5.9 h, and 5.3 is asked for. Paused jobs wait again, so the longest wait grows.",
        queueing,
    ),
    (
        "packing",
        "Pods of openb that are placed until nothing fits, beside published figures of other \
         policies: GPUs allocated at a demand of 130 %.\n\n\
         One target is missed, on gpushare80 with ties by node name: 0.208 points below the \
         published figure, where 0.2 are allowed. What is missing is half a GPU of 6,212 in the \
         mean of three orders of arrival; with random ties the same policy gains four GPUs, so \
         which of two equal nodes comes first decides more than that. Nothing was changed for it.",
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
         in which every team could have used its quota.\n\n\
         The gap is one of gangs. With the same GPU time in jobs of one GPU it is a tenth of what \
         is allowed, so demand, order and quotas are right. A team whose next job does not fit \
         what is left of its quota waits, and what is left goes to others: a job of 16 GPUs is an \
         eighth of 16 nodes. Past use evens out only what is left over beyond the quotas, and here \
         the quotas are the whole pool.",
        figures::teams,
    ),
    (
        "forecasts",
        "What jobs were told at submission, on a month that was held back. In the runs of a \
         forecast jobs come as on one of the last 14 days, and end after times drawn from the \
         history of their like, at most after their limit.\n\n\
         That alone promises too much. Where limits are what users asked for (AAIC) about half of \
         those that had to wait start by their P90. Where a limit is the truth with a lognormal \
         error (ITP, Philly), half of the jobs outlive it and have it raised, which no run can \
         foresee, and hardly any does. So the P90 is multiplied by a factor that follows the \
         last 200 forecasts of jobs that had to wait: the one under which nine of ten of them would have \
         been right, by what was known when the job was submitted. Nothing of the month is used \
         before its time. A job that starts at once is right for certain, so the figure of all \
         jobs lies above that of those that had to wait.",
        forecasts::rows,
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
fn output(arguments: &[&str], folder: &Path) -> Result<String> {
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

/// The rows that another command of this program prints.
fn rows_of(arguments: &[&str], folder: &Path) -> Result<Vec<Row>> {
    let output = output(arguments, folder)?;
    let mut rows: Vec<Row> = serde_json::from_str(&output)
        .with_context(|| format!("reading the rows of {}", arguments.join(" ")))?;
    rows.iter_mut().for_each(|row| row.command = command(arguments));
    Ok(rows)
}

fn queueing(folder: &Path, seed: u64) -> Result<Vec<Row>> {
    rows_of(&["sim-queueing", "--rows", "--seed", &seed.to_string()], folder)
}

fn packing(folder: &Path, _seed: u64) -> Result<Vec<Row>> {
    rows_of(&["packing", "--rows", "--threads", "2", "--seeds", "42..44"], folder)
}

/// Seeds that are played.
const SEEDS: u64 = 10_000;

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
