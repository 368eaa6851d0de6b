//! The state of a job as people see it.

use crate::live::LiveJob;
use berth_model::JobState;

/// The state of a job that has not ended, with what only the loop knows.
pub fn shown_state(job: &LiveJob) -> JobState {
    match job.state() {
        JobState::Running if !job.is_started() => JobState::Starting,
        state => state,
    }
}
