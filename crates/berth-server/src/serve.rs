//! One server from start to end.

use crate::app::{App, Parts};
use crate::audit_export::Export;
use crate::error::Error;
use crate::lead::{self, Replica};
use crate::listen::Door;
use crate::oidc::Oidc;
use crate::options::{BlobOptions, Options, Place, Stage, Started, Tell};
use crate::tls::Tls;
use crate::tracking::{Known as KnownCallers, Tracking};
use crate::tracking_clean;
use crate::tracking_place;
use crate::webhook;
use crate::{audit_export, first, http, notifier};
use berth_blobs::Blobs;
use berth_cluster::{BeginError, Cluster};
use berth_engine::{Running, Setup, clock, forecasts};
use berth_kube::{AcquiredLease, Api, HeldLease};
use berth_machine::{
    CheckAtStart, Condition, DataCache, DataOptions, Energy, FaultSource, GpuChecks, GpuHolders,
    Host, KeepOutput, ServerAddress, Slices, Snapshots, Volumes, Workplace, check_keys,
    gather_figures, hold_back, open_recording, shares,
};
use berth_model::Name;
use berth_node::{
    Accounts, CheckBook, Declared, Driver, EnergyCounters, GpuRecording, Inventory, Isolation,
    Known, Launcher, Mig, Mps, Nvidia, NvidiaMps, NvidiaPower, NvidiaSmi, Power, PowerCaps, Probe,
};
use berth_record::runs::{self, Runs};
use berth_record::stop_rule;
use berth_service::audit_key::KeyFile;
use berth_service::audit_watch::AuditWatch;
use berth_service::notify_address::NotifyAddresses;
use berth_service::refusals::Refusals;
use berth_service::sessions::{self, Sessions};
use berth_service::sign_in::{Devices, SignInLimits};
use berth_service::stream_checks::StreamChecks;
use berth_service::{
    self as service, BlobBook, FigureOptions, HeavyReads, Home, JobHost, Service, TokenUse, Vault,
    admin, audit_end, blobs, code, figures, schedules,
};
use berth_store::Store;
use futures_util::future::LocalBoxFuture;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long a server that stops waits for its figures to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// How a time of leading came to its end.
enum Left {
    /// The server is stopping.
    Stopped,
    /// Another replica may lead now.
    Deposed,
}

/// Runs until `stop` is true, or the log cannot be written. Jobs go on either way.
///
/// The future is boxed so that this crate compiles it. The compiler would otherwise compile it,
/// and every future in it, in the program that awaits it.
pub fn serve<'a>(
    options: Options,
    stop: watch::Receiver<bool>,
    tell: Tell<'a>,
) -> LocalBoxFuture<'a, Result<(), Error>> {
    Box::pin(run(options, stop, tell))
}

async fn run(options: Options, stop: watch::Receiver<bool>, tell: Tell<'_>) -> Result<(), Error> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    if !options.listen.ip().is_loopback() && options.tls.is_none() {
        return Err(Error::NeedsTls { address: options.listen });
    }
    // Before anything is changed, like the door below.
    if oidc(&options)?.is_some_and(|provider| !provider.rules().lets_newcomers_in()) {
        tracing::warn!(
            "the identity provider lets in only users who are linked to it already; see \
            --oidc-create-users and --oidc-link-by-name in docs/operate/sign-in.md"
        );
    }
    let home = Home::open(&options.home)
        .map_err(|source| Error::Home { path: options.home.clone(), source })?;
    let answering = webhook::begin(options.place.webhook(), options.connections).await?;
    let webhook = answering.as_ref().map(|answering| answering.address);
    // Before anything is changed: a second server should find out at once.
    let door = Door::open(options.listen, options.tls.clone(), options.connections).await?;
    let Place::Cluster { options: cluster, .. } = &options.place else {
        return lead(&options, &home, &door, None, webhook, stop, tell).await.map(drop);
    };
    let replica = Replica::open(cluster, &options.node, &home.replica()).await?;
    loop {
        let Some(term) = stand_by(&replica, &door, stop.clone(), tell).await? else {
            return Ok(());
        };
        let turn = Some((replica.api.clone(), term));
        match lead(&options, &home, &door, turn, webhook, stop.clone(), tell).await? {
            Left::Stopped => return Ok(()),
            // Whatever it was lost by may last, and should not be met without a pause.
            Left::Deposed => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    }
}

/// The identity provider, if one is named. Berth asks it when a person signs in.
fn oidc(options: &Options) -> Result<Option<Arc<Oidc>>, Error> {
    let open = |named| Oidc::open(named, options.public_url.as_ref()).map(Arc::new);
    options.oidc.as_ref().map(open).transpose().map_err(Error::Oidc)
}

/// Waits until this replica leads; none where the server stops before that.
async fn stand_by(
    replica: &Replica,
    door: &Door,
    mut stop: watch::Receiver<bool>,
    tell: Tell<'_>,
) -> Result<Option<AcquiredLease>, Error> {
    let (leader, told) = watch::channel(String::new());
    let (leads, done) = watch::channel(false);
    let url = door.url()?;
    let answers = tokio::spawn(door.accept(lead::router(told), done)?);
    let term = tokio::select! {
        term = replica.win(&url, &leader, tell) => Some(term?),
        _ = stop.wait_for(|stop| *stop) => None,
    };
    leads.send_replace(true);
    // Whoever still waits for an answer is not waited for.
    answers.abort();
    Ok(term)
}

/// Serves for as long as this replica leads; a machine always does.
async fn lead(
    options: &Options,
    home: &Home,
    door: &Door,
    turn: Option<(Api, AcquiredLease)>,
    webhook: Option<SocketAddr>,
    mut stop: watch::Receiver<bool>,
    tell: Tell<'_>,
) -> Result<Left, Error> {
    let (api, term) = turn.unzip();
    let mut term = term.map(AcquiredLease::renew_in_background);
    let start = async {
        let begun = start(options, home.clone(), api, door).await?;
        audit_end::prepare(&begun.app.service).await.map_err(Error::Audit)?;
        let token = first::admin(&begun.app.service, &options.admin).await.map_err(Error::First)?;
        Ok::<_, Error>((begun, token))
    };
    let (begun, token) = tokio::select! {
        begun = start => begun?,
        () = renewed(&mut term) => return Ok(Left::Deposed),
        _ = stop.wait_for(|stop| *stop) => return Ok(resigned(term).await),
    };
    let Begun { app, running, watch } = begun;
    let Running { handle, mut ends } = running;
    let mut tasks = vec![
        forecasts::begin(handle.clone()),
        schedules::begin(app.service.clone()),
        notifier::begin(
            handle.clone(),
            app.service.store.clone(),
            app.service.notify_addresses.clone(),
            notifier::registry::Hooks {
                store: app.tracking.store.clone(),
                vault: app.service.vault.clone(),
            },
            app.notices.clone(),
        ),
        audit_end::begin(app.service.clone()),
        admin::audit_watch::begin(app.service.clone()),
        admin::refusals::begin(app.service.clone()),
        sessions::begin(app.service.clone()),
        blobs::begin(app.service.clone()),
        code::begin_cleaning(app.service.clone()),
        stop_rule::begin(app.service.clone(), app.tracking.store.clone()),
        runs::begin(app.tracking.runs.clone()),
    ];
    tasks.push(tracking_clean::begin(app.clone(), options.keep_deleted_runs));
    tasks.extend(app.audit_exports.iter().map(|export| {
        let (store, home) = (app.service.store.clone(), app.service.home.clone());
        audit_export::begin(export.clone(), store, home, options.node.clone())
    }));
    let machine = app.machine.clone();
    tasks.extend(machine.and_then(|host| gather_figures(app.service.clone(), host)));
    let pods = app.pods.as_ref();
    tasks.extend(pods.and_then(|jobs| berth_cluster::gather_figures(app.service.clone(), jobs)));
    let started = Started { webhook, ..started(&app, door.url()?, token) };
    let containers = app.service.host.runs_containers();
    first::announce(&app.service.home, &started.url, options.tls.as_ref(), containers)
        .map_err(Error::First)?;
    tell(Stage::Ready(&started));
    let (over, closes) = watch::channel(false);
    let mut served = tokio::spawn(door.accept(http::router(app.clone()), closes)?);
    let mut left = Left::Stopped;
    let ended = tokio::select! {
        ended = &mut ends => Some(ended),
        served = &mut served => {
            served.map_err(|why| Error::Serve(io::Error::other(why)))?;
            None
        }
        () = renewed(&mut term) => {
            left = Left::Deposed;
            None
        }
        _ = stop.wait_for(|stop| *stop) => None,
    };
    over.send_replace(true);
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    first::forget(&app.service.home);
    if matches!(left, Left::Deposed) {
        // Whatever is under way must not reach the cluster any more.
        drop(watch);
        served.abort();
        app.tracking.store.close().await;
        handle.stop().await;
        let _ = ends.await;
        return Ok(left);
    }
    admin::refusals::finish(&app.service).await;
    finish_figures(&app.service).await;
    app.tracking.store.close().await;
    handle.stop().await;
    let ended = match ended {
        Some(ended) => ended,
        None => ends.await,
    };
    drop(watch);
    audit_end::finish(&app.service);
    resigned(term).await;
    match ended {
        Ok(ended) => ended.map(|()| left).map_err(Error::Fatal),
        Err(panic) => Err(Error::Serve(io::Error::other(panic))),
    }
}

/// Writes what was measured last. A database that is away is not waited for.
async fn finish_figures(service: &Service) {
    let written = tokio::time::timeout(FLUSH_TIMEOUT, figures::flush(service)).await;
    if !matches!(written, Ok(Ok(()))) {
        tracing::warn!("the figures of the last minute were not written");
    }
}

/// Ends when this replica must not lead any more; never where there is only one.
async fn renewed(term: &mut Option<HeldLease>) {
    match term {
        Some(term) => term.lost().await,
        None => std::future::pending().await,
    }
}

async fn resigned(term: Option<HeldLease>) -> Left {
    if let Some(term) = term {
        term.release().await;
    }
    Left::Stopped
}

/// The database that was named, or the one in the home.
pub fn database_url(home: &Home, named: Option<&str>) -> String {
    named.map_or_else(|| berth_store::sqlite_url(&home.database()), str::to_owned)
}

/// What came up.
struct Begun {
    app: App,
    running: Running,
    /// Listens to what happens at the site; dropped when the server ends.
    watch: Box<dyn Send>,
}

async fn start(
    options: &Options,
    home: Home,
    api: Option<Api>,
    door: &Door,
) -> Result<Begun, Error> {
    // Before anything is stamped.
    clock::keep_in(&home.clock()).map_err(|source| Error::Home { path: home.clock(), source })?;
    let url = database_url(&home, options.database.as_deref());
    let audit_key = options.audit_key.clone().unwrap_or_else(|| home.audit_key());
    let audit_keys = KeyFile::open(&audit_key).map_err(Error::AuditKey)?;
    let store_options = berth_store::Options {
        audit_keys: audit_keys.keys().clone(),
        ..berth_store::Options::default()
    };
    let store = Store::open(&url, store_options).await.map_err(Error::Store)?;
    let key = options.key.clone().unwrap_or_else(|| home.key());
    let vault =
        Vault::open(&key, store.clone()).map_err(|source| Error::Home { path: key, source })?;
    let blobs = open_blobs(options, &home)?;
    let client_figures = api.as_ref().map(|api| api.metrics().clone());
    let (mut machine, mut pods, mut follows) = (None, None, None);
    let (running, host, mut watch): (Running, Arc<dyn JobHost>, Box<dyn Send>) =
        match &options.place {
            Place::Machine {
                gpus,
                recording,
                power,
                gpu_check,
                launcher,
                cgroups,
                isolation,
                shares,
                keep_output,
                figures,
                data_cache,
            } => {
                // Its lock waits for what a killed server leaves behind, so it comes before the
                // database's, which does not.
                let wanted = berth_node::Options { cgroups: *cgroups, isolation: *isolation };
                let node = (launcher, wanted, *keep_output, *figures);
                let gpus = (gpus.as_ref(), recording.as_deref(), *gpu_check);
                let parts = (&store, &blobs, *data_cache);
                let found = find_machine(options, gpus, node, shares, &home, parts)?;
                cap_power(&found, power, &home).await;
                let setup = setup(options, &store).await?;
                let certificate = options.tls.as_ref().map(|tls| tls.certificate.clone());
                let server = ServerAddress { url: door.url()?, certificate };
                let prices = &options.prices;
                let begun = berth_machine::begin(setup, &found, prices, &vault, &server).await;
                let begun = begun.map_err(Error::Boot)?;
                machine = Some(found.clone());
                let ends = (begun.watch, begun.renewal, begun.keeping, begun.gpus);
                (begun.running, found, Box::new(ends))
            }
            Place::Cluster { options: cluster, .. } => {
                let api = api.expect("a replica leads only with a way to the API server");
                // Only the replica that may write lists: what it sees is at least as new as the log.
                let setup = setup(options, &store).await?;
                let cluster = Cluster::list(api, cluster).await;
                let begun = cluster.begin(setup, &options.prices, &home, &vault).await;
                let (running, jobs, followed) = begun.map_err(|why| match why {
                    BeginError::Store(why) => Error::Store(why),
                    BeginError::Boot(why) => Error::Boot(why),
                })?;
                let jobs = Arc::new(jobs);
                (pods, follows) = (Some(jobs.clone()), Some(followed));
                (running, jobs, Box::new(()))
            }
        };
    // Only the replica that leads writes, as with the store.
    let tracking = tracking_place::open(&home, &url, store.database()).await?;
    let service = Service::new(service::Parts {
        engine: running.handle.clone(),
        store,
        vault,
        host,
        home,
        blobs,
        config: options.config.clone(),
        token_use: TokenUse::default(),
        refusals: Refusals::default(),
        audit_keys,
        audit_watch: AuditWatch::default(),
        notify_addresses: NotifyAddresses::new(options.notify_allow.clone()),
        carbon_intensity: options.carbon_intensity,
        heavy_reads: HeavyReads::default(),
        stream_checks: StreamChecks::default(),
        sessions: Sessions::new(options.sessions),
        sign_in_limits: SignInLimits::default(),
        devices: Devices::default(),
    });
    if let Some(mut follows) = follows {
        follows.attend(&service);
        watch = Box::new(follows);
    }
    let exports = options.audit_exports.iter().map(|place| Arc::new(Export::new(place.clone())));
    let (audit_exports, notices) = (exports.collect(), Arc::default());
    let connections = door.connections().clone();
    let figures = client_figures;
    let (public_url, oidc) = (options.public_url.clone(), oidc(options)?);
    let tracking = Arc::new(tracking);
    let runs = Runs::new(service.clone(), tracking.clone());
    let app = App::new(Parts {
        service,
        machine,
        pods,
        figures,
        audit_exports,
        notices,
        connections,
        public_url,
        oidc,
        tracking: Tracking {
            store: tracking,
            runs,
            known: KnownCallers::default(),
            teams: tokio::sync::Mutex::default(),
        },
    });
    Ok(Begun { app, running, watch })
}

/// The store of objects. A bucket is first asked when something is put there or got from there: a
/// server starts without it.
fn open_blobs(options: &Options, home: &Home) -> Result<Arc<BlobBook>, Error> {
    let BlobOptions { bucket, reserve, most, limits } = options.blobs.clone();
    let folder = home.blobs();
    let blobs = Blobs::open(&berth_blobs::Options { folder, bucket, reserve, most });
    Ok(Arc::new(BlobBook::new(blobs.map_err(Error::Blobs)?, limits)))
}

/// What this machine has, and the driver of its processes.
fn find_machine(
    options: &Options,
    (gpus, recording, check): (Option<&Declared>, Option<&Path>, CheckAtStart),
    (launcher, wanted, keep, figures): (&Launcher, berth_node::Options, KeepOutput, FigureOptions),
    shared: &[PathBuf],
    home: &Home,
    (store, blobs, data_cache): (&Store, &Arc<BlobBook>, u64),
) -> Result<Arc<Host>, Error> {
    let accounts = Accounts::new(&options.admin);
    let shares = shares(shared, home, accounts.home.as_deref()).map_err(Error::Share)?;
    let driver = Driver::open(&home.node(), launcher.clone(), wanted);
    let driver = Arc::new(driver.map_err(Error::Node)?);
    let probe = Arc::new(Probe::load());
    let known = Known::open(&home.node(), !driver.held_gpus().is_empty());
    let limits = driver.limits().clone();
    let mut inventory = Inventory::read(&options.node, gpus, &probe, &known, limits);
    let mig = Arc::new(Mig::new(&home.node(), Arc::new(NvidiaSmi)));
    let mps = Arc::new(Mps::new(&home.node(), Arc::new(NvidiaMps)));
    if !inventory.declared {
        inventory.divide(&mig.ours(), |gpu| mig.slots(gpu));
    }
    let recording = recording.map(|path| {
        open_recording(path, inventory.devices.len())
            .map_err(|source| Error::Recording { path: path.to_owned(), source })
    });
    let recording = recording.transpose()?;
    let condition = Arc::<Condition>::default();
    let book = CheckBook::open(&home.node(), &inventory.devices);
    if check == CheckAtStart::New {
        hold_back(&book, &mut inventory, &condition, recording.as_ref());
    }
    let inventory = Arc::new(inventory);
    let faults = FaultSource::of(inventory.declared, recording.as_ref());
    let slices = Slices { inventory: inventory.clone(), driver: driver.clone(), mig, mps };
    if !inventory.declared {
        slices.reconcile();
    }
    if let Isolation::Off { why } = driver.isolation() {
        tracing::warn!(%why, "jobs are not isolated: each reaches what the server reaches");
    }
    let keys = keys(options);
    if *driver.isolation() == (Isolation::Sandbox { accounts: false }) {
        check_keys(&keys, &shares).map_err(Error::Key)?;
    }
    let workplace = Arc::new(Workplace {
        home: home.clone(),
        volumes: Arc::new(Volumes::open(home.clone())),
        isolation: driver.isolation().clone(),
        accounts,
        shares,
        keys,
        snapshots: Arc::new(Snapshots::new(home.clone(), store.clone(), blobs.clone())),
    });
    let counters = energy_counters(inventory.declared, recording.as_ref());
    let checks = Arc::new(GpuChecks {
        book,
        launcher: launcher.clone(),
        inventory: inventory.clone(),
        condition: condition.clone(),
        faults,
        recording,
        holders: Arc::new(GpuHolders {
            driver: driver.clone(),
            inventory: inventory.clone(),
            condition: condition.clone(),
            gpu_use: probe.clone(),
            mps: slices.mps.clone(),
        }),
    });
    let (slices, figures) = (Arc::new(slices), figures.begin());
    let energy = figures.clone().zip(counters);
    let energy = energy.map(|(figures, counters)| Arc::new(Energy::new(figures, counters)));
    let data_options = DataOptions {
        most: data_cache,
        reserve: options.blobs.reserve,
        isolated: driver.isolation().is_on(),
    };
    let data = DataCache::open(home, store.clone(), blobs.clone(), data_options);
    let data = data.map_err(|source| Error::Home { path: home.data(), source })?;
    Ok(Arc::new(Host {
        driver,
        inventory,
        probe,
        workplace,
        slices,
        condition,
        checks,
        keep,
        figures,
        energy,
        data: Arc::new(data),
    }))
}

fn energy_counters(
    declared: bool,
    recording: Option<&GpuRecording>,
) -> Option<Arc<dyn EnergyCounters>> {
    match (declared, recording) {
        (_, Some(recording)) => Some(Arc::new(recording.clone())),
        (true, None) => None,
        (false, None) => Some(Arc::new(Nvidia::load()?)),
    }
}

/// Caps the power of this machine's GPUs. It goes on where that cannot be.
async fn cap_power(host: &Arc<Host>, caps: &PowerCaps, home: &Home) {
    if host.inventory.declared {
        return;
    }
    let power = Power::new(&home.node(), Arc::new(NvidiaPower));
    let (host, caps) = (host.clone(), caps.clone());
    let wrong = tokio::task::spawn_blocking(move || power.apply(&host.inventory.devices, &caps));
    for why in wrong.await.unwrap_or_default() {
        tracing::error!(why, "a power cap is not carried out");
    }
}

/// What the server reads that may lie where jobs can see it, by the names that it was given: what
/// they lead to changes when it is renewed.
fn keys(options: &Options) -> Vec<PathBuf> {
    let tls = options.tls.as_ref().map(Tls::secrets).unwrap_or_default();
    let named = tls.into_iter().chain(options.key.clone()).chain(options.audit_key.clone());
    named.filter_map(|path| std::path::absolute(path).ok()).collect()
}

/// Becomes the one that writes.
async fn setup(options: &Options, store: &Store) -> Result<Setup, Error> {
    let holder = format!("{} (process {})", options.node, std::process::id());
    let writer = loop {
        match store.writer(&holder).await {
            // A replica that led until a moment ago is about to release the lock.
            Err(berth_store::Error::Locked { .. }) if store_is_shared(options) => {
                tracing::warn!("another replica still has the database; waiting for it");
            }
            writer => break writer.map_err(Error::Store)?,
        }
    };
    Ok(Setup { store: store.clone(), writer, keep: options.keep })
}

fn store_is_shared(options: &Options) -> bool {
    matches!(options.place, Place::Cluster { .. }) && options.database.is_some()
}

fn started(app: &App, url: String, token: PathBuf) -> Started {
    let mut models: BTreeMap<Name, usize> = BTreeMap::new();
    for node in app.service.engine.core().state.node_snapshots() {
        for gpu in node.spec.gpus {
            *models.entry(gpu.model).or_default() += 1;
        }
    }
    let gpus: Vec<String> = models.iter().map(|(model, n)| format!("{n} x {model}")).collect();
    let limits = app.machine.as_ref().map(|machine| &machine.inventory.limits);
    Started {
        url,
        webhook: None,
        home: app.service.home.root().to_owned(),
        token,
        database: app.service.store.database().to_owned(),
        has_gpus: !gpus.is_empty(),
        gpus: if gpus.is_empty() { "no GPU".to_owned() } else { gpus.join(", ") },
        declared: app.service.host.has_declared_gpus(),
        isolation: app.machine.as_ref().map(|machine| machine.workplace.isolation.clone()),
        unlimited: limits.and_then(|limits| limits.missing.clone()),
    }
}
