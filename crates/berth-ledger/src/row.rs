//! The rows of the bill.

use berth_model::{CostKind, JobId, JobSpec, LeaseId, Micros, Milli, Name, Span, Time};
use serde::{Deserialize, Serialize};

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
    pub kind: CostKind,
}

impl CostRow {
    pub(crate) fn of_lease(
        lease: LeaseId,
        keys: &Keys,
        gpus: Milli,
        node: &Name,
        (from, to): (Time, Time),
        (amount, kind): (Micros, CostKind),
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
        (amount, kind): (Micros, CostKind),
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
