//! A real API server: how fast it takes bindings from anybody, and how near to that schedulers come.

mod calm;
mod chaos;
mod contest;
mod load;
mod race;
mod scale;
mod watcher;

use crate::report::{self, Machine, Page, Section};
use anyhow::Result;
use berth_testbed::kube::{Cluster, Storage};
use calm::CalmWait;
use clap::Args;
use contest::Contest;
use load::{Load, Shape};
use scale::Scale;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Runtime;

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
    /// Minutes to wait, in all, for others on the same host to leave this machine its speed
    #[arg(long, default_value_t = 30)]
    patience: u64,
    /// The best pace of this machine, as an earlier run has told it: otherwise one that begins while
    /// others are busy takes theirs for the best
    #[arg(long, default_value_t = 0.0)]
    pace: f64,
    /// Only these, and nothing is written: ceiling, kube-scheduler, berth, scale, siege
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Where the page and the rows go
    #[arg(long, default_value = "docs/evidence")]
    out: PathBuf,
}

const METHOD: &str = "A real control plane on loopback: etcd in memory, kube-apiserver, one \
    watcher of all pods attached throughout. Nodes are only written down: 8 GPUs, 192 CPUs, 2 TiB. \
    Pods are made first, each for one GPU, 8 CPUs and 64 GiB; then the scheduler is started, and \
    bindings are timed where the watcher sees them, first to last. Each figure is of a cluster \
    made anew. The ceiling of a load is what the API server takes of it: bare bindings of the same \
    pods to the same nodes from the same client, under the same identity, without any scheduler, \
    with as many at once as it is fastest with. A bare binding has no event, so Berth runs without \
    events beside it; beside kube-scheduler, which writes one about each pod, it runs with them, and \
    the CPU of the API server counts until all events of both are written, less what it takes idle. \
    Four numbers at once are tried, and the fastest \
    runs in five rounds side by side with Berth, with kube-scheduler in every other one. Berth is \
    held against whoever ran beside it, and the middle of the rounds counts, because this machine \
    is not as fast at every moment; other figures are of the middle run. The ceiling at the most \
    is the fastest of all bare runs; where the first one stays under what an idle machine gives, \
    there are two more rounds at the most. Berth's fastest run is held against it, too. The \
    client of a run is the watcher, and who posts bare bindings. Others on the same host slow \
    this machine down at times, so before each run it is tried how much its cores get done, and \
    waited, within limits, until that is near the best seen; the pace is what was found then, \
    and what others took of the CPU is counted during the run. A ceiling is only as good as its \
    client, so what that takes of the CPU is held against what the API server takes. Pods of \
    gangs are larger, for the marks they bear.";

/// Less than that on an idle machine would mean a slow client, and voids the run.
const LEAST: f64 = 1_400.0;

pub fn command(args: &Asked) -> Result<()> {
    let berth = crate::program(args.berth.as_deref())?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut calm_wait = CalmWait::new(Duration::from_secs(args.patience * 60), args.pace);
    // Memory and blows are no matter of speed: while others are busy, there is time for these.
    let races_first = calm_wait.is_calm();
    let mut races = Vec::new();
    if races_first {
        races = self::races(&runtime, args, &berth, &mut calm_wait)?;
    }
    let mut others = Vec::new();
    if args.wants("scale") {
        let churn = Duration::from_secs(args.churn);
        let scale = Scale { nodes: args.large, pods: args.large * 10, churn };
        others.push(show(scale::section(&runtime, &berth, scale)?));
    }
    if args.wants("siege") {
        others.push(show(chaos::section(&berth, args.rounds)));
    }
    if !races_first {
        races = self::races(&runtime, args, &berth, &mut calm_wait)?;
    }
    if !args.only.is_empty() {
        return Ok(());
    }
    let sections = races.into_iter().chain(others).collect();
    let (name, title) = ("kube", "Kubernetes in figures");
    Page { name, title, method: METHOD, sections }.write(&args.out, &Machine::here())
}

impl Asked {
    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }
}

/// Everybody on every load.
fn races(
    runtime: &Runtime,
    args: &Asked,
    berth: &Path,
    calm_wait: &mut CalmWait,
) -> Result<Vec<Section>> {
    let mut sections = Vec::new();
    if !["ceiling", "kube-scheduler", "berth"].iter().any(|name| args.wants(name)) {
        return Ok(sections);
    }
    let mut least = Some(LEAST);
    for nodes in &args.nodes {
        for shape in [Shape::Single, Shape::Gangs(8)] {
            let contest = Contest {
                ceiling: args.wants("ceiling"),
                kube_scheduler: args.wants("kube-scheduler"),
                berth: args.wants("berth").then_some(berth),
                least: least.take(),
            };
            let load = Load { nodes: *nodes, pods: args.pods, shape };
            sections.push(show(contest.run(runtime, load, calm_wait)?));
        }
    }
    Ok(sections)
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
