//! Where a database is: a file or a server.

use crate::error::{Error, Result};
use sqlx::any::AnyConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
}

#[derive(Clone)]
pub(crate) struct Address {
    pub backend: Backend,
    /// The file of a SQLite database; a server has none that we know.
    pub path: Option<PathBuf>,
    /// What people may see: the address without its password.
    pub shown: String,
    pub connect: AnyConnectOptions,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Address {
    pub fn parse(url: &str) -> Result<Address> {
        let bad = |why: &str| Error::Address { address: shown(url), why: why.to_owned() };
        let backend = match url.split_once(':') {
            Some(("sqlite", _)) => Backend::Sqlite,
            Some(("postgres" | "postgresql", _)) => Backend::Postgres,
            _ => return Err(bad("it begins neither with sqlite: nor with postgres:")),
        };
        // The driver's own message may quote the address, password and all.
        let connect = AnyConnectOptions::from_str(url).map_err(|_| bad("it cannot be parsed"))?;
        let path = match backend {
            Backend::Postgres => None,
            Backend::Sqlite => Some(file_of(url).map_err(bad)?),
        };
        Ok(Address { backend, path, shown: shown(url), connect })
    }
}

/// The URL of a database without its password.
pub fn shown_url(url: &str) -> Result<String> {
    Address::parse(url).map(|address| address.shown)
}

fn file_of(url: &str) -> std::result::Result<PathBuf, &'static str> {
    if url.contains('?') {
        return Err("options after `?` are not for SQLite");
    }
    let options = SqliteConnectOptions::from_str(url).map_err(|_| "it names no file")?;
    let path = options.get_filename();
    if !path.is_absolute() {
        return Err("the path of the file must be absolute, with three slashes in all");
    }
    Ok(path.to_owned())
}

/// The address of a SQLite file, whatever characters are in its path.
pub fn sqlite_url(path: &Path) -> String {
    let mut url = String::from("sqlite://");
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                url.push(char::from(byte));
            }
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

/// Leaves out whatever may hold a password: what stands before `@`, and all options.
fn shown(url: &str) -> String {
    let url = url.split_once('?').map_or(url, |(url, _)| url);
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let Some((credentials, place)) = rest.rsplit_once('@') else {
        return url.to_owned();
    };
    let user = credentials.split_once(':').map_or(credentials, |(user, _)| user);
    format!("{scheme}://{user}@{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for url in [
            "postgres://berth:s3cret@db.example/berth",
            "postgres://berth:s3c@ret@db.example/berth",
            "postgres://berth@db.example/berth?password=s3cret",
        ] {
            let address = Address::parse(url).unwrap();
            assert_eq!(address.shown, "postgres://berth@db.example/berth");
            assert_eq!(format!("{address:?}"), "postgres://berth@db.example/berth");
        }
        let error = Address::parse("mysql://berth:s3cret@db.example/berth").unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }

    #[test]
    fn any_path_survives_the_way_through_an_address() {
        let path = Path::new("/srv/a b/50% of #1?/berth.db");
        let address = Address::parse(&sqlite_url(path)).unwrap();
        assert_eq!(address.path.as_deref(), Some(path));
        assert_eq!(address.backend, Backend::Sqlite);
    }

    #[test]
    fn addresses_that_cannot_be_kept_are_refused() {
        for url in ["sqlite::memory:", "sqlite://berth.db", "berth.db", "sqlite:///a?mode=ro"] {
            assert!(matches!(Address::parse(url), Err(Error::Address { .. })), "{url}");
        }
    }
}
