//! A real API server: how fast it takes bindings from anybody, and how near to that schedulers come.

mod load;
mod race;
mod scale;
mod siege;
mod watcher;

use crate::report::{self, Machine, Page, Row, Section, Target};
use anyhow::Result;
use berth_testbed::kube::{Cluster, Part, Storage};
use clap::Args;
use load::{Load, Shape};
use race::{Figures, Racer};
use scale::Scale;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
pub struct Asked {
    /// The program to measure; the one beside this one where left out
    #[arg(long)]
    berth: Option<PathBuf>,
    /// Pods of each load
    #[arg(long, default_value_t = 4_000)]
    pods: u32,
    /// Sizes of the cluster
    #[arg(long, value_delimiter = ',', default_value = "500,1000")]
    nodes: Vec<u32>,
    /// Rounds under blows
    #[arg(long, default_value_t = 50)]
    rounds: u32,
    /// Nodes of the large cluster; it has ten times as many pods
    #[arg(long, default_value_t = 5_000)]
    large: u32,
    /// Seconds of pods coming and going there
    #[arg(long, default_value_t = 600)]
    churn: u64,
    /// Only these, and nothing is written: ceiling, kube-scheduler, berth, scale, siege
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Where the page and the rows go
    #[arg(long, default_value = "docs/evidence")]
    out: PathBuf,
}

const METHOD: &str = "A real control plane on loopback: etcd in memory, kube-apiserver, one watcher \
    of all pods attached throughout. Nodes are only written down: 8 GPUs, 192 CPUs, 2 TiB. Pods are \
    made first, each for one GPU, 8 CPUs and 64 GiB; then the scheduler is started, and bindings \
    are timed where the watcher sees them, first to last. Each figure is of a cluster made anew. \
    The ceiling of a load is what the API server takes of it: bare bindings of the same pods to the \
    same nodes from the same client, under the same identity, without any scheduler, with as many \
    at once as it is fastest with. Each scheduler runs three times on a load, and the fastest run \
    counts, as it does for the ceiling. Pods of gangs are larger, for the marks they bear.";

/// Runs of each scheduler on a load; the fastest counts.
const RUNS: u32 = 3;
/// How many bindings the ceiling is tried with at once.
const CONCURRENCIES: [usize; 4] = [16, 32, 64, 128];

pub fn command(asked: &Asked) -> Result<()> {
    let berth = crate::program(asked.berth.as_deref())?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let wanted = |name: &str| asked.only.is_empty() || asked.only.iter().any(|only| only == name);
    let mut sections = Vec::new();
    let races = ["ceiling", "kube-scheduler", "berth"].iter().any(|name| wanted(name));
    let mut is_first = true;
    for nodes in asked.nodes.iter().filter(|_| races) {
        for shape in [Shape::Single, Shape::Gangs(8)] {
            let load = Load { nodes: *nodes, pods: asked.pods, shape };
            let mut rows = Vec::new();
            let (mut best, mut peer) = (None, None);
            if wanted("ceiling") {
                let (figures, tried) = ceiling(&runtime, load)?;
                rows.extend(tried);
                // Less than that on an idle machine would mean a slow client.
                let target = if is_first { Target::AtLeast(1_400.0) } else { Target::None };
                is_first = false;
                rows.push(Row::new(
                    "ceiling: bindings a second",
                    figures.per_second,
                    "1/s",
                    target,
                ));
                best = Some(figures);
            }
            if wanted("kube-scheduler") {
                let figures = fastest(&runtime, load, || Racer::KubeScheduler)?;
                rows.extend(figures.rows("kube-scheduler"));
                peer = Some(figures);
            }
            if wanted("berth") {
                let figures = fastest(&runtime, load, || Racer::Berth(&berth))?;
                rows.extend(figures.rows("berth"));
                rows.extend(held_against(&figures, best.as_ref(), peer.as_ref(), shape));
            }
            sections.push(show(Section { title: load.title().into(), text: String::new(), rows }));
        }
    }
    if wanted("scale") {
        let churn = Duration::from_secs(asked.churn);
        let scale = Scale { nodes: asked.large, pods: asked.large * 10, churn };
        sections.push(show(scale::section(&runtime, &berth, scale)?));
    }
    if wanted("siege") {
        sections.push(show(siege::section(&berth, asked.rounds)));
    }
    if !asked.only.is_empty() {
        return Ok(());
    }
    let (name, title) = ("kube", "Kubernetes in figures");
    Page { name, title, method: METHOD, sections }.write(&asked.out, &Machine::here())
}

fn show(mut section: Section) -> Section {
    for row in &mut section.rows {
        row.command = "cargo run --release -p berth-evidence -- kube".to_owned();
    }
    println!("{}\n{}\n", section.title, report::table(&section.rows));
    section
}

/// A control plane for nothing but scheduling.
fn cluster() -> Cluster {
    Cluster::builder().storage(Storage::Memory).bare_admission().start()
}

/// The best of several numbers of bindings at once, and what each came to.
fn ceiling(runtime: &tokio::runtime::Runtime, load: Load) -> Result<(Figures, Vec<Row>)> {
    let mut rows = Vec::new();
    let mut best: Option<Figures> = None;
    for at_once in CONCURRENCIES {
        let figures = race(runtime, load, Racer::Bare { at_once })?;
        rows.extend(figures.rows(&format!("bare, {at_once} at once")));
        if best.as_ref().is_none_or(|best| figures.per_second > best.per_second) {
            best = Some(figures);
        }
    }
    Ok((best.expect("there are several"), rows))
}

/// The best of several runs, as the ceiling is.
fn fastest<'a>(
    runtime: &tokio::runtime::Runtime,
    load: Load,
    racer: impl Fn() -> Racer<'a>,
) -> Result<Figures> {
    let runs = (0..RUNS).map(|_| race(runtime, load, racer()));
    let runs = runs.collect::<Result<Vec<Figures>>>()?;
    let best = runs.into_iter().max_by(|a, b| a.per_second.total_cmp(&b.per_second));
    Ok(best.expect("there are several"))
}

fn race(runtime: &tokio::runtime::Runtime, load: Load, racer: Racer<'_>) -> Result<Figures> {
    eprintln!("{}: {}", load.title(), racer.name());
    let mut cluster = cluster();
    let figures = race::run(runtime, &mut cluster, load, racer)?;
    eprintln!("  {:.0} a second", figures.per_second);
    Ok(figures)
}

/// What was promised of Berth, beside the ceiling and the peer of the same run.
fn held_against(
    berth: &Figures,
    ceiling: Option<&Figures>,
    peer: Option<&Figures>,
    shape: Shape,
) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(ceiling) = ceiling {
        let share = berth.per_second / ceiling.per_second;
        rows.push(Row::new("berth: share of the ceiling", share, "", Target::AtLeast(0.8)));
        let times = berth.cpu_of(Part::ApiServer) / ceiling.cpu_of(Part::ApiServer);
        let name = "berth: CPU of the API server per pod, beside a bare binding's";
        rows.push(Row::new(name, times, "times", Target::AtMost(1.3)));
    }
    if let Some(peer) = peer {
        let times = berth.per_second / peer.per_second;
        rows.push(Row::new("berth: times kube-scheduler", times, "times", Target::AtLeast(2.5)));
    }
    rows.push(Row::new("berth: first bind", berth.first_bind, "s", Target::Below(1.0)));
    if let Shape::Gangs(_) = shape {
        let most = f64::from(berth.most_nodes_per_gang);
        rows.push(Row::new("berth: nodes per gang, most", most, "nodes", Target::Exactly(1.0)));
    }
    rows
}
