//! This machine as a site: its GPUs, and the processes that run on it.

use crate::executor::{self, Executor, Tools, Watch};
use crate::host::Host;
use crate::identity::{Identity, Renewal, ServerAddress};
use crate::setup;
use berth_engine::{
    self as engine, BootError, Core, FollowUps, InitialSync, LiveLease, Running, Setup, Site, Turn,
    clock,
};
use berth_model::{Cause, LeaseId, Micros, Name, Rejected, Span, Time};
use berth_model::{Ended, Observed};
use berth_node::{Driver, Inventory};
use berth_service::Vault;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

/// A loop on this machine.
pub struct Begun {
    pub running: Running,
    /// Reports what happens to tasks; dropped when the server ends.
    pub watch: Watch,
    /// Keeps the tokens of running jobs fresh; dropped when the server ends.
    pub renewal: Renewal,
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
    };
    let mut watch = None;
    let running = engine::begin(setup, |inlet| {
        let (executor, watching) = executor::begin(tools, inlet);
        watch = Some(watching);
        let inventory = inventory.clone();
        Machine { executor, driver, inventory, prices: prices.clone() }
    });
    let running = running.await?;
    let renewal = identity.renew(running.handle.clone(), inventory.node.name.clone());
    Ok(Begun { running, watch: watch.expect("the loop has made its site"), renewal })
}

struct Machine {
    executor: Executor,
    driver: Arc<Driver>,
    inventory: Arc<Inventory>,
    prices: BTreeMap<Name, Micros>,
}

impl Site for Machine {
    /// The tasks of leases are all there is to see on one machine.
    type Observation = Infallible;

    fn last_job(&self) -> u64 {
        // A number that was used here has a folder and a log.
        self.driver.last_job()
    }

    fn sync(&mut self, turn: &mut Turn<'_>) -> Result<InitialSync, Rejected> {
        let events = setup::events(&mut turn.core.state, &self.inventory, &self.prices);
        turn.all(events)?;
        // `reconcile` finds what has ended meanwhile.
        Ok(InitialSync::Partial)
    }

    /// The processes are the truth about what runs, the log about what should.
    fn reconcile(
        &mut self,
        core: &Core,
        follow_ups: &mut FollowUps<Infallible>,
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
                follow_ups.task(lost(*lease, clock::now(), "its machine is not there any more"));
            } else if found.contains(lease) {
                self.adopt(core, *lease, live);
            } else if let Some(ended) = self.end_of(*lease)? {
                follow_ups.task(Observed::Ended(Box::new(ended)));
            } else if live.row.started.is_some() {
                follow_ups.task(lost(*lease, clock::now(), "nothing is left of it"));
            } else {
                // It was decided and never begun: the server died in between.
                self.start(core, *lease, follow_ups);
                self.stop_again(core, *lease, live);
            }
        }
        // The log has closed these; nothing of them may go on.
        for lease in found.difference(&known) {
            self.executor.stop(*lease, Cause::Cancelled, Span::ZERO);
        }
        Ok(())
    }

    fn observe(&mut self, _: &mut Turn<'_>, never: Infallible) {
        match never {}
    }

    fn start(&mut self, core: &Core, lease: LeaseId, follow_ups: &mut FollowUps<Infallible>) {
        if let Err(unreadable) = self.executor.start(core, lease) {
            follow_ups.not_started(lease, unreadable.to_string());
        }
    }

    fn stop(&mut self, lease: LeaseId, cause: Cause, grace: Span, _: &mut FollowUps<Infallible>) {
        self.executor.stop(lease, cause, grace);
    }

    fn acknowledge(&mut self, lease: LeaseId) {
        self.executor.acknowledge(lease);
    }
}

impl Machine {
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
