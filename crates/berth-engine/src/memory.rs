//! What the loop keeps in memory: the scheduling state and the jobs that have not ended.

use crate::live::LiveJob;
use crate::tallies::{Durations, PLAN_BOUNDS, Tallies};
use berth_core::{Forecast, State};
use berth_model::{JobId, LeaseId, Micros, Time};
use berth_store::CostRecord;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the loop keeps in memory. It may be a commit ahead of the store.
pub struct Core {
    pub state: State,
    /// Jobs that have not ended.
    pub jobs: BTreeMap<JobId, LiveJob>,
    /// Those of them that may cost so much and no more.
    pub budgeted: BTreeSet<JobId>,
    /// Jobs that failed and are tried again, the next one first.
    pub retries: BTreeSet<(Time, JobId)>,
    /// When waiting jobs are likely to start, by the last forecast.
    pub forecast: Option<Arc<Forecast>>,
    /// How long the last plans took, and how often one was made.
    pub plans: Plans,
    /// What has happened since the server was started.
    pub tallies: Tallies,
    /// How far the store has the rows of cost.
    pub costs: CostBook,
    /// Since when nothing could be committed, and why.
    pub stalled: Option<Stalled>,
}

/// Rows of cost on their way to the store. A reader that joins what the store has with what memory
/// has neither misses a row nor counts one twice.
#[derive(Debug, Clone, Default)]
pub struct CostBook {
    /// The last row that a commit has written. The store numbers rows in the order of the commits.
    written: u64,
    /// Rows that are cut and not committed.
    unwritten: Vec<CostRecord>,
}

/// What has been spent that the store does not have.
#[derive(Debug, Clone, Default)]
pub struct Unbilled {
    /// The last row of the store that belongs to the same moment.
    pub upto: u64,
    pub rows: Vec<CostRecord>,
}

impl CostBook {
    pub(crate) fn after(written: u64) -> CostBook {
        CostBook { written, unwritten: Vec::new() }
    }

    pub(crate) fn cut(&mut self, rows: &[CostRecord]) {
        self.unwritten.extend_from_slice(rows);
    }

    /// So many of the oldest rows are committed.
    pub(crate) fn wrote(&mut self, rows: usize) {
        self.unwritten.drain(..rows.min(self.unwritten.len()));
        self.written += rows as u64;
    }
}

impl Core {
    /// What a job has cost up to now, with what no row shows yet.
    pub fn cost(&self, job: &LiveJob, now: Time) -> Micros {
        job.row.cost + self.state.unbilled_of(job.row.id, now)
    }

    /// What a lease has cost up to now; nothing where it is not open.
    pub fn lease_cost(&self, id: LeaseId, now: Time) -> Option<Micros> {
        let lease = self.jobs.get(&id.job)?.leases.get(&id)?;
        Some(lease.row.cost + self.state.unbilled(id, now))
    }

    /// What has been spent up to now that the store does not have.
    pub fn unbilled(&self, now: Time) -> Unbilled {
        let mut rows = self.costs.unwritten.clone();
        for row in self.state.unbilled_rows(now) {
            rows.extend(crate::rows::costs(&row));
        }
        Unbilled { upto: self.costs.written, rows }
    }
}

/// The log cannot be written for the time being.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stalled {
    pub since: Time,
    pub why: String,
    /// It is the disk that has no room.
    pub full: bool,
}

/// How planning went.
#[derive(Debug, Clone)]
pub struct Plans {
    pub last_us: u64,
    pub times: Durations,
    pub put_aside: u64,
}

impl Default for Plans {
    fn default() -> Plans {
        Plans { last_us: 0, times: Durations::new(PLAN_BOUNDS), put_aside: 0 }
    }
}
