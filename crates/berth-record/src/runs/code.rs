//! Reads the origin of a job's code from its snapshot.

use super::facts::Facts;
use berth_code::Origin;
use berth_service::Service;
use std::fs::File;

/// `None` if the code is not from a repository, or the snapshot is deleted.
pub async fn origin(service: &Service, facts: &Facts) -> Option<Origin> {
    let path = service.home.snapshot(&facts.team, facts.code.as_ref()?);
    let read = tokio::task::spawn_blocking(move || Origin::of_archive(File::open(path).ok()?));
    read.await.ok().flatten()
}
