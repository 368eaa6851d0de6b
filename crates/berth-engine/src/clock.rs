//! The only clock of the server.

use berth_model::Time;
use std::time::{SystemTime, UNIX_EPOCH};

/// The time of the machine. It may go back; the loop stamps nothing earlier than what came before.
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
