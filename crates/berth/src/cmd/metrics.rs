//! `berth metrics`: what a job and its GPUs did over time, a line for each figure.

use super::when;
use crate::complete;
use crate::context::Context;
use crate::fail::Result;
use crate::show::{Cell, Look, Page, Table, Tone, words};
use crate::watch::{self, Watch};
use berth_api::wire::{
    At, FigureLine, FigureQuery, FigureSummary, GpuFigures, JobFigures, TaskFigures,
};
use clap::Args;
use std::fmt::Write;

/// Letters of a line.
const WIDTH: usize = 40;
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Figures that say nothing as a line.
const NOT_SHOWN: [&str; 4] = ["energy", "clock_reasons", "sm_clock_max", "gpus"];

#[derive(Args, Debug)]
pub struct Metrics {
    /// A job, by number or name
    #[arg(value_name = "JOB", add = complete::all_jobs())]
    job: String,
    /// From: a time, or a time ago such as 1h (the start of the job)
    #[arg(long, value_name = "WHEN", value_parser = when::past)]
    since: Option<At>,
    /// Up to (now, or the end of the job)
    #[arg(long, value_name = "WHEN", value_parser = when::past)]
    until: Option<At>,
    /// The time between points, such as 30s
    #[arg(long, value_name = "TIME")]
    step: Option<String>,
    /// Only these figures, separated by commas, such as cpu,memory
    #[arg(long, value_name = "NAMES")]
    figure: Option<String>,
    #[command(flatten)]
    watch: Watch,
}

pub async fn run(context: &Context, args: &Metrics) -> Result<()> {
    let client = context.client()?;
    let query = FigureQuery {
        from: args.since,
        to: args.until,
        step: args.step.clone(),
        figure: args.figure.clone(),
    };
    let fetch = async || Ok(page(client.job_figures(&args.job, &query).await?));
    watch::show(context, args.watch, "job", fetch).await
}

fn page(found: JobFigures) -> Page<JobFigures> {
    let names = |found: &JobFigures| vec![found.job.to_string()];
    Page::new(found, text, names).remarks(|found| found.notes.clone())
}

fn text(found: &JobFigures, look: &Look) -> String {
    let mut out = String::new();
    let tasks: Vec<&TaskFigures> = found.tasks.iter().filter(|task| has_something(task)).collect();
    for (at, task) in tasks.iter().enumerate() {
        out.push_str(if at > 0 { "\n" } else { "" });
        let until = task.to.map_or_else(|| "now".to_owned(), |to| look.at(to));
        let head = format!("task {} attempt {} on {}", task.task, task.attempt, task.node);
        let time = format!("{} to {until}", look.at(task.from));
        let _ = writeln!(out, "{}  {time}", look.paint(Tone::Strong, &head));
        out.push_str(&table(&task.figures, look));
        for gpu in &task.gpus {
            out.push_str(&of_gpu(gpu, look));
        }
    }
    if tasks.is_empty() {
        out.push_str("No figures.\n");
        return out;
    }
    let held = tasks.iter().any(|task| task.gpus.iter().any(|gpu| !gpu.figures.is_empty()));
    if held && let Some(summary) = summary(&found.summary) {
        let _ = writeln!(out, "all GPUs: {summary}");
    }
    for advice in &found.advice {
        let saves = words::money(advice.saves_micros);
        let _ = writeln!(out, "advice: {}, and save {saves}", advice.text);
    }
    out
}

fn has_something(task: &TaskFigures) -> bool {
    !task.figures.is_empty() || task.gpus.iter().any(|gpu| !gpu.figures.is_empty())
}

fn of_gpu(gpu: &GpuFigures, look: &Look) -> String {
    if gpu.figures.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    let model = gpu.model.as_deref().unwrap_or("GPU");
    let part = match gpu.milli {
        1_000 => String::new(),
        milli => format!(" ({} of it)", words::gpus(milli, false)),
    };
    let _ = writeln!(out, "gpu {} {model}{part}", gpu.gpu);
    out.push_str(&table(&gpu.figures, look));
    if let Some(summary) = summary(&gpu.summary) {
        let _ = writeln!(out, "{summary}");
    }
    out
}

fn table(lines: &[FigureLine], look: &Look) -> String {
    let mut lines =
        lines.iter().filter(|line| !NOT_SHOWN.contains(&line.figure.as_str())).peekable();
    if lines.peek().is_none() {
        return String::new();
    }
    let mut table = Table::new(&["FIGURE", ">NOW", ">MEAN", ">P95", ">MAX", "OVER TIME"]);
    for line in lines {
        let cell = |value: Option<i64>| Cell::from(value.map(|value| amount(value, &line.unit)));
        table.row(vec![
            line.figure.replace('_', " ").into(),
            cell(line.last),
            cell(line.mean),
            cell(line.p95),
            cell(line.max),
            spark(&line.values, &line.unit).into(),
        ]);
    }
    table.or(look, "")
}

/// What people read instead of thousandths and MiB.
fn amount(value: i64, unit: &str) -> String {
    let tenths = |value: i64| format!("{}.{}", value / 10, value % 10);
    match unit {
        "thousandths" => format!("{} %", tenths(value)),
        "MiB" => words::bytes(value << 20),
        "mW" => format!("{} W", value / 1_000),
        "mJ" => format!("{} J", value / 1_000),
        "MHz" => format!("{value} MHz"),
        "celsius" => format!("{value} °C"),
        "millicores" => format!("{}.{:02} cores", value / 1_000, value % 1_000 / 10),
        "KiB/s" => format!("{}/s", words::bytes(value << 10)),
        _ => value.to_string(),
    }
}

/// A letter for each part of the time, the taller the more. Shares are of the whole, other figures
/// of the largest value. A part of which nothing is known is empty.
/// A small chart of values.
pub fn spark_of(values: &[Option<i64>], unit: &str) -> String {
    spark(values, unit)
}

fn spark(values: &[Option<i64>], unit: &str) -> String {
    let width = values.len().min(WIDTH);
    if width == 0 {
        return String::new();
    }
    let part = |at: usize| {
        let (from, to) = (at * values.len() / width, (at + 1) * values.len() / width);
        let known: Vec<i64> = values[from..to].iter().flatten().copied().collect();
        (!known.is_empty()).then(|| known.iter().sum::<i64>() / known.len() as i64)
    };
    let parts: Vec<Option<i64>> = (0..width).map(part).collect();
    let largest = parts.iter().flatten().copied().max().unwrap_or(0);
    let most = if unit == "thousandths" { 1_000 } else { largest.max(1) };
    let letter = |value: &Option<i64>| match value {
        None => ' ',
        Some(value) => {
            let height = value.max(&0) * (BLOCKS.len() as i64 - 1) / most;
            BLOCKS[usize::try_from(height).unwrap_or(0).min(BLOCKS.len() - 1)]
        }
    };
    parts.iter().map(letter).collect()
}

fn summary(of: &FigureSummary) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(mfu) = of.mfu {
        parts.push(format!("MFU about {}", amount(mfu, "thousandths")));
    }
    if let Some(joules) = of.energy_joules {
        parts.push(words::energy(joules));
    }
    if of.idle_ms > 0 {
        parts.push(format!("idle {}", words::span(of.idle_ms)));
    }
    if of.idle_at_end_ms > 0 {
        parts.push(format!("of it the last {}", words::span(of.idle_at_end_ms)));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_api::wire::{FigureAdvice, Id};
    use berth_model::{JobId, Time};

    fn line(figure: &str, unit: &str, values: &[Option<i64>]) -> FigureLine {
        let known: Vec<i64> = values.iter().flatten().copied().collect();
        let max = known.iter().max().copied();
        FigureLine {
            figure: figure.into(),
            unit: unit.into(),
            mean: Some(known.iter().sum::<i64>() / known.len() as i64),
            p95: max,
            max,
            last: known.last().copied(),
            values: values.to_vec(),
            largest: Vec::new(),
        }
    }

    fn answer() -> JobFigures {
        let gpu = GpuFigures {
            node: "box".into(),
            gpu: 1,
            model: Some("H200-141GB".into()),
            uuid: None,
            milli: 500,
            times_ms: vec![0, 1, 2],
            figures: vec![
                line("sm_active", "thousandths", &[Some(0), Some(500), Some(1_000)]),
                line("energy", "mJ", &[Some(5), Some(6), Some(7)]),
            ],
            summary: FigureSummary {
                mfu: Some(412),
                energy_joules: Some(7_200_000),
                idle_ms: 300_000,
                idle_at_end_ms: 60_000,
            },
        };
        JobFigures {
            job: Id(JobId::new(7)),
            from: At(Time(0)),
            to: At(Time(9)),
            step_ms: 1_000,
            tasks: vec![TaskFigures {
                task: 0,
                attempt: 1,
                node: "box".into(),
                from: "2026-11-15T13:00:00Z".parse().unwrap(),
                to: None,
                times_ms: vec![0, 1, 2],
                figures: vec![line("cpu", "millicores", &[Some(1_980), None, Some(990)])],
                gpus: vec![gpu],
            }],
            summary: FigureSummary::default(),
            advice: vec![FigureAdvice {
                part: "a 1g.18gb slice".into(),
                share: 142,
                saves_micros: 432_000_000,
                sm_active_p95: 120,
                gpu_memory_p95: 9_000,
                text: "12 % of the GPU: a 1g.18gb slice would do".into(),
            }],
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_job_is_a_table_for_its_processes_and_one_for_each_gpu() {
        let shown = text(&answer(), &Look::fixed());
        let expect = "\
task 0 attempt 1 on box  14:00 to now
FIGURE         NOW        MEAN         P95         MAX  OVER TIME
cpu     0.99 cores  1.48 cores  1.98 cores  1.98 cores  █ ▄
gpu 1 H200-141GB (0.5 of it)
FIGURE         NOW    MEAN      P95      MAX  OVER TIME
sm active  100.0 %  50.0 %  100.0 %  100.0 %  ▁▄█
MFU about 41.2 %, 2.00 kWh, idle 5m, of it the last 1m
advice: 12 % of the GPU: a 1g.18gb slice would do, and save $432.00
";
        assert_eq!(shown, expect);
        let nothing = JobFigures { tasks: Vec::new(), ..answer() };
        assert_eq!(text(&nothing, &Look::fixed()), "No figures.\n");
    }

    #[test]
    fn a_long_time_is_as_wide_as_a_line() {
        let values: Vec<Option<i64>> = (0..500).map(Some).collect();
        let shown = spark(&values, "MiB");
        assert_eq!(shown.chars().count(), WIDTH);
        assert!(shown.starts_with('▁') && shown.ends_with('█'), "{shown}");
        assert_eq!(spark(&[Some(0), None], "MiB"), "▁ ");
        assert_eq!(spark(&[Some(100)], "thousandths"), "▁");
        assert_eq!(spark(&[], "MiB"), "");
    }

    #[test]
    fn amounts_read_as_people_say_them() {
        let shown = [
            amount(876, "thousandths"),
            amount(71_424, "MiB"),
            amount(650_400, "mW"),
            amount(1_980, "millicores"),
            amount(2_048, "KiB/s"),
            amount(12, "processes"),
        ];
        assert_eq!(shown, ["87.6 %", "69.7 GiB", "650 W", "1.98 cores", "2 MiB/s", "12"]);
    }
}
