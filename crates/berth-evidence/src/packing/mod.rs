//! Packing the openb pods: rivals beside what was published about them, and the core beside the
//! rivals.

mod berth;
mod openb;
mod placer;
mod run;
mod table;

use anyhow::{Result, anyhow, ensure};
use berth_sim::packing::{Policy, Ties, list};
use clap::Args;
use run::{Contender, Outcome};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Args)]
pub struct Packing {
    /// The folder with the traces
    #[arg(long)]
    traces: PathBuf,
    /// Only these variants of the list of pods
    #[arg(long, value_delimiter = ',')]
    variants: Vec<String>,
    /// First and last seed
    #[arg(long, default_value = "42..51", value_parser = seeds)]
    seeds: (u64, u64),
    /// Only contenders whose name begins like one of these
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Runs at a time
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Print rows as JSON: what the core allocates, and what that is held against
    #[arg(long)]
    rows: bool,
}

fn seeds(text: &str) -> Result<(u64, u64)> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.parse::<u64>().map_err(|_| anyhow!("{text:?} is no seed"));
    let (first, last) = (number(first)?, number(last.trim_start_matches('='))?);
    ensure!(first <= last, "the last seed is before the first");
    Ok((first, last))
}

/// GPUs that are asked for, in percent of those that are there.
const DEMAND_PERCENT: i64 = 130;

fn contenders(only: &[String]) -> Vec<Contender> {
    let named = Policy::ALL.map(|policy| Contender::Rival(policy, Ties::ByName));
    let at_random = Policy::ALL
        .into_iter()
        .filter(|policy| *policy != Policy::Random)
        .map(|policy| Contender::Rival(policy, Ties::Random));
    let ours = [Ties::ByName, Ties::Random].map(Contender::Berth);
    let mut all: Vec<Contender> = named.into_iter().chain(at_random).chain(ours).collect();
    all.retain(|who| only.is_empty() || only.iter().any(|name| who.name().starts_with(name)));
    all
}

pub fn command(packing: &Packing) -> Result<()> {
    let cluster = openb::nodes(&packing.traces)?;
    let published = openb::published(&packing.traces)?;
    let contenders = contenders(&packing.only);
    ensure!(!contenders.is_empty(), "no contender is called that");
    let default: Vec<String> = openb::VARIANTS.iter().map(|name| (*name).to_owned()).collect();
    let variants = if packing.variants.is_empty() { &default } else { &packing.variants };
    let mut figures = Vec::new();
    for variant in variants {
        let pods = openb::pods(&packing.traces, variant, &cluster.types)?;
        let wanted = cluster.capacity_milli() * DEMAND_PERCENT / 100;
        let (first, last) = packing.seeds;
        let work: Vec<(Contender, u64)> =
            contenders.iter().flat_map(|who| (first..=last).map(|seed| (*who, seed))).collect();
        let found = spread(packing.threads, &work, |(who, seed)| {
            let list = list(&pods, wanted, seed);
            run::run(who, &cluster, &list, seed)
        })?;
        let mut rows: Vec<(Contender, Vec<Outcome>)> = Vec::new();
        for ((who, _), outcome) in work.iter().zip(found) {
            match rows.last_mut() {
                Some((last, outcomes)) if last == who => outcomes.push(outcome),
                _ => rows.push((*who, vec![outcome])),
            }
        }
        if packing.rows {
            figures.extend(table::rows(variant, &rows, &published, packing.seeds.0));
        } else {
            println!("{}", table::table(variant, &rows, &published));
        }
    }
    if packing.rows {
        println!("{}", serde_json::to_string_pretty(&figures)?);
    }
    Ok(())
}

/// Does every piece of work, several at a time, and returns the results in the order of the work.
fn spread<W: Copy + Sync, R: Send>(
    threads: usize,
    work: &[W],
    each: impl Fn(W) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(usize, Result<R>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(piece) = work.get(at) else { break };
                    let result = each(*piece);
                    found.lock().expect("no piece of work panics").push((at, result));
                }
            });
        }
    });
    let mut found = found.into_inner().expect("no piece of work panics");
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, result)| result).collect()
}
