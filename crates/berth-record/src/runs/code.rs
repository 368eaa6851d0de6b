//! Where the code of a job comes from, as its snapshot says.

use super::facts::Facts;
use berth_code::Origin;
use berth_service::Service;
use std::fs::File;

/// Nothing where it was packed from no repository, or is not kept any more.
pub async fn origin(service: &Service, facts: &Facts) -> Option<Origin> {
    let path = service.home.snapshot(&facts.team, facts.code.as_ref()?);
    let read = tokio::task::spawn_blocking(move || Origin::of_archive(File::open(path).ok()?));
    read.await.ok().flatten()
}
