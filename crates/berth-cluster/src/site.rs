//! A Kubernetes cluster as a site: nodes and pods are followed, pods are bound and evicted.
//!
//! The API server is the truth about what runs where, the log about what was asked for and decided.
//! A server that starts lists everything before it plans.

use crate::actuate::reserve::Reserve;
use crate::actuate::{executor, managed, publish, reasons};
use crate::constraints::dynamic::StorageUpdate;
use crate::constraints::need;
use crate::observe::names::Names;
use crate::observe::reader::Reader;
use crate::observe::{
    Following, KindUpdate, PodFeed, RelatedObjects, Storage, Tasks, WATCH_BUFFER, dra, listed,
    listed_kinds, pump,
};
use crate::options::{Options, PodSettings};
use crate::shared::lock;
use crate::state::device_claims::Claims;
use crate::state::observation::Observation;
use crate::state::orders::OrderOutcome;
use crate::state::{ClusterState, ManagedPods, topology};
use crate::tenancy::ownership::QueueOwnership;
use crate::tenancy::{Teams, is_for_teams};
use crate::view::{ExternalQueues, NodePredicate, NodeView, Note, PodView, QueuedJob};
use crate::{crd, rbac};
use berth_engine::{
    self as engine, BootError, Core, FollowUps, InitialSync, Inlet, Running, Setup, Site, Turn,
    first_events,
};
use berth_kube::hypernode::Tree;
use berth_kube::object::{Node, Pod};
use berth_kube::{Api, Change, Seen, follow_in_binary};
use berth_model::{Cause, JobId, LeaseId, Micros, Name, Rejected, Span, Time};
use berth_node::{Ended, Observed};
use berth_service::Home;
use berth_service::Service;
use berth_service::Vault;
use berth_store::Store;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

const NODES_PATH: &str = "/api/v1/nodes";
const PODS_PATH: &str = "/api/v1/pods";
const TICK_INTERVAL: Duration = Duration::from_secs(1);
/// Nobody comes to a larger number of a job. What has one is not ours, and would use them all up.
const MAX_JOB_NUMBER: u64 = 1 << 48;

/// Why the loop could not start on a cluster.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    #[error(transparent)]
    Store(berth_store::Error),
    #[error(transparent)]
    Boot(BootError),
}

/// A cluster that was listed once, and is followed from there.
pub struct Cluster {
    api: Api,
    reader: Arc<Reader>,
    queue: Name,
    reserve: Reserve,
    /// What pods that Berth makes name as their scheduler.
    scheduler: String,
    jobs: PodSettings,
    nodes: mpsc::Receiver<Seen<Node>>,
    pods: mpsc::Receiver<Seen<Pod>>,
    related: RelatedObjects,
    told: mpsc::Receiver<KindUpdate>,
    first: First,
    dra: Option<(dra::Watches, Claims)>,
    storage: mpsc::Receiver<StorageUpdate>,
    follows: ClusterTasks,
}

/// What there was when the server started.
struct First {
    queues: ExternalQueues,
    notes: Vec<Note>,
    queued: Vec<QueuedJob>,
    topologies: BTreeMap<Name, Vec<Name>>,
    hypernodes: Tree,
    nodes: Vec<NodeView>,
    pods: Vec<PodView>,
    storage: Vec<StorageUpdate>,
}

/// The tasks that follow the cluster; they end with this.
#[derive(Default)]
pub struct ClusterTasks(Tasks, Option<crd::ControllerContext>);

impl ClusterTasks {
    /// Looks after objects of our own, now that there is somebody to take what they say.
    pub fn attend(&mut self, service: &Service) {
        if let Some(related) = self.1.take() {
            self.0.0.push(tokio::spawn(crd::run(service.clone(), related)));
        }
    }
}

/// Finds the API server.
pub async fn connect(options: &Options) -> berth_kube::Result<Api> {
    let api = Api::connect(options.kubeconfig.as_deref(), options.context.as_deref()).await?;
    // Whatever is wrong with our access is said now, not tried for ever.
    let _: serde::de::IgnoredAny = api.get("/version").await?;
    rbac::check(&api, options).await?;
    Ok(api)
}

impl Cluster {
    /// Lists what there is.
    pub async fn list(api: Api, options: &Options) -> Cluster {
        let mut follows = ClusterTasks::default();
        let (report_nodes, mut nodes) = mpsc::channel(WATCH_BUFFER);
        let (tell_pods, mut pods) = mpsc::channel(WATCH_BUFFER);
        let nothing = String::new;
        let following =
            follow_in_binary::<Node>(api.clone(), NODES_PATH.to_owned(), nothing(), report_nodes);
        follows.0.0.push(tokio::spawn(following));
        let following =
            follow_in_binary::<Pod>(api.clone(), PODS_PATH.to_owned(), nothing(), tell_pods);
        follows.0.0.push(tokio::spawn(following));
        let compat = &options.stand_in;
        let reader =
            Arc::new(Reader::new(&options.scheduler_names, compat, &options.reservation_namespace));
        let mut related = RelatedObjects::new(Names::new(compat));
        let (mut stored, mut claimed) = (Tasks::default(), Tasks::default());
        let ((following, mut told), storage, dra) = tokio::join!(
            Following::begin(api.clone(), |kind| kind.matters(compat)),
            Storage::follow(&api, &mut stored),
            dra::watch(&api, &mut claimed),
        );
        for mut also in [stored, claimed] {
            follows.0.0.append(&mut also.0);
        }
        let (mut notes, mut hypernodes) = (Vec::new(), Tree::default());
        for told in listed_kinds(&mut told, following.len()).await {
            let news = related.apply(&reader, told);
            notes.extend(news.notes);
            hypernodes = news.hypernodes.unwrap_or(hypernodes);
        }
        reader.add_topology_labels(related.topologies());
        follows.0.0.push(tokio::spawn(following.go_on()));
        let pods_there = Seen::All(listed(&mut pods).await);
        let first = First {
            queues: related.queues(),
            notes,
            queued: related.all_queued(&reader),
            topologies: related.topologies().clone(),
            hypernodes,
            storage: storage.first,
            nodes: listed(&mut nodes).await.iter().map(|node| reader.node(node)).collect(),
            pods: match related.read_pods(&reader, pods_there) {
                Seen::All(pods) => pods,
                Seen::Changes(_) => Vec::new(),
            },
        };
        if let Some(publish) = options.publish.clone() {
            follows.0.0.push(tokio::spawn(publish::run(api.clone(), publish)));
        }
        let queue = Name::new(&options.queue);
        let reserve = Reserve {
            namespace: options.reservation_namespace.clone(),
            image: options.reservation_image.clone(),
            priority_class: options.reservation_priority.clone(),
        };
        let storage = storage.news;
        let scheduler = options.scheduler_names.first().cloned().unwrap_or_default();
        let jobs = options.jobs.clone();
        Cluster {
            api,
            reader,
            queue,
            reserve,
            scheduler,
            jobs,
            nodes,
            pods,
            related,
            told,
            first,
            dra,
            storage,
            follows,
        }
    }

    /// Starts the loop on it.
    pub async fn begin(
        self,
        setup: Setup,
        prices: &BTreeMap<Name, Micros>,
        home: &Home,
        vault: &Vault,
    ) -> Result<(Running, managed::ManagedJobs, ClusterTasks), BeginError> {
        let (dra, claims) =
            self.dra.map_or_else(Default::default, |(dra, claims)| (Some(dra), claims));
        let Cluster { api, reader, queue, reserve, scheduler, jobs, nodes, pods, related, .. } =
            self;
        let (seen, first, storage, mut follows) =
            (self.told, self.first, self.storage, self.follows);
        let (orders, taken) = mpsc::unbounded_channel();
        let (own_orders, own_taken) = mpsc::unbounded_channel();
        let managed_pods = ManagedPods::new(own_orders);
        let queue_ownership =
            QueueOwnership::load(&setup.store).await.map_err(BeginError::Store)?;
        let owned_queues = queue_ownership.own.clone();
        let mut state =
            ClusterState::new(orders, managed_pods, queue.clone(), claims, queue_ownership);
        let (plain, with_gpus) = rules(&reader);
        state.keep_predicates(&plain);
        state.keep_predicates(&with_gpus);
        let state = Arc::new(Mutex::new(state));
        let store = setup.store.clone();
        let logs = managed::Logs::new(api.clone(), home.logs());
        let mut told = None;
        let running = engine::begin(setup, |inlet| {
            told = Some(inlet.clone());
            Kubernetes {
                state: state.clone(),
                first: Some(first),
                prices: prices.clone(),
                jobs: jobs.clone(),
                logs: logs.clone(),
                store: store.clone(),
            }
        });
        let running = running.await.map_err(BeginError::Boot)?;
        let inlet = told.expect("the loop was begun");
        if let Some(dra) = dra {
            dra.report(&inlet, &mut follows.0);
        }
        let to = inlet.clone();
        let again = Box::new(move || to.site(Observation::QueuesAgain));
        follows.1 = Some(crd::ControllerContext { api: api.clone(), again, queue, owned_queues });
        let (to, read) = (inlet.clone(), reader.clone());
        follows.0.0.push(tokio::spawn(pump(nodes, move |seen| {
            let seen = views(seen, |node| read.node(node));
            to.site(Observation::Nodes(seen));
        })));
        follows.0.0.push(tokio::spawn(storage_pump(storage, inlet.clone())));
        follows.0.0.push(tokio::spawn(tick_while_waiting(inlet.clone(), state.clone())));
        let reporting = reasons::run(running.handle.clone(), state.clone());
        follows.0.0.push(tokio::spawn(reporting));
        let related = Arc::new(Mutex::new(related));
        let feed = PodFeed { reader, related, inlet: inlet.clone(), state: state.clone() };
        follows.0.0.push(tokio::spawn(feed.clone().run(seen)));
        follows.0.0.push(tokio::spawn(pump(pods, move |seen| feed.observe_pods(seen))));
        let seen = state.clone();
        let are_whole = Box::new(move || !lock(&seen).nodes.has_parts_as_gpus());
        let teams = Teams::new(
            api.clone(),
            store.clone(),
            running.handle.clone(),
            jobs.clone(),
            &reserve.namespace,
            are_whole,
        );
        let to = inlet.clone();
        let over = Box::new(move |lease, over| to.site(Observation::TaskOver { lease, over }));
        let tools = Arc::new(managed::Tools {
            api: api.clone(),
            store,
            vault: vault.clone(),
            settings: jobs.clone(),
            scheduler,
            logs: logs.clone(),
            teams: teams.clone(),
            over,
            services: managed::Services::default(),
        });
        if !jobs.are_off {
            follows.0.0.push(tokio::spawn(teams.keep()));
            follows.0.0.push(tokio::spawn(managed::collect_services(
                tools.clone(),
                running.handle.clone(),
            )));
        }
        follows.0.0.push(tokio::spawn(managed::work(tools, own_taken)));
        let (plain, with_gpus) = (need(&plain), need(&with_gpus));
        let (settings, seen) = (jobs, state.clone());
        let own = managed::ManagedJobs {
            api: api.clone(),
            settings,
            logs,
            plain,
            with_gpus,
            state: seen,
        };
        let done = move |done: OrderOutcome| inlet.site(Observation::OrderDone(done));
        follows.0.0.push(tokio::spawn(executor::work(api, reserve, taken, Arc::new(done))));
        Ok((running, own, follows))
    }
}

async fn storage_pump(mut news: mpsc::Receiver<StorageUpdate>, to: Inlet<Observation>) {
    while let Some(news) = news.recv().await {
        to.site(Observation::Storage(news));
    }
}

/// Lets those that take turns try again now and then: what others hold comes free unseen.
async fn tick_while_waiting(to: Inlet<Observation>, state: Arc<Mutex<ClusterState>>) {
    loop {
        tokio::time::sleep(TICK_INTERVAL).await;
        if lock(&state).has_waiting() {
            to.site(Observation::Tick);
        }
    }
}

/// Which nodes take plain pods, and pods with GPUs.
fn rules(reader: &Reader) -> (Vec<NodePredicate>, Vec<NodePredicate>) {
    (reader.predicates_for(serde_json::json!([])), reader.predicates_for(managed::tolerations()))
}

/// What was seen, as it is read.
fn views<T, S>(seen: Seen<T>, read: impl Fn(&T) -> S) -> Seen<S> {
    match seen {
        Seen::All(all) => Seen::All(all.iter().map(read).collect()),
        Seen::Changes(changes) => {
            let changes = changes.iter().map(|change| match change {
                Change::Put(object) => Change::Put(read(object)),
                Change::Gone(object) => Change::Gone(read(object)),
            });
            Seen::Changes(changes.collect())
        }
    }
}

/// What the loop knows of the cluster.
struct Kubernetes {
    state: Arc<Mutex<ClusterState>>,
    first: Option<First>,
    prices: BTreeMap<Name, Micros>,
    jobs: PodSettings,
    logs: Arc<managed::Logs>,
    store: Store,
}

impl Site for Kubernetes {
    type Observation = Observation;

    fn last_job(&self) -> u64 {
        // A number that was used here has pods, for a while.
        let pods = self.first.iter().flat_map(|first| &first.pods);
        let ours = pods.filter(|pod| is_for_teams(&self.jobs, &pod.at.namespace));
        let numbers = ours.filter_map(|pod| Some(pod.managed.as_ref()?.lease.job.number));
        numbers.filter(|number| *number <= MAX_JOB_NUMBER).max().unwrap_or(0)
    }

    fn sync(&mut self, turn: &mut Turn<'_>) -> Result<InitialSync, Rejected> {
        let outline = turn.core.state.outline();
        turn.all(first_events(&outline, &self.prices))?;
        if let Some(first) = &self.first {
            let known = &outline.topologies;
            topology::report(turn, known, topology::event(known, &first.nodes, &first.topologies));
        }
        if let Some(first) = self.first.take() {
            let First { queues, notes, queued, nodes, pods, storage, hypernodes, .. } = first;
            let mut state = lock(&self.state);
            state.observe_levels(turn.core);
            state.observe_hypernodes(turn, hypernodes);
            state.note_all(notes);
            state.observe_queues(turn, queues);
            state.hold_queued(queued);
            storage.into_iter().for_each(|news| state.observe_storage(turn, news));
            state.sync(turn, nodes, pods);
        }
        // The lists hold all there is.
        Ok(InitialSync::Complete)
    }

    fn reconcile(
        &mut self,
        core: &Core,
        follow_ups: &mut FollowUps<Observation>,
    ) -> Result<(), BootError> {
        // What was decided and not done. Where it was done, the API server says so.
        for (lease, live) in core.jobs.values().flat_map(|job| &job.leases) {
            if live.row.started.is_none() {
                self.start(core, *lease, follow_ups);
            }
            if let Some(cause) = live.stopping {
                let job = &core.jobs[&lease.job];
                let grace = if job.kill { Span::ZERO } else { job.detail.run.grace };
                self.stop(*lease, cause, grace, follow_ups);
            }
        }
        Ok(())
    }

    fn purge(&mut self, before: Time) {
        tokio::spawn(self.logs.clone().let_go(self.store.clone(), before));
    }

    fn observe(&mut self, turn: &mut Turn<'_>, observation: Observation) {
        lock(&self.state).observe(turn, observation);
    }

    fn start(&mut self, core: &Core, lease: LeaseId, follow_ups: &mut FollowUps<Observation>) {
        let mut state = lock(&self.state);
        let is_done = state.start(core, lease).unwrap_or_else(|unreadable| {
            follow_ups.not_started(lease, unreadable.to_string());
            false
        });
        if is_done {
            let at = berth_engine::clock::now();
            let mut ended = Ended::lost(lease, at, String::new());
            (ended.lost, ended.started_at, ended.code) = (None, Some(at), Some(0));
            follow_ups.task(Observed::Ended(Box::new(ended)));
        }
        if state.has_waiting() && state.takes_turns(lease.job) {
            follow_ups.site(Observation::Release);
        }
    }

    fn stop(
        &mut self,
        lease: LeaseId,
        cause: Cause,
        grace: Span,
        follow_ups: &mut FollowUps<Observation>,
    ) {
        if lock(&self.state).stop(lease, cause, grace) {
            follow_ups.site(Observation::EndedWithoutPod(lease));
        }
    }

    fn acknowledge(&mut self, lease: LeaseId) {
        lock(&self.state).acknowledge(lease);
    }

    fn cancelled(&mut self, job: JobId) {
        lock(&self.state).cancelled(job);
    }
}
