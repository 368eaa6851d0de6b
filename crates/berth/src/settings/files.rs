//! The files that settings come from.

use crate::fail::{Exit, Failure, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const PROJECT_FILE: &str = ".berth.toml";

/// The keys of a file; what is not there was not said.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Keys {
    pub url: Option<String>,
    pub token: Option<String>,
    pub team: Option<String>,
    pub project: Option<String>,
    pub output: Option<String>,
}

/// A file that was found.
pub struct FoundFile {
    pub path: PathBuf,
    pub keys: Keys,
}

/// What a server on this machine wrote about itself. It may say more than we need.
#[derive(Deserialize)]
pub struct Local {
    #[serde(skip)]
    pub path: PathBuf,
    pub url: String,
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// Its jobs run in containers, which have nothing of this machine.
    #[serde(default)]
    pub containers: bool,
}

/// The nearest project file from a folder upward.
pub fn project(from: &Path) -> Result<Option<FoundFile>> {
    from.ancestors()
        .map(|folder| folder.join(PROJECT_FILE))
        .find_map(|path| read(&path).transpose())
        .transpose()
}

pub fn read(path: &Path) -> Result<Option<FoundFile>> {
    let Some(text) = text(path)? else { return Ok(None) };
    let keys = toml::from_str(&text).map_err(|error| {
        // The message would show the line, and a token may stand on it.
        let line = error.span().map(|span| text[..span.start].lines().count().max(1));
        let place = line.map_or_else(String::new, |line| format!(":{line}"));
        Failure::usage(format!("{}{place}: {}", path.display(), error.message()))
            .next("The keys are url, token, team, project and output; each takes a text.")
    })?;
    Ok(Some(FoundFile { path: path.to_owned(), keys }))
}

pub fn local(home: &Path) -> Result<Option<Local>> {
    let path = home.join("server.json");
    let Some(text) = text(&path)? else { return Ok(None) };
    let local: Local = json(&path, &text)?;
    Ok(Some(Local { path, ..local }))
}

fn json<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        Failure::usage(format!("{}: {error}", path.display()))
            .next("`berth up` writes this file again.")
    })
}

/// A token from a file of its own, which nobody else may be able to read.
pub fn secret(path: &Path) -> Result<Option<String>> {
    let Some(token) = text(path)? else { return Ok(None) };
    refuse_readable_by_others(path)?;
    Ok(Some(token.trim().to_owned()))
}

pub fn refuse_readable_by_others(path: &Path) -> Result<()> {
    let meta = std::fs::metadata(path);
    let meta = meta.map_err(|error| Failure::io(format!("reading {}", path.display()), &error))?;
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let path = path.display();
    Err(Failure::new(
        Exit::Refused,
        format!("{path} holds a token and others can read it (mode {mode:o})"),
    )
    .next(format!("Close it with `chmod 600 {path}`, and revoke the token if others may have it.")))
}

/// The text of a file; `None` if the file does not exist or the user may not see it.
fn text(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied => {
                Ok(None)
            }
            _ => Err(Failure::io(format!("reading {}", path.display()), &error)),
        },
    }
}
