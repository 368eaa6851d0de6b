//! Parses the source or destination.

use super::failure;
use crate::fail::{Failure, Result};
use berth_api::Client;
use berth_api::client::Options;
use berth_import::{Database, FileStore, Problems, Server, Source};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use url::Url;

pub const EXPECTED: &str = "Name a server such as http://HOST:5000, a database such as sqlite:///mlflow.db, or a folder such \
     as mlruns.";

/// MLflow's server can be slow for a large answer.
const TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    Server(Url),
    Sqlite(PathBuf),
    Folder(PathBuf),
}

impl Place {
    pub fn of(text: &str) -> Result<Place> {
        if text.starts_with("http://") || text.starts_with("https://") {
            let odd = |error| Failure::usage(format!("`{text}` is no address: {error}"));
            let url = Url::parse(text).map_err(odd)?;
            if !url.username().is_empty() || url.password().is_some() {
                let said = "the address has a user or a password in it, which other users of this \
                            machine can see";
                return Err(Failure::usage(said)
                    .next("Put them into MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD."));
            }
            return Ok(Place::Server(url));
        }
        if let Some(rest) = text.strip_prefix("sqlite:") {
            // As in SQLAlchemy: three slashes and a relative path, four slashes and an absolute path.
            let rest = rest.strip_prefix("///").unwrap_or(rest);
            let from_here = PathBuf::from(rest);
            let from_root = Path::new("/").join(rest);
            let is_there = !from_here.exists() && from_root.exists();
            return Ok(Place::Sqlite(if is_there { from_root } else { from_here }));
        }
        if let Some(path) = text.strip_prefix("file:") {
            let parsed = Url::parse(text).ok().and_then(|url| url.to_file_path().ok());
            return Ok(Place::Folder(parsed.unwrap_or_else(|| PathBuf::from(path))));
        }
        if let Some((scheme, _)) = text.split_once("://") {
            let said = format!("`{scheme}` is not a kind of place that Berth knows");
            return Err(Failure::usage(said).next(EXPECTED));
        }
        let path = PathBuf::from(text);
        Ok(if path.is_file() { Place::Sqlite(path) } else { Place::Folder(path) })
    }
}

pub async fn source(
    text: &str,
    artifacts: Option<&Path>,
    problems: &Rc<Problems>,
) -> Result<Box<dyn Source>> {
    let place = Place::of(text)?;
    if artifacts.is_some() && !matches!(place, Place::Sqlite(_)) {
        return Err(Failure::usage(
            "--artifacts is for databases: servers and folders have theirs",
        ));
    }
    Ok(match place {
        Place::Server(url) => Box::new(server(&url)?),
        Place::Sqlite(path) => Box::new(Database::open(&path, artifacts).await.map_err(failure)?),
        Place::Folder(path) => Box::new(FileStore::open(&path, problems.clone()).map_err(failure)?),
    })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A server, with the credentials of MLflow's client.
pub fn server(url: &Url) -> Result<Server> {
    let mut options = Options::new(url.as_str());
    options.timeout = TIMEOUT;
    options.user = variable("MLFLOW_TRACKING_USERNAME");
    options.token = match options.user {
        Some(_) => variable("MLFLOW_TRACKING_PASSWORD"),
        None => variable("MLFLOW_TRACKING_TOKEN"),
    };
    if let Some(path) = variable("MLFLOW_TRACKING_SERVER_CERT_PATH") {
        let read = std::fs::read(&path);
        let read = read.map_err(|error| Failure::io(format!("reading {path}"), &error))?;
        options.ca_pem = Some(read);
    }
    Ok(Server::new(Client::new(options)?, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_known_by_how_it_begins() {
        let folder = |path: &str| Place::Folder(PathBuf::from(path));
        assert_eq!(Place::of("file:///a/mlruns").unwrap(), folder("/a/mlruns"));
        assert_eq!(Place::of("no/such/mlruns").unwrap(), folder("no/such/mlruns"));
        let database = |path: &str| Place::Sqlite(PathBuf::from(path));
        assert_eq!(Place::of("sqlite:///no/mlflow.db").unwrap(), database("no/mlflow.db"));
        assert_eq!(Place::of("sqlite:////no/mlflow.db").unwrap(), database("/no/mlflow.db"));
        assert!(matches!(Place::of("https://host/x").unwrap(), Place::Server(_)));
        let said = Place::of("postgresql://host/db").unwrap_err().to_string();
        assert!(said.contains("sqlite:///mlflow.db"), "{said}");
        let said = Place::of("http://kim:secret@host").unwrap_err().to_string();
        assert!(said.contains("MLFLOW_TRACKING_PASSWORD") && !said.contains("secret"), "{said}");
    }
}
