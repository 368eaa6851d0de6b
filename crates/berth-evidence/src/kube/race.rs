//! One scheduler, or none, on one load.

use super::calm::{CalmWait, Ticks};
use super::load::{Load, NAMESPACE, Shape};
use super::watcher::Watcher;
use crate::report::{Row, Target};
use anyhow::{Context, Result, ensure};
use berth_kube::Api;
use berth_model::PodRef;
use berth_testbed::kube::{ADMIN, Cluster, Part, Usage};
use futures_util::StreamExt;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Without any binding for this long, a run has failed.
const BIND_TIMEOUT: Duration = Duration::from_secs(120);
/// Events come behind the bindings, and not faster than the API server bears it.
const EVENTS_TIMEOUT: Duration = Duration::from_secs(180);
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// So long it is seen what the API server takes by itself.
const IDLE: Duration = Duration::from_secs(3);
/// Of this process, among the others.
const CLIENT: &str = "the client";

#[derive(Clone, Copy)]
pub enum Racer<'a> {
    /// No scheduler: bindings round robin.
    Bare {
        at_once: usize,
    },
    KubeScheduler,
    /// Without an event about each pod, as a bare binding has none, or with them.
    Berth {
        path: &'a Path,
        events: bool,
    },
}

impl Racer<'_> {
    pub fn name(&self) -> String {
        match self {
            Racer::Bare { at_once } => format!("bare, {at_once} at once"),
            Racer::KubeScheduler => "kube-scheduler".to_owned(),
            Racer::Berth { events: false, .. } => "berth, without events".to_owned(),
            Racer::Berth { events: true, .. } => "berth".to_owned(),
        }
    }

    fn scheduler_name(&self) -> &'static str {
        match self {
            Racer::Bare { .. } => "nobody",
            Racer::KubeScheduler => "default-scheduler",
            Racer::Berth { .. } => "berth",
        }
    }

    /// Whether an event is written about each pod.
    fn writes_events(&self) -> bool {
        matches!(self, Racer::KubeScheduler | Racer::Berth { events: true, .. })
    }
}

/// What was measured.
#[derive(Debug)]
pub struct Figures {
    pub per_second: f64,
    /// From the scheduler's start.
    pub first_bind: f64,
    pub most_nodes_per_gang: u32,
    /// Milliseconds per pod, of each process.
    cpu: BTreeMap<String, f64>,
    /// The same of the API server until all events are written, without what it takes by itself.
    /// None where none are written.
    pub api_with_events: Option<f64>,
    resident_mb: Option<f64>,
    /// How much the machine got done just before.
    pub pace: f64,
    /// What others on the same host took of the machine meanwhile.
    pub taken: f64,
}

impl Figures {
    pub fn cpu_of(&self, part: Part) -> f64 {
        self.cpu.get(part.program()).copied().unwrap_or(f64::NAN)
    }

    /// What the client took of the CPU, beside the API server that it keeps busy.
    pub fn client_beside_server(&self) -> f64 {
        self.cpu.get(CLIENT).copied().unwrap_or(f64::NAN) / self.cpu_of(Part::ApiServer)
    }

    pub fn rows(&self, who: &str, best_pace: f64) -> Vec<Row> {
        let mut rows =
            vec![Row::new(format!("{who}: pods a second"), self.per_second, "1/s", Target::None)];
        let name = format!("{who}: first bind after the start");
        rows.push(Row::new(name, self.first_bind, "s", Target::None));
        for (process, ms) in &self.cpu {
            let name = format!("{who}: CPU of {process} per pod");
            rows.push(Row::new(name, *ms, "ms", Target::None));
        }
        if let Some(ms) = self.api_with_events {
            let name = format!("{who}: CPU of kube-apiserver per pod, with its event");
            rows.push(Row::new(name, ms, "ms", Target::None));
        }
        if self.most_nodes_per_gang > 0 {
            let most = f64::from(self.most_nodes_per_gang);
            rows.push(Row::new(
                format!("{who}: nodes per gang, most"),
                most,
                "nodes",
                Target::None,
            ));
        }
        let name = format!("{who}: pace of the machine, beside its best");
        rows.push(Row::new(name, self.pace / best_pace, "", Target::None));
        let name = format!("{who}: of the CPU, taken by others on the host");
        rows.push(Row::new(name, 100.0 * self.taken, "%", Target::None));
        if let Some(resident) = self.resident_mb {
            rows.push(Row::new(format!("{who}: resident"), resident, "MB", Target::None));
        }
        rows
    }
}

/// Ends with the run.
struct Server {
    child: Child,
    _home: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn run(
    runtime: &Runtime,
    cluster: &mut Cluster,
    load: Load,
    racer: Racer<'_>,
    calm_wait: &mut CalmWait,
) -> Result<Figures> {
    let kubeconfig = cluster.kubeconfig(ADMIN);
    let api = runtime.block_on(Api::connect(Some(&kubeconfig), None))?;
    runtime.block_on(load.prepare(&api, racer.scheduler_name()))?;
    let mut watcher = runtime.block_on(async { Watcher::begin(&api) });
    // The list is behind it before anything is timed.
    runtime.block_on(watcher.until(1, Duration::from_millis(500)));
    let pace = calm_wait.wait();
    let idle = racer.writes_events().then(|| idle_share(cluster));
    let before = usages(cluster);
    let (own, ticks) = (client(), Ticks::now());
    let began = Instant::now();
    let mut server = None;
    match &racer {
        Racer::Bare { at_once } => {
            let pods = runtime.block_on(pods(&api))?;
            let binding = bind_all(api.clone(), pods, load.nodes, *at_once);
            runtime.spawn(binding);
        }
        Racer::KubeScheduler => cluster.start(Part::Scheduler),
        Racer::Berth { path, events } => server = Some(begin(path, &kubeconfig, *events)?),
    }
    let all = runtime.block_on(watcher.until(load.pods as usize, BIND_TIMEOUT));
    ensure!(all, "only {} of {} pods were bound", watcher.bound.len(), load.pods);
    ensure!(watcher.twice == 0, "{} pods were bound twice", watcher.twice);
    let mut cpu = BTreeMap::new();
    let each = |used: Duration| used.as_secs_f64() * 1_000.0 / f64::from(load.pods);
    for (part, usage) in usages(cluster) {
        let earlier = before.get(&part).map_or(Duration::ZERO, |usage| usage.cpu);
        cpu.insert(part.program().to_owned(), each(usage.cpu.saturating_sub(earlier)));
    }
    let taken = Ticks::now().taken_since(ticks);
    cpu.insert(CLIENT.to_owned(), each(client().saturating_sub(own)));
    let mut resident_mb = None;
    if let Some(server) = &server {
        let usage = Usage::of(server.child.id()).context("berth has ended")?;
        cpu.insert("berth".to_owned(), each(usage.cpu));
        resident_mb = Some(usage.resident_bytes as f64 / 1e6);
    }
    let mut api_with_events = None;
    if let Some(idle) = idle {
        runtime.block_on(until_events_are_written(&api, load.pods))?;
        let used = cluster.usage(Part::ApiServer).cpu.saturating_sub(before[&Part::ApiServer].cpu);
        api_with_events = Some(each(used.saturating_sub(began.elapsed().mul_f64(idle))));
    }
    let times = watcher.bound.values().map(|bound| bound.at);
    let first = times.clone().min().context("nothing was bound")?;
    let last = times.max().context("nothing was bound")?;
    let took = (last - first).as_secs_f64();
    Ok(Figures {
        per_second: f64::from(load.pods) / took,
        first_bind: (first - began).as_secs_f64(),
        most_nodes_per_gang: most_nodes_per_gang(&watcher, load.shape),
        cpu,
        api_with_events,
        resident_mb,
        pace,
        taken,
    })
}

/// How many cores the API server keeps busy while it is asked for nothing.
fn idle_share(cluster: &Cluster) -> f64 {
    let before = cluster.usage(Part::ApiServer).cpu;
    std::thread::sleep(IDLE);
    let used = cluster.usage(Part::ApiServer).cpu.saturating_sub(before);
    used.as_secs_f64() / IDLE.as_secs_f64()
}

#[derive(Deserialize)]
struct Events {
    metadata: EventsMeta,
    items: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventsMeta {
    #[serde(default)]
    remaining_item_count: u32,
}

/// They are written behind the bindings. Whoever leaves some out shall not look cheaper for it.
async fn until_events_are_written(api: &Api, pods: u32) -> Result<()> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/events?limit=1");
    let began = Instant::now();
    loop {
        let events: Events = api.get(&path).await?;
        let written = events.items.len() as u32 + events.metadata.remaining_item_count;
        if written >= pods {
            return Ok(());
        }
        ensure!(began.elapsed() < EVENTS_TIMEOUT, "only {written} of {pods} events were written");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn usages(cluster: &mut Cluster) -> BTreeMap<Part, Usage> {
    let mut usages = BTreeMap::new();
    for part in [Part::Etcd, Part::ApiServer, Part::Scheduler] {
        if cluster.is_running(part) {
            usages.insert(part, cluster.usage(part));
        }
    }
    usages
}

/// What this process has used: the watcher, and who posts bare bindings.
fn client() -> Duration {
    Usage::of(std::process::id()).map_or(Duration::ZERO, |usage| usage.cpu)
}

fn begin(berth: &Path, kubeconfig: &Path, events: bool) -> Result<Server> {
    let home = TempDir::with_prefix("berth-race-")?;
    let mut command = Command::new(berth);
    command.arg("kube");
    if !events {
        command.arg("--no-scheduled-events");
    }
    let child = command
        .args(["--listen", "127.0.0.1:0", "--home"])
        .arg(home.path())
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .stdout(Stdio::null())
        .spawn()
        .context("starting berth")?;
    Ok(Server { child, _home: home })
}

#[derive(Deserialize)]
struct Named {
    metadata: NamedMeta,
}

#[derive(Deserialize)]
struct NamedMeta {
    name: String,
    uid: String,
}

async fn pods(api: &Api) -> Result<Vec<PodRef>> {
    let listed = api.list::<Named>(&format!("/api/v1/namespaces/{NAMESPACE}/pods"), "").await?;
    let named = listed.items.into_iter().map(|pod| PodRef {
        namespace: NAMESPACE.to_owned(),
        name: pod.metadata.name,
        uid: pod.metadata.uid,
    });
    Ok(named.collect())
}

async fn bind_all(api: Api, pods: Vec<PodRef>, nodes: u32, at_once: usize) {
    let none = BTreeMap::new();
    let pods = futures_util::stream::iter(pods.into_iter().enumerate());
    pods.for_each_concurrent(at_once, async |(at, pod)| {
        let node = format!("n{}", at as u32 % nodes);
        if let Err(error) = api.bind(&pod, &node, &none).await {
            eprintln!("{error}");
        }
    })
    .await;
}

fn most_nodes_per_gang(watcher: &Watcher, shape: Shape) -> u32 {
    if shape == Shape::Single {
        return 0;
    }
    let mut gangs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for bound in watcher.bound.values() {
        let gang = bound.gang.as_deref().unwrap_or_default();
        gangs.entry(gang).or_default().insert(&bound.node);
    }
    gangs.values().map(BTreeSet::len).max().unwrap_or(0) as u32
}
