//! Reads the origin of code from its snapshot. Reading stops after the first entries of the archive.

use berth_code::Origin;
use berth_model::CodeId;
use berth_service::Service;
use berth_service::code::kept;

/// `None` if the code is not from a repository, or the snapshot is deleted.
pub async fn origin(service: &Service, team: &str, id: &CodeId) -> Option<Origin> {
    let kept = kept::find(&service.store, &service.home, team, id).await.ok()??;
    let reader = kept.reader(&service.blobs.blobs).await.ok()?;
    let read = tokio::task::spawn_blocking(move || Origin::of_archive(reader));
    read.await.ok().flatten()
}
