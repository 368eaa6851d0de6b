//! What can go wrong between a client and its server.

use crate::problem::Problem;
use std::time::Duration;

pub type Result<T> = std::result::Result<T, Error>;

/// A variant for each step of a request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{url}` is no address of a server: {why}")]
    BadUrl { url: String, why: String },
    #[error("the token has letters that no token has; copy it again")]
    BadToken,
    #[error("the system returns no random numbers")]
    NoRandomness,
    #[error("the certificates to trust could not be read; they have to be PEM")]
    Certificate {
        #[source]
        source: reqwest::Error,
    },
    #[error("the HTTP client could not be set up")]
    Setup {
        #[source]
        source: reqwest::Error,
    },
    #[error("no server answers at {url}; start one with `berth up`, or name another with --server")]
    Unreachable {
        url: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("{url} did not answer {what} within {}s", after.as_secs())]
    Timeout { url: String, what: &'static str, after: Duration },
    /// The answer was lost: whether the request was carried out is not known.
    #[error("the connection to {url} was lost in the middle of {what}")]
    Lost {
        url: String,
        what: &'static str,
        #[source]
        source: reqwest::Error,
    },
    #[error("the connection to {url} was lost, and the terminal with it")]
    ShellLost {
        url: String,
        #[source]
        source: Box<tokio_tungstenite::tungstenite::Error>,
    },
    #[error("{0}")]
    Problem(Box<Problem>),
    /// Something between us and the server, or no server of Berth at all.
    #[error("{url} answered {what} with status {status} and no problem; is it a Berth server?")]
    Status { url: String, what: &'static str, status: u16 },
    #[error("the answer to {what} could not be read; is the server newer than this program?")]
    Decode {
        what: &'static str,
        #[source]
        source: serde_json::Error,
    },
    #[error("what was asked could not be written as {what}")]
    Encode {
        what: &'static str,
        #[source]
        source: serde_json::Error,
    },
    #[error("a line of {what} is longer than {limit} bytes")]
    LongLine { what: &'static str, limit: usize },
}

impl Error {
    /// The server's own words, where it is the server that refused.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Error::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// Whether no server was there to answer.
    pub fn is_unreachable(&self) -> bool {
        matches!(
            self,
            Error::Unreachable { .. }
                | Error::Timeout { .. }
                | Error::Lost { .. }
                | Error::ShellLost { .. }
        )
    }

    /// Whether the same request may do better in a moment.
    pub fn passes(&self) -> bool {
        match self {
            Error::Problem(problem) => matches!(problem.status, 429 | 503),
            Error::Status { status, .. } => matches!(status, 502..=504),
            other => other.is_unreachable(),
        }
    }
}
