//! Where jobs run: this machine, or a cluster. The loop knows nothing of processes or pods.

use crate::error::BootError;
use crate::input::Report;
use crate::memory::Core;
use crate::turn::Turn;
use berth_model::Observed;
use berth_model::{Cause, JobId, LeaseId, Rejected, Span, Time};

/// How much of what exists the initial sync has described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitialSync {
    /// Decisions can be made on it and written with it.
    Complete,
    /// `reconcile` finds the rest.
    Partial,
}

/// Reports that a site makes while it carries out an order. The loop takes them in its next turn;
/// sending them through the inlet could block the loop on itself.
pub struct FollowUps<O>(Vec<Report<O>>);

impl<O> Default for FollowUps<O> {
    fn default() -> FollowUps<O> {
        FollowUps(Vec::new())
    }
}

impl<O> FollowUps<O> {
    pub fn task(&mut self, observed: Observed) {
        self.0.push(Report::Task(observed));
    }

    /// The lease could not be started.
    pub fn not_started(&mut self, lease: LeaseId, why: String) {
        self.0.push(Report::NotStarted { lease, why });
    }

    pub fn site(&mut self, observation: O) {
        self.0.push(Report::Site(observation));
    }

    pub(crate) fn into_reports(self) -> Vec<Report<O>> {
        self.0
    }
}

/// Carries out what was decided. Orders for one lease are carried out in their order, and repeating
/// one has no effect.
pub trait Site: Send + 'static {
    /// What the site sees beyond the tasks of leases.
    type Observation: Send + 'static;

    /// The largest job number that was ever used here. A restored database may know less than the
    /// site, and a number is never used twice.
    fn last_job(&self) -> u64;

    /// What has happened to tasks while no server ran, with the times at which it happened. It is
    /// asked first: nobody is billed for what came after the end of a task.
    fn meanwhile(&mut self, _core: &Core) -> Result<Vec<Observed>, BootError> {
        Ok(Vec::new())
    }

    /// Describes what exists, before anything is planned.
    fn sync(&mut self, turn: &mut Turn<'_>) -> Result<InitialSync, Rejected>;

    /// Compares what runs with what the log says should run.
    fn reconcile(
        &mut self,
        core: &Core,
        follow_ups: &mut FollowUps<Self::Observation>,
    ) -> Result<(), BootError>;

    /// Takes in something the site has seen.
    fn observe(&mut self, turn: &mut Turn<'_>, observation: Self::Observation);

    fn start(&mut self, core: &Core, lease: LeaseId, follow_ups: &mut FollowUps<Self::Observation>);

    fn stop(
        &mut self,
        lease: LeaseId,
        cause: Cause,
        grace: Span,
        follow_ups: &mut FollowUps<Self::Observation>,
    );

    /// How long the task of a lease may run has changed.
    fn limit(&mut self, _core: &Core, _lease: LeaseId) {}

    /// The end of a lease is in the log.
    fn acknowledge(&mut self, lease: LeaseId);

    /// A job was cancelled; its running tasks have been stopped before.
    fn cancelled(&mut self, _job: JobId) {}

    /// The store has purged leases that were closed before then, of jobs that have ended.
    fn purge(&mut self, _before: Time) {}
}
