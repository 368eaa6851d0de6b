//! A Kubernetes cluster as a site: nodes and pods are followed, pods are bound and evicted.
//!
//! The API server is the truth about what runs where, the log about what was asked for and decided.
//! A server that starts lists everything before it plans.

use crate::actuate::reserve::Reserve;
use crate::actuate::{executor, managed, publish, reasons};
use crate::constraints::dynamic::News;
use crate::constraints::need;
use crate::observe::names::Names;
use crate::observe::reader::Reader;
use crate::observe::{
    AHEAD, Around, Eye, Following, Storage, Tasks, Told, dra, listed, listed_kinds, pump,
};
use crate::options::{Options, Settings};
use crate::shared::lock;
use crate::state::device_claims::Claims;
use crate::state::observation::Observation;
use crate::state::orders::Done;
use crate::state::{Mirror, Own, topology};
use crate::tenancy::ownership::ForeignQueues;
use crate::tenancy::{Teams, is_for_teams};
use crate::view::{NodeSight, Note, PodSight, Queued, Queues, Rule};
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

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/pods";
const TURN_EVERY: Duration = Duration::from_secs(1);
/// Nobody comes to a larger number of a job. What has one is not ours, and would use them all up.
const LARGEST: u64 = 1 << 48;

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
    jobs: Settings,
    nodes: mpsc::Receiver<Seen<Node>>,
    pods: mpsc::Receiver<Seen<Pod>>,
    around: Around,
    told: mpsc::Receiver<Told>,
    first: First,
    dra: Option<(dra::Watches, Claims)>,
    storage: mpsc::Receiver<News>,
    follows: Follows,
}

/// What there was when the server started.
struct First {
    queues: Queues,
    notes: Vec<Note>,
    queued: Vec<Queued>,
    topologies: BTreeMap<Name, Vec<Name>>,
    hypernodes: Tree,
    nodes: Vec<NodeSight>,
    pods: Vec<PodSight>,
    storage: Vec<News>,
}

/// The tasks that follow the cluster; they end with this.
#[derive(Default)]
pub struct Follows(Tasks, Option<crd::Surroundings>);

impl Follows {
    /// Looks after objects of our own, now that there is somebody to take what they say.
    pub fn attend(&mut self, service: &Service) {
        if let Some(around) = self.1.take() {
            self.0.0.push(tokio::spawn(crd::run(service.clone(), around)));
        }
    }
}

/// Finds the API server.
pub async fn connect(options: &Options) -> berth_kube::Result<Api> {
    let api = Api::connect(options.kubeconfig.as_deref(), options.context.as_deref()).await?;
    // Whatever is wrong with our access is said now, not tried for ever.
    let _: serde::de::IgnoredAny = api.get("/version").await?;
    rbac::look(&api, options).await?;
    Ok(api)
}

impl Cluster {
    /// Lists what there is.
    pub async fn list(api: Api, options: &Options) -> Cluster {
        let mut follows = Follows::default();
        let (tell_nodes, mut nodes) = mpsc::channel(AHEAD);
        let (tell_pods, mut pods) = mpsc::channel(AHEAD);
        let nothing = String::new;
        let following =
            follow_in_binary::<Node>(api.clone(), NODES.to_owned(), nothing(), tell_nodes);
        follows.0.0.push(tokio::spawn(following));
        let following = follow_in_binary::<Pod>(api.clone(), PODS.to_owned(), nothing(), tell_pods);
        follows.0.0.push(tokio::spawn(following));
        let stand_in = &options.stand_in;
        let reader = Arc::new(Reader::new(
            &options.scheduler_names,
            stand_in,
            &options.reservation_namespace,
        ));
        let mut around = Around::new(Names::new(stand_in));
        let (mut stored, mut claimed) = (Tasks::default(), Tasks::default());
        let ((following, mut told), storage, dra) = tokio::join!(
            Following::begin(api.clone(), |kind| kind.matters(stand_in)),
            Storage::follow(&api, &mut stored),
            dra::watch(&api, &mut claimed),
        );
        for mut also in [stored, claimed] {
            follows.0.0.append(&mut also.0);
        }
        let (mut notes, mut hypernodes) = (Vec::new(), Tree::default());
        for told in listed_kinds(&mut told, following.len()).await {
            let news = around.take(&reader, told);
            notes.extend(news.notes);
            hypernodes = news.hypernodes.unwrap_or(hypernodes);
        }
        reader.look_for(around.topologies());
        follows.0.0.push(tokio::spawn(following.go_on()));
        let pods_there = Seen::All(listed(&mut pods).await);
        let first = First {
            queues: around.queues(),
            notes,
            queued: around.all_queued(&reader),
            topologies: around.topologies().clone(),
            hypernodes,
            storage: storage.first,
            nodes: listed(&mut nodes).await.iter().map(|node| reader.node(node)).collect(),
            pods: match around.see(&reader, pods_there) {
                Seen::All(pods) => pods,
                Seen::Changes(_) => Vec::new(),
            },
        };
        if let Some(publish) = options.publish.clone() {
            follows.0.0.push(tokio::spawn(publish::keep(api.clone(), publish)));
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
            around,
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
    ) -> Result<(Running, managed::Jobs, Follows), BeginError> {
        let (dra, claims) =
            self.dra.map_or_else(Default::default, |(dra, claims)| (Some(dra), claims));
        let Cluster { api, reader, queue, reserve, scheduler, jobs, nodes, pods, around, .. } =
            self;
        let (seen, first, storage, mut follows) =
            (self.told, self.first, self.storage, self.follows);
        let (orders, taken) = mpsc::unbounded_channel();
        let (own_orders, own_taken) = mpsc::unbounded_channel();
        let own = Own::new(own_orders);
        let foreign = ForeignQueues::load(&setup.store).await.map_err(BeginError::Store)?;
        let own_queues = foreign.own.clone();
        let mut mirror = Mirror::new(orders, own, queue.clone(), claims, foreign);
        let (plain, with_gpus) = rules(&reader);
        mirror.obey(&plain);
        mirror.obey(&with_gpus);
        let mirror = Arc::new(Mutex::new(mirror));
        let store = setup.store.clone();
        let logs = managed::Logs::new(api.clone(), home.logs());
        let mut told = None;
        let running = engine::begin(setup, |inlet| {
            told = Some(inlet.clone());
            Kubernetes {
                mirror: mirror.clone(),
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
        follows.1 = Some(crd::Surroundings { api: api.clone(), again, queue, own_queues });
        let (to, read) = (inlet.clone(), reader.clone());
        follows.0.0.push(tokio::spawn(pump(nodes, move |seen| {
            let seen = sights(seen, |node| read.node(node));
            to.site(Observation::Nodes(seen));
        })));
        follows.0.0.push(tokio::spawn(storage_pump(storage, inlet.clone())));
        follows.0.0.push(tokio::spawn(keep_turning(inlet.clone(), mirror.clone())));
        let telling = reasons::tell(running.handle.clone(), mirror.clone());
        follows.0.0.push(tokio::spawn(telling));
        let around = Arc::new(Mutex::new(around));
        let eye = Eye { reader, around, inlet: inlet.clone(), mirror: mirror.clone() };
        follows.0.0.push(tokio::spawn(eye.clone().look(seen)));
        follows.0.0.push(tokio::spawn(pump(pods, move |seen| eye.pods(seen))));
        let seen = mirror.clone();
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
            follows.0.0.push(tokio::spawn(managed::tidy(tools.clone(), running.handle.clone())));
        }
        follows.0.0.push(tokio::spawn(managed::work(tools, own_taken)));
        let (plain, with_gpus) = (need(&plain), need(&with_gpus));
        let (settings, seen) = (jobs, mirror.clone());
        let own =
            managed::Jobs { api: api.clone(), settings, logs, plain, with_gpus, mirror: seen };
        let done = move |done: Done| inlet.site(Observation::OrderDone(done));
        follows.0.0.push(tokio::spawn(executor::work(api, reserve, taken, Arc::new(done))));
        Ok((running, own, follows))
    }
}

async fn storage_pump(mut news: mpsc::Receiver<News>, to: Inlet<Observation>) {
    while let Some(news) = news.recv().await {
        to.site(Observation::Storage(news));
    }
}

/// Lets those that take turns try again now and then: what others hold comes free unseen.
async fn keep_turning(to: Inlet<Observation>, mirror: Arc<Mutex<Mirror>>) {
    loop {
        tokio::time::sleep(TURN_EVERY).await;
        if lock(&mirror).has_line() {
            to.site(Observation::Tick);
        }
    }
}

/// Which nodes take plain pods, and pods with GPUs.
fn rules(reader: &Reader) -> (Vec<Rule>, Vec<Rule>) {
    (reader.rules_for(serde_json::json!([])), reader.rules_for(managed::tolerations()))
}

/// What was seen, as it is read.
fn sights<T, S>(seen: Seen<T>, read: impl Fn(&T) -> S) -> Seen<S> {
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
    mirror: Arc<Mutex<Mirror>>,
    first: Option<First>,
    prices: BTreeMap<Name, Micros>,
    jobs: Settings,
    logs: Arc<managed::Logs>,
    store: Store,
}

impl Site for Kubernetes {
    type Observation = Observation;

    fn last_job(&self) -> u64 {
        // A number that was used here has pods, for a while.
        let pods = self.first.iter().flat_map(|first| &first.pods);
        let ours = pods.filter(|pod| is_for_teams(&self.jobs, &pod.at.namespace));
        let numbers = ours.filter_map(|pod| Some(pod.own.as_ref()?.lease.job.number));
        numbers.filter(|number| *number <= LARGEST).max().unwrap_or(0)
    }

    fn sync(&mut self, turn: &mut Turn<'_>) -> Result<InitialSync, Rejected> {
        let outline = turn.core.state.outline();
        turn.all(first_events(&outline, &self.prices))?;
        if let Some(first) = &self.first {
            let known = &outline.topologies;
            topology::tell(turn, known, topology::event(known, &first.nodes, &first.topologies));
        }
        if let Some(first) = self.first.take() {
            let First { queues, notes, queued, nodes, pods, storage, hypernodes, .. } = first;
            let mut mirror = lock(&self.mirror);
            mirror.see_levels(turn.core);
            mirror.see_hypernodes(turn, hypernodes);
            mirror.note_all(notes);
            mirror.see_queues(turn, queues);
            mirror.expect(queued);
            storage.into_iter().for_each(|news| mirror.see_storage(turn, news));
            mirror.begin(turn, nodes, pods);
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
        lock(&self.mirror).observe(turn, observation);
    }

    fn start(&mut self, core: &Core, lease: LeaseId, follow_ups: &mut FollowUps<Observation>) {
        let mut mirror = lock(&self.mirror);
        let is_done = mirror.start(core, lease).unwrap_or_else(|unreadable| {
            follow_ups.not_started(lease, unreadable.to_string());
            false
        });
        if is_done {
            let at = berth_engine::clock::now();
            let mut ended = Ended::lost(lease, at, String::new());
            (ended.lost, ended.started_at, ended.code) = (None, Some(at), Some(0));
            follow_ups.task(Observed::Ended(Box::new(ended)));
        }
        if mirror.has_line() && mirror.takes_turns(lease.job) {
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
        if lock(&self.mirror).stop(lease, cause, grace) {
            follow_ups.site(Observation::EndedWithoutPod(lease));
        }
    }

    fn acknowledge(&mut self, lease: LeaseId) {
        lock(&self.mirror).acknowledge(lease);
    }

    fn cancelled(&mut self, job: JobId) {
        lock(&self.mirror).cancelled(job);
    }
}
