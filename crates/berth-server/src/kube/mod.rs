//! A Kubernetes cluster as a site: nodes and pods are followed, pods are bound and evicted.
//!
//! The API server is the truth about what runs where, the log about what was asked for and decided.
//! A server that starts lists everything before it plans.

mod gang;
mod mirror;
mod nodes;
mod orders;
mod read;
mod reasons;
mod sight;

use crate::engine::{self, BootError, Core, Inlet, Running, Setup, Site, Turn};
use crate::serve::Error;
use crate::setup;
use berth_kube::object::{Node, Pod};
use berth_kube::{Api, Change, Seen, follow};
use berth_model::{Cause, Event, LeaseId, Micros, Name, Rejected, Span};
use berth_node::{Ended, Observed};
use mirror::Mirror;
use sight::{NodeSight, PodSight};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/pods";
/// News that are read before anybody has taken them in.
const AHEAD: usize = 64;

/// Which cluster, and which of its pods.
#[derive(Debug, Clone)]
pub struct Options {
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
    /// Pods that name one of these as their scheduler are ours.
    pub scheduler_names: Vec<String>,
    /// The queue of pods that name none.
    pub queue: String,
}

/// A cluster that was listed once, and is followed from there.
pub struct Cluster {
    api: Api,
    reader: Arc<read::Reader>,
    queue: Name,
    nodes: mpsc::Receiver<Seen<Node>>,
    pods: mpsc::Receiver<Seen<Pod>>,
    first: First,
    follows: Follows,
}

/// What there was when the server started.
struct First {
    nodes: Vec<NodeSight>,
    pods: Vec<PodSight>,
}

/// The tasks that follow the cluster; they end with this.
#[derive(Default)]
pub struct Follows(Vec<JoinHandle<()>>);

impl Drop for Follows {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl Cluster {
    /// Finds the API server and lists what there is.
    pub async fn connect(options: &Options) -> berth_kube::Result<Cluster> {
        let api = Api::connect(options.kubeconfig.as_deref(), options.context.as_deref()).await?;
        // Whatever is wrong with our access is said now, not tried for ever.
        let _: serde::de::IgnoredAny = api.get("/version").await?;
        let mut follows = Follows::default();
        let (tell_nodes, mut nodes) = mpsc::channel(AHEAD);
        let (tell_pods, mut pods) = mpsc::channel(AHEAD);
        let nothing = String::new;
        let following = follow::<Node>(api.clone(), NODES.to_owned(), nothing(), tell_nodes);
        follows.0.push(tokio::spawn(following));
        let following = follow::<Pod>(api.clone(), PODS.to_owned(), nothing(), tell_pods);
        follows.0.push(tokio::spawn(following));
        let reader = Arc::new(read::Reader::new(&options.scheduler_names));
        let first = First {
            nodes: listed(&mut nodes).await.iter().filter_map(|node| reader.node(node)).collect(),
            pods: listed(&mut pods).await.iter().map(|pod| reader.pod(pod)).collect(),
        };
        let queue = Name::new(&options.queue);
        Ok(Cluster { api, reader, queue, nodes, pods, first, follows })
    }

    /// Starts the loop on it.
    pub async fn begin(
        self,
        setup: Setup,
        prices: &BTreeMap<Name, Micros>,
    ) -> Result<(Running, Follows), Error> {
        let Cluster { api, reader, queue, nodes, pods, first, mut follows } = self;
        let (orders, taken) = mpsc::unbounded_channel();
        let mirror = Arc::new(Mutex::new(Mirror::new(orders, queue)));
        let prices = prices.clone();
        let mut told = None;
        let running = engine::begin(setup, |inlet| {
            told = Some(inlet.clone());
            Kubernetes { mirror: mirror.clone(), inlet, first: Some(first), prices }
        });
        let running = running.await.map_err(Error::Boot)?;
        let inlet = told.expect("the loop was begun");
        let (news, to) = (inlet.clone(), mirror.clone());
        let read = reader.clone();
        follows.0.push(tokio::spawn(pump(nodes, move |seen| {
            let seen = sights(seen, |node| read.node(node));
            let to = to.clone();
            news.tell(move |turn| lock(&to).see_nodes(turn, seen));
        })));
        let telling = reasons::tell(running.handle.clone(), mirror.clone());
        follows.0.push(tokio::spawn(telling));
        let (news, to) = (inlet.clone(), mirror);
        follows.0.push(tokio::spawn(pump(pods, move |seen| {
            let seen = sights(seen, |pod| Some(reader.pod(pod)));
            let to = to.clone();
            news.tell(move |turn| lock(&to).see_pods(turn, seen));
        })));
        let bound = move |bound| inlet.tell(move |turn| Mirror::bound(turn, bound));
        follows.0.push(tokio::spawn(orders::work(api, taken, bound)));
        Ok((running, follows))
    }
}

/// The first thing that is told: everything there is.
async fn listed<T>(seen: &mut mpsc::Receiver<Seen<T>>) -> Vec<T> {
    match seen.recv().await {
        Some(Seen::All(all)) => all,
        Some(Seen::Changes(_)) | None => Vec::new(),
    }
}

async fn pump<T>(mut seen: mpsc::Receiver<Seen<T>>, tell: impl Fn(Seen<T>)) {
    while let Some(news) = seen.recv().await {
        tell(news);
    }
}

/// What was seen, as far as it can be read.
fn sights<T, S>(seen: Seen<T>, read: impl Fn(&T) -> Option<S>) -> Seen<S> {
    match seen {
        Seen::All(all) => Seen::All(all.iter().filter_map(read).collect()),
        Seen::Changes(changes) => {
            let changes = changes.iter().filter_map(|change| match change {
                Change::Put(object) => read(object).map(Change::Put),
                Change::Gone(object) => read(object).map(Change::Gone),
            });
            Seen::Changes(changes.collect())
        }
    }
}

/// What the loop knows of the cluster.
struct Kubernetes {
    mirror: Arc<Mutex<Mirror>>,
    inlet: Inlet,
    first: Option<First>,
    prices: BTreeMap<Name, Micros>,
}

impl Site for Kubernetes {
    fn last_job(&self) -> u64 {
        0
    }

    fn greet(&mut self, turn: &mut Turn<'_>) -> Result<(), Rejected> {
        let snapshot = turn.core.state.snapshot();
        let mut events = setup::rules(&snapshot, &self.prices);
        if snapshot.topologies.is_empty()
            && let Some(first) = &self.first
        {
            events.push(Event::TopologySet { topologies: topologies(&first.nodes) });
        }
        turn.all(events)?;
        if let Some(First { nodes, pods }) = self.first.take() {
            lock(&self.mirror).begin(turn, nodes, pods);
        }
        Ok(())
    }

    fn take_over(&mut self, core: &Core, _: &Inlet) -> Result<(), BootError> {
        // What was decided and not done. Where it was done, the API server says so.
        for (lease, live) in core.jobs.values().flat_map(|job| &job.leases) {
            if live.row.started.is_none() {
                self.start(core, *lease);
            }
            if let Some(cause) = live.stopping {
                let job = &core.jobs[&lease.job];
                let grace = if job.kill { Span::ZERO } else { job.detail.run.grace };
                self.stop(*lease, cause, grace);
            }
        }
        Ok(())
    }

    fn start(&self, core: &Core, lease: LeaseId) {
        lock(&self.mirror).start(core, lease);
    }

    fn stop(&self, lease: LeaseId, cause: Cause, grace: Span) {
        if !lock(&self.mirror).stop(lease, cause, grace) {
            return;
        }
        let mut ended = Ended::lost(lease, crate::clock::now(), "it had no pod".to_owned());
        ended.asked = Some(cause);
        self.inlet.observed(Observed::Ended(Box::new(ended)));
    }

    fn acknowledge(&self, _: LeaseId) {}
}

fn lock(mirror: &Mutex<Mirror>) -> MutexGuard<'_, Mirror> {
    mirror.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The labels that say where nodes are, largest place first. A level that no node has a label for is
/// left out: what lies below it would lie nowhere.
fn topologies(nodes: &[NodeSight]) -> BTreeMap<Name, Vec<Name>> {
    let is_used = |key: &&str| nodes.iter().any(|node| node.spec.labels.contains_key(*key));
    let levels = berth_kube::node::TOPOLOGY_KEYS.iter().copied().filter(is_used);
    [("default".into(), levels.map(Name::new).collect())].into()
}
