//! Has what is measured written and old figures deleted, for as long as somebody measures.

use super::keep::{TIDY_EVERY, flush, recover, tidy};
use crate::service::Service;
use std::time::Duration;
use tokio::time::sleep;

/// Samples that may be lost when a server is killed, and the time.
const SAMPLES_PER_WRITE: u32 = 12;
const LONGEST_WRITE: Duration = Duration::from_secs(60);
/// A server that starts has better things to do.
const FIRST_TIDY: Duration = Duration::from_secs(120);
/// Between two tries to find what an earlier server left.
const RETRY: Duration = Duration::from_secs(5);

/// Runs what measures `every` so often. What an earlier server left comes first: what is measured
/// goes on from it.
pub async fn run(service: &Service, every: Duration, measure: impl Future<Output = ()>) {
    while let Err(fault) = recover(service).await {
        tracing::warn!(fault = fault.0.detail, "figures are not found; trying again");
        sleep(RETRY).await;
    }
    tokio::join!(measure, write_all(service, every), tidy_all(service));
}

async fn write_all(service: &Service, every: Duration) {
    loop {
        sleep((every * SAMPLES_PER_WRITE).min(LONGEST_WRITE)).await;
        if let Err(fault) = flush(service).await {
            tracing::warn!(fault = fault.0.detail, "figures were not written; trying again");
        }
    }
}

async fn tidy_all(service: &Service) {
    sleep(FIRST_TIDY).await;
    loop {
        if let Err(fault) = tidy(service).await {
            tracing::warn!(fault = fault.0.detail, "old figures were not deleted; trying again");
        }
        sleep(Duration::from_millis(TIDY_EVERY.0.unsigned_abs())).await;
    }
}
