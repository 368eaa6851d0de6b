//! Early ends of jobs by their own rules.

use super::Turn;
use crate::input::Refused;
use crate::live::Detail;
use berth_api::{Code, Problem};
use berth_model::{Cause, Ended, Event, JobId, TaskEnd};

impl Turn<'_> {
    /// Stops a running job like `berth stop`, and stores the reason. The exit codes of its tasks count as
    /// success.
    pub(super) fn end_early(&mut self, job: JobId, why: String) -> Result<(), Refused> {
        let live = self.core.jobs.get(&job).ok_or_else(|| not_running(job))?;
        let by_a_user = |cause: Option<Cause>| cause == Some(Cause::Cancelled);
        let stopped = live.leases.values().any(|lease| by_a_user(lease.stopping));
        if live.leases.is_empty() || stopped || live.detail.early.is_some() {
            return Err(not_running(job));
        }
        self.apply(Event::JobCancelled { job }).map_err(Refused::Rejected)?;
        if let Some(live) = self.core.jobs.get_mut(&job) {
            live.row.reason.clone_from(&why);
            live.detail.early = Some(why);
            self.touched.insert(job);
        }
        Ok(())
    }
}

fn not_running(job: JobId) -> Refused {
    let detail = format!("job {job} does not run, or is being stopped already");
    Refused::Unmet(Box::new(Problem::new(Code::WrongState, detail)))
}

/// The reason why the end of a task counts as success: a rule ended the job before the task failed.
pub(super) fn good_end(ended: &Ended, detail: &Detail) -> Option<String> {
    let is_asked = matches!(ended.end(), TaskEnd::Done | TaskEnd::Stopped | TaskEnd::Requeue);
    detail.early.clone().filter(|_| is_asked)
}
