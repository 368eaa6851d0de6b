//! Sitting out a server that starts anew: jobs go on meanwhile, and so does who looks at them.

use crate::fail::{Exit, Failure, Result};
use crate::show;
use berth_api::Code;
use std::time::{Duration, Instant};

/// A server that is away for longer than this does not come back by itself.
const LONGEST: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(300);

/// Since when the server has not answered.
#[derive(Debug, Default)]
pub struct Outage {
    since: Option<Instant>,
}

impl Outage {
    /// Waits a moment if the failure is one that passes; gives it back otherwise.
    pub async fn sit_out(&mut self, failure: Failure) -> Result<()> {
        let known = self.since.is_some();
        let since = *self.since.get_or_insert_with(Instant::now);
        if !passes(&failure) || since.elapsed() > LONGEST {
            return Err(failure);
        }
        // The first break may be over in a moment, and is not worth a word.
        if known && since.elapsed() < PAUSE * 3 {
            show::note("The server does not answer. The job continues; waiting for the server.");
        }
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }

    pub fn is_over(&mut self) {
        self.since = None;
    }
}

/// A server that starts or ends says so, if it can.
fn passes(failure: &Failure) -> bool {
    let code = failure.code();
    failure.exit == Exit::Unreachable || matches!(code, Some(Code::NotReady | Code::StoreDown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_server_that_is_away_is_waited_for() {
        let mut outage = Outage::default();
        let away = || Failure::new(Exit::Unreachable, "away");
        assert!(outage.sit_out(away()).await.is_ok());
        let refused = outage.sit_out(Failure::new(Exit::Refused, "no")).await;
        assert_eq!(refused.unwrap_err().exit, Exit::Refused);
        outage.since = Instant::now().checked_sub(LONGEST + PAUSE);
        assert!(outage.since.is_none() || outage.sit_out(away()).await.is_err());
    }
}
