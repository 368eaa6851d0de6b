//! One machine: a real server with a long queue, and servers and databases that are killed.

mod disk;
mod faults;
mod isolation;
mod long_queue;
mod namespace;
mod queue;

pub(crate) use disk::SyncFile;

use crate::report::{self, Machine, Page, Row, Section};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct Asked {
    /// The program to measure; the one beside this one where left out
    #[arg(long)]
    berth: Option<PathBuf>,
    /// Jobs that wait while the queue is measured
    #[arg(long, default_value_t = 10_000)]
    waiting: u32,
    /// Jobs that wait in the very long queue
    #[arg(long, default_value_t = 200_000)]
    long_waiting: u32,
    /// Submissions that are timed while they wait
    #[arg(long, default_value_t = 1_000)]
    submissions: u32,
    /// How often the server is killed with its data in SQLite
    #[arg(long, default_value_t = 1_000)]
    kills: u32,
    /// How often it is with its data in PostgreSQL
    #[arg(long, default_value_t = 200)]
    kills_postgres: u32,
    /// How often the database is
    #[arg(long, default_value_t = 20)]
    outages: u32,
    /// Short jobs that come meanwhile
    #[arg(long, default_value_t = 4_000)]
    jobs: u32,
    /// Only these parts, and nothing is written: queue, long-queue, isolation, kills, kills-postgres, outages
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Where the page and the rows go
    #[arg(long, default_value = "docs/evidence")]
    out: PathBuf,
}

const METHOD: &str = "Everything is the release build of `berth`, started as a user would, with its \
    data in a temporary folder. GPUs are declared, so jobs are real processes on GPUs that are \
    bookkeeping. Commands are timed as whole processes, from their start to their end.";

type Part = fn(&Asked, &std::path::Path) -> Result<Section>;

const PARTS: [(&str, Part); 6] = [
    ("queue", queue::section),
    ("long-queue", long_queue::section),
    ("isolation", isolation::section),
    ("kills", faults::kills),
    ("kills-postgres", faults::kills_on_postgres),
    ("outages", faults::outages),
];

pub fn command(args: &Asked) -> Result<()> {
    if namespace::enter()? {
        return Ok(());
    }
    let berth = crate::program(args.berth.as_deref())?;
    let mut sections = Vec::new();
    for (name, part) in PARTS {
        if !args.only.is_empty() && !args.only.iter().any(|only| only == name) {
            continue;
        }
        eprintln!("{name}");
        let mut section = part(args, &berth)?;
        for row in &mut section.rows {
            row.command = format!("cargo run --release -p berth-evidence -- machine --only {name}");
            row.seed = berth_testbed::SEED;
        }
        println!("{}\n", report::table(&section.rows));
        sections.push(section);
    }
    if !args.only.is_empty() {
        return Ok(());
    }
    let (name, title) = ("machine", "One machine in figures");
    Page { name, title, method: METHOD, sections }.write(&args.out, &Machine::here())
}

/// A count that has to be nought.
fn none(name: &str, count: u64, unit: &str) -> Row {
    Row::new(name, count as f64, unit, report::Target::Exactly(0.0))
}
