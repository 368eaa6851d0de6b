//! Reads the origin of a job's code from its snapshot.

use super::facts::Facts;
use crate::snapshot;
use berth_code::Origin;
use berth_service::Service;

/// `None` if the code is not from a repository, or the snapshot is deleted.
pub async fn origin(service: &Service, facts: &Facts) -> Option<Origin> {
    snapshot::origin(service, &facts.team, facts.code.as_ref()?).await
}
