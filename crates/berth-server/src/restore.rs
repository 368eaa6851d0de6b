//! A backup into an empty database, while no server runs on it.

use crate::error::Error;
use crate::serve::database_url;
use berth_node::{Driver, Launcher, State, Wanted};
use berth_service::audit_key::KeyFile;
use berth_service::{Home, audit_end, server_audit};
use berth_store::{AuditCheck, Batch, Store};
use futures_util::future::LocalBoxFuture;
use std::path::{Path, PathBuf};

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
}

/// Reads a backup into the database of that home, or into the one at the address. Nothing of it
/// is kept unless all of it is.
pub fn restore<'a>(
    home: &'a Path,
    database: Option<&'a str>,
    audit_key: Option<&'a Path>,
    backup: &'a Path,
    who: &'a str,
) -> LocalBoxFuture<'a, Result<Restored, Error>> {
    Box::pin(read_into(home, database, audit_key, backup, who))
}

async fn read_into(
    home: &Path,
    database: Option<&str>,
    audit_key: Option<&Path>,
    backup: &Path,
    who: &str,
) -> Result<Restored, Error> {
    let opened = Home::open(home);
    let home = opened.map_err(|source| Error::Home { path: home.to_owned(), source })?;
    // Held until the end: no server may start on this home meanwhile.
    let node = open_node(&home)?;
    let running = running(node.as_ref())?;
    let url = database_url(&home, database);
    let key = audit_key.map_or_else(|| home.audit_key(), Path::to_owned);
    let audit_keys = KeyFile::open(&key).map_err(Error::AuditKey)?;
    let options = berth_store::Options {
        audit_keys: audit_keys.keys().clone(),
        ..berth_store::Options::default()
    };
    let summary =
        berth_store::restore(backup, &url, options.clone()).await.map_err(Error::Store)?;
    let store = Store::open(&url, options).await.map_err(Error::Store)?;
    note(&store, who, backup, &summary.sha256).await.map_err(Error::Store)?;
    // The log goes on from here: what the home noted of the database before is over.
    let end = store.audit_end().await.map_err(Error::Store)?;
    let noted = audit_end::note(&home, &end);
    noted.map_err(|source| Error::Home { path: home.audit_end(), source })?;
    let unverified = match summary.audit {
        AuditCheck::Whole(_) => None,
        AuditCheck::Broken(broken) => Some(format!("row {}: {}", broken.seq, broken.why)),
    };
    let key = home.key();
    Ok(Restored {
        rows: summary.rows,
        database: store.database().to_owned(),
        missing_key: (!key.exists()).then_some(key),
        unverified,
        running,
    })
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
async fn note(store: &Store, who: &str, backup: &Path, sum: &str) -> berth_store::Result<()> {
    let file = backup.file_name().unwrap_or(backup.as_os_str()).to_string_lossy();
    let mut audit = server_audit(who, "restore", format!("backup {file}"));
    audit.from = "command line".to_owned();
    audit.detail = serde_json::json!({ "sha256": sum }).to_string();
    let mut writer = store.writer(&format!("berth restore by {who}")).await?;
    writer.commit(&Batch { audit: vec![audit], ..Batch::default() }).await?;
    writer.close().await
}
