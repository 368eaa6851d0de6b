//! What teams keep, and what they may.

use crate::caller::Caller;
use crate::checks;
use crate::fault::Fault;
use crate::identity::{shows, write};
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::wire;
use berth_store::{BlobQuotaRow, TeamRow};
use serde_json::json;

/// What a team may keep.
pub(crate) async fn of(service: &Service, team: &str) -> Result<u64, Fault> {
    let own = service.store.get::<BlobQuotaRow>(team).await?;
    Ok(own.map_or(service.blobs.limits.quota, |own| own.bytes))
}

/// What it keeps.
pub(crate) async fn used(service: &Service, team: &str) -> Result<u64, Fault> {
    if let Some(known) = service.blobs.known_use(team) {
        return Ok(known);
    }
    let sum = service.store.named_sum(team).await?;
    Ok(service.blobs.note_use(team, sum.bytes))
}

/// What it may keep besides.
pub(crate) async fn room_of(service: &Service, team: &str) -> Result<u64, Fault> {
    Ok(of(service, team).await?.saturating_sub(used(service, team).await?))
}

/// Teams with what they keep.
pub async fn list(service: &Service, caller: &Caller) -> Result<wire::Items<wire::Storage>, Fault> {
    let teams = caller.reads(Permission::ArtifactsRead);
    let mut items = Vec::new();
    for team in service.store.every::<TeamRow>().await? {
        if shows(&teams, &team.name) {
            items.push(shown(service, &team.name).await?);
        }
    }
    Ok(wire::Items { items })
}

async fn shown(service: &Service, team: &str) -> Result<wire::Storage, Fault> {
    let sum = service.store.named_sum(team).await?;
    let own = service.store.get::<BlobQuotaRow>(team).await?;
    Ok(wire::Storage {
        team: team.to_owned(),
        objects: sum.names,
        bytes: sum.bytes,
        quota: own.as_ref().map_or(service.blobs.limits.quota, |own| own.bytes),
        has_own_quota: own.is_some(),
    })
}

/// Sets what a team may keep, or has it keep what every team may.
pub async fn set(
    service: &Service,
    caller: &Caller,
    team: &str,
    wish: wire::StorageSet,
) -> Result<wire::Storage, Fault> {
    checks::team(&service.store, team).await?;
    caller.must(Permission::StorageManage, Some(team), None)?;
    let audit = caller.audit(format!("storage of {team}"), json!({ "quota": wish.quota }));
    let of = team.to_owned();
    let change = |batch: &mut berth_store::Batch| match wish.quota {
        Some(bytes) => batch.put(&BlobQuotaRow { team: team.to_owned(), bytes }),
        None => batch.delete::<BlobQuotaRow>(team),
    };
    let check = async move |store| checks::team(&store, &of).await.map(drop);
    write(service, audit, change, check).await?;
    shown(service, team).await
}
