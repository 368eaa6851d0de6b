//! Tracking: Berth beside MLflow's server and FastTrackML, one after another on the same machine, all
//! asked the same by the same client.

mod load;
mod reads;
mod servers;
mod table;
mod tree;
mod wire;

use crate::report::{self, Machine, Page};
use anyhow::{Context, Result};
use berth_testbed::Postgres;
use clap::Args;
use load::{Action, Sample};
use servers::{Recipe, Server, Who};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tree::Memory;

#[derive(Args)]
pub struct Asked {
    /// The program to measure; the one beside this one where left out
    #[arg(long)]
    berth: Option<PathBuf>,
    /// The virtual environment with the other servers, as .ci/mlflow-server-tools prints it
    #[arg(long)]
    servers: PathBuf,
    /// Runs that are searched
    #[arg(long, default_value_t = 10_000)]
    runs: usize,
    /// Seconds that each figure is taken for
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Only these, and nothing is written: berth, berth-postgres, fasttrackml, mlflow, mlflow-default
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Where the page and the rows go
    #[arg(long, default_value = "docs/evidence")]
    out: PathBuf,
}

const CONNECTIONS: [usize; 2] = [1, 4];
/// A server may do things for a while after its first answer.
const SETTLE: Duration = Duration::from_secs(5);

/// What was measured of one server.
pub struct Figures {
    pub who: Who,
    /// From a start on an existing database to the first answer, and the time on the CPU for that.
    pub start: Duration,
    pub start_cpu: Duration,
    pub idle: Memory,
    pub loaded: Memory,
    pub samples: Vec<(String, Sample)>,
}

impl Figures {
    pub fn sample(&self, name: &str) -> Option<&Sample> {
        self.samples.iter().find(|(of, _)| of == name).map(|(_, sample)| sample)
    }

    fn take(&mut self, name: impl Into<String>, sample: Option<Sample>) {
        let name = name.into();
        if let Some(sample) = sample {
            let Sample { per_second, p50_ms, p99_ms, cpu_ms, requests } = sample;
            eprintln!(
                "  {name}: {per_second:.1}/s, P50 {p50_ms:.2} ms, P99 {p99_ms:.2} ms, CPU \
                 {cpu_ms:.2} ms, {requests} requests"
            );
            self.samples.push((name, sample));
        }
    }
}

pub const WRITE_LONG: &str = "write 100,000 points, 1,000 at a time, 1 connection";
pub const HISTORY: &str = "read the history of 100,000 points";
pub const CHART: &str = "320 of 100,000 points, for a chart";

fn word(who: Who) -> &'static str {
    match who {
        Who::Berth => "berth",
        Who::BerthOnPostgres => "berth-postgres",
        Who::FastTrackMl => "fasttrackml",
        Who::MlflowSmall => "mlflow",
        Who::MlflowDefault => "mlflow-default",
    }
}

pub fn command(args: &Asked) -> Result<()> {
    let berth = crate::program(args.berth.as_deref())?;
    let others = args.servers.canonicalize().context("finding the other servers")?;
    let load = table::load_average();
    let disk = table::disk()?;
    let mlflow = TempDir::with_prefix("berth-mlflow-").context("a temporary folder")?;
    let mut all = Vec::new();
    for who in Who::ALL {
        if !args.only.is_empty() && !args.only.iter().any(|only| only == word(who)) {
            continue;
        }
        eprintln!("{}", who.name());
        let own = TempDir::with_prefix("berth-tracking-").context("a temporary folder")?;
        // MLflow's default starts on what the other has left: it takes minutes to make it again.
        let is_mlflow = matches!(who, Who::MlflowSmall | Who::MlflowDefault);
        let home = if is_mlflow { mlflow.path() } else { own.path() };
        let postgres = (who == Who::BerthOnPostgres).then(Postgres::start);
        let database = postgres.as_ref().map(Postgres::database);
        let database = database.as_deref();
        let recipe = Recipe { who, berth: &berth, others: &others, home, database };
        let figures = one(&recipe, args).with_context(|| who.name())?;
        println!("{}\n", report::table(&table::of(&figures)));
        all.push(figures);
    }
    let sections = table::sections(&all, args.runs, load, disk);
    for section in &sections {
        println!("{}\n{}\n", section.title, report::table(&section.rows));
    }
    if !args.only.is_empty() {
        return Ok(());
    }
    let (name, title) = ("tracking", "Tracking in figures");
    Page { name, title, method: table::METHOD, sections }.write(&args.out, &Machine::here())
}

/// Everything about one server.
fn one(recipe: &Recipe<'_>, args: &Asked) -> Result<Figures> {
    let who = recipe.who;
    let span = Duration::from_secs_f64(args.seconds);
    let mut server = recipe.start()?;
    // What makes its tables does not count.
    if who != Who::MlflowDefault {
        drop(server);
        server = recipe.start()?;
    }
    let (start, start_cpu) = (server.took, server.cpu);
    sleep(SETTLE);
    let idle = server.memory();
    let (took, processes) = (start.as_secs_f64(), idle.processes);
    eprintln!("  start {took:.2} s, {processes} processes, {:.0} MiB", idle.resident_mib);
    let mut figures = Figures { who, start, start_cpu, idle, loaded: idle, samples: Vec::new() };
    let measured = measure(&server, recipe, args, span, &mut figures);
    measured.with_context(|| server.log_end())?;
    figures.loaded = server.memory();
    Ok(figures)
}

fn measure(
    server: &Server,
    recipe: &Recipe<'_>,
    args: &Asked,
    span: Duration,
    figures: &mut Figures,
) -> Result<()> {
    for action in Action::ALL {
        for connections in CONNECTIONS {
            let sample = load::measure(server, action, connections, span)?;
            figures.take(action.name(connections), Some(sample));
        }
    }
    // With more workers a single request is no faster.
    if server.who == Who::MlflowDefault {
        return Ok(());
    }
    let long = reads::write_long(server)?;
    figures.take(WRITE_LONG, Some(long.written));
    figures.take(HISTORY, Some(long.history(server, span)?));
    figures.take(CHART, long.chart(server, span)?);
    let clock = Instant::now();
    let experiment = reads::fill(server, recipe, args.runs)?;
    eprintln!("  {} runs in {:.1} s", args.runs, clock.elapsed().as_secs_f64());
    for search in &reads::SEARCHES {
        figures.take(search.name, reads::search(server, &experiment, search, span)?);
    }
    Ok(())
}

/// Beside which a small write is held: it is durable before it is answered.
fn sync_times(folder: &Path) -> Result<Vec<Duration>> {
    let mut file = crate::machine::SyncFile::new(folder)?;
    let mut times = (0..1_000).map(|_| file.sample()).collect::<Result<Vec<_>>>()?;
    times.sort_unstable();
    Ok(times)
}
