//! Writing down how it ended.

use super::complain;
use crate::folder::folder_name;
use crate::home::{Home, ring};
use crate::process;
use berth_model::Ended;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

const RETRY: Duration = Duration::from_secs(1);

/// Writes the end, however long it takes. The lock is held until it is written, so the driver does
/// not take the task for lost.
pub(super) fn write(home: &Home, ended: &Ended, bell: &Path) {
    let mut complained = false;
    // It has ended now, however long it takes to write that down.
    let ended = &Ended { uptime_ms: Some(process::uptime_ms()), ..ended.clone() };
    while let Err(error) = home.write_ended(ended) {
        // The folder was removed under us: no driver will look for the end.
        if !home.dir.exists() {
            return;
        }
        if !complained {
            complain(&format!("cannot write the end, trying again: {error}"));
            complained = true;
        }
        sleep(RETRY);
    }
    tell(bell, ended.lease);
}

/// Lets the driver know that there is news of this lease.
pub(super) fn tell(bell: &Path, lease: berth_model::LeaseId) {
    ring(bell, format!("{}\n", folder_name(lease)).as_bytes());
}
