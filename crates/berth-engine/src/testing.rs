//! A loop without a log, for tests of sites: turns are applied and planned in memory.

pub use crate::turn::LeaseOrder;

use crate::memory::{Core, CostBook, Plans};
use crate::recent_requests::RecentRequests;
use crate::tallies::Tallies;
use crate::turn::Turn;
use berth_core::State;
use berth_model::{JobId, Outcome, Time};
use std::collections::{BTreeMap, BTreeSet};

pub struct TestLoop {
    pub core: Core,
    recent: RecentRequests,
    next_job: u64,
    /// When the core wants to be asked again.
    wake: Option<Time>,
}

/// What follows from a turn for the site.
#[derive(Debug, Default)]
pub struct Turned {
    pub orders: Vec<LeaseOrder>,
    /// Jobs that have ended, and how.
    pub ended: Vec<(JobId, Outcome)>,
}

impl Default for TestLoop {
    fn default() -> TestLoop {
        let core = Core {
            state: State::new(),
            jobs: BTreeMap::new(),
            budgeted: BTreeSet::new(),
            retries: BTreeSet::new(),
            forecast: None,
            plans: Plans::default(),
            tallies: Tallies::default(),
            costs: CostBook::default(),
            stalled: None,
        };
        TestLoop { core, recent: RecentRequests::default(), next_job: 1, wake: None }
    }
}

impl TestLoop {
    /// Runs one turn at a time, plans, and returns what the site would be ordered to do.
    pub fn turn(&mut self, at: Time, act: impl FnOnce(&mut Turn<'_>)) -> Vec<LeaseOrder> {
        self.run(at, act).orders
    }

    /// The same, with all that follows from it.
    pub fn run(&mut self, at: Time, act: impl FnOnce(&mut Turn<'_>)) -> Turned {
        let TestLoop { core, recent, next_job, wake } = self;
        let mut turn = Turn::new(core, recent, next_job, at);
        act(&mut turn);
        turn.release_retries();
        if wake.is_some_and(|wake| wake <= turn.at) && turn.batch.events.is_empty() {
            turn.advance_clock();
        }
        *wake = turn.plan();
        let effects = turn.finish_turn().1;
        Turned { orders: effects.orders, ended: effects.ended }
    }
}
