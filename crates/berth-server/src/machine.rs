//! This machine as a site: its GPUs, and the processes that run on it.

use crate::clock;
use crate::engine::{BootError, Core, Inlet, LiveLease, Said, Site, Turn};
use crate::hands::Hands;
use crate::setup;
use berth_model::{Cause, LeaseId, Micros, Name, Rejected, Span, Time};
use berth_node::{Driver, Ended, Inventory, Observed};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub struct Machine {
    pub hands: Hands,
    pub driver: Arc<Driver>,
    pub inventory: Arc<Inventory>,
    /// Prices of GPU models, where they differ from the defaults.
    pub prices: BTreeMap<Name, Micros>,
}

impl Site for Machine {
    fn last_job(&self) -> u64 {
        // A number that was used here has a folder and a log.
        self.driver.last_job()
    }

    fn greet(&mut self, turn: &mut Turn<'_>) -> Result<Said, Rejected> {
        let events = setup::events(&mut turn.core.state, &self.inventory, &self.prices);
        turn.all(events)?;
        // What has ended meanwhile comes later.
        Ok(Said::Part)
    }

    /// The processes are the truth about what runs, the log about what should.
    fn take_over(&mut self, core: &Core, inlet: &Inlet) -> Result<(), BootError> {
        let found: BTreeSet<LeaseId> =
            self.driver.adopt()?.into_iter().map(|adopted| adopted.lease).collect();
        let mut known = BTreeSet::new();
        for (lease, live) in core.jobs.values().flat_map(|job| &job.leases) {
            known.insert(*lease);
            if live.row.node != self.inventory.node.name.as_str() {
                inlet.observed(lost(*lease, clock::now(), "its machine is not there any more"));
            } else if found.contains(lease) {
                self.order_again(core, *lease, live);
            } else if let Some(ended) = self.end_of(*lease)? {
                inlet.observed(Observed::Ended(Box::new(ended)));
            } else if live.row.started.is_some() {
                inlet.observed(lost(*lease, clock::now(), "nothing is left of it"));
            } else {
                // It was decided and never begun: the server died in between.
                self.order_again(core, *lease, live);
            }
        }
        // The log has closed these; nothing of them may go on.
        for lease in found.difference(&known) {
            self.hands.stop(*lease, Cause::Cancelled, Span::ZERO);
        }
        Ok(())
    }

    fn start(&self, core: &Core, lease: LeaseId) {
        self.hands.start(core, lease);
    }

    fn stop(&self, lease: LeaseId, cause: Cause, grace: Span) {
        self.hands.stop(lease, cause, grace);
    }

    fn acknowledge(&self, lease: LeaseId) {
        self.hands.acknowledge(lease);
    }
}

impl Machine {
    /// Starting a lease again does nothing where it has been begun; neither does stopping it.
    fn order_again(&self, core: &Core, lease: LeaseId, live: &LiveLease) {
        self.hands.start(core, lease);
        if let Some(cause) = live.stopping {
            let job = &core.jobs[&lease.job];
            let grace = if job.kill { Span::ZERO } else { job.detail.run.grace };
            self.hands.stop(lease, cause, grace);
        }
    }

    /// How a task ended, if the driver has ever heard of it.
    fn end_of(&self, lease: LeaseId) -> Result<Option<Ended>, BootError> {
        match self.driver.ended(lease) {
            Err(berth_node::Error::Unknown { .. }) => Ok(None),
            ended => ended.map_err(BootError::Node),
        }
    }
}

fn lost(lease: LeaseId, at: Time, why: &str) -> Observed {
    Observed::Ended(Box::new(Ended::lost(lease, at, why.to_owned())))
}
