//! Where jobs run: this machine, or a cluster. The loop decides nothing about it and knows nothing of
//! processes or pods.

use super::turn::Turn;
use super::{BootError, Core, Inlet};
use berth_model::{Cause, JobId, LeaseId, Rejected, Span, Time};

/// How much of what there is a greeting has told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// What it comes to can be decided and written with it.
    All,
    /// The rest is found when the site takes over.
    Part,
}

/// Carries out what was decided. Orders for one lease are carried out in their order, and doing
/// one again does nothing.
pub trait Site: Send {
    /// The largest number of a job that was ever run here. A database that was restored knows less
    /// than the site does, and a number is not used again.
    fn last_job(&self) -> u64;

    /// Says what there is, before anything is planned.
    fn greet(&mut self, turn: &mut Turn<'_>) -> Result<Said, Rejected>;

    /// Compares what the log says should run with what does. What it finds comes by the inlet.
    fn take_over(&mut self, core: &Core, inlet: &Inlet) -> Result<(), BootError>;

    fn start(&self, core: &Core, lease: LeaseId);

    fn stop(&self, lease: LeaseId, cause: Cause, grace: Span);

    /// The end of a lease is in the log.
    fn acknowledge(&self, lease: LeaseId);

    /// A job was cancelled; whatever of it runs has been stopped before.
    fn cancelled(&self, _job: JobId) {}

    /// Leases that were closed before then, of jobs that have ended, are in no row any more.
    fn let_go(&self, _before: Time) {}
}
