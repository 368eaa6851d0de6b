//! What can go wrong between us and the API server.

use super::protobuf;
use super::rbac::Permission;
use serde::Deserialize;
use std::time::Duration;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "no way to the API server: {why}. Name a kubeconfig with --kubeconfig, or run this in a \
         pod with a service account"
    )]
    Access { why: String },
    #[error("{what}: the API server cannot be reached: {why}")]
    Unreachable { what: String, why: String },
    #[error("{what}: the API server cannot be reached: no answer within {} seconds", .after.as_secs())]
    Timeout { what: String, after: Duration },
    /// It answered, and would not.
    #[error("{what}: the API server answered {code} {reason}: {message}")]
    Refused {
        what: String,
        code: u16,
        reason: String,
        message: String,
        /// How long it wants to be left alone, where it says so.
        retry_after: Option<Duration>,
    },
    #[error("{what} cannot be read: {why}")]
    Unreadable { what: String, why: String },
    /// Its binary form is not the one we know; it is asked for as JSON then.
    #[error("{what} cannot be read in binary: {why}")]
    Protobuf { what: String, why: String },
    /// Without these rights nothing can be begun.
    #[error(
        "{user} may not {missing}. Give it the roles of the Helm chart in deploy/helm/berth, or \
         start Berth as a user with these rights; `kubectl auth can-i --list --as={user}` shows what it may"
    )]
    MissingPermissions { user: String, missing: String },
    #[error("{path} is no path of a request: {why}")]
    Path { path: String, why: http::Error },
}

impl Error {
    pub(crate) fn binary(what: &str, why: &protobuf::DecodeError) -> Error {
        Error::Protobuf { what: what.to_owned(), why: why.to_string() }
    }

    /// The code of the answer, where there was one.
    pub const fn code(&self) -> Option<u16> {
        match self {
            Error::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the same request may go through a little later.
    pub const fn is_transient(&self) -> bool {
        match self {
            Error::Unreachable { .. } | Error::Timeout { .. } => true,
            Error::Refused { code, .. } => matches!(*code, 408 | 429 | 500 | 502 | 503 | 504),
            Error::Access { .. }
            | Error::Unreadable { .. }
            | Error::Protobuf { .. }
            | Error::MissingPermissions { .. }
            | Error::Path { .. } => false,
        }
    }

    /// The server has more to do than it gets to: it says so, or it did not answer in time.
    pub const fn is_overload(&self) -> bool {
        matches!(self, Error::Timeout { .. } | Error::Refused { code: 429 | 504, .. })
    }

    /// How long the server wants to be left alone.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// We may not. That can be mended without a restart: a role is changed, a token renewed.
    pub fn is_denied(&self) -> bool {
        match self {
            Error::Refused { code: 401 | 403, .. } => true,
            // Some rights are looked for only when the object is checked.
            Error::Refused { code: 422, message, .. } => {
                Permission::from_forbidden_message(message).is_some()
            }
            _ => false,
        }
    }

    /// We may not ask that at all. What is refused for what it says has the same code.
    pub fn is_rbac_denied(&self) -> bool {
        match self {
            Error::Refused { code: 401, .. } => true,
            Error::Refused { code: 403, message, .. } => {
                message.contains(" cannot ") && message.contains(" resource ")
            }
            _ => false,
        }
    }

    /// What was asked for is not there.
    pub const fn is_not_found(&self) -> bool {
        matches!(self.code(), Some(404))
    }

    /// Another client was faster.
    pub const fn is_conflict(&self) -> bool {
        matches!(self.code(), Some(409))
    }

    /// The moment a watch should go on from is forgotten.
    pub(crate) const fn is_expired(&self) -> bool {
        matches!(self.code(), Some(410))
    }
}

/// The body of an answer that is no success.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    code: u16,
    reason: String,
    message: String,
    details: Details,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Details {
    retry_after_seconds: u32,
}

impl Status {
    /// Also of bodies that are something else: a proxy in between has its own words.
    pub fn read(code: u16, body: &[u8]) -> Status {
        let read: Option<Status> = match protobuf::is_protobuf(body) {
            true => protobuf::decode(&protobuf::STATUS, body).ok(),
            false => serde_json::from_slice(body).ok(),
        };
        let mut status = read.filter(|status| !status.message.is_empty()).unwrap_or_else(|| {
            let message = String::from_utf8_lossy(body).trim().chars().take(200).collect();
            Status { message, ..Status::default() }
        });
        if status.code == 0 {
            status.code = code;
        }
        status
    }

    pub fn error(self, what: &str) -> Error {
        let Status { code, reason, message, details } = self;
        let retry_after = Duration::from_secs(details.retry_after_seconds.into());
        let retry_after = Some(retry_after).filter(|wait| !wait.is_zero());
        Error::Refused { what: what.to_owned(), code, reason, message, retry_after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_words_of_whoever_refused() {
        let body = br#"{"kind":"Status","code":409,"reason":"Conflict","message":"it is bound"}"#;
        let error = Status::read(409, body).error("pods/a");
        assert!(error.is_conflict() && !error.is_transient());
        assert_eq!(error.to_string(), "pods/a: the API server answered 409 Conflict: it is bound");
        let body = br#"{"code":429,"message":"later","details":{"retryAfterSeconds":3}}"#;
        let error = Status::read(429, body).error("pods/a");
        assert!(error.is_transient() && error.retry_after() == Some(Duration::from_secs(3)));
        let body = br#"{"code":422,"message":"status.allocation: Forbidden: User \"b\" cannot update resource \"resourceclaims/binding\" in API group \"resource.k8s.io\""}"#;
        assert!(Status::read(422, body).error("claims/a").is_denied(), "a right is missing");
        let body = br#"{"code":422,"message":"spec: Invalid value"}"#;
        assert!(!Status::read(422, body).error("claims/a").is_denied(), "it makes no sense");
        let error = Status::read(502, b"<html>no backend</html>\n").error("nodes");
        assert!(error.is_transient());
        assert!(error.to_string().ends_with("502 : <html>no backend</html>"), "{error}");
    }
}
