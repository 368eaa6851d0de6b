//! Berth on a Kubernetes control plane with one fault injected after another. Each round submits
//! gangs; at its end every gang has to have run as a whole, with no GPU allocated twice.

use crate::kube::{ADMIN, Cluster, Kwok, Objects, Part, Wire};
use crate::{Postgres, Server, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

const NODES: u32 = 6;
const GPUS: u64 = 8;
const GANGS: u32 = 4;
const SIZE: u32 = 4;
/// A gang for which there is never enough, so that none of its pods may ever get a node.
const TOO_LARGE: &str = "too-large";
/// How long a replica may be about before the one that leads is killed again.
const KILL_EVERY: Duration = Duration::from_secs(5);

/// What a round injects into the cluster or into Berth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The API server is killed and started again.
    ApiServerRestart,
    /// Etcd answers nothing for a while.
    EtcdPause,
    /// Berth loses its watches and the answers to its writes.
    ConnectionLoss,
    /// Another scheduler binds pods that Berth is about to bind.
    ForeignBinding,
    /// A node is deleted while a gang runs on it, and is created again.
    NodeDeletion,
    /// The leading replica is killed.
    LeaderKill,
}

impl Fault {
    pub const ALL: [Fault; 6] = [
        Fault::ApiServerRestart,
        Fault::EtcdPause,
        Fault::ConnectionLoss,
        Fault::ForeignBinding,
        Fault::NodeDeletion,
        Fault::LeaderKill,
    ];
}

/// What was observed over all rounds.
#[derive(Debug, Clone, Default)]
pub struct ChaosReport {
    pub rounds: u32,
    pub leaders_killed: u32,
    /// Pods that another scheduler bound before Berth did.
    pub bound_by_others: u32,
    pub gangs: u32,
    /// Pods in all lists that were read, each time counted.
    pub pods_observed: u64,
    /// Nodes with more GPUs allocated than they have, in any list.
    pub overcommitted_nodes: u64,
    /// Bound pods of the gang that never fits.
    pub oversized_gang_pods_bound: u64,
    /// Jobs of a round that did not finish, and what was left of them.
    pub lost_jobs: Vec<String>,
    /// Jobs that the server still lists as active when all rounds are over.
    pub jobs_left: u64,
    /// The longest that a gang was seen with some of its pods bound and others not.
    pub longest_partial_gang: Duration,
}

impl ChaosReport {
    /// What went wrong; nothing, if all is well.
    pub fn violations(&self) -> Vec<String> {
        let counts = [
            (self.overcommitted_nodes, "times a node had more GPUs allocated than it has"),
            (self.oversized_gang_pods_bound, "pods of a gang that never fits were bound"),
            (self.jobs_left, "jobs are still active in the server's books"),
        ];
        let wrong = counts.into_iter().filter(|(count, _)| *count > 0);
        let wrong = wrong.map(|(count, what)| format!("{count} {what}"));
        wrong.chain(self.lost_jobs.iter().map(|job| format!("lost: {job}"))).collect()
    }
}

/// Injects one fault a round. `on_round` is called before each.
pub fn run_chaos(program: &Path, rounds: u32, on_round: impl Fn(u32, Fault)) -> ChaosReport {
    let mut setup = Setup::start(program);
    let is_over = AtomicBool::new(false);
    let mut report = ChaosReport::default();
    let objects = setup.cluster.objects().clone();
    thread::scope(|scope| {
        let observer = scope.spawn(|| observe(&objects, &is_over));
        for round in 0..rounds {
            let fault = Fault::ALL[round as usize % Fault::ALL.len()];
            on_round(round, fault);
            setup.round(round, fault, &mut report);
        }
        is_over.store(true, Relaxed);
        let observed = observer.join().expect("the observer does not fail");
        report.pods_observed = observed.pods;
        report.overcommitted_nodes = observed.overcommitted_nodes;
        report.oversized_gang_pods_bound = observed.oversized_gang_pods_bound;
        report.longest_partial_gang = observed.longest_partial_gang;
    });
    report.jobs_left = setup.jobs_left();
    report
}

struct Setup {
    cluster: Cluster,
    wire: Wire,
    replicas: Vec<Server>,
    killed_at: Instant,
    _postgres: Postgres,
}

impl Setup {
    fn start(program: &Path) -> Setup {
        let cluster = Cluster::builder()
            .controller_manager()
            .kwok(Kwok::all_nodes().without_leases())
            .start();
        for node in 0..NODES {
            cluster.apply(&self::node(node));
        }
        until("the nodes are free of taints", || {
            let nodes = cluster.get(&["nodes"]);
            nodes["items"]
                .as_array()
                .is_some_and(|nodes| nodes.iter().all(|node| node["spec"]["taints"] == Value::Null))
        });
        let wire = Wire::to(cluster.port_of_api_server());
        let through = cluster.kubeconfig_through(ADMIN, wire.port());
        let postgres = Postgres::start();
        let database = postgres.database();
        let args = ["--database", database.as_str(), "--lease-duration", "3s"];
        let replicas = (0..2).map(|_| Server::start_on(program, &through, &args)).collect();
        cluster.apply(&batch_job(TOO_LARGE, NODES + 1, GPUS, true));
        Setup { cluster, wire, replicas, killed_at: Instant::now(), _postgres: postgres }
    }

    fn round(&mut self, round: u32, fault: Fault, report: &mut ChaosReport) {
        let gangs: Vec<String> = (0..GANGS).map(|gang| format!("r{round}-{gang}")).collect();
        let alone = format!("r{round}-alone");
        let mut all: String = gangs.iter().map(|name| batch_job(name, SIZE, 2, true)).collect();
        all.push_str(&batch_job(&alone, SIZE, 0, false));
        // Berth's own bindings are delayed, so that the other scheduler comes first.
        self.wire.hold(fault == Fault::ForeignBinding);
        self.cluster.apply(&all);
        // The fault meets Berth at another point of its work in each round.
        sleep(Duration::from_millis(u64::from(round * 137 % 700)));
        self.inject(fault, &alone, report);
        for name in gangs.iter().chain([&alone]) {
            let done = || {
                if self.killed_at.elapsed() >= KILL_EVERY {
                    report.leaders_killed += u32::from(self.kill_leader());
                }
                let job = self.cluster.find(&["job", name]).unwrap_or_default();
                job["status"]["succeeded"] == SIZE
            };
            if !crate::eventually(done) {
                report.lost_jobs.push(self.remains(name));
            }
        }
        report.rounds += 1;
        report.gangs += GANGS;
        for name in gangs.iter().chain([&alone]) {
            let job = ["job", name, "--wait=false", "--ignore-not-found"];
            crate::eventually(|| self.cluster.objects().try_delete(&job).is_ok());
        }
    }

    fn inject(&mut self, fault: Fault, alone: &str, report: &mut ChaosReport) {
        match fault {
            Fault::ApiServerRestart => {
                self.cluster.kill(Part::ApiServer);
                self.cluster.start(Part::ApiServer);
            }
            Fault::EtcdPause => {
                self.cluster.pause(Part::Etcd);
                sleep(Duration::from_secs(3));
                self.cluster.resume(Part::Etcd);
            }
            Fault::ConnectionLoss => {
                for _ in 0..5 {
                    self.wire.cut();
                    sleep(Duration::from_millis(150));
                }
            }
            Fault::ForeignBinding => {
                until("somebody else has bound a pod", || {
                    let bound = self.bind_others(alone);
                    report.bound_by_others += bound;
                    bound > 0
                });
                self.wire.hold(false);
            }
            Fault::NodeDeletion => {
                let lost = self.a_busy_node();
                let name = format!("n{lost}");
                self.cluster.delete(&["node", &name, "--wait=false"]);
                sleep(Duration::from_millis(500));
                until("the node is back", || {
                    self.cluster.apply(&node(lost));
                    let node = self.cluster.find(&["node", &name]).unwrap_or_default();
                    node["metadata"]["uid"].is_string()
                        && node["metadata"]["deletionTimestamp"].is_null()
                });
            }
            Fault::LeaderKill => {
                until("a replica leads", || self.replicas.iter().any(Server::is_ready));
                report.leaders_killed += u32::from(self.kill_leader());
            }
        }
    }

    /// Whether a replica led.
    fn kill_leader(&mut self) -> bool {
        let Some(leader) = self.replicas.iter_mut().find(|replica| replica.is_ready()) else {
            return false;
        };
        leader.kill();
        // The other one has the time to take over.
        sleep(Duration::from_millis(700));
        leader.start_again();
        self.killed_at = Instant::now();
        true
    }

    /// What there is of a job that did not end: its pods, and what Berth knows of it.
    fn remains(&self, job: &str) -> String {
        let columns = "custom-columns=:.metadata.name,:.spec.nodeName,:.status.phase,\
                       :.metadata.deletionTimestamp,:.status.conditions[*].message";
        let selector = format!("job={job}");
        let pods = self.cluster.kubectl(&["get", "pods", "-l", &selector, "-o", columns]);
        let known = self.replicas.iter().find(|one| one.is_ready());
        let known = known.map_or_else(Vec::new, Server::jobs);
        let known =
            known.iter().filter(|known| known["name"].as_str().is_some_and(|n| n.contains(job)));
        let known: Vec<&Value> = known.collect();
        format!("{job}\n{}{known:#?}", String::from_utf8_lossy(&pods.stdout))
    }

    /// As a scheduler would that knows nothing of Berth. Returns how many pods it was the first to
    /// bind.
    fn bind_others(&self, job: &str) -> u32 {
        let mut bound = 0;
        let pods = self.cluster.find(&["pods", "-l", &format!("job={job}")]).unwrap_or_default();
        let pods = pods["items"].as_array().into_iter().flatten();
        for pod in pods.filter(|pod| pod["spec"]["nodeName"].is_null()) {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name },
                "target": { "apiVersion": "v1", "kind": "Node", "name": "n0" },
            });
            let path = format!("/api/v1/namespaces/default/pods/{name}/binding");
            bound += u32::from(self.cluster.post(&path, &binding.to_string()));
        }
        bound
    }

    fn a_busy_node(&self) -> u32 {
        let pods = self.cluster.find(&["pods"]).unwrap_or_default();
        let placed = pods["items"].as_array().into_iter().flatten();
        let placed = placed.filter(|pod| pod["status"]["phase"] == "Running");
        let mut nodes = placed.filter_map(|pod| pod["spec"]["nodeName"].as_str());
        nodes.next().and_then(|name| name[1..].parse().ok()).unwrap_or(0)
    }

    /// Active jobs in the server's books, but for the gang that never fits.
    fn jobs_left(&self) -> u64 {
        let leader = |replica: &&Server| replica.is_ready();
        until("a replica leads", || self.replicas.iter().any(|one| leader(&one)));
        let mut left = u64::MAX;
        let settled = || {
            let Some(leader) = self.replicas.iter().find(leader) else { return false };
            let jobs = leader.jobs();
            let mine =
                |job: &&Value| !job["name"].as_str().is_some_and(|n| n.starts_with(TOO_LARGE));
            left = jobs.iter().filter(mine).count() as u64;
            left == 0
        };
        crate::eventually(settled);
        left
    }
}

#[derive(Default)]
struct Observed {
    pods: u64,
    overcommitted_nodes: u64,
    oversized_gang_pods_bound: u64,
    longest_partial_gang: Duration,
    /// Since when a gang has been bound in part.
    partial_since: BTreeMap<String, Instant>,
}

/// Reads all pods again and again.
fn observe(objects: &Objects, is_over: &AtomicBool) -> Observed {
    let mut observed = Observed::default();
    while !is_over.load(Relaxed) {
        // While the API server is away there is nothing to be seen.
        if let Some(pods) = objects.find(&["pods"]) {
            observed.add(pods["items"].as_array().map_or(&[], Vec::as_slice));
        }
        sleep(Duration::from_millis(250));
    }
    observed
}

impl Observed {
    fn add(&mut self, pods: &[Value]) {
        self.pods += pods.len() as u64;
        let mut allocated: BTreeMap<&str, u64> = BTreeMap::new();
        let mut gangs: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for pod in pods {
            let labels = &pod["metadata"]["labels"];
            let job = labels["job"].as_str().unwrap_or_default();
            let node = pod["spec"]["nodeName"].as_str();
            let is_over = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
            if let Some(node) = node.filter(|_| !is_over) {
                let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
                let gpus = limits["nvidia.com/gpu"].as_str().and_then(|gpus| gpus.parse().ok());
                *allocated.entry(node).or_default() += gpus.unwrap_or(0u64);
                self.oversized_gang_pods_bound += u64::from(job == TOO_LARGE);
            }
            if labels["gang"] == "true" {
                let (bound, all) = gangs.entry(job).or_default();
                *bound += u64::from(node.is_some());
                *all += 1;
            }
        }
        self.overcommitted_nodes += allocated.values().filter(|gpus| **gpus > GPUS).count() as u64;
        self.note_partial(&gangs);
    }

    fn note_partial(&mut self, gangs: &BTreeMap<&str, (u64, u64)>) {
        let now = Instant::now();
        for (gang, (bound, all)) in gangs {
            if *bound == 0 || bound == all {
                self.partial_since.remove(*gang);
                continue;
            }
            let since = *self.partial_since.entry((*gang).to_owned()).or_insert(now);
            self.longest_partial_gang = self.longest_partial_gang.max(now - since);
        }
    }
}

fn node(number: u32) -> String {
    format!(
        "apiVersion: v1
kind: Node
metadata: {{name: n{number}}}
status:
  capacity: &amounts {{cpu: 64, memory: 512Gi, pods: 110, nvidia.com/gpu: {GPUS}}}
  allocatable: *amounts
  conditions: [{{type: Ready, status: 'True'}}]
---
"
    )
}

/// A batch Job: its controller makes a pod again that is lost.
fn batch_job(name: &str, size: u32, gpus: u64, is_gang: bool) -> String {
    let mut marks = "testbed.berth.dev/runs: 1s".to_owned();
    if is_gang {
        let _ = write!(marks, ", berth.dev/gang: {name}, berth.dev/gang-size: '{size}'");
    }
    format!(
        "apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  completions: {size}
  parallelism: {size}
  completionMode: Indexed
  backoffLimitPerIndex: 100
  template:
    metadata:
      labels: {{job: {name}, gang: '{is_gang}', size: '{size}'}}
      annotations: {{{marks}}}
    spec:
      schedulerName: berth
      restartPolicy: Never
      containers:
      - {{name: main, image: none, resources: {{limits: {{cpu: 1, nvidia.com/gpu: {gpus}}}}}}}
---
"
    )
}
