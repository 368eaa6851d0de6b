//! `berth sim trace`: a recorded workload under several policies, side by side.

use crate::sim::Output;
use crate::tables;
use anyhow::{Context, Result, anyhow, bail, ensure};
use berth_model::{Milli, Span, Time};
use berth_sim::estimate::Estimate;
use berth_sim::metrics::{Report, Setting};
use berth_sim::outcome::{Outcome, SizeClass};
use berth_sim::peers::{self, Pool};
use berth_sim::replay::{self, Preset};
use berth_sim::trace::{self, Select};
use berth_sim::workload::Workload;
use clap::{Args, ValueEnum};
use comfy_table::CellAlignment;
use flate2::read::GzDecoder;
use std::fmt::Write as _;
use std::io::{IsTerminal, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

/// The pool for the bundled trace, on which its jobs wait now and then.
const SAMPLE_POOL: Cluster = Cluster { pool: Pool { nodes: 3, gpus_per_node: 8 } };
const SAMPLE_NAME: &str = "the bundled trace";

#[derive(Args)]
pub struct Trace {
    /// Jobs as CSV, also gzipped; without it, a small bundled trace
    #[arg(long, value_name = "FILE")]
    jobs: Option<PathBuf>,
    /// Nodes as CSV, also gzipped; all that have GPUs must have as many
    #[arg(long, value_name = "FILE", conflicts_with = "cluster")]
    nodes: Option<PathBuf>,
    /// Like nodes instead: NODESxGPUS or NODESxGPUSxMODEL, such as 68x8xA100
    #[arg(long, value_name = "NxG")]
    cluster: Option<Cluster>,
    /// Of a file with several workloads, which
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// Only jobs of this team
    #[arg(long, value_name = "NAME")]
    team: Option<String>,
    /// Only jobs submitted so long after the beginning of the trace, such as 27d
    #[arg(long, value_name = "SPAN")]
    from: Option<Span>,
    /// Only jobs submitted before then
    #[arg(long, value_name = "SPAN")]
    until: Option<Span>,
    /// What to compare, such as fifo,easy,sjf,berth
    #[arg(
        long = "policy",
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "fifo,easy,sjf,berth,berth-sharing"
    )]
    policies: Vec<Policy>,
    /// How long users say their jobs run: the truth, the limit in the trace, or the truth with an
    /// error
    #[arg(long, value_enum, default_value_t = Estimates::Noisy)]
    estimates: Estimates,
    /// What errors of estimates are drawn from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Each team is a queue with a quota in proportion to what it asks for in all
    #[arg(long)]
    teams_as_queues: bool,
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Estimates {
    Exact,
    Limit,
    Noisy,
}

#[derive(Debug, Clone, Copy)]
struct Cluster {
    pool: Pool,
}

impl FromStr for Cluster {
    type Err = String;

    fn from_str(text: &str) -> Result<Cluster, String> {
        let mut parts = text.splitn(3, 'x');
        let mut number = || parts.next()?.parse::<u32>().ok().filter(|number| *number > 0);
        match (number(), number()) {
            (Some(nodes), Some(gpus_per_node)) => {
                Ok(Cluster { pool: Pool { nodes, gpus_per_node } })
            }
            _ => Err("expected NODESxGPUS or NODESxGPUSxMODEL, such as 68x8xA100".to_owned()),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Policy {
    Peer(peers::Policy),
    Core(Preset),
}

impl Policy {
    fn word(self) -> &'static str {
        match self {
            Policy::Peer(policy) => policy.word(),
            Policy::Core(preset) => preset.word(),
        }
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(word: &str) -> Result<Policy, String> {
        let peer = peers::Policy::from_word(word).map(Policy::Peer);
        peer.or_else(|| Preset::from_word(word).map(Policy::Core)).ok_or_else(|| {
            let peers = peers::Policy::ALL.iter().map(|policy| policy.word());
            let all: Vec<&str> = Preset::ALL.iter().map(|own| own.word()).chain(peers).collect();
            format!("there is {}", all.join(", "))
        })
    }
}

/// What one policy made of the workload.
struct Row {
    policy: Policy,
    report: Report,
}

pub fn run(asked: &Trace) -> Result<ExitCode> {
    let workload = workload(asked)?;
    ensure!(!workload.jobs.is_empty(), "no job of the trace that needs a GPU is left");
    let pool = pool(asked)?;
    let quotas = if asked.teams_as_queues { workload.quotas_by_demand() } else { Vec::new() };
    let setting = Setting {
        gpus: pool.gpus(),
        teams: workload.teams.clone(),
        quotas: quotas.clone(),
        trim: Milli::ZERO,
    };
    let mut rows = Vec::new();
    for policy in &asked.policies {
        let outcomes = outcomes(*policy, pool, &workload, &quotas)?;
        rows.push(Row { policy: *policy, report: Report::new(&outcomes, &setting) });
    }
    // All of it at once: a run that is interrupted leaves no half report.
    let text = match asked.output {
        Output::Table => table(&workload, pool, &rows),
        Output::Json => json(asked, &workload, pool, &rows)?,
    };
    print!("{text}");
    Ok(ExitCode::SUCCESS)
}

fn outcomes(
    policy: Policy,
    pool: Pool,
    workload: &Workload,
    quotas: &[u64],
) -> Result<Vec<Outcome>> {
    let mut line = Line::new(policy.word(), workload.jobs.len());
    line.told(0);
    match policy {
        Policy::Peer(policy) => Ok(peers::run(policy, pool, &workload.jobs, quotas)),
        Policy::Core(preset) => {
            let rules = preset.rules().with_quotas(quotas.to_vec());
            let replayed = replay::run(&rules, pool, workload, &mut |through| line.told(through));
            Ok(replayed.with_context(|| format!("running {}", preset.word()))?.outcomes)
        }
    }
}

/// How far a run is, on a terminal only.
struct Line {
    policy: &'static str,
    jobs: usize,
    shown: bool,
}

impl Line {
    fn new(policy: &'static str, jobs: usize) -> Line {
        Line { policy, jobs, shown: std::io::stderr().is_terminal() }
    }

    fn told(&mut self, through: usize) {
        if self.shown {
            eprint!("\r\x1b[K{}: {through} of {} jobs", self.policy, self.jobs);
            let _ = std::io::stderr().flush();
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}

fn workload(asked: &Trace) -> Result<Workload> {
    let select = Select {
        set: asked.set.clone(),
        team: asked.team.clone(),
        from: asked.from.map(|from| Time(0) + from),
        until: asked.until.map(|until| Time(0) + until),
    };
    let (name, text) = match &asked.jobs {
        Some(path) => (path.display().to_string(), read(path)?),
        None => (SAMPLE_NAME.to_owned(), trace::BUNDLED.to_owned()),
    };
    let jobs = trace::jobs(&name, &text, &select)?;
    let estimate = match asked.estimates {
        Estimates::Exact => Estimate::Exact,
        Estimates::Limit => Estimate::Limit,
        Estimates::Noisy => Estimate::noisy(asked.seed),
    };
    Workload::new(&jobs, estimate).map_err(|untold| anyhow!("{name}, {untold}"))
}

fn pool(asked: &Trace) -> Result<Pool> {
    if let Some(path) = &asked.nodes {
        let name = path.display().to_string();
        let nodes = trace::nodes(&name, &read(path)?)?;
        let gpus = nodes.iter().map(|node| node.gpus_revised.unwrap_or(node.gpus));
        let mut sizes: Vec<u32> = gpus.filter(|gpus| *gpus > 0).collect();
        let nodes = sizes.len() as u32;
        sizes.sort_unstable();
        sizes.dedup();
        return match sizes.as_slice() {
            [gpus_per_node] => Ok(Pool { nodes, gpus_per_node: *gpus_per_node }),
            [] => bail!("{name}: no node has a GPU"),
            [least, .., most] => bail!(
                "{name}: nodes have between {least} and {most} GPUs, and the peers know only like \
                 nodes: give --cluster NODESxGPUS instead"
            ),
        };
    }
    match (asked.cluster, &asked.jobs) {
        (Some(cluster), _) => Ok(cluster.pool),
        (None, None) => Ok(SAMPLE_POOL.pool),
        (None, Some(_)) => bail!("what the jobs ran on is not known: give --cluster or --nodes"),
    }
}

/// Text of a file, which may be gzipped whatever its name.
fn read(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let mut text = String::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let read = GzDecoder::new(bytes.as_slice()).read_to_string(&mut text);
        read.with_context(|| format!("unpacking {}", path.display()))?;
        return Ok(text);
    }
    String::from_utf8(bytes).with_context(|| format!("{} is not text", path.display()))
}

fn table(workload: &Workload, pool: Pool, rows: &[Row]) -> String {
    let mut out = String::new();
    let Pool { nodes, gpus_per_node } = pool;
    let _ = writeln!(out, "{} jobs on {nodes} nodes of {gpus_per_node} GPUs", workload.jobs.len());
    if workload.left_out > 0 {
        let _ = writeln!(out, "{} jobs that need no GPU are left out", workload.left_out);
    }
    let lines = rows.iter().map(|Row { policy, report }| {
        let (all, usage) = (&report.all, &report.usage);
        vec![
            policy.word().to_owned(),
            all.jobs.to_string(),
            time(all.wait.mean),
            time(all.wait.p50),
            time(all.wait.p95),
            time(all.wait.max),
            time(all.completion.mean),
            format!("{:.1}", all.slowdown.mean),
            format!("{:.1} %", 100.0 * usage.utilization),
            report.preemptions.to_string(),
            format!("{:.1}", report.lost_gpu_hours),
        ]
    });
    let header = [
        "policy",
        "jobs",
        "mean wait",
        "P50",
        "P95",
        "longest",
        "mean JCT",
        "slowdown",
        "used",
        "stops",
        "lost GPU-h",
    ];
    let _ = writeln!(out, "\n{}", figures(&header, lines.collect()));
    let sizes: Vec<SizeClass> = SizeClass::ALL
        .into_iter()
        .filter(|size| rows.iter().any(|row| row.report.by_size.iter().any(|(of, _)| of == size)))
        .collect();
    let header: Vec<String> = sizes.iter().map(|size| format!("{} GPUs", size.word())).collect();
    let header: Vec<&str> =
        std::iter::once("P95 wait").chain(header.iter().map(String::as_str)).collect();
    let lines = rows.iter().map(|Row { policy, report }| {
        let of = |size: &SizeClass| report.by_size.iter().find(|(other, _)| other == size);
        let wait = |size| of(size).map_or(String::new(), |(_, group)| time(group.wait.p95));
        std::iter::once(policy.word().to_owned()).chain(sizes.iter().map(wait)).collect()
    });
    let _ = writeln!(out, "\n{}", figures(&header, lines.collect()));
    for Row { policy, report } in rows.iter().filter(|row| row.report.unfinished > 0) {
        let (word, jobs) = (policy.word(), report.unfinished);
        let _ = writeln!(out, "\n{word}: {jobs} jobs never ran to their end.");
    }
    out
}

/// A table whose columns, but for the first, are numbers.
fn figures(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = tables::table(header);
    table.add_rows(rows);
    for column in 1..header.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// A time with the unit that suits it.
fn time(seconds: f64) -> String {
    match seconds {
        ..60.0 => format!("{seconds:.0} s"),
        ..7_200.0 => format!("{:.1} min", seconds / 60.0),
        ..172_800.0 => format!("{:.1} h", seconds / 3_600.0),
        _ => format!("{:.1} d", seconds / 86_400.0),
    }
}

fn json(asked: &Trace, workload: &Workload, pool: Pool, rows: &[Row]) -> Result<String> {
    let one = |row: &Row| serde_json::json!({"policy": row.policy.word(), "report": row.report});
    let estimates = asked.estimates.to_possible_value();
    let value = serde_json::json!({
        "jobs": workload.jobs.len(),
        "left_out": workload.left_out,
        "pool": pool,
        "estimates": estimates.as_ref().map(|value| value.get_name()),
        "seed": asked.seed,
        "policies": rows.iter().map(one).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}
