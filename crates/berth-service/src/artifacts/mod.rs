//! Artifacts of runs, by their paths: `TEAM/EXPERIMENT/RUN/artifacts/…`. The first part of a path is
//! the team, which decides who may have it. What a caller may not see does not exist for that caller.

mod list;
mod multipart;
mod path;

pub use list::{Entry, list};
pub use multipart::{Parts, abort, complete, create, keep_part, may_send_part, write_part};
pub use path::ArtifactPath;

use crate::audit::server_audit;
use crate::blobs::{self, ARTIFACT, Begun, Target};
use crate::caller::Caller;
use crate::checks;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::Code;
use berth_api::access::Permission;
use berth_blobs::{BlobId, Content, Placed};
use berth_store::{BlobNameRow, NamesQuery};
use bytes::Bytes;
use serde_json::json;
use std::ops::Range;

/// Names that one deletion takes away.
const MOST_DELETED: u32 = 100_000;
/// Names that the server removes in one transaction.
const AT_ONCE: u32 = 5_000;

/// An artifact that is there.
#[derive(Debug, Clone)]
pub struct Artifact {
    pub bytes: u64,
    id: BlobId,
}

impl Artifact {
    /// A tag that no other content has.
    pub fn tag(&self) -> &str {
        self.id.as_str()
    }

    /// A part of it. That the store has it is known when this returns.
    pub async fn read(&self, service: &Service, range: Range<u64>) -> Result<Content, Fault> {
        service.blobs.blobs.read(&self.id, range).await.map_err(blobs::failed)
    }
}

/// Refuses a caller who may not see what the team has, as if it did not exist.
pub(crate) async fn must_see(
    service: &Service,
    caller: &Caller,
    permission: Permission,
    team: &str,
    (what, name): (&str, &str),
) -> Result<(), Fault> {
    let missing = || Fault::not_found(what, name);
    if !caller.may(permission, Some(team), None) {
        return Err(missing());
    }
    checks::team(&service.store, team).await.map(drop).map_err(|fault| {
        if fault.0.known_code() == Some(Code::NotFound) { missing() } else { fault }
    })
}

pub async fn open(
    service: &Service,
    caller: &Caller,
    path: &ArtifactPath,
) -> Result<Artifact, Fault> {
    let ArtifactPath { team, name } = path;
    let shown = path.to_string();
    must_see(service, caller, Permission::ArtifactsRead, team, ("artifact", &shown)).await?;
    let row = service.store.get::<BlobNameRow>((team, ARTIFACT, name)).await?;
    of_row(row).ok_or_else(|| Fault::not_found("artifact", &shown))
}

pub(crate) fn of_row(row: Option<BlobNameRow>) -> Option<Artifact> {
    let row = row?;
    Some(Artifact { bytes: row.bytes, id: row.sha256.parse().ok()? })
}

/// Begins to take an artifact in.
pub async fn begin(
    service: &Service,
    caller: &Caller,
    path: &ArtifactPath,
    said: Option<u64>,
) -> Result<Begun, Fault> {
    let ArtifactPath { team, name } = path;
    let shown = path.to_string();
    must_see(service, caller, Permission::ArtifactsRead, team, ("artifact", &shown)).await?;
    caller.must(Permission::ArtifactsWrite, Some(team), Some(caller.user()))?;
    must_be_free(service, path).await?;
    let target = Target { team: team.clone(), kind: ARTIFACT, name: name.clone(), is_noted: true };
    blobs::begin_upload(service, target, said).await
}

/// A name is a folder or a file, and not both.
async fn must_be_free(service: &Service, path: &ArtifactPath) -> Result<(), Fault> {
    let ArtifactPath { team, name } = path;
    let refuse = |what: &str| {
        let next = "log it under another name, or delete what is there";
        Err(Fault::new(Code::BadRequest, format!("`{path}` cannot be written: {what}")).next(next))
    };
    let above = path.above();
    let files = service.store.blob_names_among((team, ARTIFACT), &above).await?;
    if let Some(file) = files.first() {
        return refuse(&format!("`{}` is a file", file.name));
    }
    let prefix = format!("{name}/");
    let query = NamesQuery { team, kind: ARTIFACT, prefix: &prefix, after: None, limit: 1 };
    match service.store.blob_names(query).await?.is_empty() {
        true => Ok(()),
        false => refuse("it is a folder"),
    }
}

/// Keeps an artifact that has come whole.
pub async fn finish(service: &Service, caller: &Caller, begun: Begun) -> Result<Placed, Fault> {
    let (target, whole) = begun.finish().await?;
    blobs::keep(service, caller, target, whole).await
}

/// Stores an artifact that the server has made. The audit log records only requests of callers, so it has
/// no row for this.
pub async fn put_as_server(
    service: &Service,
    caller: &Caller,
    path: &ArtifactPath,
    content: Bytes,
) -> Result<(), Fault> {
    let mut begun = begin(service, caller, path, Some(content.len() as u64)).await?;
    begun.target.is_noted = false;
    let begun = begun.write(service, content).await?;
    finish(service, caller, begun).await.map(drop)
}

/// Whether an artifact has this name. Does not check its content.
pub async fn is_there(service: &Service, path: &ArtifactPath) -> Result<bool, Fault> {
    let row = service.store.get::<BlobNameRow>((&path.team, ARTIFACT, &path.name)).await?;
    Ok(row.is_some())
}

/// Removes the names of all files in a folder, on behalf of the server. Returns their number.
pub async fn remove_folder(service: &Service, team: &str, folder: &str) -> Result<usize, Fault> {
    let prefix = format!("{folder}/");
    let mut removed = 0;
    loop {
        let query =
            NamesQuery { team, kind: ARTIFACT, prefix: &prefix, after: None, limit: AT_ONCE };
        let rows = service.store.blob_names(query).await?;
        if rows.is_empty() {
            return Ok(removed);
        }
        let bytes: u64 = rows.iter().map(|row| row.bytes).sum();
        let target = format!("artifact {folder} of {team}");
        let mut audit = server_audit("berth", "artifact_delete", target);
        audit.detail = json!({ "files": rows.len(), "bytes": bytes }).to_string();
        blobs::drop_names(service, audit, &rows).await?;
        removed += rows.len();
    }
}

/// Deletes a file, or a folder with all that is in it. Says how many files there were.
pub async fn delete(
    service: &Service,
    caller: &Caller,
    path: &ArtifactPath,
) -> Result<usize, Fault> {
    let ArtifactPath { team, name } = path;
    let shown = path.to_string();
    must_see(service, caller, Permission::ArtifactsRead, team, ("artifact", &shown)).await?;
    caller.must(Permission::ArtifactsWrite, Some(team), Some(caller.user()))?;
    let own = service.store.get::<BlobNameRow>((team, ARTIFACT, name)).await?;
    let prefix = format!("{name}/");
    let query =
        NamesQuery { team, kind: ARTIFACT, prefix: &prefix, after: None, limit: MOST_DELETED };
    let mut rows = service.store.blob_names(query).await?;
    rows.extend(own);
    if rows.is_empty() {
        return Err(Fault::not_found("artifact", &shown));
    }
    let bytes: u64 = rows.iter().map(|row| row.bytes).sum();
    let detail = json!({ "files": rows.len(), "bytes": bytes });
    let audit = caller.audit(format!("artifact {name} of {team}"), detail);
    blobs::drop_names(service, audit, &rows).await?;
    Ok(rows.len())
}
