//! Berth on a Kubernetes control plane that is struck again and again: gangs come all the time, and
//! at the end of each round every one of them has to have run, whole, with nothing given twice.

use crate::kube::{ADMIN, Cluster, Kwok, Part, Tool, Wire};
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

/// What is done to the cluster or to Berth in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blow {
    /// The API server is killed and started again.
    ApiServer,
    /// Etcd answers nothing for a while.
    Etcd,
    /// Berth loses its watches and the answers to its writes.
    Wire,
    /// Somebody else binds pods of ours.
    Rogue,
    /// A node is deleted under a gang, and comes again.
    Node,
    /// The replica that leads is killed.
    Leader,
}

impl Blow {
    pub const ALL: [Blow; 6] =
        [Blow::ApiServer, Blow::Etcd, Blow::Wire, Blow::Rogue, Blow::Node, Blow::Leader];
}

/// What was seen over all rounds.
#[derive(Debug, Clone, Default)]
pub struct Siege {
    pub rounds: u32,
    pub leaders_killed: u32,
    /// Pods that somebody else bound before Berth did.
    pub taken_away: u32,
    pub gangs: u32,
    /// Pods that were looked at, over all looks.
    pub looks: u64,
    /// Nodes that had more GPUs given than they have, at any look.
    pub given_twice: u64,
    /// Pods of the gang that never fits which had a node.
    pub halves: u64,
    /// Jobs of a round that did not come to their end, and what was left of them.
    pub lost: Vec<String>,
    /// Jobs that are neither over nor waiting for a reason when all rounds are over.
    pub left_over: u64,
    /// The longest that a gang was seen with some of its pods bound and others not.
    pub longest_half: Duration,
}

impl Siege {
    /// What went wrong; nothing, if all is well.
    pub fn faults(&self) -> Vec<String> {
        let counts = [
            (self.given_twice, "times a GPU was given twice"),
            (self.halves, "pods of a gang that never fits were bound"),
            (self.left_over, "jobs are left over in the books"),
        ];
        let wrong = counts.into_iter().filter(|(count, _)| *count > 0);
        let wrong = wrong.map(|(count, what)| format!("{count} {what}"));
        wrong.chain(self.lost.iter().map(|job| format!("lost: {job}"))).collect()
    }
}

/// Strikes so many rounds. `tell` hears of each.
pub fn besiege(program: &Path, rounds: u32, tell: impl Fn(u32, Blow)) -> Siege {
    let mut field = Field::prepare(program);
    let is_over = AtomicBool::new(false);
    let mut siege = Siege::default();
    let kubectl = field.cluster.tool("kubectl", ADMIN);
    thread::scope(|scope| {
        let looker = scope.spawn(|| look(&kubectl, &is_over));
        for round in 0..rounds {
            let blow = Blow::ALL[round as usize % Blow::ALL.len()];
            tell(round, blow);
            field.round(round, blow, &mut siege);
        }
        is_over.store(true, Relaxed);
        let seen = looker.join().expect("looking does not fail");
        siege.looks = seen.looks;
        siege.given_twice = seen.given_twice;
        siege.halves = seen.halves;
        siege.longest_half = seen.longest_half;
    });
    siege.left_over = field.left_over();
    siege
}

struct Field {
    cluster: Cluster,
    wire: Wire,
    replicas: Vec<Server>,
    killed_at: Instant,
    _postgres: Postgres,
}

impl Field {
    fn prepare(program: &Path) -> Field {
        let cluster = Cluster::builder()
            .controller_manager()
            .kwok(Kwok::all_nodes().without_leases())
            .start();
        for node in 0..NODES {
            cluster.apply(&self::node(node));
        }
        until("the nodes are free of taints", || {
            let nodes = cluster.json(&["get", "nodes"]);
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
        Field { cluster, wire, replicas, killed_at: Instant::now(), _postgres: postgres }
    }

    fn round(&mut self, round: u32, blow: Blow, siege: &mut Siege) {
        let gangs: Vec<String> = (0..GANGS).map(|gang| format!("r{round}-{gang}")).collect();
        let alone = format!("r{round}-alone");
        let mut all: String = gangs.iter().map(|name| batch_job(name, SIZE, 2, true)).collect();
        all.push_str(&batch_job(&alone, SIZE, 0, false));
        // What Berth is about to bind somebody else binds first.
        self.wire.hold(blow == Blow::Rogue);
        self.cluster.apply(&all);
        // Not always at the same moment of what Berth is about to do.
        sleep(Duration::from_millis(u64::from(round * 137 % 700)));
        self.strike(blow, &alone, siege);
        for name in gangs.iter().chain([&alone]) {
            let done = || {
                if self.killed_at.elapsed() >= KILL_EVERY {
                    siege.leaders_killed += u32::from(self.kill_leader());
                }
                let job = self.cluster.kubectl(&["get", "job", name, "-o", "json"]);
                let job: Value = serde_json::from_slice(&job.stdout).unwrap_or_default();
                job["status"]["succeeded"] == SIZE
            };
            if !crate::eventually(done) {
                siege.lost.push(self.remains(name));
            }
        }
        siege.rounds += 1;
        siege.gangs += GANGS;
        let names: Vec<&str> = gangs.iter().chain([&alone]).map(String::as_str).collect();
        self.cluster.kubectl(&[&["delete", "job", "--wait=false"], &names[..]].concat());
    }

    fn strike(&mut self, blow: Blow, alone: &str, siege: &mut Siege) {
        match blow {
            Blow::ApiServer => {
                self.cluster.kill(Part::ApiServer);
                self.cluster.start(Part::ApiServer);
            }
            Blow::Etcd => {
                self.cluster.pause(Part::Etcd);
                sleep(Duration::from_secs(3));
                self.cluster.resume(Part::Etcd);
            }
            Blow::Wire => {
                for _ in 0..5 {
                    self.wire.cut();
                    sleep(Duration::from_millis(150));
                }
            }
            Blow::Rogue => {
                until("somebody else has bound a pod", || {
                    let bound = self.bind_others(alone);
                    siege.taken_away += bound;
                    bound > 0
                });
                self.wire.hold(false);
            }
            Blow::Node => {
                let lost = self.a_busy_node();
                let name = format!("n{lost}");
                self.cluster.kubectl(&["delete", "node", &name, "--wait=false"]);
                sleep(Duration::from_millis(500));
                until("the node is back", || {
                    self.cluster.apply(&node(lost));
                    let node = self.cluster.kubectl(&["get", "node", &name, "-o", "json"]);
                    let node: Value = serde_json::from_slice(&node.stdout).unwrap_or_default();
                    node["metadata"]["uid"].is_string()
                        && node["metadata"]["deletionTimestamp"].is_null()
                });
            }
            Blow::Leader => {
                until("a replica leads", || self.replicas.iter().any(Server::is_ready));
                siege.leaders_killed += u32::from(self.kill_leader());
            }
        }
    }

    /// Whether one was there to be killed.
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
        let known = known.map_or(Value::Null, |leader| leader.json(&["ps", "-n", "1000"]));
        let known = known["jobs"].as_array().into_iter().flatten();
        let known = known.filter(|known| known["name"].as_str().is_some_and(|n| n.contains(job)));
        let known: Vec<&Value> = known.collect();
        format!("{job}\n{}{known:#?}", String::from_utf8_lossy(&pods.stdout))
    }

    /// As a scheduler would that knows nothing of Berth. Returns how many pods it was the first to
    /// bind.
    fn bind_others(&self, job: &str) -> u32 {
        let mut bound = 0;
        let pods =
            self.cluster.kubectl(&["get", "pods", "-l", &format!("job={job}"), "-o", "json"]);
        let pods: Value = serde_json::from_slice(&pods.stdout).unwrap_or_default();
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
        let pods = self.cluster.kubectl(&["get", "pods", "-o", "json"]);
        let pods: Value = serde_json::from_slice(&pods.stdout).unwrap_or_default();
        let placed = pods["items"].as_array().into_iter().flatten();
        let placed = placed.filter(|pod| pod["status"]["phase"] == "Running");
        let mut nodes = placed.filter_map(|pod| pod["spec"]["nodeName"].as_str());
        nodes.next().and_then(|name| name[1..].parse().ok()).unwrap_or(0)
    }

    /// Jobs in the books that nothing stands behind. What never fits waits for ever.
    fn left_over(&self) -> u64 {
        let leader = |replica: &&Server| replica.is_ready();
        until("a replica leads", || self.replicas.iter().any(|one| leader(&one)));
        let mut left = u64::MAX;
        let settled = || {
            let Some(leader) = self.replicas.iter().find(leader) else { return false };
            let jobs = leader.json(&["ps", "-n", "1000"]);
            let jobs = jobs["jobs"].as_array().cloned().unwrap_or_default();
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
struct Seen {
    looks: u64,
    given_twice: u64,
    halves: u64,
    longest_half: Duration,
    /// Since when gangs have been seen in part.
    half_since: BTreeMap<String, Instant>,
}

/// Looks at all pods again and again.
fn look(kubectl: &Tool, is_over: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    while !is_over.load(Relaxed) {
        let pods = kubectl.command().args(["get", "pods", "-o", "json"]).output();
        let pods = pods.expect("kubectl runs");
        // While the API server is away there is nothing to be seen.
        if let Ok(pods) = serde_json::from_slice::<Value>(&pods.stdout) {
            seen.take_in(pods["items"].as_array().map_or(&[], Vec::as_slice));
        }
        sleep(Duration::from_millis(250));
    }
    seen
}

impl Seen {
    fn take_in(&mut self, pods: &[Value]) {
        self.looks += pods.len() as u64;
        let mut given: BTreeMap<&str, u64> = BTreeMap::new();
        let mut gangs: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for pod in pods {
            let labels = &pod["metadata"]["labels"];
            let job = labels["job"].as_str().unwrap_or_default();
            let node = pod["spec"]["nodeName"].as_str();
            let is_over = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
            if let Some(node) = node.filter(|_| !is_over) {
                let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
                let gpus = limits["nvidia.com/gpu"].as_str().and_then(|gpus| gpus.parse().ok());
                *given.entry(node).or_default() += gpus.unwrap_or(0u64);
                self.halves += u64::from(job == TOO_LARGE);
            }
            if labels["gang"] == "true" {
                let (bound, all) = gangs.entry(job).or_default();
                *bound += u64::from(node.is_some());
                *all += 1;
            }
        }
        self.given_twice += given.values().filter(|gpus| **gpus > GPUS).count() as u64;
        self.note_halves(&gangs);
    }

    fn note_halves(&mut self, gangs: &BTreeMap<&str, (u64, u64)>) {
        let now = Instant::now();
        for (gang, (bound, all)) in gangs {
            if *bound == 0 || bound == all {
                self.half_since.remove(*gang);
                continue;
            }
            let since = *self.half_since.entry((*gang).to_owned()).or_insert(now);
            self.longest_half = self.longest_half.max(now - since);
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
