//! A differential fuzzer: random worlds are scheduled once by kube-scheduler and once by Berth, and
//! a checker with code of its own looks at both.
//!
//! What must hold of Berth: no required constraint is broken at any time; at rest no pod waits that
//! would fit, or that pods of lower priorities could make room for; no pod is stopped without need.
//! kube-scheduler's run shows that the checker is right, and what preemption may cost.

mod check;
mod describe;
mod explain;
mod finding;
mod lab;
mod make;
mod random;
mod shrink;
mod world;

pub use explain::stale as stale_explanations;
pub use finding::{Finding, What};

use check::{Run, of_berth, of_peer};
use lab::{Lab, Who};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use world::World;

/// How a machine is fuzzed.
#[derive(Debug, Clone)]
pub struct Options {
    pub program: PathBuf,
    /// The seed of the first world; the next one has the next seed.
    pub seed: u64,
    pub worlds: u64,
    /// Clusters at once.
    pub lanes: usize,
    /// Whether worlds with findings are made smaller, which takes a minute each.
    pub shrinks: bool,
    /// A folder for what Berth has logged about worlds with findings.
    pub logs: Option<PathBuf>,
}

impl Options {
    pub fn new(program: &Path, seed: u64, worlds: u64) -> Options {
        Options { program: program.to_owned(), seed, worlds, lanes: 3, shrinks: false, logs: None }
    }
}

/// What became of all worlds.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub worlds: u64,
    pub pods: usize,
    /// Pods with a node at the end.
    pub placed_by_berth: usize,
    pub placed_by_peer: usize,
    pub stopped_by_berth: usize,
    pub stopped_by_peer: usize,
    pub explained: usize,
    /// Seed and finding, one text for each; the last one of a world has the world as well.
    pub findings: Vec<String>,
    /// What the checker found wrong with kube-scheduler: mistakes of its own.
    pub mistakes: Vec<String>,
}

impl Report {
    fn add(&mut self, other: Report) {
        self.worlds += other.worlds;
        self.pods += other.pods;
        self.placed_by_berth += other.placed_by_berth;
        self.placed_by_peer += other.placed_by_peer;
        self.stopped_by_berth += other.stopped_by_berth;
        self.stopped_by_peer += other.stopped_by_peer;
        self.explained += other.explained;
        self.findings.extend(other.findings);
        self.mistakes.extend(other.mistakes);
    }
}

/// Runs all worlds. `on_world` is called after each, with its seed.
///
/// # Panics
///
/// If a cluster does not start or refuses an object.
pub fn run_fuzz(options: &Options, on_world: impl Fn(u64, &Report) + Sync) -> Report {
    let next = AtomicU64::new(options.seed);
    let total = Mutex::new(Report::default());
    thread::scope(|scope| {
        for _ in 0..options.lanes.max(1) {
            scope.spawn(|| {
                let mut lab = None;
                loop {
                    let seed = next.fetch_add(1, Relaxed);
                    if seed >= options.seed + options.worlds {
                        return;
                    }
                    let lab = lab.get_or_insert_with(|| Lab::start(&options.program));
                    let report = one(lab, &make::world(seed), options);
                    on_world(seed, &report);
                    total.lock().expect("no lane has failed").add(report);
                }
            });
        }
    });
    total.into_inner().expect("no lane has failed")
}

/// Both runs of a world, and what is wrong with Berth's.
struct Both {
    peer: Run,
    berth: Run,
    findings: Vec<Finding>,
}

impl Both {
    fn of(lab: &Lab, world: &World) -> Both {
        let peer = lab.run(world, Who::KubeScheduler);
        let berth = lab.run(world, Who::Berth);
        let mut findings = of_berth(world, &berth, &peer);
        explain::explain(&mut findings, &berth.outcome(world));
        Both { peer, berth, findings }
    }

    fn unexplained(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.explained_by.is_none())
    }
}

fn one(lab: &Lab, world: &World, options: &Options) -> Report {
    let both = Both::of(lab, world);
    let (peer, berth) = (both.peer.outcome(world), both.berth.outcome(world));
    let mistakes = of_peer(world, &both.peer);
    let mistakes: Vec<&Finding> = mistakes.iter().collect();
    let mistakes = describe::describe(world, &mistakes, &both);
    let unexplained: Vec<&Finding> = both.unexplained().collect();
    let mut findings = describe::describe(world, &unexplained, &both);
    if let Some(folder) = &options.logs
        && !unexplained.is_empty()
    {
        let path = folder.join(format!("world-{}.log", world.seed));
        std::fs::write(&path, &both.berth.log).expect("a folder to write to");
    }
    if options.shrinks
        && let Some(first) = both.unexplained().next()
    {
        findings.push(shrink::shrink(lab, world, first));
    }
    let placed = |outcome: &check::Outcome| outcome.after.placed().count();
    Report {
        worlds: 1,
        pods: world.pods().count(),
        placed_by_berth: placed(&berth),
        placed_by_peer: placed(&peer),
        stopped_by_berth: berth.victims.len(),
        stopped_by_peer: peer.victims.len(),
        explained: both.findings.len() - both.unexplained().count(),
        findings,
        mistakes,
    }
}
