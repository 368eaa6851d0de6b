//! The run of one job, as its machines see it.

use berth_model::{LeaseId, Span, Time};

/// In the order in which they are taken at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RunEvent {
    Done,
    LimitReached,
    Saved,
}

/// A task that runs.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub lease: LeaseId,
    pub node: u32,
    pub gpus: Vec<u32>,
}

/// One job as its machines see it.
#[derive(Debug, Clone, Default)]
pub(super) struct Run {
    pub tasks: Vec<Task>,
    /// Since when all of it runs.
    pub since: Option<Time>,
    /// Part of this run that is no progress.
    pub restart: Span,
    pub progress: Span,
    /// Run time behind it as the core counts it, restarts included.
    pub behind: Span,
    /// The last checkpoint of this run that the core was told of.
    pub saved: Option<Time>,
    pub limit: Span,
    /// Counts runs.
    pub epoch: u32,
}
