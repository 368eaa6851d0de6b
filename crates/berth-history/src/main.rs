//! Writes a home with a history, and makes a running server on it busy. For looking at pages, for tests
//! and measurements; not part of the product.

use anyhow::{Context, Result};
use berth_history::{Options, live, recording, write};
use berth_model::Time;
use clap::{Args, Parser, Subcommand};
use flate2::read::GzDecoder;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Parser)]
#[command(about = "A month of a lab, for development and measurements")]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Write a home with a history up to now, for `berth up --name box --gpus 64xH100`
    Write(WriteArgs),
    /// Submit a load to a server that runs on such a home
    Live(LiveArgs),
    /// Write what GPUs tell, for `berth up --gpu-recording`
    Recording(RecordingArgs),
}

#[derive(Args)]
struct WriteArgs {
    /// A folder that is no home yet
    #[arg(long, value_name = "DIR")]
    home: PathBuf,
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=365))]
    days: u32,
    /// How many jobs; elements of arrays count
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A recorded trace as CSV, also gzipped, instead of the bundled one; docs/trace-format.md
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// What the machine is called
    #[arg(long, default_value = "box")]
    name: String,
    /// The GPUs it has, as `berth up` takes them
    #[arg(long, default_value = "64xH100")]
    gpus: String,
    /// Of how many days there are figures of GPUs
    #[arg(long, default_value_t = 3)]
    figure_days: u32,
}

#[derive(Args)]
struct LiveArgs {
    /// The home with the history: it has the tokens of all users
    #[arg(long, value_name = "DIR")]
    home: PathBuf,
    /// The address of the server, where it is another than the home says
    #[arg(long)]
    url: Option<String>,
}

#[derive(Args)]
struct RecordingArgs {
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[arg(long, default_value_t = 64)]
    gpus: u32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write it anew every so many seconds, until it is stopped
    #[arg(long, value_name = "SECONDS")]
    every: Option<u64>,
}

fn main() -> Result<()> {
    match Cli::parse().what {
        What::Write(args) => write_home(&args),
        What::Live(args) => {
            let numbers = runtime()?.block_on(live::submit(&args.home, args.url.as_deref()))?;
            println!("submitted {}", numbers.join(", "));
            Ok(())
        }
        What::Recording(args) => record(&args),
    }
}

/// One thread: the history has its own time there.
fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting")
}

fn write_home(args: &WriteArgs) -> Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let trace = args.trace.as_deref().map(read).transpose()?;
    let options = Options {
        home: args.home.clone(),
        days: args.days,
        jobs: args.jobs,
        seed: args.seed,
        trace,
        node: args.name.clone(),
        gpus: args.gpus.clone(),
        figure_days: args.figure_days,
        until: Time(i64::try_from(now)? * 1_000),
    };
    let begun = Instant::now();
    let written = runtime()?.block_on(write(&options))?;
    println!(
        "{} jobs in {} submissions from {} to {}: {} events, {} plans, {:.1} s",
        written.jobs,
        written.submissions,
        written.from,
        written.until,
        written.events,
        written.plans,
        begun.elapsed().as_secs_f64()
    );
    println!(
        "start it with: berth up --home {} --name {} --gpus {}",
        args.home.display(),
        args.name,
        args.gpus
    );
    Ok(())
}

/// The text of a trace, with the name of its file.
fn read(path: &Path) -> Result<(String, String)> {
    let failed = || format!("reading {}", path.display());
    let bytes = std::fs::read(path).with_context(failed)?;
    let mut text = String::new();
    if path.extension().is_some_and(|ending| ending == "gz") {
        GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).with_context(failed)?;
    } else {
        text = String::from_utf8(bytes).with_context(failed)?;
    }
    Ok((path.display().to_string(), text))
}

fn record(args: &RecordingArgs) -> Result<()> {
    let mut step = 0;
    loop {
        recording::write(&args.out, args.gpus, args.seed, step)?;
        let Some(every) = args.every else { return Ok(()) };
        std::thread::sleep(Duration::from_secs(every));
        step += 1;
    }
}
