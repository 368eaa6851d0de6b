//! Writing a turn to the log, and snapshots that make the next start faster.

use super::{Loop, lock};
use crate::clock;
use crate::error::Fatal;
use crate::memory::Stalled;
use crate::site::Site;
use berth_store::{Batch, Retry};
use std::time::Duration;

/// Events between two snapshots, at the least. A snapshot is of everything, so the more jobs there
/// are the more has to happen before the next one pays.
pub(super) const SNAPSHOT_EVERY: u64 = 20_000;
const PER_JOB: u64 = 4;
/// Jobs of a snapshot that are written together.
const JOBS_PER_PART: usize = 500;
/// Between two tries to write, at the most. Until the next one, everybody who wants something
/// written is refused, also when the database has long been back.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

impl<S: Site> Loop<S> {
    /// Commits, however long the database is away: the state is ahead of the log until then, so
    /// nothing else may happen.
    pub(crate) async fn commit(&mut self, batch: &Batch) -> Result<(), Fatal> {
        let mut pause = FIRST_PAUSE;
        // What became of a snapshot says nothing about this batch, so it is found out before.
        while self.writer.is_in_doubt() {
            let Err(error) = self.writer.recover().await else { break };
            if error.retry() == Retry::Never {
                return Err(Fatal::Store(error));
            }
            self.stall(&error);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        loop {
            let Err(error) = self.writer.commit(batch).await else { break };
            if error.retry() == Retry::Never {
                return Err(Fatal::Store(error));
            }
            self.stall(&error);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            match self.writer.recover().await {
                Ok(found) if found.applied => break,
                Ok(_) => {}
                Err(error) if error.retry() == Retry::Never => return Err(Fatal::Store(error)),
                Err(_) => {}
            }
        }
        let mut core = lock(&self.core);
        core.stalled = None;
        core.costs.wrote(batch.costs.len());
        Ok(())
    }

    /// Notes since when nothing can be written, and says so once: tries are many.
    fn stall(&self, error: &berth_store::Error) {
        let mut core = lock(&self.core);
        if core.stalled.is_none() {
            tracing::warn!(%error, "the log cannot be written; trying again until it can");
        }
        let since = core.stalled.as_ref().map_or_else(clock::now, |stalled| stalled.since);
        // What is wrong may change: a disk fills up while a database is away.
        let full = matches!(error, berth_store::Error::Full { .. });
        core.stalled = Some(Stalled { since, why: error.to_string(), full });
    }

    /// Whether enough has happened for the number of jobs that would be written again.
    pub(super) fn snapshot_pays(&self) -> bool {
        let jobs = lock(&self.core).jobs.len() as u64;
        self.writer.last_seq() >= self.snapshot_at + jobs * PER_JOB
    }

    pub(crate) async fn snapshot(&mut self) -> Result<(), Fatal> {
        let outline = lock(&self.core).state.outline();
        // Only the loop changes the state, so it need not be locked between two parts.
        let core = &self.core;
        let jobs = |after| lock(core).state.job_snapshots(after, JOBS_PER_PART);
        match self.writer.snapshot(&outline, jobs).await {
            Ok(()) => self.snapshot_at = outline.seq,
            Err(error) if error.retry() == Retry::Never => return Err(Fatal::Store(error)),
            // A snapshot only makes the next start faster.
            Err(error) => tracing::warn!(%error, "no snapshot was written"),
        }
        Ok(())
    }
}
