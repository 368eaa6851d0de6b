//! MLflow's SQLite database, opened read-only.

mod read;
mod registry;
mod runs;
mod shape;
#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use shape::Shape;
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The connections: one for each concurrent run, and one for the pages of runs.
const CONNECTIONS: u32 = 6;

pub struct Database {
    pool: SqlitePool,
    shape: Shape,
    path: PathBuf,
    name: String,
    /// Folders to search for files that are not at their path in the database.
    artifacts: Vec<PathBuf>,
}

impl Database {
    /// Opens a database. `artifacts` is the artifact folder of the server.
    pub async fn open(path: &Path, artifacts: Option<&Path>) -> Result<Database> {
        let place = path.display().to_string();
        let odd = |why: &str| Error::NotASource { place: place.clone(), why: why.to_owned() };
        if !path.is_file() {
            return Err(odd("there is no such file"));
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .read_only(true)
            .create_if_missing(false)
            .busy_timeout(Duration::from_secs(10));
        let pool =
            SqlitePoolOptions::new().max_connections(CONNECTIONS).connect_with(options).await;
        let failed = |source| {
            let path = place.clone();
            Error::Database { doing: "opening", path, source }
        };
        let pool = pool.map_err(failed)?;
        let shape = Shape::read(&pool).await.map_err(|source| {
            let path = place.clone();
            Error::Database { doing: "reading the tables", path, source }
        })?;
        if let Some(why) = shape.missing() {
            return Err(odd(&why));
        }
        let path = path.canonicalize().map_err(Error::file("finding", path))?;
        let beside = path.parent().map(Path::to_owned).unwrap_or_default();
        let artifacts = match artifacts {
            Some(folder) => vec![folder.to_owned()],
            None => vec![beside.join("mlartifacts"), beside.join("mlruns")],
        };
        let name = format!("sqlite://{}", path.display());
        Ok(Database { pool, shape, path, name, artifacts })
    }

    fn failed(&self, doing: &'static str) -> impl Fn(sqlx::Error) -> Error + use<> {
        let path = self.path.display().to_string();
        move |source| Error::Database { doing, path: path.clone(), source }
    }

    /// The local folder of an artifact URI; `None` if it is not on this machine.
    fn folder_of(&self, uri: &str) -> Option<PathBuf> {
        let beside = self.path.parent().map(Path::to_owned).unwrap_or_default();
        if let Some(rest) = uri.strip_prefix("mlflow-artifacts:") {
            let rest = rest.trim_start_matches('/');
            let found = self.artifacts.iter().map(|folder| folder.join(rest));
            return found.clone().find(|path| path.is_dir()).or_else(|| found.into_iter().next());
        }
        // Most servers run in the folder of their database.
        let said = beside.join(crate::files::disk::path_of_uri(uri)?);
        if said.is_dir() {
            return Some(said);
        }
        // The end of the path, EXPERIMENT/RUN/artifacts, stays the same when a store moves.
        let parts: Vec<_> = said.iter().collect();
        let ends = (2..=4).rev().filter(|length| *length <= parts.len());
        let ends = ends.map(|length| parts[parts.len() - length..].iter().collect::<PathBuf>());
        let moved = ends.flat_map(|end| self.artifacts.iter().map(move |folder| folder.join(&end)));
        let moved = moved.into_iter().find(|path| path.is_dir());
        Some(moved.unwrap_or(said))
    }
}
