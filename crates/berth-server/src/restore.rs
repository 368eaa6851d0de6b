//! A backup into an empty database, while no server runs on it.

use crate::home::Home;
use crate::serve::{Error, database_url};
use std::path::{Path, PathBuf};

/// What was read back.
#[derive(Debug, Clone)]
pub struct Restored {
    pub rows: u64,
    pub database: String,
    /// The key that opens the secrets, where it is not in this home. Without it they are lost.
    pub missing_key: Option<PathBuf>,
}

/// Reads a backup into the database of that home, or into the one at the address. Nothing of it
/// is kept unless all of it is.
pub async fn restore(
    home: &Path,
    database: Option<&str>,
    backup: &Path,
) -> Result<Restored, Error> {
    let opened = Home::open(home);
    let home = opened.map_err(|source| Error::Home { path: home.to_owned(), source })?;
    let url = database_url(&home, database);
    let options = berth_store::Options::default();
    let summary =
        berth_store::restore(backup, &url, options.clone()).await.map_err(Error::Store)?;
    let store = berth_store::Store::open(&url, options).await.map_err(Error::Store)?;
    let key = home.key();
    Ok(Restored {
        rows: summary.rows,
        database: store.database().to_owned(),
        missing_key: (!key.exists()).then_some(key),
    })
}
