//! Reproduces the published figures about the core, the simulator, one machine, Kubernetes and tracking:
//! makes worlds from a seed, measures, and writes `docs/evidence`; and figures of others on recorded
//! traces. Not part of the product: it reads a clock, files and its own memory.

mod baselines;
mod cases;
mod csv;
mod drive;
// The same as the product does, so that what is measured is what is run.
#[path = "../../berth/src/heap.rs"]
mod heap;
mod kube;
mod machine;
mod measure;
mod packing;
mod queueing;
mod report;
mod sim;
mod spot;
mod traces;
mod tracking;
mod world;

use anyhow::{Context, Result, ensure};
use berth_sim::synthetic::{self, Recipe};
use berth_sim::trace;
use cases::{CASES, Effort};
use clap::{Args, Parser, Subcommand};
use report::{Machine, Page, Row, Section};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Parser)]
#[command(about = "Reproduces published figures")]
struct Cli {
    #[command(subcommand)]
    what: Evidence,
}

#[derive(Subcommand)]
enum Evidence {
    /// The figures about the scheduling core
    Core(Core),
    /// The figures about Kubernetes: a real API server, and schedulers on it
    Kube(kube::Asked),
    /// The figures about one machine: a real server with a long queue, and under blows
    Machine(machine::Asked),
    /// The figures about tracking, beside other servers
    Tracking(tracking::Asked),
    /// All figures about the simulator, and the page they are published on
    Sim(sim::Sim),
    /// Known schedulers on known traces, beside figures that others have published
    SimBaselines(SimBaselines),
    /// The core beside other schedulers on recorded traces, and which targets hold
    SimQueueing(queueing::Queueing),
    /// Print the trace that is bundled with the simulator, made anew from its recipe
    SampleTrace,
    /// Packing the openb pods, beside what was published
    Packing(packing::Packing),
    /// What a job with a deadline costs on spot machines
    Spot(spot::Spot),
}

/// The program to measure: the one that was named, or the one beside this one.
fn program(named: Option<&Path>) -> Result<PathBuf> {
    let berth = match named {
        Some(path) => path.to_owned(),
        None => std::env::current_exe().context("finding myself")?.with_file_name("berth"),
    };
    ensure!(
        berth.exists(),
        "there is no {}; build it with `cargo build --release -p berth`, or name another with \
         --berth",
        berth.display()
    );
    // Commands are run in other folders.
    berth.canonicalize().with_context(|| format!("finding {}", berth.display()))
}

#[derive(Args)]
struct SimBaselines {
    /// The folder with the traces
    #[arg(long)]
    traces: PathBuf,
    /// Print figures as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Core {
    /// Only this case; nothing is written
    #[arg(long)]
    case: Option<String>,
    /// What the worlds are made from
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Events after the first plan of a busy cluster
    #[arg(long, default_value_t = 10_000)]
    events: usize,
    /// Leave out busy clusters of more nodes than this; the page says so
    #[arg(long)]
    up_to: Option<u32>,
    /// Where the page and the rows go
    #[arg(long, default_value = "docs/evidence")]
    out: PathBuf,
    /// Measure time on the CPU instead of time by the clock: for a machine that is not idle
    #[arg(long)]
    cpu: bool,
    /// Print rows as JSON
    #[arg(long, hide = true)]
    json: bool,
}

/// How the figures of the core are taken.
const METHOD: &str = "The planner uses one core, and huge pages for its heap where the system \
    grants them. Every time is plan, check and reasons together with all passes on. Times of \
    single worlds and of first plans are the median of five plans; those after an event are of one \
    plan each, taken once what the first plan stopped has ended and up to twenty further plans have \
    been carried out, which are not timed. Memory is what the process of that case alone has \
    resident, its allocator's slack included.";

fn main() -> Result<()> {
    let cli = Cli::parse();
    match cli.what {
        Evidence::Core(core) => match &core.case {
            Some(case) => one(case, &core),
            None => all(&core),
        },
        Evidence::Kube(args) => kube::command(&args),
        Evidence::Machine(args) => machine::command(&args),
        Evidence::Tracking(args) => tracking::command(&args),
        Evidence::Sim(sim) => sim::command(&sim),
        Evidence::SimBaselines(args) => sim_baselines(&args),
        Evidence::SimQueueing(args) => queueing::command(&args),
        Evidence::SampleTrace => {
            print!("{}", trace::to_csv(&synthetic::jobs(&Recipe::sample())));
            Ok(())
        }
        Evidence::Packing(packing) => packing::command(&packing),
        Evidence::Spot(spot) => spot::command(&spot),
    }
}

fn sim_baselines(args: &SimBaselines) -> Result<()> {
    let found = baselines::all(&args.traces)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&found.figures)?);
    } else {
        println!("{}\n\n{}", baselines::figures(&found), baselines::timings(&found));
    }
    Ok(())
}

fn one(case: &str, core: &Core) -> Result<()> {
    let effort = Effort { events: core.events, seed: core.seed, on_cpu: core.cpu };
    let mut rows = cases::run(case, effort)?;
    for row in &mut rows {
        row.command = format!("cargo run --release -p berth-evidence -- core --case {case}");
        row.seed = core.seed;
    }
    if core.json {
        println!("{}", serde_json::to_string(&rows)?);
    } else {
        println!("{}", report::table(&rows));
    }
    Ok(())
}

/// Runs a case in a process of its own, so that its memory is its own too.
fn in_child(case: &str, core: &Core) -> Result<Vec<Row>> {
    let output = Command::new(std::env::current_exe()?)
        .args(["core", "--json", "--case", case])
        .args(["--seed", &core.seed.to_string(), "--events", &core.events.to_string()])
        .args(core.cpu.then_some("--cpu"))
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting case {case}"))?;
    ensure!(output.status.success(), "case {case} failed");
    serde_json::from_slice(&output.stdout).with_context(|| format!("reading case {case}"))
}

fn all(core: &Core) -> Result<()> {
    let mut rows = Vec::new();
    let mut left_out: Vec<&str> = Vec::new();
    for case in CASES {
        let nodes = case.strip_prefix("busy-").and_then(|nodes| nodes.parse::<u32>().ok());
        let large = nodes.zip(core.up_to).is_some_and(|(nodes, most)| nodes > most);
        // The comparison of plans runs on a large cluster too.
        if large || (core.up_to.is_some() && *case == "same-plans") {
            left_out.push(case);
            continue;
        }
        eprintln!("{case}");
        let found = in_child(case, core)?;
        eprintln!("{}\n", report::table(&found));
        rows.extend(found);
    }
    rows.extend(cases::curve(&rows));
    let mut text = format!("Busy clusters were sent {} events each.", core.events);
    if !left_out.is_empty() {
        text += &format!(" Not measured in this run: {}.", left_out.join(", "));
    }
    let sections = vec![Section { title: "All figures".into(), text, rows: rows.clone() }];
    let (name, title) = ("core", "The core in figures");
    Page { name, title, method: METHOD, sections }.write(&core.out, &Machine::here())?;
    println!("{}", report::table(&rows));
    Ok(())
}
