//! A large cluster, and pods that come and go on it.

use super::load::{Load, NAMESPACE, Shape};
use super::watcher::Watcher;
use crate::report::{Row, Section, Target};
use anyhow::{Context, Result, ensure};
use berth_kube::Api;
use berth_testbed::Server;
use berth_testbed::kube::{ADMIN, Cluster, Usage};
use futures_util::StreamExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Pods that end, and others that come, in each second of churn.
const PER_SECOND: u32 = 20;
const BIND_TIMEOUT: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
pub struct Scale {
    pub nodes: u32,
    pub pods: u32,
    pub churn: Duration,
}

pub fn section(runtime: &Runtime, berth: &Path, scale: Scale) -> Result<Section> {
    let Scale { nodes, pods, churn } = scale;
    let load = Load { nodes, pods, shape: Shape::Single };
    let cluster = super::cluster();
    let kubeconfig = cluster.kubeconfig(ADMIN);
    let api = runtime.block_on(Api::connect(Some(&kubeconfig), None))?;
    eprintln!("{nodes} nodes and {pods} pods are made");
    runtime.block_on(load.prepare(&api, "berth"))?;
    let mut watcher = runtime.block_on(async { Watcher::begin(&api) });
    runtime.block_on(watcher.until(1, Duration::from_secs(2)));
    let began = Instant::now();
    let server = Server::start_on(berth, &kubeconfig, &[]);
    let room = (nodes * 8).min(pods) as usize;
    ensure!(runtime.block_on(watcher.until(1, BIND_TIMEOUT)), "nothing was bound");
    let first = began.elapsed();
    ensure!(
        runtime.block_on(watcher.until(room, BIND_TIMEOUT)),
        "only {} of {room} pods were bound",
        watcher.bound.len()
    );
    let filled = began.elapsed() - first;
    let full = plans(runtime, &server)?;
    let churned = churn_for(runtime, &cluster, &api, &server, &mut watcher, load, churn)?;
    let after = plans(runtime, &server)?;
    ensure!(watcher.twice == 0, "{} pods were bound twice", watcher.twice);
    let made = after.count - full.count;
    let mut rows = vec![
        Row::new("scale: first bind after the start", first.as_secs_f64(), "s", Target::None),
        Row::new("scale: pods a second", room as f64 / filled.as_secs_f64(), "1/s", Target::None),
        Row::new("scale: all planning until full", full.seconds, "s", Target::None),
        Row::new(
            "scale: mean plan during churn",
            (after.seconds - full.seconds) * 1_000.0 / made.max(1.0),
            "ms",
            Target::None,
        ),
        Row::new("scale: pods that came and went", churned.pods as f64, "", Target::None),
    ];
    rows.extend(churned.rows());
    let title = format!("{pods} pods on {nodes} nodes");
    let text = format!(
        "Nodes of eight GPUs that are only written down, no Leases. When {room} pods are bound and \
         the rest waits, {PER_SECOND} that run are deleted and as many come in each second, for \
         {} s. Resident memory is read every {} s.",
        churn.as_secs(),
        LOOK_EVERY.as_secs()
    );
    Ok(Section { title: title.into(), text, rows })
}

struct Planned {
    count: f64,
    seconds: f64,
}

fn plans(runtime: &Runtime, server: &Server) -> Result<Planned> {
    let text = runtime.block_on(server.client().metrics())?;
    let figure = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        value.with_context(|| format!("the server has no figure {name}"))
    };
    Ok(Planned {
        count: figure("berth_plan_duration_seconds_count ")?,
        seconds: figure("berth_plan_duration_seconds_sum ")?,
    })
}

#[derive(Default)]
struct Churned {
    pods: u64,
    /// In bytes.
    resident: Vec<u64>,
    /// Cores that Berth kept busy on average.
    cpu: f64,
}

impl Churned {
    fn rows(&self) -> Vec<Row> {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let of = |part: &[u64]| {
            let mut sorted = part.to_vec();
            sorted.sort_unstable();
            sorted.get(sorted.len() / 2).copied().unwrap_or(0)
        };
        // A tenth at each end: one reading says little.
        let tenth = (self.resident.len() / 10).max(1);
        let first = of(&self.resident[..tenth.min(self.resident.len())]);
        let last = of(&self.resident[self.resident.len().saturating_sub(tenth)..]);
        let most = self.resident.iter().copied().max().unwrap_or(0);
        let least = self.resident.iter().copied().min().unwrap_or(0);
        let beside = |one: u64, other: u64| one as f64 / other.max(1) as f64;
        let (grown, range) = (beside(last, first), beside(most, least));
        vec![
            Row::new("scale: resident as churn begins", mb(first), "MB", Target::None),
            Row::new("scale: resident as churn ends", mb(last), "MB", Target::None),
            Row::new("scale: resident, most", mb(most), "MB", Target::None),
            Row::new("scale: end beside beginning", grown, "times", Target::Within(0.95, 1.05)),
            Row::new("scale: most beside least", range, "times", Target::AtMost(1.05)),
            Row::new("scale: CPU of berth during churn", self.cpu, "cores", Target::None),
        ]
    }
}

fn churn_for(
    runtime: &Runtime,
    cluster: &Cluster,
    api: &Api,
    server: &Server,
    watcher: &mut Watcher,
    load: Load,
    time: Duration,
) -> Result<Churned> {
    let mut churned = Churned::default();
    let used = || Usage::of(server.process()).context("berth has ended");
    let before = used()?;
    let began = Instant::now();
    let mut looked = began;
    let mut number = load.pods;
    let mut oldest = 0;
    while began.elapsed() < time {
        let second = Instant::now();
        let gone: Vec<String> = (oldest..oldest + PER_SECOND).map(|n| format!("p{n}")).collect();
        let gone: Vec<String> =
            gone.into_iter().filter(|name| watcher.bound.contains_key(name)).collect();
        oldest += PER_SECOND;
        runtime.block_on(remove(api, &gone));
        runtime.block_on(load.more(api, "berth", number..number + gone.len() as u32))?;
        number += gone.len() as u32;
        churned.pods += gone.len() as u64;
        let bound = watcher.bound.len() + gone.len();
        // Those that waited longest get what has become free.
        ensure!(runtime.block_on(watcher.until(bound, BIND_TIMEOUT)), "a place stays free");
        if looked.elapsed() >= LOOK_EVERY {
            looked = Instant::now();
            let usage = used()?;
            churned.resident.push(usage.resident_bytes);
            let etcd = cluster.usage(berth_testbed::kube::Part::Etcd).resident_bytes / 1_000_000;
            eprintln!(
                "churn: {:.0} s, berth {} MB, etcd {etcd} MB",
                began.elapsed().as_secs_f64(),
                usage.resident_bytes / 1_000_000
            );
        }
        std::thread::sleep(Duration::from_secs(1).saturating_sub(second.elapsed()));
    }
    let cpu = used()?.cpu.saturating_sub(before.cpu);
    churned.cpu = cpu.as_secs_f64() / began.elapsed().as_secs_f64();
    Ok(churned)
}

async fn remove(api: &Api, names: &[String]) {
    futures_util::stream::iter(names)
        .for_each_concurrent(16, async |name| {
            let options = serde_json::json!({ "gracePeriodSeconds": 0 });
            let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}");
            if let Err(error) = api.delete(&path, &options).await {
                eprintln!("{error}");
            }
        })
        .await;
}
