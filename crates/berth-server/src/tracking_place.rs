//! The location of the tracking store, and its part of a backup.

use crate::error::Error;
use crate::tracking::Tracking;
use berth_service::Home;
use berth_store::Attachment;
use berth_tracker_store::{BackupError, Options, Restored, TrackingStore};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use tokio::fs::File;
use tokio::io::BufWriter;

/// The name of this part in the first line of a backup.
const ATTACHED: &str = "tracking";

/// A separate SQLite file beside the server's, or a separate schema in the server's PostgreSQL database.
struct Place {
    url: String,
    /// The URL without the password.
    shown: String,
    file: Option<PathBuf>,
}

impl Place {
    /// `url` is the URL of the server's database, and `shown` the same without the password.
    fn of(home: &Home, url: &str, shown: &str) -> Place {
        if !url.starts_with("sqlite:") {
            return Place { url: url.to_owned(), shown: shown.to_owned(), file: None };
        }
        let file = home.root().join("tracking.db");
        let url = berth_store::sqlite_url(&file);
        Place { shown: url.clone(), url, file: Some(file) }
    }
}

pub async fn open(home: &Home, url: &str, shown: &str) -> Result<TrackingStore, Error> {
    let Place { url, shown, file } = Place::of(home, url, shown);
    let options = Options::default();
    TrackingStore::open(&url, &shown, file.as_deref(), &options).await.map_err(Error::Tracking)
}

/// Restores this part of a backup, if the backup has it. The caller commits the result.
pub async fn restore(
    home: &Home,
    (url, shown): (&str, &str),
    backup: &Path,
) -> Result<Option<Restored>, Error> {
    let lines = berth_store::attached(backup, ATTACHED).await.map_err(Error::Store)?;
    let Some(mut lines) = lines else { return Ok(None) };
    let Place { url, shown, file } = Place::of(home, url, shown);
    let place = (&*url, &*shown, file.as_deref());
    let restored = berth_tracker_store::restore(&mut lines, place, &Options::default()).await;
    restored.map(Some).map_err(Error::RestoreTracking)
}

impl Attachment for Tracking {
    fn name(&self) -> &str {
        ATTACHED
    }

    fn write<'a>(
        &'a self,
        file: &'a mut BufWriter<File>,
    ) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'a>> {
        Box::pin(async move {
            match self.store.backup(file).await {
                Ok(_) => Ok(()),
                // Report a full disk with its own error.
                Err(BackupError::Io { source, .. }) => Err(source),
                Err(error) => Err(io::Error::other(error)),
            }
        })
    }
}
