//! Removes objects that nothing names, some time after their last name is gone. What is on its way in
//! is not touched.

use crate::fault::Fault;
use crate::service::Service;
use berth_blobs::BlobId;
use berth_engine::{Write, clock};
use berth_model::{Span, Time};
use berth_store::{Batch, BlobRow, Store};
use std::time::{Duration, SystemTime};
use tokio::task::JoinHandle;

/// The interval between two passes.
const LONGEST: Duration = Duration::from_secs(3_600);
const SHORTEST: Duration = Duration::from_secs(1);
/// Rows that are changed at once.
const AT_ONCE: u32 = 200;
/// A file without a row that is younger may be about to get one.
const YOUNG: Duration = Duration::from_secs(3_600);
/// Between two looks at all that the store has.
const SWEEP_EVERY: Duration = Duration::from_secs(24 * 3_600);

pub fn begin(service: Service) -> JoinHandle<()> {
    let grace = duration(service.blobs.limits.grace);
    let pause = (grace / 2).clamp(SHORTEST, LONGEST);
    tokio::spawn(async move {
        // The look at a million rows keeps no request waiting.
        let store = service.store.with_own_reader();
        let mut swept: Option<tokio::time::Instant> = None;
        loop {
            tokio::time::sleep(pause).await;
            if let Err(fault) = pass(&service, &store).await {
                tracing::warn!(why = fault.0.detail, "objects that nothing names stay for now");
                continue;
            }
            if swept.is_none_or(|swept| swept.elapsed() >= SWEEP_EVERY) {
                match sweep(&service, &store).await {
                    Ok(()) => swept = Some(tokio::time::Instant::now()),
                    Err(fault) => {
                        tracing::warn!(why = fault.0.detail, "the store was not looked through");
                    }
                }
            }
        }
    })
}

fn duration(span: Span) -> Duration {
    Duration::from_millis(span.0.max(0).unsigned_abs())
}

/// One look at the rows.
async fn pass(service: &Service, store: &Store) -> Result<(), Fault> {
    service.blobs.forget_uses();
    loop {
        let again = store.named_again(AT_ONCE).await?;
        mark(service, &again, None).await?;
        if again.len() < AT_ONCE as usize {
            break;
        }
    }
    loop {
        let new = store.newly_loose(AT_ONCE).await?;
        mark(service, &new, Some(clock::now())).await?;
        if new.len() < AT_ONCE as usize {
            break;
        }
    }
    loop {
        let until = Time(clock::now().0.saturating_sub(service.blobs.limits.grace.0));
        let old = store.loose_since(until, AT_ONCE).await?;
        for row in &old {
            remove(service, row).await?;
        }
        if old.len() < AT_ONCE as usize {
            return Ok(());
        }
    }
}

async fn mark(service: &Service, rows: &[BlobRow], loose: Option<Time>) -> Result<(), Fault> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut documents = Batch::default();
    for row in rows {
        documents.touch(&BlobRow { loose, ..row.clone() });
    }
    // A row that is removed meanwhile must not come back.
    let _placing = service.blobs.placing.write().await;
    service.engine.write(Write::unnoted(documents)).await?;
    Ok(())
}

/// First the row, then the object: one without a row is found by the next sweep.
async fn remove(service: &Service, row: &BlobRow) -> Result<(), Fault> {
    let Ok(id) = row.sha256.parse::<BlobId>() else { return Ok(()) };
    let _placing = service.blobs.placing.write().await;
    if service.store.has_name(&row.sha256).await? {
        return Ok(());
    }
    let mut documents = Batch::default();
    documents.delete::<BlobRow>(&row.sha256);
    service.engine.write(Write::unnoted(documents)).await?;
    service.blobs.blobs.remove(&id).await.map_err(super::failed)?;
    service.blobs.count_removed(row.bytes);
    Ok(())
}

/// Objects without a row: a server was killed after it had placed one and before it had named it.
async fn sweep(service: &Service, store: &Store) -> Result<(), Fault> {
    let young = YOUNG.max(duration(service.blobs.limits.grace));
    for first in 0..=u8::MAX {
        for listed in service.blobs.blobs.list(first).await.map_err(super::failed)? {
            let age = SystemTime::now().duration_since(listed.modified).unwrap_or_default();
            if age < young || store.get::<BlobRow>(listed.id.as_str()).await?.is_some() {
                continue;
            }
            let _placing = service.blobs.placing.write().await;
            if store.get::<BlobRow>(listed.id.as_str()).await?.is_none() {
                service.blobs.blobs.remove(&listed.id).await.map_err(super::failed)?;
                service.blobs.count_removed(listed.bytes);
            }
        }
    }
    Ok(())
}
