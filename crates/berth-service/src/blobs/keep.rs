//! Taking an object in, and giving it a name.

use super::{failed, room_of};
use crate::caller::Caller;
use crate::checks;
use crate::fault::Fault;
use crate::identity::{remove, write};
use crate::service::Service;
use berth_api::Code;
use berth_blobs::{Placed, Upload, Whole};
use berth_engine::{Write, clock};
use berth_store::{BlobNameRow, BlobRow, Store};
use bytes::Bytes;
use serde_json::json;

/// What an object will be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub team: String,
    pub kind: &'static str,
    pub name: String,
    /// Whether the audit log tells of it.
    pub is_noted: bool,
}

/// An object on its way in, within what its team may keep.
pub struct Begun {
    pub target: Target,
    upload: Upload,
}

/// Begins to take an object in. How many bytes will come is known for some.
pub async fn begin(service: &Service, target: Target, said: Option<u64>) -> Result<Begun, Fault> {
    let begun = async {
        service.host.must_have_room()?;
        let old = service.store.get::<BlobNameRow>(key(&target)).await?;
        let left = room_of(service, &target.team).await?;
        // What takes the place of something else frees what that took.
        let most = left.saturating_add(old.map_or(0, |old| old.bytes));
        if most == 0 && said != Some(0) {
            return Err(over_quota(&target.team));
        }
        service.blobs.blobs.begin(said, most).await.map_err(failed)
    };
    match begun.await {
        Ok(upload) => Ok(Begun { target, upload }),
        Err(fault) => {
            service.blobs.count_refused();
            Err(fault)
        }
    }
}

impl Begun {
    pub async fn write(self, service: &Service, piece: Bytes) -> Result<Begun, Fault> {
        let Begun { target, upload } = self;
        let written = upload.write(piece).await;
        let upload = written.map_err(|error| {
            service.blobs.count_refused();
            failed(error)
        })?;
        Ok(Begun { target, upload })
    }

    /// All of it has come.
    pub async fn finish(self) -> Result<(Target, Whole), Fault> {
        let whole = self.upload.finish().await.map_err(failed)?;
        Ok((self.target, whole))
    }
}

/// Puts an object in its place and gives it its name, whatever becomes of who sent it: nothing is
/// half done.
pub(crate) async fn keep(
    service: &Service,
    caller: &Caller,
    target: Target,
    whole: Whole,
) -> Result<Placed, Fault> {
    let (service, caller) = (service.clone(), caller.clone());
    let kept = tokio::spawn(async move {
        // What nothing names is not removed meanwhile.
        let _placing = service.blobs.placing.read().await;
        let old = service.store.get::<BlobNameRow>(key(&target)).await?;
        let old_bytes = old.as_ref().map_or(0, |old| old.bytes);
        let quota = super::quota::of(&service, &target.team).await?;
        super::quota::used(&service, &target.team).await?;
        let more = whole.bytes.saturating_sub(old_bytes);
        if service.blobs.add_use(&target.team, more, quota).is_err() {
            service.blobs.count_refused();
            return Err(over_quota(&target.team));
        }
        let named = place_and_name(&service, &caller, &target, whole).await;
        match &named {
            Ok(placed) => {
                service.blobs.less_use(&target.team, old_bytes.saturating_sub(placed.bytes));
                service.blobs.count_taken(placed.bytes, placed.is_new);
            }
            Err(_) => service.blobs.less_use(&target.team, more),
        }
        named
    });
    kept.await
        .unwrap_or_else(|_| Err(Fault::new(Code::Internal, "the object was not looked after")))
}

async fn place_and_name(
    service: &Service,
    caller: &Caller,
    target: &Target,
    whole: Whole,
) -> Result<Placed, Fault> {
    let placed = service.blobs.blobs.place(whole).await.map_err(failed)?;
    let now = clock::now();
    let blob = BlobRow {
        sha256: placed.id.to_string(),
        md5: placed.md5.clone(),
        bytes: placed.bytes,
        created: now,
        loose: None,
    };
    let name = BlobNameRow {
        team: target.team.clone(),
        kind: target.kind.to_owned(),
        name: target.name.clone(),
        sha256: blob.sha256.clone(),
        bytes: placed.bytes,
        created: now,
        by: caller.user().to_owned(),
    };
    let team = target.team.clone();
    let check = move |store: Store| async move { checks::team(&store, &team).await.map(drop) };
    if target.is_noted {
        let detail = json!({ "bytes": placed.bytes, "sha256": blob.sha256 });
        let audit =
            caller.audit(format!("{} {} of {}", target.kind, target.name, target.team), detail);
        let change = |batch: &mut berth_store::Batch| {
            batch.put(&blob);
            batch.put(&name);
        };
        write(service, audit, change, check).await?;
    } else {
        let mut documents = berth_store::Batch::default();
        documents.put(&blob);
        documents.put(&name);
        let write = Write::unnoted(documents).only_if(move |store| checks::all(check(store)));
        service.engine.write(write).await?;
    }
    Ok(placed)
}

/// Takes names away. The objects go later, if nothing else names them.
pub(crate) async fn drop_names(
    service: &Service,
    audit: berth_store::AuditEntry,
    rows: &[BlobNameRow],
) -> Result<(), Fault> {
    remove(service, audit, |batch| {
        for row in rows {
            batch.delete::<BlobNameRow>((&row.team, &row.kind, &row.name));
        }
    })
    .await?;
    for row in rows {
        service.blobs.less_use(&row.team, row.bytes);
    }
    Ok(())
}

fn key(target: &Target) -> (&str, &str, &str) {
    (&target.team, target.kind, &target.name)
}

fn over_quota(team: &str) -> Fault {
    let detail = format!("team {team} keeps all that it may in the store of objects");
    let next = "remove artifacts or data that are not needed, see `berth storage` and `berth data \
                clean`, or ask an admin for a larger quota";
    Fault::new(Code::TooLarge, detail).next(next)
}
