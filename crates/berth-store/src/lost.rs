//! A database that is lost while it is open. Whoever serves from it has to stop: what it
//! acknowledges from then on would be lost as well.

use crate::address::Backend;
use crate::error::{Error, Result};
use crate::store::Store;
use sqlx::query;
use std::time::Duration;
use tokio::time::timeout;

/// How often the files are looked at while nothing is written. It is three calls of `stat`.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often a server is asked whether the database is still there: a look takes a round trip.
const LOOKS_PER_QUESTION: u32 = 4;

impl Store {
    /// Waits until the database is lost, and says how: its files are gone, replaced or cut short,
    /// it was dropped, or a statement of anybody found it damaged.
    pub async fn lost(&self) -> Error {
        let mut found = self.lost_sender().subscribe();
        let mut looks: u32 = 0;
        loop {
            if let Some(why) = found.borrow_and_update().clone() {
                return Error::Lost { database: self.database().to_owned(), why };
            }
            if let Err(error) = self.check_files() {
                return error;
            }
            looks = looks.wrapping_add(1);
            if self.backend() == Backend::Postgres && looks.is_multiple_of(LOOKS_PER_QUESTION) {
                self.ask_for_log().await;
            }
            // Whoever finds damage wakes this before the time is over.
            let _ = timeout(LOOK_EVERY, found.changed()).await;
        }
    }

    /// Whether the files are the ones that were opened; always so where a server has them.
    pub(crate) fn check_files(&self) -> Result<()> {
        match self.files().and_then(|files| files.fault()) {
            None => Ok(()),
            Some(why) => Err(Error::Lost { database: self.database().to_owned(), why }),
        }
    }

    /// Sorts an error of the driver, and tells those who wait if it means that the database is lost.
    pub(crate) fn error(&self, action: &'static str, source: sqlx::Error) -> Error {
        let error = match self.check_files() {
            Ok(()) => Error::sql(self.database(), action, source),
            Err(lost) => lost,
        };
        let why = match &error {
            Error::Lost { why, .. } => why.clone(),
            Error::Corrupt { detail, .. } => format!("it is damaged ({detail})"),
            Error::NotDatabase { .. } => "its file is no database any more".to_owned(),
            Error::Disk { source, .. } => format!("its disk fails ({source})"),
            _ => return error,
        };
        self.lost_sender().send_if_modified(|known| {
            let is_news = known.is_none();
            known.get_or_insert(why);
            is_news
        });
        error
    }

    /// A server that is away is no news here: the writer waits for it.
    async fn ask_for_log(&self) {
        let asked = query("SELECT one FROM log").fetch_optional(self.readers()).await;
        if let Err(source) = asked {
            let _ = self.error("ask whether it is there", source);
        }
    }
}
