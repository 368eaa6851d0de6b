//! This machine as a site: its GPUs, and the processes that run on it.

use crate::executor::{self, Executor, Tools, Watch};
use crate::host::Host;
use crate::identity::{Identity, Renewal, ServerAddress};
use crate::output::{self, Keeping};
use crate::recovery::Seen;
use crate::setup;
use crate::{gpu_checks, gpu_faults};
use berth_engine::{
    self as engine, BootError, Core, FollowUps, InitialSync, LiveLease, Running, Setup, Site, Turn,
    clock,
};
use berth_model::{Cause, Event, Health, LeaseId, Micros, Name, NodeState, Rejected, Span, Time};
use berth_model::{Ended, Observed};
use berth_node::{Driver, GpuFault, GpuWatch, Inventory, State, Stop};
use berth_service::{Home, Vault};
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long tasks that nobody knows may take to end, and between two looks. One that is not gone by
/// then goes on ending while others start.
const STRAYS_TIMEOUT: Duration = Duration::from_secs(10);
const STRAYS_PAUSE: Duration = Duration::from_millis(10);
/// What a task gets whose GPU is gone: it has ended before its job is tried again.
const LONGEST_GRACE: Span = Span::secs(8);

/// A loop on this machine.
pub struct Begun {
    pub running: Running,
    /// Reports what happens to tasks; dropped when the server ends.
    pub watch: Watch,
    /// Keeps the tokens of running jobs fresh; dropped when the server ends.
    pub renewal: Renewal,
    /// Deletes output that is not to be kept; the same.
    pub keeping: Keeping,
    /// Hears of GPUs that fail; the same.
    pub gpus: Option<GpuWatch>,
}

/// Starts the loop on this machine. `prices` are those of GPU models, where they differ from the
/// defaults.
///
/// The future is boxed: the compiler then compiles it here, not in the crate that awaits it.
pub fn begin<'a>(
    setup: Setup,
    host: &'a Host,
    prices: &'a BTreeMap<Name, Micros>,
    vault: &'a Vault,
    server: &'a ServerAddress,
) -> BoxFuture<'a, Result<Begun, BootError>> {
    Box::pin(begin_on(setup, host, prices, vault, server))
}

async fn begin_on(
    setup: Setup,
    host: &Host,
    prices: &BTreeMap<Name, Micros>,
    vault: &Vault,
    server: &ServerAddress,
) -> Result<Begun, BootError> {
    let (driver, inventory) = (host.driver.clone(), host.inventory.clone());
    let home = host.workplace.home.clone();
    let identity = Identity::new(home, vault.job_tokens().clone(), server.clone());
    let tools = Tools {
        workplace: host.workplace.clone(),
        driver: driver.clone(),
        vault: vault.clone(),
        identity: identity.clone(),
        holders: host.checks.holders.clone(),
        slices: host.slices.clone(),
        energy: host.energy.clone(),
        data: host.data.clone(),
    };
    let (mut watch, mut gpus) = (None, None);
    let running = engine::begin(setup, |inlet| {
        let checks = host.checks.clone();
        let (owing, condition) = (checks.clone(), host.condition.clone());
        let owe = move |fault: &GpuFault| owing.owe(fault.index, &fault.words());
        gpus = gpu_faults::watch(&checks.faults, driver.clone(), condition, inlet.clone(), owe);
        tokio::spawn(gpu_checks::check_held_back(checks, inlet.clone()));
        let (executor, watching) = executor::begin(tools, inlet);
        watch = Some(watching);
        let inventory = inventory.clone();
        let home = host.workplace.home.clone();
        let (prices, graces) = (prices.clone(), BTreeMap::new());
        Machine { executor, driver, inventory, prices, home, graces }
    });
    let running = running.await?;
    let renewal = identity.renew(running.handle.clone(), inventory.node.name.clone());
    host.data.attend(running.handle.clone());
    let engine = running.handle.clone();
    let (driver, condition) = (host.driver.clone(), host.condition.clone());
    let keeping = output::begin(host.keep, driver, condition, &host.workplace, engine);
    let watch = watch.expect("the loop has made its site");
    Ok(Begun { running, watch, renewal, keeping, gpus })
}

struct Machine {
    executor: Executor,
    driver: Arc<Driver>,
    inventory: Arc<Inventory>,
    prices: BTreeMap<Name, Micros>,
    home: Home,
    /// How long tasks may take to end whose leases were closed because their GPUs are gone.
    graces: BTreeMap<LeaseId, Span>,
}

impl Site for Machine {
    type Observation = Seen;

    fn last_job(&self) -> u64 {
        // A number that was used here has a folder: its log, or what it wrote itself, which a job
        // of the same number would take for its own.
        self.driver.last_job().max(self.home.last_job())
    }

    fn sync(&mut self, turn: &mut Turn<'_>) -> Result<InitialSync, Rejected> {
        self.end_on_missing_gpus(turn);
        let events = setup::events(&mut turn.core.state, &self.inventory, &self.prices);
        turn.all(events)?;
        // `reconcile` finds what has ended meanwhile.
        Ok(InitialSync::Partial)
    }

    /// The processes are the truth about what runs, the log about what should.
    fn reconcile(
        &mut self,
        core: &Core,
        follow_ups: &mut FollowUps<Seen>,
    ) -> Result<(), BootError> {
        let found: BTreeSet<LeaseId> = self
            .driver
            .adopt()
            .map_err(|error| BootError::Site(error.into()))?
            .into_iter()
            .map(|adopted| adopted.lease)
            .collect();
        let mut known = BTreeSet::new();
        for (lease, live) in core.jobs.values().flat_map(|job| &job.leases) {
            known.insert(*lease);
            if live.row.node != self.inventory.node.name.as_str() {
                follow_ups.task(lost(*lease, clock::wall(), "its machine is not there any more"));
            } else if found.contains(lease) {
                self.adopt(core, *lease, live);
            } else if let Some(ended) = self.end_of(*lease)? {
                follow_ups.task(Observed::Ended(Box::new(ended)));
            } else if live.row.started.is_some() {
                // Its folder is gone; what it started may not be.
                self.driver.sweep(*lease);
                follow_ups.task(lost(*lease, clock::wall(), "nothing is left of it"));
            } else {
                // It was decided and never begun: the server died in between.
                self.start(core, *lease, follow_ups);
                self.stop_again(core, *lease, live);
            }
        }
        // The log has closed these, or was restored from a backup and has never heard of them.
        // Nothing of them may go on.
        let strays: Vec<LeaseId> = found.difference(&known).copied().collect();
        self.end_strays(&strays);
        self.find_lost_gpus(follow_ups);
        Ok(())
    }

    fn observe(&mut self, turn: &mut Turn<'_>, seen: Seen) {
        match seen {
            Seen::Trouble { lease, why } => turn.trouble(lease, why),
            Seen::Closed { why } => self.change(turn, NodeState::Ready, NodeState::Troubled, &why),
            // What an operator said meanwhile stays.
            Seen::Open => self.change(turn, NodeState::Troubled, NodeState::Ready, "well again"),
            Seen::Gpu { gpu, held } => {
                let node = self.inventory.node.name.clone();
                let health = if held { Health::Failed } else { Health::Ok };
                turn.note(
                    if held { "gpu_held" } else { "gpu_free" },
                    format!("gpu {gpu} of {node}"),
                );
                turn.apply_observed(Event::GpuChanged { node, gpu, health });
            }
            Seen::Data { kept } => {
                let node = self.inventory.node.name.clone();
                if turn.core.state.data_of_node(&node).is_some_and(|known| *known != kept) {
                    turn.apply_observed(Event::DataKept { node, data: kept });
                }
            }
            Seen::GpuFailed { gpu, why, leases } => self.gpu_failed(turn, gpu, &why, &leases),
            Seen::GpuChecked { gpu, passed, told } => {
                let node = self.inventory.node.name.clone();
                turn.note("gpu_checked", format!("gpu {gpu} of {node}: {told}"));
                if passed {
                    turn.apply_observed(Event::GpuChanged { node, gpu, health: Health::Ok });
                }
            }
        }
    }

    fn meanwhile(&mut self, core: &Core) -> Result<Vec<Observed>, BootError> {
        let adopted = self.driver.adopt().map_err(|error| BootError::Site(error.into()))?;
        let mut seen = Vec::new();
        for task in adopted.into_iter().filter(|task| task.state == State::Ended) {
            let lease = task.lease;
            let known = core.jobs.get(&lease.job).and_then(|job| job.leases.get(&lease));
            let (Some(live), Some(ended)) = (known, self.end_of(lease)?) else { continue };
            if live.row.started.is_none()
                && let Some(at) = task.started_at
            {
                seen.push(Observed::Started { lease, at });
            }
            seen.push(Observed::Ended(Box::new(ended)));
        }
        Ok(seen)
    }

    fn limit(&mut self, core: &Core, lease: LeaseId) {
        self.executor.limit(core, lease);
    }

    fn start(&mut self, core: &Core, lease: LeaseId, follow_ups: &mut FollowUps<Seen>) {
        if let Err(unreadable) = self.executor.start(core, lease) {
            follow_ups.not_started(lease, unreadable.to_string());
        }
    }

    fn stop(&mut self, lease: LeaseId, cause: Cause, grace: Span, _: &mut FollowUps<Seen>) {
        self.executor.stop(lease, cause, grace);
    }

    fn acknowledge(&mut self, lease: LeaseId) {
        self.executor.acknowledge(lease);
    }
}

impl Machine {
    /// Closes leases on GPUs that this machine does not have any more, as failures of the hardware.
    /// Their jobs are tried again as their files say; `reconcile` ends what still runs of them.
    fn end_on_missing_gpus(&mut self, turn: &mut Turn<'_>) {
        for lease in setup::on_missing_gpus(&turn.core.state, &self.inventory) {
            let why = format!("lease {lease}: its GPU is gone");
            tracing::error!(%lease, "the GPU of a task is gone; the task ends");
            turn.note("gpu_gone", why);
            let mut ended = Ended::unknown(lease, clock::wall());
            ended.asked = turn.stop_cause(lease);
            ended.gpu_stop = ended.asked.is_none();
            if let Some(job) = turn.core.jobs.get(&lease.job) {
                ended.started_at = job.leases.get(&lease).and_then(|live| live.row.started);
                self.graces.insert(lease, job.detail.workload.grace().min(LONGEST_GRACE));
            }
            turn.observe(Observed::Ended(Box::new(ended)));
        }
    }

    /// GPUs that were lost while no server ran and that tasks still hold: the same follows as when
    /// one is lost later.
    fn find_lost_gpus(&self, follow_ups: &mut FollowUps<Seen>) {
        let lost = self.inventory.devices.iter().filter(|device| device.health == Health::Failed);
        for fault in lost.map(|device| GpuFault::lost(device.index)) {
            let leases = self.driver.note_gpu_error(fault.index, fault.xid).unwrap_or_default();
            if !leases.is_empty() {
                let why = fault.words();
                follow_ups.site(Seen::GpuFailed { gpu: fault.index, why, leases });
            }
        }
    }

    /// Takes a GPU out of use, and ends what is on it.
    fn gpu_failed(&self, turn: &mut Turn<'_>, gpu: u32, why: &str, leases: &[LeaseId]) {
        let node = self.inventory.node.name.clone();
        turn.note("gpu_failed", format!("gpu {gpu} of {node}: {why}"));
        turn.apply_observed(Event::GpuChanged { node, gpu, health: Health::Failed });
        for lease in leases {
            let Some(job) = turn.core.jobs.get(&lease.job) else { continue };
            self.executor.give_up(*lease, job.detail.workload.grace());
        }
    }

    /// Tells the core that this machine takes no work, or takes it again.
    fn change(&self, turn: &mut Turn<'_>, from: NodeState, to: NodeState, why: &str) {
        let node = self.inventory.node.name.clone();
        let nodes = turn.core.state.node_snapshots();
        let state = nodes.iter().find(|found| found.spec.name == node).map(|node| node.spec.state);
        if state == Some(from) {
            turn.note("node_changed", format!("node {node}: {why}"));
            turn.apply_observed(Event::NodeChanged { node, state: to });
        }
    }

    /// Follows a task that has been running without a server. Starting it again does nothing.
    fn adopt(&mut self, core: &Core, lease: LeaseId, live: &LiveLease) {
        if let Err(unreadable) = self.executor.start(core, lease) {
            // Its end is what frees its GPUs. Ending the lease now would give them to others while
            // the task still uses them.
            tracing::error!(%lease, %unreadable, "a task that runs is stopped: its lease is damaged");
            self.executor.stop(lease, Cause::Cancelled, Span::ZERO);
            return;
        }
        self.stop_again(core, lease, live);
    }

    /// Stops a task that was to stop before the server ended. Stopping it twice does nothing.
    fn stop_again(&mut self, core: &Core, lease: LeaseId, live: &LiveLease) {
        if let Some(cause) = live.stopping {
            let job = &core.jobs[&lease.job];
            let grace = if job.kill { Span::ZERO } else { job.detail.workload.grace() };
            self.executor.stop(lease, cause, grace);
        }
    }

    /// Ends tasks that no lease is known for, and waits for that: their GPUs may be given to others
    /// as soon as the loop turns.
    fn end_strays(&self, strays: &[LeaseId]) {
        for lease in strays {
            // Nobody else can get a GPU that is gone, so its task may still save.
            let grace = self.graces.get(lease).copied().unwrap_or(Span::ZERO);
            if grace == Span::ZERO {
                tracing::warn!(%lease, "a task runs that the log does not know; it is ended");
            }
            let stop = Stop { cause: Cause::Cancelled, grace, signal: None };
            if let Err(error) = self.driver.stop(*lease, stop) {
                tracing::error!(%lease, %error, "it could not be asked to end");
            }
        }
        let deadline = Instant::now() + STRAYS_TIMEOUT;
        let lives = |lease: &&LeaseId| matches!(self.driver.ended(**lease), Ok(None));
        while strays.iter().find(lives).is_some() && Instant::now() < deadline {
            std::thread::sleep(STRAYS_PAUSE);
        }
    }

    /// How a task ended, if the driver has ever heard of it.
    fn end_of(&self, lease: LeaseId) -> Result<Option<Ended>, BootError> {
        match self.driver.ended(lease) {
            Err(berth_node::Error::Unknown { .. }) => Ok(None),
            ended => ended.map_err(|error| BootError::Site(error.into())),
        }
    }
}

fn lost(lease: LeaseId, at: Time, why: &str) -> Observed {
    Observed::Ended(Box::new(Ended::lost(lease, at, why.to_owned())))
}
