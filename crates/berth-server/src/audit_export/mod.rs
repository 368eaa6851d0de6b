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
use std::fmt;
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

    /// Rows that the place has not taken, where the log ends at that one. Whoever looks only at
    /// this figure has to see as well that no more comes.
    pub fn behind(&self, end: u64) -> u64 {
        let least = u64::from(self.failing().is_some());
        end.saturating_sub(self.position()).max(least)
    }

    /// Says once that it fails, and once that it does not any more: tries are many.
    fn note(&self, failed: Option<&dyn fmt::Display>) {
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

/// What a look at the log came to.
enum Step {
    /// The place took rows, and there may be more.
    Rows,
    /// There is no row that the place does not have.
    End,
    /// A row is missing. The place has all before it.
    Gap(Gap),
}

/// A row that is not there, although a later one is. Whoever put that one there wants it taken for
/// the next: the export would then pass over every row that the server writes.
#[derive(Debug, PartialEq, Eq)]
struct Gap {
    missing: u64,
    found: u64,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gap { missing, found } = self;
        write!(
            f,
            "row {missing} of the audit log is missing, and there is a row {found}: the database \
             was changed without the server; see `berth audit verify`"
        )
    }
}

/// The rows that follow one another from the one after `after` on, and what is missing then.
fn in_order(mut rows: Vec<AuditRow>, after: u64) -> (Vec<AuditRow>, Option<Gap>) {
    let follow = rows.iter().zip(after + 1..).take_while(|(row, seq)| row.seq == *seq).count();
    let gap =
        rows.get(follow).map(|row| Gap { missing: after + 1 + follow as u64, found: row.seq });
    rows.truncate(follow);
    (rows, gap)
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
                Ok(Step::Rows) => self.export.note(None),
                Ok(Step::End) => {
                    self.export.note(None);
                    pause = FIRST_PAUSE;
                    let _ = tokio::time::timeout(LOOK, news.changed()).await;
                }
                // The server goes on writing rows in their order, and those are exported.
                Ok(Step::Gap(gap)) => {
                    self.export.note(Some(&gap));
                    let _ = tokio::time::timeout(LOOK, news.changed()).await;
                }
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

    /// Hands rows on.
    async fn advance(&mut self) -> io::Result<Step> {
        let rows = self.store.audit_after(self.end.seq, ROWS).await.map_err(io::Error::other)?;
        let (rows, gap) = in_order(rows, self.end.seq);
        let step = match gap {
            Some(gap) => Step::Gap(gap),
            None if rows.is_empty() => Step::End,
            None => Step::Rows,
        };
        if rows.is_empty() {
            return Ok(step);
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
        result.map(|()| step)
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

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Time;

    fn row(seq: u64) -> AuditRow {
        AuditRow {
            seq,
            at: Time(0),
            who: String::new(),
            token: String::new(),
            from: String::new(),
            method: String::new(),
            what: String::new(),
            target: String::new(),
            outcome: String::new(),
            detail: String::new(),
            prev: String::new(),
            hash: String::new(),
            key: String::new(),
            seals: String::new(),
        }
    }

    #[test]
    fn rows_are_taken_in_their_order_and_none_is_passed_over() {
        let far = 1 << 62;
        let gap = |missing, found| Some(Gap { missing, found });
        let cases: [(&[u64], &[u64], Option<Gap>); 5] = [
            (&[], &[], None),
            (&[8, 9], &[8, 9], None),
            (&[far], &[], gap(8, far)),
            (&[8, far], &[8], gap(9, far)),
            (&[9, 10], &[], gap(8, 9)),
        ];
        for (given, taken, gap) in cases {
            let (rows, found) = in_order(given.iter().copied().map(row).collect(), 7);
            let seqs: Vec<u64> = rows.iter().map(|row| row.seq).collect();
            assert_eq!((&*seqs, found), (taken, gap), "{given:?}");
        }
    }

    #[test]
    fn an_export_that_fails_is_never_shown_as_complete() {
        let export = Export::new("/var/log/audit.jsonl".parse().unwrap());
        export.position.store(7, Ordering::Relaxed);
        assert_eq!((export.behind(9), export.behind(7), export.behind(0)), (2, 0, 0));
        export.note(Some(&Gap { missing: 8, found: 1 << 62 }));
        assert!(export.failing().unwrap().contains("row 8 of the audit log is missing"));
        assert_eq!((export.behind(9), export.behind(7), export.behind(0)), (2, 1, 1));
    }
}
