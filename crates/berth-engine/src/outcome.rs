//! What the end of a task means for its job: done, failed, or to be tried again.

use crate::live::{Detail, allows};
use berth_api::wire;
use berth_file::job::RunSpec;
use berth_model::{Cause, LeaseOutcome, Span, Time};
use berth_node::{Ended, ExitKind};

/// What the core is told, and when the job is tried again if that is not at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub outcome: LeaseOutcome,
    pub again_at: Option<Time>,
}

/// The longest wait between two tries.
const MOST_WAIT: Span = Span::hours(1);

/// Judges an end, and counts the try. Whoever was asked to stop is not retried: the core knows
/// why it asked.
pub(crate) fn judge(ended: &Ended, detail: &mut Detail, now: Time) -> Verdict {
    let run = detail.run.clone();
    let kind = ended.kind();
    let at_once = |outcome| Verdict { outcome, again_at: None };
    let waits = detail.again_at.is_some();
    let (tried, most, otherwise) = match &kind {
        ExitKind::Done | ExitKind::Stopped | ExitKind::Requeue => return at_once(kind.outcome()),
        ExitKind::Failed(_) | ExitKind::Signalled(_) | ExitKind::NotReady => {
            (&mut detail.tries.error, run.retry.error, LeaseOutcome::Failed)
        }
        ExitKind::OutOfMemory => (&mut detail.tries.oom, run.retry.oom, LeaseOutcome::Failed),
        ExitKind::GpuError | ExitKind::Lost => {
            (&mut detail.tries.infra, run.retry.infra, LeaseOutcome::Failed)
        }
        // What is not there will not be there the next time.
        ExitKind::NotStarted(_) => return at_once(LeaseOutcome::Failed),
    };
    // Another task of a job that waits for its next try already: the same failure.
    if waits {
        return at_once(LeaseOutcome::Lost);
    }
    if !allows(most, *tried) {
        return at_once(otherwise);
    }
    *tried += 1;
    Verdict { outcome: LeaseOutcome::Lost, again_at: Some(now + wait(&run, *tried)) }
}

/// Doubles with each try.
fn wait(run: &RunSpec, tried: u32) -> Span {
    let doublings = tried.saturating_sub(1).min(20);
    Span(run.retry.wait.0.saturating_mul(1 << doublings)).min(MOST_WAIT)
}

/// The end in words and figures, as people see it.
pub(crate) fn exit(ended: &Ended) -> wire::Exit {
    let kind = ended.kind();
    let asked = ended.asked;
    wire::Exit {
        kind: match &kind {
            ExitKind::Done => wire::ExitKind::Done,
            ExitKind::Failed(_) => wire::ExitKind::Failed,
            ExitKind::Signalled(_) => wire::ExitKind::Signalled,
            ExitKind::OutOfMemory => wire::ExitKind::OutOfMemory,
            ExitKind::GpuError => wire::ExitKind::GpuError,
            ExitKind::NotReady => wire::ExitKind::NotReady,
            ExitKind::Stopped if asked == Some(Cause::TimeLimit) => wire::ExitKind::Timeout,
            ExitKind::Stopped => wire::ExitKind::Stopped,
            ExitKind::Requeue => wire::ExitKind::Requeue,
            ExitKind::Lost => wire::ExitKind::Lost,
            ExitKind::NotStarted(_) => wire::ExitKind::NotStarted,
        },
        code: ended.code,
        signal: ended.signal,
        text: words(ended, &kind),
    }
}

fn words(ended: &Ended, kind: &ExitKind) -> String {
    match (ended.asked, &ended.lost) {
        (Some(cause), _) => stop_message(cause).to_owned(),
        (None, Some(why)) => format!("lost: {why}"),
        (None, None) => kind.to_string(),
    }
}

/// Why it was asked to stop, as its owner would say it.
pub const fn stop_message(cause: Cause) -> &'static str {
    match cause {
        Cause::Reclaim => "made room for a team that took back its share",
        Cause::Preempt => "made room for a job of a higher class",
        Cause::Across => "made room for a critical job",
        Cause::Shrink => "gave up a member it can do without",
        Cause::Stale => "missed a member for too long, and starts anew as a whole",
        Cause::Drain => "its machine is being drained",
        Cause::Leaving => "its machine is about to leave",
        Cause::Defragment => "was moved so that a larger job fits",
        Cause::TimeShare => "was paused for shorter jobs",
        Cause::Budget => "was paused because the budget is spent",
        Cause::Cancelled => "was stopped",
        Cause::Held => "was paused",
        Cause::PeerFailed => "was stopped because another of its tasks failed",
        Cause::TimeLimit => "reached its time limit",
    }
}
