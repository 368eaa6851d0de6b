//! Wires a Kubernetes cluster to the loop: watches and readers report observations, the state takes
//! them in, and executors carry out what it orders.

use crate::actuate::pod_events::PodEvents;
use crate::actuate::reserve::Reserve;
use crate::actuate::{executor, managed, publish, reasons, time_limits};
use crate::constraints::need;
use crate::figures::{ClusterFigures, gather};
use crate::observe::reader::Reader;
use crate::observe::{Listing, PodFeed, Tasks, pump};
use crate::options::{Options, PodSettings};
use crate::shared::SharedState;
use crate::state::device_claims::Claims;
use crate::state::observation::Observation;
use crate::state::{ClusterState, InitialObjects};
use crate::tenancy::ownership::QueueOwnership;
use crate::tenancy::{Teams, is_for_teams};
use crate::view::NodePredicate;
use crate::{crd, rbac};
use berth_engine::{
    self as engine, BootError, Core, FollowUps, InitialSync, Inlet, Running, Setup, Site, Turn,
    first_events,
};
use berth_kube::{Api, Change, WatchUpdate};
use berth_model::{Cause, JobId, LeaseId, Micros, Name, Rejected, Span, Time};
use berth_model::{Ended, Observed};
use berth_service::{Home, Service, Vault};
use berth_store::Store;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

const TICK_INTERVAL: Duration = Duration::from_secs(1);
/// No server gets to a larger job number. A pod with one is not ours, and would use all numbers up.
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
    queue: Name,
    reserve: Reserve,
    /// The scheduler that pods of managed jobs name.
    scheduler: String,
    settings: PodSettings,
    scheduled_events: bool,
    figures: Option<Arc<ClusterFigures>>,
    listing: Listing,
}

/// The tasks that follow the cluster and act on it; they end with this.
#[derive(Default)]
pub struct ClusterTasks {
    tasks: Tasks,
    /// What the controller of custom resources needs, until it is started.
    controller: Option<crd::ControllerContext>,
    logs: Option<Arc<managed::Logs>>,
}

impl ClusterTasks {
    /// Starts the controller of custom resources, now that there is a service to write to.
    pub fn attend(&mut self, service: &Service) {
        if let Some(context) = self.controller.take() {
            self.tasks.spawn(crd::run(service.clone(), context));
        }
        if let Some(logs) = self.logs.take() {
            logs.archive.keep_in(service.blobs.clone());
            self.tasks.spawn(logs.archive_all());
        }
    }
}

/// Finds the API server.
///
/// The futures that leave this crate are boxed so that it compiles them itself. The compiler would
/// otherwise compile all watches and tasks below them again, in the crate that awaits them.
pub fn connect(options: &Options) -> BoxFuture<'_, berth_kube::Result<Api>> {
    Box::pin(connect_with_rights(options))
}

async fn connect_with_rights(options: &Options) -> berth_kube::Result<Api> {
    let api = Api::connect(options.kubeconfig.as_deref(), options.context.as_deref()).await?;
    // Whatever is wrong with our access is reported now, not retried for ever.
    let _: serde::de::IgnoredAny = api.get("/version").await?;
    rbac::check(&api, options).await?;
    Ok(api)
}

/// The loop of a cluster, its own jobs, and the tasks that follow it.
pub type BegunCluster = (Running, managed::ManagedJobs, ClusterTasks);

/// What several tasks need of a cluster whose loop turns.
struct Wiring {
    api: Api,
    state: Arc<SharedState>,
    inlet: Inlet<Observation>,
    engine: engine::Handle,
}

impl Cluster {
    /// Lists what there is.
    pub fn list(api: Api, options: &Options) -> BoxFuture<'_, Cluster> {
        Box::pin(Cluster::list_all(api, options))
    }

    async fn list_all(api: Api, options: &Options) -> Cluster {
        let mut listing = Listing::list(&api, options).await;
        if let Some(publish) = options.publish.clone() {
            listing.tasks.spawn(publish::run(api.clone(), publish));
        }
        let reserve = Reserve {
            namespace: options.reservation_namespace.clone(),
            image: options.reservation_image.clone(),
            priority_class: options.reservation_priority.clone(),
        };
        let scheduler = options.scheduler_names.first().cloned().unwrap_or_default();
        let (queue, settings) = (Name::new(&options.queue), options.jobs.clone());
        let figures = ClusterFigures::new(&api, &options.figures, &settings);
        let scheduled_events = options.scheduled_events;
        Cluster { api, queue, reserve, scheduler, settings, scheduled_events, figures, listing }
    }

    /// Starts the loop on it.
    pub fn begin<'a>(
        self,
        setup: Setup,
        prices: &'a BTreeMap<Name, Micros>,
        home: &'a Home,
        vault: &'a Vault,
    ) -> BoxFuture<'a, Result<BegunCluster, BeginError>> {
        Box::pin(self.begin_all(setup, prices, home, vault))
    }

    async fn begin_all(
        self,
        setup: Setup,
        prices: &BTreeMap<Name, Micros>,
        home: &Home,
        vault: &Vault,
    ) -> Result<BegunCluster, BeginError> {
        let Cluster {
            api,
            queue,
            reserve,
            scheduler,
            settings,
            scheduled_events,
            figures,
            mut listing,
        } = self;
        let (dra, claims) = match listing.dra.take() {
            Some((dra, claims)) => (Some(dra), claims),
            None => (None, Claims::default()),
        };
        let queue_ownership =
            QueueOwnership::load(&setup.store).await.map_err(BeginError::Store)?;
        let owned_queues = queue_ownership.own.clone();
        let mut state = ClusterState::new(queue.clone(), claims, queue_ownership);
        let (plain, with_gpus) = managed_predicates(&listing.reader);
        state.keep_predicates(&plain);
        state.keep_predicates(&with_gpus);
        let (state, orders) = SharedState::new(state);
        let state = Arc::new(state);
        let store = setup.store.clone();
        let logs = managed::Logs::new(api.clone(), home.logs());
        let mut inlet = None;
        let running = engine::begin(setup, |way| {
            inlet = Some(way);
            Kubernetes {
                state: state.clone(),
                initial: Some(listing.initial),
                prices: prices.clone(),
                jobs: settings.clone(),
                logs: logs.clone(),
                store: store.clone(),
            }
        });
        let running = running.await.map_err(BeginError::Boot)?;
        let inlet = inlet.expect("the loop was begun");
        let wiring = Wiring { api: api.clone(), state, inlet, engine: running.handle.clone() };
        let mut tasks = listing.tasks;
        if let Some(dra) = dra {
            dra.report(&wiring.inlet, &mut tasks);
        }
        wiring.follow_nodes(listing.reader.clone(), listing.nodes, &mut tasks);
        tasks.spawn(pump(listing.storage, wiring.inlet.clone(), Observation::Storage));
        tasks.spawn(pump(listing.budgets, wiring.inlet.clone(), Observation::Budgets));
        let feed = PodFeed {
            reader: listing.reader,
            related: Arc::new(Mutex::new(listing.related)),
            inlet: wiring.inlet.clone(),
            state: wiring.state.clone(),
        };
        tasks.spawn(feed.clone().run(listing.related_updates));
        tasks.spawn(feed.run_pods(listing.pods));
        tasks.spawn(tick_while_waiting(wiring.inlet.clone(), wiring.state.clone()));
        tasks.spawn(reasons::run(running.handle.clone(), wiring.state.clone()));
        tasks.spawn(time_limits::run(running.handle.clone(), wiring.state.clone()));
        let pod_events = PodEvents::new(scheduled_events);
        let teams = wiring.teams(&store, &settings, &reserve);
        let tools = Arc::new(managed::Tools {
            api: api.clone(),
            store,
            vault: vault.clone(),
            settings: settings.clone(),
            scheduler,
            logs: logs.clone(),
            teams: teams.clone(),
            inlet: wiring.inlet.clone(),
            services: managed::Services::default(),
        });
        if !settings.are_off {
            tasks.spawn(teams.keep());
            tasks.spawn(managed::collect_services(tools.clone(), running.handle.clone()));
        }
        tasks.spawn(managed::work(tools, orders.pods));
        let (inlet, events) = (wiring.inlet.clone(), pod_events.clone());
        tasks.spawn(executor::work(api.clone(), reserve, orders.api, inlet, events));
        let Wiring { state, inlet, .. } = wiring;
        let (plain, with_gpus) = (need(&plain), need(&with_gpus));
        let context = crd::ControllerContext { api: api.clone(), inlet, queue, owned_queues };
        let kept = Some(logs.clone());
        let jobs = managed::ManagedJobs {
            api,
            settings,
            logs,
            plain,
            with_gpus,
            state,
            figures,
            pod_events,
        };
        Ok((running, jobs, ClusterTasks { tasks, controller: Some(context), logs: kept }))
    }
}

/// Begins to gather figures, where that is wanted. It ends when the task is aborted.
pub fn gather_figures(service: Service, jobs: &managed::ManagedJobs) -> Option<JoinHandle<()>> {
    let gather = gather(service, jobs.api.clone(), jobs.state.clone(), jobs.figures.clone()?);
    let gather: BoxFuture<'static, ()> = Box::pin(gather);
    Some(tokio::spawn(gather))
}

impl Wiring {
    fn follow_nodes(
        &self,
        reader: Arc<Reader>,
        nodes: tokio::sync::mpsc::Receiver<WatchUpdate<berth_kube::object::Node>>,
        tasks: &mut Tasks,
    ) {
        let read = move |seen| Observation::Nodes(views(seen, |node| reader.node(node)));
        tasks.spawn(pump(nodes, self.inlet.clone(), read));
    }

    fn teams(&self, store: &Store, settings: &PodSettings, reserve: &Reserve) -> Arc<Teams> {
        let state = self.state.clone();
        let are_whole = Box::new(move || !state.read(|state| state.nodes.has_parts_as_gpus()));
        Teams::new(
            self.api.clone(),
            store.clone(),
            self.engine.clone(),
            settings.clone(),
            &reserve.namespace,
            are_whole,
        )
    }
}

/// Lets jobs that wait for each other try again now and then: what others hold becomes free without
/// an observation.
async fn tick_while_waiting(inlet: Inlet<Observation>, state: Arc<SharedState>) {
    loop {
        tokio::time::sleep(TICK_INTERVAL).await;
        if state.read(ClusterState::has_waiting) {
            inlet.site(Observation::Tick).await;
        }
    }
}

/// Which nodes take plain pods of managed jobs, and pods with GPUs.
fn managed_predicates(reader: &Reader) -> (Vec<NodePredicate>, Vec<NodePredicate>) {
    let plain = reader.predicates_for(serde_json::json!([]));
    (plain, reader.predicates_for(managed::tolerations()))
}

/// Updates with objects as they are read.
fn views<T, S>(seen: WatchUpdate<T>, read: impl Fn(&T) -> S) -> WatchUpdate<S> {
    match seen {
        WatchUpdate::Snapshot(all) => WatchUpdate::Snapshot(all.iter().map(read).collect()),
        WatchUpdate::Changes(changes) => {
            let changes = changes.iter().map(|change| match change {
                Change::Applied(object) => Change::Applied(read(object)),
                Change::Deleted(object) => Change::Deleted(read(object)),
            });
            WatchUpdate::Changes(changes.collect())
        }
    }
}

/// What the loop knows of the cluster.
struct Kubernetes {
    state: Arc<SharedState>,
    initial: Option<InitialObjects>,
    prices: BTreeMap<Name, Micros>,
    jobs: PodSettings,
    logs: Arc<managed::Logs>,
    store: Store,
}

impl Site for Kubernetes {
    type Observation = Observation;

    fn last_job(&self) -> u64 {
        // A number that was used here has pods, for a while.
        let pods = self.initial.iter().flat_map(|initial| &initial.pods);
        let ours = pods.filter(|pod| is_for_teams(&self.jobs, &pod.at.namespace));
        let numbers = ours.filter_map(|pod| Some(pod.managed.as_ref()?.lease.job.number));
        numbers.filter(|number| *number <= MAX_JOB_NUMBER).max().unwrap_or(0)
    }

    fn sync(&mut self, turn: &mut Turn<'_>) -> Result<InitialSync, Rejected> {
        let outline = turn.core.state.outline();
        turn.all(first_events(&outline, &self.prices))?;
        if let Some(initial) = self.initial.take() {
            self.state.update(|state| state.sync_all(turn, initial));
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
                let grace = if job.kill { Span::ZERO } else { job.detail.workload.grace() };
                self.stop(*lease, cause, grace, follow_ups);
            }
        }
        Ok(())
    }

    fn purge(&mut self, before: Time) {
        tokio::spawn(self.logs.clone().delete_old(self.store.clone(), before));
    }

    fn observe(&mut self, turn: &mut Turn<'_>, observation: Observation) {
        self.state.update(|state| state.observe(turn, observation));
    }

    fn start(&mut self, core: &Core, lease: LeaseId, follow_ups: &mut FollowUps<Observation>) {
        let started = self.state.update(|state| state.start(core, lease));
        let is_done = started.unwrap_or_else(|unreadable| {
            follow_ups.not_started(lease, unreadable.to_string());
            false
        });
        if is_done {
            let at = berth_engine::clock::wall();
            let mut ended = Ended::lost(lease, at, String::new());
            (ended.lost, ended.started_at, ended.code) = (None, Some(at), Some(0));
            follow_ups.task(Observed::Ended(Box::new(ended)));
        }
        for refused in self.state.update(ClusterState::take_refused_binds) {
            follow_ups.site(Observation::OrderDone(refused));
        }
        let may_release =
            self.state.read(|state| state.has_waiting() && state.takes_turns(lease.job));
        if may_release {
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
        if self.state.update(|state| state.stop(lease, cause, grace)) {
            follow_ups.site(Observation::EndedWithoutPod(lease));
        }
    }

    fn acknowledge(&mut self, lease: LeaseId) {
        self.state.update(|state| state.acknowledge(lease));
    }

    fn cancelled(&mut self, job: JobId) {
        self.state.update(|state| state.cancelled(job));
    }
}
