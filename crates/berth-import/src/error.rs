//! What can go wrong, with where it did.

use berth_api::Code;
use berth_api::client;
use std::io;
use std::path::{Path, PathBuf};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The place is not what it was taken for.
    #[error("{place}: {why}")]
    NotASource { place: String, why: String },
    #[error("{doing} at {url}")]
    Server {
        doing: String,
        url: String,
        #[source]
        source: Box<client::Error>,
    },
    #[error("{doing} in the database {path}")]
    Database {
        doing: &'static str,
        path: String,
        #[source]
        source: sqlx::Error,
    },
    #[error("{doing} {}", path.display())]
    File {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// What was read makes no sense.
    #[error("{place}: {why}")]
    Odd { place: String, why: String },
    /// The target takes no such thing.
    #[error("{what}: {why}")]
    Refused { what: String, why: String },
    /// What was asked for is not there.
    #[error("{0}")]
    Absent(String),
    /// There is something already, and `resume` was not asked for.
    #[error("{0}")]
    Begun(String),
    #[error("stopped at the first problem, as --strict says: {0}")]
    Strict(String),
}

impl Error {
    pub fn odd(place: impl Into<String>, why: impl Into<String>) -> Error {
        Error::Odd { place: place.into(), why: why.into() }
    }

    pub fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::File { doing, path, source }
    }

    fn code(&self) -> Option<Code> {
        match self {
            Error::Server { source, .. } => source.problem().and_then(|told| told.known_code()),
            _ => None,
        }
    }

    /// The target refused this very thing, and would take others.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Error::Refused { .. }) || self.code() == Some(Code::BadRequest)
    }

    /// It concerns one thing: others may still be moved.
    pub fn is_of_one_thing(&self) -> bool {
        matches!(self, Error::Odd { .. } | Error::File { .. })
            || self.is_refusal()
            || self.is_absent()
    }

    pub fn is_there_already(&self) -> bool {
        self.code() == Some(Code::Exists)
    }

    /// There is no such thing, or no such route: older servers lack some.
    pub fn is_absent(&self) -> bool {
        let no_route = matches!(self, Error::Server { source, .. }
            if matches!(**source, client::Error::Status { status: 404 | 405, .. }));
        no_route || matches!(self, Error::Absent(_)) || self.code() == Some(Code::NotFound)
    }

    /// The same request may do better in a moment.
    pub fn passes(&self) -> bool {
        match self {
            Error::Server { source, .. } => {
                let status = match &**source {
                    client::Error::Status { status, .. } => Some(*status),
                    client::Error::Problem(told) => Some(told.status),
                    _ => None,
                };
                source.passes() || matches!(status, Some(408 | 429 | 500 | 502..=504))
            }
            _ => false,
        }
    }

    /// With everything that caused it, on one line.
    pub fn whole(&self) -> String {
        let mut text = self.to_string();
        let mut next = std::error::Error::source(self);
        while let Some(cause) = next {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            next = cause.source();
        }
        text
    }
}
