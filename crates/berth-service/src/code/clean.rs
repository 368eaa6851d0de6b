//! Moves old snapshots once after the start, and then removes unused ones from time to time.

use super::{adopt, tidy};
use crate::fault::Fault;
use crate::service::Service;
use berth_store::TeamRow;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Between two looks at the snapshots of all teams.
const PAUSE: Duration = Duration::from_secs(3_600);

pub fn begin(service: Service) -> JoinHandle<()> {
    tokio::spawn(async move {
        if let Err(fault) = adopt::adopt(&service).await {
            tracing::warn!(why = fault.0.detail, "old snapshots of code stay in the home for now");
        }
        loop {
            if let Err(fault) = tidy_all(&service).await {
                tracing::warn!(why = fault.0.detail, "unused snapshots of code stay for now");
            }
            tokio::time::sleep(PAUSE).await;
        }
    })
}

async fn tidy_all(service: &Service) -> Result<(), Fault> {
    for team in service.store.every::<TeamRow>().await? {
        tidy::tidy(service, &team.name).await?;
    }
    Ok(())
}
