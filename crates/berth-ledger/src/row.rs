//! The rows of the bill.

use berth_model::{JobId, JobSpec, LeaseId, Micros, Milli, Name, Span, Time};
use serde::{Deserialize, Serialize};

/// What an amount was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowKind {
    /// A lease whose task runs.
    Used,
    /// A lease that was offered and whose task does not run yet: paid for, not used.
    Held,
    /// Idle: nobody holds it.
    Unallocated,
    /// Idle, and of no use to the requests there are.
    Fragmented,
    /// What belongs to nobody: the rounding of shares, about a millionth of a dollar a lease, of
    /// either sign. It is more only where leases are priced above their node, and then negative.
    /// Kept apart so that idle is never negative.
    Shared,
}

impl RowKind {
    pub const ALL: [RowKind; 5] =
        [RowKind::Used, RowKind::Held, RowKind::Unallocated, RowKind::Fragmented, RowKind::Shared];

    /// Whether somebody pays for it: the row then names a lease and a job.
    pub const fn is_attributed(self) -> bool {
        matches!(self, RowKind::Used | RowKind::Held)
    }

    pub const fn is_idle(self) -> bool {
        matches!(self, RowKind::Unallocated | RowKind::Fragmented)
    }
}

/// Whom a lease is charged to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Keys {
    pub queue: Name,
    pub project: Name,
    pub experiment: Name,
    pub user: Name,
}

impl From<&JobSpec> for Keys {
    fn from(job: &JobSpec) -> Keys {
        Keys {
            queue: job.queue.clone(),
            project: job.project.clone(),
            experiment: job.experiment.clone(),
            user: job.user.clone(),
        }
    }
}

/// What part of one machine cost from one moment to another. Idle and shared rows name no lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostRow {
    pub lease: Option<LeaseId>,
    pub job: Option<JobId>,
    pub queue: Option<Name>,
    pub project: Option<Name>,
    pub experiment: Option<Name>,
    pub user: Option<Name>,
    pub node: Name,
    pub from: Time,
    pub to: Time,
    /// GPUs held by the lease all that time; zero for idle and shared rows.
    pub gpus: Milli,
    pub amount: Micros,
    pub kind: RowKind,
}

impl CostRow {
    pub(crate) fn of_lease(
        lease: LeaseId,
        keys: &Keys,
        gpus: Milli,
        node: &Name,
        (from, to): (Time, Time),
        (amount, kind): (Micros, RowKind),
    ) -> CostRow {
        CostRow {
            lease: Some(lease),
            job: Some(lease.job),
            queue: Some(keys.queue.clone()),
            project: Some(keys.project.clone()),
            experiment: Some(keys.experiment.clone()),
            user: Some(keys.user.clone()),
            node: node.clone(),
            from,
            to,
            gpus,
            amount,
            kind,
        }
    }

    pub(crate) fn of_node(
        node: &Name,
        (from, to): (Time, Time),
        (amount, kind): (Micros, RowKind),
    ) -> CostRow {
        CostRow {
            lease: None,
            job: None,
            queue: None,
            project: None,
            experiment: None,
            user: None,
            node: node.clone(),
            from,
            to,
            gpus: Milli::ZERO,
            amount,
            kind,
        }
    }
}

/// Work that has to be done again. It tells what a stop cost its job; the money is already in the
/// lease's rows, so this is never added to them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    pub job: JobId,
    /// Run time that was not saved.
    pub span: Span,
    pub gpus: Milli,
    pub amount: Micros,
}
