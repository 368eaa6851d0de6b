//! Where the audit log ends, noted in a file of the home. Whoever owns the database can cut rows off
//! its end and nothing in the database tells; the file does.
//!
//! The file is written after the commit, so it can lag behind by what a crash cut short, and is never
//! ahead of what the database once held.

use crate::audit::server_audit;
use crate::home::Home;
use crate::service::Service;
use berth_engine::{Refused, Write};
use berth_store::{
    AuditCheck, AuditEnd, AuditFilter, AuditFollower, AuditRow, Batch, IdentityRow, MemberRow,
    SessionRow, Store, TokenRow, UserRow,
};
use serde_json::json;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Between two writes of the file: each waits for the disk.
const PAUSE: Duration = Duration::from_secs(1);
/// Rows that are sealed by one audit row.
const ROWS_PER_SEAL: usize = 500;
/// The audit row that seals what was there before rows were signed.
pub const SEAL: &str = "seal_audit";
/// Where there are many rights, these come before it.
const SEAL_PART: &str = "seal_rights";
/// The audit row that says that rows were cut off.
pub const CUT_OFF: &str = "audit_cut_off";
/// The audit row that says that the server did not seal what it found.
pub const NOT_SEALED: &str = "seal_refused";
/// The audit row that says that another key signs from now on.
pub const ROTATE: &str = "rotate_audit_key";

/// The end that was noted last; none where nothing was.
pub fn noted(home: &Home) -> io::Result<Option<AuditEnd>> {
    let bytes = match std::fs::read(home.audit_end()) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other)
}

pub fn note(home: &Home, end: &AuditEnd) -> io::Result<()> {
    write(&home.audit_end(), end)
}

fn write(path: &Path, end: &AuditEnd) -> io::Result<()> {
    let text = serde_json::to_string(end).map_err(io::Error::other)? + "\n";
    berth_fs::write_private(path, text.as_bytes())
}

/// Keeps the file up to date.
pub fn begin(service: Service) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut ends = service.store.follow_audit_end();
        let mut failing = false;
        loop {
            let end = ends.borrow_and_update().clone();
            if let Some(end) = end {
                let path = service.home.audit_end();
                let written = tokio::task::spawn_blocking(move || write(&path, &end)).await;
                let written = written.unwrap_or_else(|panic| Err(io::Error::other(panic)));
                if let Err(error) = &written {
                    if !failing {
                        tracing::warn!(%error, "the end of the audit log cannot be noted");
                    }
                    ends.mark_changed();
                }
                failing = written.is_err();
            }
            tokio::time::sleep(PAUSE).await;
            if ends.changed().await.is_err() {
                return;
            }
        }
    })
}

/// Notes the end once more when the server stops.
pub fn finish(service: &Service) {
    let end = service.store.follow_audit_end().borrow().clone();
    if let Some(end) = end
        && let Err(error) = note(&service.home, &end)
    {
        tracing::warn!(%error, "the end of the audit log cannot be noted");
    }
}

/// Why the audit log could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error(transparent)]
    Store(berth_store::Error),
    #[error(transparent)]
    Refused(Refused),
    #[error(
        "{} cannot be read: {source}. It says where the audit log ended; put it back, or remove it \
         if it is damaged",
        path.display()
    )]
    Noted { path: std::path::PathBuf, source: io::Error },
}

/// What has to be in the audit log before the first request: that rows were cut off while no server
/// ran, that another key signs, and a seal on what was there before rows were signed.
pub async fn prepare(service: &Service) -> Result<(), PrepareError> {
    let path = service.home.audit_end();
    let noted = noted(&service.home).map_err(|source| PrepareError::Noted { path, source })?;
    let end = service.store.audit_end().await.map_err(PrepareError::Store)?;
    if let Some(noted) = &noted
        && !holds(&service.store, noted).await.map_err(PrepareError::Store)?
    {
        tracing::error!(
            noted = noted.seq,
            found = end.seq,
            "the audit log does not hold the row that was its last one: rows were cut off or \
             replaced, or an older copy of the database was put in its place"
        );
        let detail = json!({
            "noted_seq": noted.seq, "noted_hash": noted.hash, "found_seq": end.seq,
        });
        put(service, CUT_OFF, "audit log", detail, Batch::default()).await?;
    }
    let last = service.store.audit_after(end.seq.saturating_sub(1), 1).await;
    let last = last.map_err(PrepareError::Store)?.pop();
    let (now, before) = (service.store.audit_keys().current(), last.map(|row| row.key));
    let before = before.filter(|key| !key.is_empty());
    if let (Some(now), Some(before)) = (now, before)
        && now != before
    {
        let detail = json!({ "old": before, "new": now });
        put(service, ROTATE, &format!("key {now}"), detail, Batch::default()).await?;
    }
    seal(service, &end, noted).await
}

async fn holds(store: &Store, noted: &AuditEnd) -> berth_store::Result<bool> {
    let row = store.get::<AuditRow>(noted.seq).await?;
    // A log that was never written to ends at no row.
    Ok(noted.seq == 0 || row.is_some_and(|row| row.hash == noted.hash))
}

/// Vouches for the rights that people have, where no signed row does so yet.
async fn seal(
    service: &Service,
    end: &AuditEnd,
    noted: Option<AuditEnd>,
) -> Result<(), PrepareError> {
    let filter = AuditFilter { what: Some(SEAL.to_owned()), ..AuditFilter::default() };
    let sealed = service.store.audit(&filter, None, 1).await.map_err(PrepareError::Store)?;
    if sealed.iter().any(|row| !row.key.is_empty())
        || service.store.audit_keys().current().is_none()
    {
        return Ok(());
    }
    // The database said so, and whoever owns it may have it say anything. The look at all rows takes
    // its time, but only where there is no seal yet: once in the life of a database.
    let refused = why_not_seal(&service.store, noted).await.map_err(PrepareError::Store)?;
    if let Some(why) = refused {
        tracing::error!(%why, "the rights of users are not sealed; see `berth audit verify`");
        let detail = json!({ "why": why });
        return put(service, NOT_SEALED, "audit log", detail, Batch::default()).await;
    }
    let failed = PrepareError::Store;
    let (mut batches, mut batch) = (Vec::new(), Batch::default());
    let mut add = |put: &dyn Fn(&mut Batch)| {
        put(&mut batch);
        if batch.changes.len() >= ROWS_PER_SEAL {
            batches.push(std::mem::take(&mut batch));
        }
    };
    let store = &service.store;
    for row in store.every::<UserRow>().await.map_err(failed)? {
        add(&|batch| batch.put(&row));
    }
    for row in store.every::<MemberRow>().await.map_err(failed)? {
        add(&|batch| batch.put(&row));
    }
    for row in store.every::<TokenRow>().await.map_err(failed)? {
        add(&|batch| batch.put(&row));
    }
    for row in store.every::<SessionRow>().await.map_err(failed)? {
        add(&|batch| batch.put(&row));
    }
    for row in store.every::<IdentityRow>().await.map_err(failed)? {
        add(&|batch| batch.put(&row));
    }
    let detail = || json!({ "rows": end.seq, "hash": end.hash });
    for batch in batches {
        put(service, SEAL_PART, "audit log", detail(), batch).await?;
    }
    // The row that says that all is sealed comes last: after a start that was cut short, the next
    // one seals again.
    put(service, SEAL, "audit log", detail(), batch).await
}

/// Why the server must not vouch for what the database says about rights; nothing where it may.
async fn why_not_seal(
    store: &Store,
    noted: Option<AuditEnd>,
) -> berth_store::Result<Option<String>> {
    let mut follower = AuditFollower::new(store.clone(), noted);
    if let AuditCheck::Broken(broken) = follower.check().await? {
        return Ok(Some(format!("row {}: {}", broken.seq, broken.why)));
    }
    // The rows that the chain vouches for decide, not what a query finds.
    let why = if follower.has_signed(SEAL) {
        Some("they were sealed before, and the database hid the row that says so")
    } else if follower.has_signed(CUT_OFF) {
        Some("the audit log was cut off, and may have had a seal")
    } else {
        None
    };
    Ok(why.map(str::to_owned))
}

async fn put(
    service: &Service,
    what: &str,
    target: &str,
    detail: serde_json::Value,
    documents: Batch,
) -> Result<(), PrepareError> {
    let mut audit = server_audit("berth", what, target.to_owned());
    audit.detail = detail.to_string();
    let written = service.engine.write(Write::documents(documents, audit)).await;
    written.map(drop).map_err(PrepareError::Refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_store::{AuditKeys, Options};
    use tempfile::TempDir;

    async fn open(folder: &TempDir, keys: &[u8]) -> Store {
        let url = berth_store::sqlite_url(&folder.path().join("berth.db"));
        let key = |byte: &u8| (format!("k{byte}"), [*byte; 32]);
        let audit_keys = AuditKeys::new(keys.iter().map(key));
        Store::open(&url, Options { audit_keys, ..Options::default() }).await.unwrap()
    }

    async fn add(store: &Store, what: &str) {
        let audit = vec![server_audit("berth", what, "audit log".to_owned())];
        let mut writer = store.writer("a test").await.unwrap();
        writer.commit(&Batch { audit, ..Batch::default() }).await.unwrap();
        writer.close().await.unwrap();
    }

    #[tokio::test]
    async fn only_a_whole_log_that_never_had_a_seal_is_sealed() {
        let folder = TempDir::new().unwrap();
        // Rows from before there were keys.
        add(&open(&folder, &[]).await, "create_user").await;
        let store = open(&folder, &[1]).await;
        assert_eq!(why_not_seal(&store, None).await.unwrap(), None);
        // A start that was cut short, and a restore, seal nothing.
        add(&store, SEAL_PART).await;
        add(&store, "restore").await;
        assert_eq!(why_not_seal(&store, None).await.unwrap(), None);
        let noted = AuditEnd { seq: 9, hash: "f00d".to_owned() };
        let why = why_not_seal(&store, Some(noted)).await.unwrap().unwrap();
        assert_eq!(why, "row 4: it was cut off: there were 9 rows");
        add(&store, CUT_OFF).await;
        let why = why_not_seal(&store, None).await.unwrap().unwrap();
        assert!(why.contains("was cut off"), "{why}");
        add(&store, SEAL).await;
        let why = why_not_seal(&store, None).await.unwrap().unwrap();
        assert!(why.contains("sealed before"), "{why}");
    }

    #[tokio::test]
    async fn a_log_that_is_not_whole_is_not_sealed() {
        let folder = TempDir::new().unwrap();
        add(&open(&folder, &[2]).await, "create_user").await;
        let why = why_not_seal(&open(&folder, &[1]).await, None).await.unwrap().unwrap();
        assert!(why.starts_with("row 1: it was signed with key k2"), "{why}");
    }
}
