//! The audit log, handed on as it grows: to a file or to syslog, so that there is a copy that whoever
//! owns the database does not own.
//!
//! How far a place has got is noted in the home after the place has taken the rows. So a row may
//! arrive twice after a crash, and none is left out.

mod file;
mod place;
mod syslog;

pub use place::{ExportPlace, PlaceError};

use berth_api::wire;
use berth_service::admin::audit::shown;
use berth_service::{Home, home};
use berth_store::{AuditEnd, AuditRow, Store};
use file::FileSink;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use syslog::SyslogSink;
use tokio::task::JoinHandle;

/// Rows that are handed on together.
const ROWS: u32 = 200;
/// Without news from this process, another look after so long.
const LOOK: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How an export stands.
#[derive(Debug)]
pub struct Export {
    place: ExportPlace,
    /// The last row that the place has taken.
    position: AtomicU64,
    exported: AtomicU64,
    failures: AtomicU64,
    /// Why the last try failed; none where it did not.
    failing: Mutex<Option<String>>,
}

impl Export {
    pub fn new(place: ExportPlace) -> Export {
        let zero = || AtomicU64::new(0);
        let (position, exported, failures) = (zero(), zero(), zero());
        Export { place, position, exported, failures, failing: Mutex::default() }
    }

    /// Where it goes, as the operator wrote it.
    pub fn shown(&self) -> String {
        self.place.to_string()
    }

    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Rows that the place has taken since the server started.
    pub fn exported(&self) -> u64 {
        self.exported.load(Ordering::Relaxed)
    }

    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub fn failing(&self) -> Option<String> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says once that it fails, and once that it does not any more: tries are many.
    fn note(&self, failed: Option<&io::Error>) {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        match (failed, &*failing) {
            (Some(error), None) => tracing::warn!(
                to = %self.place, %error,
                "the audit log cannot be exported; trying again until it can"
            ),
            (None, Some(_)) => tracing::warn!(to = %self.place, "the audit log is exported again"),
            _ => {}
        }
        if failed.is_some() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        *failing = failed.map(ToString::to_string);
    }
}

/// How far a place has got, as the home keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    /// For people: the name of the file is a digest of it.
    to: String,
    #[serde(flatten)]
    end: AuditEnd,
}

pub fn begin(export: Arc<Export>, store: Store, home: Home, host: String) -> JoinHandle<()> {
    tokio::spawn(async move {
        let name = hex::encode(&digest(&SHA256, export.shown().as_bytes()).as_ref()[..8]);
        let file = home.audit_exports().join(format!("{name}.json"));
        let sink = match &export.place {
            ExportPlace::File(path) => Sink::File(FileSink::new(path)),
            ExportPlace::Syslog(socket) => Sink::Syslog(SyslogSink::new(socket, &host)),
        };
        let end = AuditEnd { seq: 0, hash: String::new() };
        let mut exporter = Exporter { export, store, file, sink, end };
        exporter.run().await;
    })
}

enum Sink {
    File(FileSink),
    Syslog(SyslogSink),
}

struct Exporter {
    export: Arc<Export>,
    store: Store,
    /// Where its position is kept.
    file: PathBuf,
    sink: Sink,
    end: AuditEnd,
}

impl Exporter {
    async fn run(&mut self) {
        let mut news = self.store.follow_audit_end();
        let mut pause = FIRST_PAUSE;
        while let Err(error) = self.find_position().await {
            self.export.note(Some(&error));
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        pause = FIRST_PAUSE;
        loop {
            news.borrow_and_update();
            match self.advance().await {
                Ok(0) => {
                    self.export.note(None);
                    pause = FIRST_PAUSE;
                    let _ = tokio::time::timeout(LOOK, news.changed()).await;
                }
                Ok(_) => self.export.note(None),
                Err(error) => {
                    self.export.note(Some(&error));
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Goes on where the last server left off. If the database does not hold the row that was
    /// exported last, it is another one or was rolled back: then all of it is exported.
    async fn find_position(&mut self) -> io::Result<()> {
        let known: Option<Position> = match tokio::fs::read(&self.file).await {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let Some(known) = known else { return Ok(()) };
        let row = self.store.get::<AuditRow>(known.end.seq).await.map_err(io::Error::other)?;
        if row.is_some_and(|row| row.hash == known.end.hash) {
            self.end = known.end;
        } else if known.end.seq > 0 {
            tracing::error!(
                to = %self.export.place, row = known.end.seq,
                "the database does not hold the audit row that was exported last; exporting all \
                 rows again"
            );
        }
        self.export.position.store(self.end.seq, Ordering::Relaxed);
        Ok(())
    }

    /// Hands rows on; how many.
    async fn advance(&mut self) -> io::Result<usize> {
        let rows = self.store.audit_after(self.end.seq, ROWS).await.map_err(io::Error::other)?;
        if rows.is_empty() {
            return Ok(0);
        }
        let ends: Vec<AuditEnd> =
            rows.iter().map(|row| AuditEnd { seq: row.seq, hash: row.hash.clone() }).collect();
        let rows: Vec<wire::AuditRow> = rows.into_iter().map(shown).collect();
        let (taken, result) = match &mut self.sink {
            Sink::File(sink) => sink.take(&rows).await,
            Sink::Syslog(sink) => sink.take(&rows).await,
        };
        if let Some(end) = taken.checked_sub(1).and_then(|last| ends.get(last)) {
            self.end = end.clone();
            self.export.exported.fetch_add(taken as u64, Ordering::Relaxed);
            self.export.position.store(end.seq, Ordering::Relaxed);
            self.keep_position().await?;
        }
        result.map(|()| taken)
    }

    async fn keep_position(&self) -> io::Result<()> {
        let position = Position { to: self.export.shown(), end: self.end.clone() };
        let text = serde_json::to_string(&position).map_err(io::Error::other)? + "\n";
        let file = self.file.clone();
        let write = move || {
            file.parent().map_or(Ok(()), home::private)?;
            berth_fs::write_private(&file, text.as_bytes())
        };
        tokio::task::spawn_blocking(write).await.map_err(io::Error::other)?
    }
}
