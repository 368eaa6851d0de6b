//! What leases were billed, beside what they should have been.

use berth_api::Client;
use berth_api::client::Result;
use berth_api::wire;
use berth_model::Micros;

/// One lease of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bill {
    pub cost: i64,
    /// Price times time, to the millionth of a dollar; nothing while it is open.
    pub expected: Option<i64>,
}

impl Bill {
    /// Of every lease that a job has had.
    pub async fn of(client: &Client, job: &str) -> Result<Vec<Bill>> {
        let attempts = client.attempts(job).await?;
        Ok(attempts.items.iter().flat_map(|attempt| &attempt.leases).map(Bill::of_lease).collect())
    }

    pub(crate) fn of_lease(lease: &wire::Lease) -> Bill {
        let price = Micros(lease.price_micros_per_hour);
        let held = lease.closed.map(|closed| closed.0 - lease.opened.0);
        let expected = held.map(|held| berth_ledger::cost::cumulative(price, held).0);
        Bill { cost: lease.cost_micros, expected }
    }

    pub fn is_exact(&self) -> bool {
        self.expected == Some(self.cost)
    }
}
