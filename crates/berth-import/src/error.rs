//! Errors, with their context.

use berth_api::Code;
use berth_api::client;
use std::io;
use std::path::{Path, PathBuf};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The place is not a valid source or target.
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
    /// Malformed data at the source.
    #[error("{place}: {why}")]
    Odd { place: String, why: String },
    /// The target cannot store this.
    #[error("{what}: {why}")]
    Refused { what: String, why: String },
    /// The requested entity does not exist.
    #[error("{0}")]
    Absent(String),
    /// The target has runs of this source already, and `resume` is off.
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

    /// The target refused this entity, but may accept others.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Error::Refused { .. }) || self.code() == Some(Code::BadRequest)
    }

    /// The error concerns one entity; the rest can continue.
    pub fn is_of_one_thing(&self) -> bool {
        matches!(self, Error::Odd { .. } | Error::File { .. })
            || self.is_refusal()
            || self.is_absent()
    }

    pub fn is_there_already(&self) -> bool {
        self.code() == Some(Code::Exists)
    }

    /// The entity or the route does not exist. Older servers lack some routes.
    pub fn is_absent(&self) -> bool {
        let no_route = matches!(self, Error::Server { source, .. }
            if matches!(**source, client::Error::Status { status: 404 | 405, .. }));
        no_route || matches!(self, Error::Absent(_)) || self.code() == Some(Code::NotFound)
    }

    /// A retry may succeed.
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

    /// The error and its causes, on one line.
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
