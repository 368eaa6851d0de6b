//! When old rows are purged: once a day, in small steps between the turns, so that no request waits
//! for it.

use berth_model::{Span, Time};

const EVERY: Span = Span::days(1);
/// A server that starts has better things to do.
const FIRST: Span = Span::mins(10);
/// Rows of a kind that go in one transaction, and the pause for others after it.
pub(crate) const ROWS_PER_STEP: u32 = 1_000;
const PAUSE: Span = Span::secs(1);

/// Rows that were closed before then go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub before: Time,
    pub is_first: bool,
}

/// How long rows are kept, and when the next step is due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retention {
    /// Nothing: for ever.
    keep: Option<Span>,
    due: Time,
    /// In the midst of a round, of which this is the bound.
    before: Option<Time>,
}

impl Retention {
    pub fn new(keep: Option<Span>, now: Time) -> Retention {
        Retention { keep, due: now + FIRST, before: None }
    }

    pub fn due(&self) -> Option<Time> {
        self.keep.map(|_| self.due)
    }

    /// The step that is due now, if one is.
    pub fn step(&self, now: Time) -> Option<Step> {
        let keep = self.keep.filter(|_| self.due <= now)?;
        Some(match self.before {
            Some(before) => Step { before, is_first: false },
            None => Step { before: now - keep, is_first: true },
        })
    }

    /// A step was taken; `more` where rows are left.
    pub fn stepped(&mut self, now: Time, before: Time, more: bool) {
        self.before = more.then_some(before);
        self.due = now + if more { PAUSE } else { EVERY };
    }
}
