//! Letting go of what is old: once a day, in small steps between the turns, so that nobody waits
//! for it. What is summed up stays exact; docs/operate/database.md says what goes.

use crate::clock;
use crate::event_loop::{Fatal, Loop};
use crate::site::Site;
use berth_model::{Span, Time};
use berth_store::Retry;

const EVERY: Span = Span::days(1);
/// A server that starts has better things to do.
const FIRST: Span = Span::mins(10);
/// Rows of a kind that go in one transaction, and the pause for others after it.
const STEP: u32 = 1_000;
const PAUSE: Span = Span::secs(1);

/// How long things are kept, and when it is looked next.
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
}

impl<S: Site> Loop<S> {
    /// Does one step if it is time for one.
    pub(crate) async fn purge(&mut self) -> Result<(), Fatal> {
        let now = clock::now();
        let (Some(keep), true) = (self.retention.keep, self.retention.due <= now) else {
            return Ok(());
        };
        let before = match self.retention.before {
            Some(before) => before,
            None => {
                // Events go only where snapshots cover them.
                if self.writer.last_seq() > self.snapshot_at {
                    self.snapshot().await?;
                }
                now - keep
            }
        };
        let more = match self.writer.retain(before, STEP).await {
            Ok(retained) => retained.more,
            Err(error) if error.retry() == Retry::Never => return Err(Fatal::Store(error)),
            Err(error) => {
                tracing::warn!(%error, "what is old could not be let go; trying again later");
                true
            }
        };
        if !more {
            self.site.purge(before);
        }
        self.retention.before = more.then_some(before);
        self.retention.due = now + if more { PAUSE } else { EVERY };
        Ok(())
    }
}
