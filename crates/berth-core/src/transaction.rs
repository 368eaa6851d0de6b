//! A plan as plain values: transactions of decisions, and what keeps jobs pending.

use berth_model::{Decision, JobId, Name, Reason, Time};

/// Decisions that belong together: all of them are carried out, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// The job they are for.
    pub job: Option<JobId>,
    pub decisions: Vec<Decision>,
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub at: Time,
    pub transactions: Vec<Transaction>,
    /// When to ask again if nothing happens before.
    pub next: Option<Time>,
    pub blocked: Blockers,
}

/// What stands in the way of jobs that go on waiting, by shape of request and by queue; what one
/// job waits for is both, and [`State::reasons`] tells it in full.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Blockers {
    /// Shapes that were tried and did not fit, with one job of each.
    pub shapes: Vec<Blocked>,
    /// Queues that a bound or their share holds back, with the job that met it.
    pub queues: Vec<(Name, Blocked)>,
}

/// Why a job, and those like it, cannot start now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    pub example: JobId,
    pub reasons: Vec<Reason>,
}

impl Plan {
    pub fn decisions(&self) -> impl Iterator<Item = &Decision> {
        self.transactions.iter().flat_map(|transaction| &transaction.decisions)
    }

    pub fn is_empty(&self) -> bool {
        self.transactions.is_empty()
    }
}
