//! Purging old rows between the turns. What is summed up stays exact; docs/operate/database.md says
//! which rows go.

use super::Loop;
use crate::clock;
use crate::error::Fatal;
use crate::retention::ROWS_PER_STEP;
use crate::site::Site;
use berth_store::Retry;

impl<S: Site> Loop<S> {
    /// Does one step if one is due.
    pub(crate) async fn purge(&mut self) -> Result<(), Fatal> {
        let now = clock::now();
        let Some(step) = self.retention.step(now) else { return Ok(()) };
        // Events go only where snapshots cover them.
        if step.is_first && self.writer.last_seq() > self.snapshot_at {
            self.snapshot().await?;
        }
        let more = match self.writer.retain(step.before, ROWS_PER_STEP).await {
            Ok(retained) => retained.more,
            Err(error) if error.retry() == Retry::Never => return Err(Fatal::Store(error)),
            Err(error) => {
                tracing::warn!(%error, "old rows could not be purged; trying again later");
                true
            }
        };
        if !more {
            self.site.purge(step.before);
        }
        self.retention.stepped(now, step.before, more);
        Ok(())
    }
}
