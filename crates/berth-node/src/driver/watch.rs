//! What has happened to the tasks.

use super::{Driver, Gone, Live, Table};
use crate::error::Error;
use crate::folder::parse_folder_name;
use crate::home::drain;
use berth_model::LeaseId;
use berth_model::Observed;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Supervisors ring a bell when there is news. One that was killed does not, so all living tasks
/// are looked at this often as well.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Driver {
    /// The news since the last call.
    pub fn poll(&self) -> Vec<Observed> {
        let rung: BTreeSet<LeaseId> = String::from_utf8_lossy(&drain(&self.bell))
            .lines()
            .filter_map(parse_folder_name)
            .collect();
        let mut table = self.table();
        let due = table.looked_at.is_none_or(|at| at.elapsed() >= LOOK_EVERY);
        let leases: Vec<LeaseId> = if due {
            table.looked_at = Some(Instant::now());
            table.leaving.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
            table.live.keys().copied().collect()
        } else {
            rung.into_iter().collect()
        };
        let mut news = Vec::new();
        for lease in leases {
            self.look(&mut table, lease, &mut news);
        }
        news
    }

    /// Waits for news, but not longer than that.
    pub fn wait(&self, timeout: Duration) -> Result<Vec<Observed>, Error> {
        let deadline = Instant::now() + timeout;
        loop {
            let news = self.poll();
            let left = deadline.saturating_duration_since(Instant::now());
            if !news.is_empty() || left.is_zero() {
                return Ok(news);
            }
            let nap = Timespec::try_from(left.min(LOOK_EVERY)).expect("at most half a second");
            let mut fds = [PollFd::new(&self.bell, PollFlags::IN)];
            match poll(&mut fds, Some(&nap)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Error::Wait { source: error.into() }),
            }
        }
    }

    fn look(&self, table: &mut Table, lease: LeaseId, news: &mut Vec<Observed>) {
        let Some(live) = table.live.get_mut(&lease) else { return };
        match self.look_at(lease, live, news) {
            Ok(false) => {}
            Ok(true) => {
                table.reported.insert(lease);
                let over = table.live.remove(&lease);
                table.leaving.extend(over.and_then(|live| live.child));
            }
            Err(error) => {
                let complaint = Some(error.to_string());
                if live.complaint != complaint {
                    tracing::warn!(%lease, %error, "cannot tell how the task is; looking again");
                    live.complaint = complaint;
                }
            }
        }
    }

    /// Whether it has ended.
    fn look_at(
        &self,
        lease: LeaseId,
        live: &mut Live,
        news: &mut Vec<Observed>,
    ) -> Result<bool, Error> {
        if !live.lock.is_in_place()? {
            let ended = self.end_without_folder(lease, live)?;
            let over = ended.is_some();
            news.extend(ended.map(|ended| Observed::Ended(Box::new(ended))));
            return Ok(over);
        }
        if let Some(child) = &mut live.child {
            match child.try_wait() {
                Ok(None) => {}
                status => {
                    live.child = None;
                    live.gone = Some(Gone { status: status.ok().flatten() });
                }
            }
        }
        if !live.home.has_ended()
            && let Some(ended) = self.close_if_lost(lease, live)?
        {
            news.push(Observed::Ended(Box::new(ended)));
            return Ok(true);
        }
        // Read before the files that are written earlier: what led to the end is then there.
        let ended = live.home.ended()?;
        if !live.told_started
            && let Some(running) = live.home.running()?
        {
            live.told_started = true;
            news.push(Observed::Started { lease, at: running.at });
        }
        if !live.told_ready
            && let Some(ready) = live.home.ready()?
        {
            live.told_ready = true;
            news.push(Observed::Ready { lease, at: ready.at });
        }
        let over = ended.is_some();
        news.extend(ended.map(|ended| Observed::Ended(Box::new(ended))));
        Ok(over)
    }
}
