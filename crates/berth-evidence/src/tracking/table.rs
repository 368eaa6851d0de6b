//! What the page says of the figures.

use super::load::{Action, Sample};
use super::reads::SEARCHES;
use super::servers::Who;
use super::{CHART, CONNECTIONS, Figures, HISTORY, WRITE_LONG};
use crate::measure::{milliseconds, percentile};
use crate::report::{Row, Section, Target};
use anyhow::Result;
use std::fmt::Write as _;
use std::time::Duration;

pub const METHOD: &str = "Each server runs alone, one after another, on the same machine and disk, \
    and is asked the same by the same client: HTTP/1.1 over connections that are kept, with the \
    fields that MLflow's own client sends. Each figure is taken for three seconds after half a \
    second that does not count, or for three requests where they take longer. P50 and P99 are of the \
    time from the first byte of a request to the last of its answer. CPU is what all processes of the \
    server take for a request, as the kernel counts it in steps of 10 ms. The client shares the cores \
    with the server.\n\n\
    MLflow is 3.17.2 from PyPI with uvicorn, with its defaults (four workers and a runner of jobs), \
    and with `--workers 1` and `MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false`, which takes least memory. \
    A target compares Berth with the faster of both. FastTrackML is 0.6.0, which has no registry, no \
    logged models and none of MLflow 3. All three keep their data in SQLite; Berth is also shown on \
    PostgreSQL with `fsync` on, whose own processes are not counted. Telemetry is off. \
    Neither MLflow nor FastTrackML asks who the client is; Berth checks the token and the rights of \
    each request. Berth and MLflow answer a write after the disk has it. FastTrackML's SQLite does not \
    wait for the disk, so a crash of the machine may take what it has answered.";

/// Times to write a page and wait for the disk, sorted.
pub fn disk() -> Result<Vec<Duration>> {
    let folder = tempfile::TempDir::with_prefix("berth-disk-")?;
    super::sync_times(folder.path())
}

pub fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

const COMMAND: &str = "make evidence-tracking";

fn told(name: String, value: f64, unit: &str) -> Row {
    let mut row = Row::new(name, value, unit, Target::None);
    row.told = true;
    row
}

/// All that was measured of one server, as rows.
pub fn of(figures: &Figures) -> Vec<Row> {
    let who = figures.who.name();
    let mut rows = of_process(figures);
    for (name, sample) in &figures.samples {
        rows.extend(of_sample(who, name, sample));
    }
    rows
}

fn of_process(figures: &Figures) -> Vec<Row> {
    let who = figures.who.name();
    let Figures { start, start_cpu, idle, loaded, .. } = figures;
    [
        ("start to the first answer", start.as_secs_f64(), "s"),
        ("CPU of the start", start_cpu.as_secs_f64(), "s"),
        ("processes, idle", idle.processes as f64, "processes"),
        ("memory idle, RSS", idle.resident_mib, "MiB"),
        ("memory idle, PSS", idle.proportional_mib, "MiB"),
        ("memory after all requests, RSS", loaded.resident_mib, "MiB"),
        ("memory after all requests, PSS", loaded.proportional_mib, "MiB"),
    ]
    .into_iter()
    .map(|(name, value, unit)| told(format!("{who}: {name}"), value, unit))
    .collect()
}

fn of_sample(who: &str, name: &str, sample: &Sample) -> Vec<Row> {
    vec![
        told(format!("{who}: {name}"), sample.per_second, "1/s"),
        told(format!("{who}: {name}, P50"), sample.p50_ms, "ms"),
        told(format!("{who}: {name}, P99"), sample.p99_ms, "ms"),
        told(format!("{who}: {name}, CPU of the server"), sample.cpu_ms, "ms"),
    ]
}

/// A number with as many digits as say something.
fn short(value: f64) -> String {
    match value {
        value if value >= 100.0 => thousands(value.round() as u64),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A table with a column for each server.
fn matrix(all: &[Figures], lines: &[String], cell: impl Fn(&Figures, &str) -> String) -> String {
    let mut out = String::from("|  |");
    for figures in all {
        let _ = write!(out, " {} |", figures.who.name());
    }
    out.push_str("\n| --- |");
    out.push_str(&" ---: |".repeat(all.len()));
    for line in lines {
        let _ = write!(out, "\n| {line} |");
        for figures in all {
            let _ = write!(out, " {} |", cell(figures, line));
        }
    }
    out
}

fn samples(all: &[Figures], lines: &[String]) -> String {
    matrix(all, lines, |figures, line| match figures.sample(line) {
        Some(Sample { per_second, p50_ms, p99_ms, cpu_ms, .. }) => format!(
            "{}/s; {} / {} ms; {} ms",
            short(*per_second),
            short(*p50_ms),
            short(*p99_ms),
            short(*cpu_ms)
        ),
        None => "–".to_owned(),
    })
}

fn by(all: &[Figures], who: Who) -> Option<&Figures> {
    all.iter().find(|figures| figures.who == who)
}

/// How many times as fast as MLflow, where both were measured.
fn beside_mlflow(all: &[Figures], line: &str, target: Target) -> Option<Row> {
    let own = by(all, Who::Berth)?.sample(line)?.per_second;
    let others = [Who::MlflowSmall, Who::MlflowDefault].into_iter();
    let others = others.filter_map(|who| Some(by(all, who)?.sample(line)?.per_second));
    let best = others.reduce(f64::max)?;
    Some(Row::new(format!("{line}: Berth beside MLflow"), own / best, "×", target))
}

/// Throughput and P50 beside FastTrackML, where both were measured.
fn beside_fasttrackml(all: &[Figures], line: &str) -> Vec<Row> {
    let pair = by(all, Who::Berth).zip(by(all, Who::FastTrackMl));
    let pair = pair.and_then(|(own, other)| own.sample(line).zip(other.sample(line)));
    let Some((own, other)) = pair else { return Vec::new() };
    let row = |what: &str, times: f64| {
        let name = format!("{line}: Berth beside FastTrackML, {what}");
        Row::new(name, times, "×", Target::AtLeast(1.0))
    };
    vec![
        row("throughput", own.per_second / other.per_second),
        row("speed at P50", other.p50_ms / own.p50_ms),
    ]
}

fn section(
    title: &'static str,
    text: String,
    mut rows: Vec<Row>,
    all: &[Figures],
    lines: &[String],
) -> Section {
    for figures in all {
        let of = lines.iter().filter_map(|line| Some((line, figures.sample(line)?)));
        rows.extend(of.flat_map(|(line, sample)| of_sample(figures.who.name(), line, sample)));
    }
    finish(Section { title: title.into(), text, rows })
}

fn finish(mut section: Section) -> Section {
    for row in &mut section.rows {
        row.command = COMMAND.to_owned();
    }
    section
}

/// A sentence that says why, where a target of these rows is missed.
fn why(rows: &[Row], of: &str, reason: &str) -> String {
    let missed = rows.iter().any(|row| row.holds == Some(false) && row.name.contains(of));
    if missed { format!(" {reason}") } else { String::new() }
}

const NO_DISK: &str = "Where FastTrackML is ahead, that is the disk: Berth answers when the write is on \
    it, which alone takes what the first rows below say, and FastTrackML does not wait.";
const LARGE: &str = "Where Berth takes more than a tenth, that is a server which also schedules: most \
    of it is pages of the program. It keeps few pages of its database, up to 2 MiB for writing and half \
    a MiB for each of four readers; the others are in the system's cache.";

const CELLS: &str = "Each cell is: requests a second; P50 / P99; CPU of the server for a request.";

pub fn sections(all: &[Figures], runs: usize, load: f64, disk: Vec<Duration>) -> Vec<Section> {
    vec![process(all, load), small(all, &disk), batches(all), searches(all, runs), long(all)]
}

fn process(all: &[Figures], load: f64) -> Section {
    let name = "machine: load average before anything was started";
    let mut rows = vec![Row::new(name, load, "processes", Target::None)];
    for who in [Who::MlflowDefault, Who::MlflowSmall] {
        let Some((own, other)) = by(all, Who::Berth).zip(by(all, who)) else { continue };
        for (what, own, other) in
            [("idle", own.idle, other.idle), ("after all requests", own.loaded, other.loaded)]
        {
            let name = format!("memory {what}, PSS: Berth beside {}", who.name());
            let share = own.proportional_mib / other.proportional_mib;
            rows.push(Row::new(name, share, "of it", Target::AtMost(0.1)));
        }
    }
    let lines: Vec<String> = [
        "start to the first answer",
        "CPU of the start",
        "processes, idle",
        "memory idle, RSS / PSS",
        "memory after all requests, RSS / PSS",
    ]
    .map(str::to_owned)
    .to_vec();
    let table = matrix(all, &lines, |figures, line| {
        let Figures { start, start_cpu, idle, loaded, .. } = figures;
        let memory = |memory: &super::Memory| {
            format!("{} / {} MiB", short(memory.resident_mib), short(memory.proportional_mib))
        };
        match line {
            "start to the first answer" => format!("{} s", short(start.as_secs_f64())),
            "CPU of the start" => format!("{} s", short(start_cpu.as_secs_f64())),
            "processes, idle" => idle.processes.to_string(),
            "memory idle, RSS / PSS" => memory(idle),
            _ => memory(loaded),
        }
    });
    rows.extend(all.iter().flat_map(of_process));
    let text = format!(
        "A start is on a database that exists, from the start of the program until it answers \
         `experiments/get`. Memory is of the server with all processes that it has started, five \
         seconds after that answer and at the end. PSS counts a page once that several processes \
         share.{}\n\n{table}",
        why(&rows, "memory", LARGE)
    );
    finish(Section { title: "Start and memory".into(), text, rows })
}

fn lines_of(actions: impl Fn(Action) -> bool) -> Vec<String> {
    let of = Action::ALL.into_iter().filter(|action| actions(*action));
    of.flat_map(|action| CONNECTIONS.map(|connections| action.name(connections))).collect()
}

fn small(all: &[Figures], disk: &[Duration]) -> Section {
    let is_small = |action: Action| action.is_small_write() || action == Action::GetRun;
    let lines = lines_of(is_small);
    let writes = lines_of(Action::is_small_write);
    let mut rows = vec![
        ("P50", milliseconds(percentile(disk, 500))),
        ("P99", milliseconds(percentile(disk, 990))),
    ]
    .into_iter()
    .map(|(word, value)| {
        Row::new(format!("disk: 4 KiB made durable, {word}"), value, "ms", Target::None)
    })
    .collect::<Vec<_>>();
    for line in &lines {
        let target = if writes.contains(line) { Target::AtLeast(20.0) } else { Target::None };
        rows.extend(beside_mlflow(all, line, target));
        rows.extend(beside_fasttrackml(all, line));
    }
    let text = format!(
        "`runs/create`, `runs/get`, `runs/log-metric`, and `runs/log-batch` with one metric. {CELLS} \
         A small write of Berth waits for the disk once, alone where there is one connection; what \
         arrives meanwhile on others goes to the disk together.{}\n\n{}",
        why(&rows, "FastTrackML", NO_DISK),
        samples(all, &lines)
    );
    section("Small requests", text, rows, all, &lines)
}

fn batches(all: &[Figures]) -> Section {
    let lines = lines_of(|action| matches!(action, Action::LogBatch(2..)));
    let mut rows = Vec::new();
    for line in &lines {
        rows.extend(beside_mlflow(all, line, Target::None));
        rows.extend(beside_fasttrackml(all, line));
    }
    let text = format!(
        "`runs/log-batch` with 100 and with 1,000 metrics: ten keys with steps one after another. \
         {CELLS}\n\n{}",
        samples(all, &lines)
    );
    section("Batches", text, rows, all, &lines)
}

fn searches(all: &[Figures], runs: usize) -> Section {
    let lines: Vec<String> = SEARCHES.iter().map(|search| search.name.to_owned()).collect();
    let mut rows = Vec::new();
    for line in &lines {
        rows.extend(beside_mlflow(all, line, Target::AtLeast(20.0)));
        rows.extend(beside_fasttrackml(all, line));
    }
    let text = format!(
        "`runs/search` over {} runs of one experiment, each with three metrics, three params and \
         three or four tags. Berth and FastTrackML were sent the runs by requests. MLflow would take \
         ten minutes for that, so `tools/mlflow/seed.py` wrote the same runs straight into the SQLite \
         file of its server. {CELLS}\n\n{}",
        thousands(runs as u64),
        samples(all, &lines)
    );
    section("Searching", text, rows, all, &lines)
}

fn long(all: &[Figures]) -> Section {
    let lines: Vec<String> = [WRITE_LONG, HISTORY, CHART].map(str::to_owned).to_vec();
    let mut rows = Vec::new();
    for line in &lines {
        rows.extend(beside_mlflow(all, line, Target::None));
        rows.extend(beside_fasttrackml(all, line));
    }
    let text = format!(
        "One metric of one run. The first line is of requests with 1,000 points each. The second \
         is of the whole history, in pages of 25,000 points; FastTrackML gives it in one. The third is \
         `get-history-bulk-interval`, which FastTrackML does not have. {CELLS}\n\n{}",
        samples(all, &lines)
    );
    section("A long metric", text, rows, all, &lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracking::Memory;

    fn figures(who: Who, per_second: f64, p50_ms: f64) -> Figures {
        let sample = Sample { per_second, p50_ms, p99_ms: 9.0, cpu_ms: 0.5, requests: 3 };
        Figures {
            who,
            start: Duration::from_secs(1),
            start_cpu: Duration::from_secs(1),
            idle: Memory::default(),
            loaded: Memory::default(),
            samples: vec![("a line".to_owned(), sample)],
        }
    }

    #[test]
    fn berth_is_held_against_the_faster_configuration_of_mlflow() {
        let all = [
            figures(Who::Berth, 1_000.0, 1.0),
            figures(Who::MlflowSmall, 40.0, 25.0),
            figures(Who::MlflowDefault, 60.0, 60.0),
        ];
        let row = beside_mlflow(&all, "a line", Target::AtLeast(20.0)).unwrap();
        assert_eq!((row.holds, row.value.round() as u32), (Some(false), 17));
        assert!(beside_mlflow(&all, "another", Target::None).is_none());
        assert!(beside_fasttrackml(&all, "a line").is_empty());
    }

    #[test]
    fn a_slower_answer_at_p50_is_a_miss_even_with_more_throughput() {
        let all = [figures(Who::Berth, 1_000.0, 1.0), figures(Who::FastTrackMl, 900.0, 0.8)];
        let holds: Vec<_> =
            beside_fasttrackml(&all, "a line").iter().map(|row| row.holds).collect();
        assert_eq!(holds, [Some(true), Some(false)]);
    }

    #[test]
    fn a_server_that_was_not_asked_has_a_dash() {
        let all = [figures(Who::Berth, 12_345.0, 1.0), figures(Who::FastTrackMl, 900.0, 0.8)];
        let text = samples(&all, &["a line".to_owned(), "another".to_owned()]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "|  | Berth | FastTrackML |");
        assert_eq!(lines[2].split('|').nth(2), Some(" 12,345/s; 1.00 / 9.00 ms; 0.50 ms "));
        assert_eq!(lines[3], "| another | – | – |");
    }
}
