//! Moves the snapshots that an earlier version of Berth kept in the home into the store of objects.

use super::{MOST_BYTES, kept::KeptError};
use crate::blobs::{self, CODE};
use crate::checks;
use crate::fault::Fault;
use crate::service::Service;
use berth_blobs::{Whole, of_file};
use berth_engine::Write;
use berth_model::{CodeId, Time};
use berth_store::{Batch, BlobNameRow, BlobRow, Store, TeamRow};
use futures_util::StreamExt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A snapshot in the home.
#[derive(Debug)]
struct Old {
    id: CodeId,
    path: PathBuf,
    bytes: u64,
    used: Time,
}

/// Moves those of all teams. What cannot be moved stays, and jobs still find it.
pub async fn adopt(service: &Service) -> Result<(), Fault> {
    for team in service.store.every::<TeamRow>().await? {
        let folder = service.home.code(&team.name);
        let listed = tokio::task::spawn_blocking(move || list(&folder)).await.unwrap_or_default();
        for old in listed {
            if let Err(error) = move_one(service, &team.name, &old).await {
                let (id, why) = (&old.id, error.0.detail);
                tracing::warn!(%id, team = team.name, why, "a snapshot of code stays in the home");
            }
        }
        // It goes with the last snapshot.
        let _ = fs::remove_dir(service.home.code(&team.name));
    }
    Ok(())
}

fn list(folder: &Path) -> Vec<Old> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let digits = name.to_str().and_then(|name| name.strip_suffix(".tar.gz"));
        let id = digits.and_then(|digits| format!("sha256:{digits}").parse().ok());
        let facts = entry.metadata().ok().filter(fs::Metadata::is_file);
        let (Some(id), Some(facts)) = (id, facts) else { continue };
        let modified = facts.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let used = modified.map_or(0, |at| i64::try_from(at.as_millis()).unwrap_or(i64::MAX));
        found.push(Old { id, path, bytes: facts.len(), used: Time(used) });
    }
    found
}

async fn move_one(service: &Service, team: &str, old: &Old) -> Result<(), Fault> {
    let whole = copy(service, old).await?;
    if whole.id.as_str() != old.id.digits() {
        let detail = format!("{} has other bytes than its name says", old.path.display());
        return Err(Fault::new(berth_api::Code::Internal, detail));
    }
    let bytes = whole.bytes;
    // What nothing names is not removed meanwhile. Submissions go on: a bucket may take long.
    let _placing = service.blobs.placing.read().await;
    let name = old.id.to_string();
    let known = service.store.get::<BlobNameRow>((team, CODE, &name)).await?;
    if known.is_none() {
        let placed = service.blobs.blobs.place(whole).await.map_err(blobs::failed)?;
        let mut documents = Batch::default();
        documents.put(&BlobRow {
            sha256: placed.id.to_string(),
            md5: placed.md5,
            bytes,
            created: old.used,
            loose: None,
        });
        documents.put(&BlobNameRow {
            team: team.to_owned(),
            kind: CODE.to_owned(),
            name,
            sha256: placed.id.to_string(),
            bytes,
            created: old.used,
            by: "berth".to_owned(),
        });
        // What the team keeps besides must be known before more is added to it.
        blobs::used(service, team).await?;
        let of = team.to_owned();
        let check = move |store: Store| async move { checks::team(&store, &of).await.map(drop) };
        let write = Write::unnoted(documents).only_if(move |store| checks::all(check(store)));
        service.engine.write(write).await?;
        // What the team has already may exceed its quota.
        let _ = service.blobs.add_use(team, bytes, u64::MAX);
    }
    let path = old.path.clone();
    let removed = tokio::task::spawn_blocking(move || fs::remove_file(path)).await;
    removed.unwrap_or_else(|panic| Err(io::Error::other(panic))).map_err(|error| io(old, error))
}

async fn copy(service: &Service, old: &Old) -> Result<Whole, Fault> {
    let path = old.path.clone();
    let opened = tokio::task::spawn_blocking(move || File::open(path)).await;
    let opened = opened.unwrap_or_else(|panic| Err(io::Error::other(panic)));
    let mut content = of_file(opened.map_err(|error| io(old, error))?, 0..old.bytes);
    let begun = service.blobs.blobs.begin(Some(old.bytes), MOST_BYTES).await;
    let mut upload = begun.map_err(blobs::failed)?;
    while let Some(piece) = content.next().await {
        let piece = piece.map_err(|error| io(old, error))?;
        upload = upload.write(piece).await.map_err(blobs::failed)?;
    }
    upload.finish().await.map_err(blobs::failed)
}

fn io(old: &Old, source: io::Error) -> Fault {
    super::failed(KeptError::Io { path: old.path.clone(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_whole_snapshots_are_listed_with_the_time_of_their_last_use() {
        let folder = tempfile::tempdir().unwrap();
        let digits = "2d".repeat(32);
        let used = UNIX_EPOCH + Duration::from_millis(1_700_000_000_000);
        for name in [&*format!("{digits}.tar.gz"), "2d.1-1.part", "notes.tar.gz"] {
            fs::write(folder.path().join(name), "12345678").unwrap();
            let file = File::options().append(true).open(folder.path().join(name)).unwrap();
            file.set_modified(used).unwrap();
        }
        fs::create_dir(folder.path().join("sha256")).unwrap();
        let listed = list(folder.path());
        assert_eq!(listed.len(), 1, "{listed:?}");
        assert_eq!(listed[0].id.to_string(), format!("sha256:{digits}"));
        assert_eq!((listed[0].bytes, listed[0].used), (8, Time(1_700_000_000_000)));
        assert!(list(&folder.path().join("nowhere")).is_empty());
    }
}
