//! Every published figure about the simulator: each part in a process of its own, so that its time
//! and its memory are its own too, then one page and its rows.

mod figures;
mod forecasts;
mod page;
mod parts;

use crate::report::{Machine, Row};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use parts::PARTS;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::{Command, Stdio};

#[derive(Args)]
pub struct Sim {
    /// The folder with the traces
    #[arg(long)]
    traces: PathBuf,
    /// Only this part, printed; nothing is written
    #[arg(long)]
    part: Option<String>,
    /// Only these parts are measured anew; the others stay as they were written
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Where the page and the rows go
    #[arg(long, default_value = "docs/evidence")]
    out: PathBuf,
    /// What errors of estimates, made-up jobs and failures are drawn from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the part as JSON
    #[arg(long, hide = true)]
    json: bool,
}

/// What a part found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Found {
    pub part: String,
    /// What the figures are about.
    pub text: String,
    pub rows: Vec<Row>,
    pub date: String,
}

pub fn command(sim: &Sim) -> Result<()> {
    match &sim.part {
        Some(part) => one(part, sim),
        None => all(sim),
    }
}

fn one(part: &str, sim: &Sim) -> Result<()> {
    let known = PARTS.iter().find(|(name, ..)| *name == part);
    let Some((name, text, run)) = known else {
        let names: Vec<&str> = PARTS.iter().map(|(name, ..)| *name).collect();
        bail!("there is no part {part}; there is {}", names.join(", "));
    };
    let mut rows = run(&sim.traces, sim.seed)?;
    for row in &mut rows {
        let seed = sim.seed;
        if row.command.is_empty() {
            let (program, traces) =
                ("cargo run --release -p berth-evidence -- sim", "--traces FOLDER");
            row.command = format!("{program} {traces} --part {name} --seed {seed}");
        }
        row.seed = seed;
    }
    let date = Machine::here().date;
    let found = Found { part: part.to_owned(), text: (*text).to_owned(), rows, date };
    match sim.json {
        true => println!("{}", serde_json::to_string(&found)?),
        false => println!("{text}\n{}", crate::report::table(&found.rows)),
    }
    Ok(())
}

fn in_child(part: &str, sim: &Sim) -> Result<Found> {
    let output = Command::new(std::env::current_exe()?)
        .args(["sim", "--json", "--part", part, "--seed", &sim.seed.to_string(), "--traces"])
        .arg(&sim.traces)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting part {part}"))?;
    ensure!(output.status.success(), "part {part} failed");
    serde_json::from_slice(&output.stdout).with_context(|| format!("reading part {part}"))
}

fn all(sim: &Sim) -> Result<()> {
    ensure!(sim.traces.is_dir(), "{} is no folder with traces", sim.traces.display());
    let before = page::read(&sim.out)?;
    let mut found = Vec::new();
    for (part, ..) in PARTS {
        if !sim.only.is_empty() && !sim.only.iter().any(|name| name == part) {
            found.extend(before.iter().find(|old| old.part == *part).cloned());
            continue;
        }
        eprintln!("{part}");
        let new = in_child(part, sim)?;
        eprintln!("{}\n", crate::report::table(&new.rows));
        found.push(new);
        // What has been measured stays measured, whoever stops the rest.
        let later = before.iter().filter(|old| !found.iter().any(|new| new.part == old.part));
        let so_far: Vec<Found> = found.iter().chain(later).cloned().collect();
        page::write(&sim.out, &Machine::here(), &so_far)?;
    }
    page::write(&sim.out, &Machine::here(), &found)
}
