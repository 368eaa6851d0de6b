//! Turns for streams that look at their rights.

use crate::fault::Fault;
use berth_api::Code;
use std::sync::Arc;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

/// Streams that look at their rights at the same moment. A change of rights wakes all of them, and
/// requests read by the same connections.
const CHECKS_AT_ONCE: usize = 2;

/// Turns for streams that look at their rights.
#[derive(Debug, Clone)]
pub struct StreamChecks(Arc<Semaphore>);

impl Default for StreamChecks {
    fn default() -> StreamChecks {
        StreamChecks(Arc::new(Semaphore::new(CHECKS_AT_ONCE)))
    }
}

impl StreamChecks {
    /// A turn; a fault where none comes before the deadline.
    pub(crate) async fn turn(&self, deadline: Instant) -> Result<SemaphorePermit<'_>, Fault> {
        let late = || {
            let detail = "the right to this could not be checked in time";
            Fault::new(Code::StoreDown, detail).next("try again in a moment")
        };
        let turn = timeout_at(deadline, self.0.acquire()).await;
        turn.map_err(|_| late())?.map_err(|_| late())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SOON: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn streams_take_turns_at_looking_at_their_rights() {
        let checks = StreamChecks::default();
        let soon = Instant::now() + SOON;
        let held = (checks.turn(soon).await.unwrap(), checks.turn(soon).await.unwrap());
        let late = checks.turn(Instant::now()).await.unwrap_err();
        assert_eq!(late.0.known_code(), Some(Code::StoreDown));
        drop(held);
        assert!(checks.turn(soon).await.is_ok());
    }
}
