//! What the end of a task means for its job: done, failed, or to be tried again.

use crate::live::{Detail, allows};
use berth_model::{Cause, LeaseOutcome, Span, Time};
use berth_model::{Ended, Exit, ExitKind, TaskEnd};

/// The outcome for the core, and when the job is tried again if that is not at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub outcome: LeaseOutcome,
    pub again_at: Option<Time>,
}

/// The longest wait between two tries.
const MOST_WAIT: Span = Span::hours(1);
/// The pauses after trouble of the machine: it may be over soon, and nobody is at fault.
const TROUBLE_WAIT: Span = Span::secs(1);
const MOST_TROUBLE_WAIT: Span = Span::mins(1);

/// Judges an end, and counts the try. Whoever was asked to stop is not retried: the core knows
/// why it asked.
pub(crate) fn judge(ended: &Ended, detail: &mut Detail, now: Time) -> Verdict {
    let retry = detail.workload.retry();
    let kind = ended.end();
    let at_once = |outcome| Verdict { outcome, again_at: None };
    let waits = detail.again_at.is_some();
    let (tried, most, otherwise) = match &kind {
        TaskEnd::Done | TaskEnd::Stopped | TaskEnd::Requeue => return at_once(kind.outcome()),
        TaskEnd::Failed(_) | TaskEnd::Signalled(_) | TaskEnd::NotReady => {
            (&mut detail.tries.error, retry.error, LeaseOutcome::Failed)
        }
        TaskEnd::OutOfMemory => (&mut detail.tries.oom, retry.oom, LeaseOutcome::Failed),
        TaskEnd::GpuError | TaskEnd::Lost => {
            (&mut detail.tries.infra, retry.infra, LeaseOutcome::Failed)
        }
        // It is tried until it goes well, whatever the job says about tries: nothing of it ran.
        TaskEnd::Trouble(_) if waits => return at_once(LeaseOutcome::Lost),
        TaskEnd::Trouble(_) => {
            detail.tries.trouble = detail.tries.trouble.saturating_add(1);
            let pause = wait(TROUBLE_WAIT, detail.tries.trouble).min(MOST_TROUBLE_WAIT);
            return Verdict { outcome: LeaseOutcome::Lost, again_at: Some(now + pause) };
        }
        // What is not there will not be there the next time.
        TaskEnd::NotStarted(_) => return at_once(LeaseOutcome::Failed),
    };
    // Another task of a job that waits for its next try already: the same failure.
    if waits {
        return at_once(LeaseOutcome::Lost);
    }
    if !allows(most, *tried) {
        return at_once(otherwise);
    }
    *tried += 1;
    Verdict { outcome: LeaseOutcome::Lost, again_at: Some(now + wait(retry.wait, *tried)) }
}

/// Doubles with each try.
fn wait(first: Span, tried: u32) -> Span {
    let doublings = tried.saturating_sub(1).min(20);
    Span(first.0.saturating_mul(1 << doublings)).min(MOST_WAIT)
}

/// The end in words and figures, as people see it.
pub(crate) fn exit(ended: &Ended) -> Exit {
    let kind = ended.end();
    let asked = ended.asked;
    Exit {
        kind: match kind.kind() {
            ExitKind::Stopped if asked == Some(Cause::TimeLimit) => ExitKind::Timeout,
            kind => kind,
        },
        code: ended.code,
        signal: ended.signal,
        rank: is_of_a_process(&kind).then_some(ended.rank),
        text: words(ended, &kind),
    }
}

/// The short form of an outcome for lists, without the search path of a program.
pub(crate) fn in_short(text: &str) -> &str {
    text.split_once(" (PATH=").map_or(text, |(short, _)| short)
}

fn is_of_a_process(end: &TaskEnd) -> bool {
    matches!(end, TaskEnd::Failed(_) | TaskEnd::Signalled(_) | TaskEnd::OutOfMemory)
}

fn words(ended: &Ended, kind: &TaskEnd) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_which_program_is_missing_and_not_where_it_was_looked_for() {
        let text = "not started: no such program: pyton (PATH=/usr/local/bin:/usr/bin)";
        assert_eq!(in_short(text), "not started: no such program: pyton");
        assert_eq!(in_short("failed with exit code 1"), "failed with exit code 1");
    }
}
