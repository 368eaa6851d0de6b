//! A backup into an empty database, while no server runs on it.

use crate::error::Error;
use crate::serve::database_url;
use crate::tracking_place;
use berth_node::{Driver, Launcher, State, Wanted};
use berth_service::audit_key::KeyFile;
use berth_service::{Home, audit_end, server_audit};
use berth_store::{AuditCheck, AuditKeys, Batch, RightsFinding, SessionRow, Store};
use berth_tracker_store as tracked;
use futures_util::future::LocalBoxFuture;
use std::path::{Path, PathBuf};

/// Sessions that are deleted by one audit row.
const AT_ONCE: usize = 200;

/// What was read back.
#[derive(Debug, Clone)]
pub struct Restored {
    pub rows: u64,
    pub database: String,
    /// The key that opens the secrets, where it is not in this home. Without it they are lost.
    pub missing_key: Option<PathBuf>,
    /// What is wrong with its audit log, if anything.
    pub unverified: Option<String>,
    /// Tasks that run in this home now. The next start goes on with those that the backup knows,
    /// and ends the others.
    pub running: usize,
    /// Browsers of the backup that are signed out now.
    pub signed_out: usize,
    pub tracked: Tracked,
}

/// The result for experiments, runs and models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tracked {
    /// An older version of Berth made the backup, without this part.
    NotInBackup,
    Rows(u64),
    /// The database had experiments or runs. Berth kept them and did not restore those of the backup.
    Kept(String),
}

/// What is restored, and where to.
#[derive(Debug, Clone, Copy)]
pub struct Restore<'a> {
    pub home: &'a Path,
    /// Instead of the database of the home.
    pub database: Option<&'a str>,
    /// Instead of the key file of the home.
    pub audit_key: Option<&'a Path>,
    pub backup: &'a Path,
    pub who: &'a str,
    /// The keys that signed its audit log are lost, and nobody can verify it any more.
    pub without_audit_key: bool,
}

/// Reads a backup into the database of that home, or into the one at the address. Nothing of it
/// is kept unless all of it is.
pub fn restore(wish: Restore<'_>) -> LocalBoxFuture<'_, Result<Restored, Error>> {
    Box::pin(read_into(wish))
}

async fn read_into(wish: Restore<'_>) -> Result<Restored, Error> {
    let opened = Home::open(wish.home);
    let home = opened.map_err(|source| Error::Home { path: wish.home.to_owned(), source })?;
    // Held until the end: no server may start on this home meanwhile.
    let node = open_node(&home)?;
    let running = running(node.as_ref())?;
    let url = database_url(&home, wish.database);
    let key = wish.audit_key.map_or_else(|| home.audit_key(), Path::to_owned);
    let missing = missing_keys(&key, wish.backup).await?;
    if !missing.is_empty() && !wish.without_audit_key {
        return Err(Error::AuditKeyMissing { path: key, ids: missing.join(", ") });
    }
    let audit_keys = KeyFile::open(&key).map_err(Error::AuditKey)?;
    let options = berth_store::Options {
        audit_keys: audit_keys.keys().clone(),
        ..berth_store::Options::default()
    };
    let shown = berth_store::shown_url(&url).map_err(Error::Store)?;
    // Commit after the other tables: if their restore fails, a second attempt finds both databases empty.
    let tracked = tracking_place::restore(&home, (&url, &shown), wish.backup).await?;
    let summary =
        berth_store::restore(wish.backup, &url, options.clone()).await.map_err(Error::Store)?;
    let tracked = match tracked {
        None => Tracked::NotInBackup,
        Some(tracked::Restored::Kept { database }) => Tracked::Kept(database),
        Some(tracked::Restored::Filled(filled)) => {
            Tracked::Rows(filled.commit().await.map_err(Error::RestoreTracking)?)
        }
    };
    let store = Store::open(&url, options).await.map_err(Error::Store)?;
    let signed_out = end_sessions(&store, wish.who).await.map_err(Error::Store)?;
    note(&store, &wish, &summary.sha256, &missing).await.map_err(Error::Store)?;
    // The log goes on from here: what the home noted of the database before is over.
    let end = store.audit_end().await.map_err(Error::Store)?;
    let noted = audit_end::note(&home, &end);
    noted.map_err(|source| Error::Home { path: home.audit_end(), source })?;
    let key = home.key();
    Ok(Restored {
        rows: summary.rows,
        database: store.database().to_owned(),
        missing_key: (!key.exists()).then_some(key),
        unverified: unverified(&summary.audit),
        running,
        signed_out,
        tracked,
    })
}

/// The keys that signed the audit log of a backup and are not in the file. A new key must not sign
/// in their place: the old file would then be of no use any more, because it lacks that one.
async fn missing_keys(file: &Path, backup: &Path) -> Result<Vec<String>, Error> {
    let signed = berth_store::signing_keys(backup).await.map_err(Error::Store)?;
    // To open one that is not there would make it.
    let there = match file.exists() {
        true => KeyFile::open(file).map_err(Error::AuditKey)?.keys().clone(),
        false => AuditKeys::default(),
    };
    Ok(signed.into_iter().filter(|id| !there.has(id)).collect())
}

fn unverified(check: &AuditCheck) -> Option<String> {
    match check {
        AuditCheck::Broken(broken) => Some(format!("row {}: {}", broken.seq, broken.why)),
        AuditCheck::Whole(whole) => {
            let words = |one: &RightsFinding| format!("{}: {}", one.what, one.why);
            let rights: Vec<String> = whole.rights.iter().map(words).collect();
            (!rights.is_empty())
                .then(|| format!("rights are not what it says ({})", rights.join("; ")))
        }
    }
}

/// The tasks of the home, where any were ever started. A server that runs still has them: it would
/// go on with what the backup does not know.
fn open_node(home: &Home) -> Result<Option<Driver>, Error> {
    if !home.node().exists() {
        return Ok(None);
    }
    // Nothing is started by this.
    let launcher = Launcher { exe: PathBuf::new(), args: Vec::new() };
    let options = berth_node::Options { cgroups: false, isolation: Wanted::Off };
    match Driver::open(&home.node(), launcher, options) {
        Ok(node) => Ok(Some(node)),
        Err(berth_node::Error::InUse { .. }) => {
            Err(Error::ServerRuns { home: home.root().to_owned() })
        }
        Err(error) => Err(Error::Node(error)),
    }
}

fn running(node: Option<&Driver>) -> Result<usize, Error> {
    let Some(node) = node else { return Ok(0) };
    let tasks = node.adopt().map_err(Error::Node)?;
    Ok(tasks.iter().filter(|task| task.state == State::Running).count())
}

/// The audit log goes on where the backup's ends, and says that it did: what happened between
/// the backup and now is in no log any more.
async fn note(
    store: &Store,
    wish: &Restore<'_>,
    sum: &str,
    missing: &[String],
) -> berth_store::Result<()> {
    let Restore { backup, who, .. } = wish;
    let file = backup.file_name().unwrap_or(backup.as_os_str()).to_string_lossy();
    let mut audit = server_audit(who, "restore", format!("backup {file}"));
    audit.from = "command line".to_owned();
    let mut detail = serde_json::json!({ "sha256": sum });
    if !missing.is_empty() {
        detail["without_audit_keys"] = missing.into();
    }
    audit.detail = detail.to_string();
    let mut writer = store.writer(&format!("berth restore by {who}")).await?;
    writer.commit(&Batch { audit: vec![audit], ..Batch::default() }).await?;
    writer.close().await
}

/// Signs the browsers of the backup out: some of them were signed out since, and the backup would sign them
/// in again. How many these are.
async fn end_sessions(store: &Store, who: &str) -> berth_store::Result<usize> {
    let sessions = store.every::<SessionRow>().await?;
    let mut writer = store.writer(&format!("berth restore by {who}")).await?;
    for some in sessions.chunks(AT_ONCE) {
        let ids: Vec<&str> = some.iter().map(|row| row.id.as_str()).collect();
        let mut audit = server_audit(who, "end_sessions", format!("{} sessions", ids.len()));
        audit.from = "command line".to_owned();
        audit.detail =
            serde_json::json!({ "why": "a backup was restored", "sessions": ids }).to_string();
        let mut batch = Batch { audit: vec![audit], ..Batch::default() };
        some.iter().for_each(|row| batch.delete::<SessionRow>(&row.id));
        writer.commit(&batch).await?;
    }
    writer.close().await?;
    Ok(sessions.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Time;
    use berth_store::{Options, UserRow};
    use tempfile::TempDir;

    async fn open(home: &Path) -> Store {
        let url = berth_store::sqlite_url(&home.join("berth.db"));
        let audit_keys = KeyFile::open(&home.join("audit.key")).unwrap().keys().clone();
        Store::open(&url, Options { audit_keys, ..Options::default() }).await.unwrap()
    }

    fn user(name: &str) -> UserRow {
        let (name, full_name) = (name.to_owned(), String::new());
        UserRow { name, full_name, role: None, created: Time(1), disabled: None }
    }

    fn session(id: &str) -> SessionRow {
        SessionRow {
            id: id.to_owned(),
            user: "ada".to_owned(),
            hash: "c0ffee".to_owned(),
            scopes: "all".to_owned(),
            means: "token".to_owned(),
            token: None,
            created: Time(1),
            expires: Time(i64::MAX),
            last_used: Time(1),
            from: String::new(),
            agent: String::new(),
            hint: Vec::new(),
            key_hash: Some("decaf".to_owned()),
        }
    }

    /// A backup whose audit log is signed. The log knows ada, and not those who are added.
    async fn backup(home: &Path, added: &[&str]) -> PathBuf {
        let store = open(home).await;
        let mut writer = store.writer("a test").await.unwrap();
        let audit = vec![server_audit("berth", "create_user", "user ada".to_owned())];
        let mut known = Batch { audit, ..Batch::default() };
        known.put(&user("ada"));
        writer.commit(&known).await.unwrap();
        let mut unknown = Batch::default();
        added.iter().for_each(|name| unknown.put(&user(name)));
        writer.commit(&unknown).await.unwrap();
        writer.close().await.unwrap();
        let path = home.join("backup");
        store.backup(&path).await.unwrap();
        path
    }

    fn wish<'a>(home: &'a Path, backup: &'a Path) -> Restore<'a> {
        let (database, audit_key, without_audit_key) = (None, None, false);
        Restore { home, database, audit_key, backup, who: "kim", without_audit_key }
    }

    #[tokio::test]
    async fn without_the_key_of_its_audit_log_a_backup_is_refused_before_anything_is_written() {
        let (old, new) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let backup = backup(old.path(), &[]).await;
        let wish = wish(new.path(), &backup);
        let refused = restore(wish).await.unwrap_err();
        assert!(matches!(refused, Error::AuditKeyMissing { .. }), "{refused}");
        let (key, database) = (new.path().join("audit.key"), new.path().join("berth.db"));
        assert!(refused.to_string().contains(&key.display().to_string()), "{refused}");
        assert!(!key.exists() && !database.exists());
        // A key of its own does not help.
        let own = KeyFile::open(&key).unwrap();
        assert!(matches!(restore(wish).await, Err(Error::AuditKeyMissing { .. })));
        drop(own);
        std::fs::copy(old.path().join("audit.key"), &key).unwrap();
        assert_eq!(restore(wish).await.unwrap().unverified, None);
        let check = open(new.path()).await.verify_audit().await.unwrap();
        assert!(matches!(check, AuditCheck::Whole(_)), "{check:?}");
    }

    #[tokio::test]
    async fn an_operator_who_accepts_that_the_key_is_lost_finds_that_in_the_audit_log() {
        let (old, new) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let backup = backup(old.path(), &[]).await;
        let wish = Restore { without_audit_key: true, ..wish(new.path(), &backup) };
        let restored = restore(wish).await.unwrap();
        assert!(restored.unverified.unwrap().contains("not in the key file"));
        let row = open(new.path()).await.audit_after(1, 1).await.unwrap().remove(0);
        let id = KeyFile::open(&old.path().join("audit.key")).unwrap().keys().current().unwrap();
        assert_eq!(row.what, "restore");
        assert!(row.detail.contains("without_audit_keys") && row.detail.contains(&id), "{row:?}");
    }

    #[tokio::test]
    async fn a_restored_backup_signs_no_browser_in_again() {
        let (old, new) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        backup(old.path(), &[]).await;
        let store = open(old.path()).await;
        let mut writer = store.writer("a test").await.unwrap();
        let mut batch = Batch {
            audit: vec![server_audit("ada", "sign_in", "session s1".to_owned())],
            ..Batch::default()
        };
        (0..AT_ONCE + 1).for_each(|n| batch.put(&session(&format!("s{n}"))));
        writer.commit(&batch).await.unwrap();
        writer.close().await.unwrap();
        let path = old.path().join("with sessions");
        store.backup(&path).await.unwrap();
        std::fs::copy(old.path().join("audit.key"), new.path().join("audit.key")).unwrap();
        let restored = restore(wish(new.path(), &path)).await.unwrap();
        assert_eq!((restored.signed_out, restored.unverified), (AT_ONCE + 1, None));
        let store = open(new.path()).await;
        assert!(store.every::<SessionRow>().await.unwrap().is_empty());
        assert!(store.get::<UserRow>("ada").await.unwrap().is_some());
        let AuditCheck::Whole(check) = store.verify_audit().await.unwrap() else {
            panic!("the audit log tells of it")
        };
        assert!(check.rights.is_empty(), "{:?}", check.rights);
    }

    #[tokio::test]
    async fn rights_that_the_audit_log_does_not_know_are_told() {
        let (old, new) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let backup = backup(old.path(), &["eve"]).await;
        std::fs::copy(old.path().join("audit.key"), new.path().join("audit.key")).unwrap();
        let restored = restore(wish(new.path(), &backup)).await.unwrap();
        let why = restored.unverified.unwrap();
        assert_eq!(why, "rights are not what it says (user eve: it was added)");
    }
}
