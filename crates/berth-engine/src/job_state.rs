//! From what the loop knows to what people see.

use crate::live::LiveJob;
use berth_api::wire;
use berth_store::JobState;

/// The state of a job that has not ended, with what only the loop knows.
pub fn shown_state(job: &LiveJob) -> wire::JobState {
    match job.state() {
        JobState::Running if !job.is_started() => wire::JobState::Starting,
        state => stored_state(state),
    }
}

pub const fn stored_state(state: JobState) -> wire::JobState {
    match state {
        JobState::Pending => wire::JobState::Pending,
        JobState::Running => wire::JobState::Running,
        JobState::Stopping => wire::JobState::Stopping,
        JobState::Paused => wire::JobState::Paused,
        JobState::Done => wire::JobState::Done,
        JobState::Failed => wire::JobState::Failed,
        JobState::Cancelled => wire::JobState::Cancelled,
    }
}
