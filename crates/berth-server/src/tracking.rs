//! What is tracked, and who asked for it lately. A training script asks many times a second, and whose its token is and what
//! its user may do changes rarely: it is looked up again whenever any user, team, member or token has
//! changed, and at least every few seconds.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use berth_api::access::Permission;
use berth_api::routes::{Method, Route};
use berth_engine::clock;
use berth_service::Service;
use berth_service::caller::{self, Caller, Credential, Unidentified};
use berth_tracker::{Code, Error};
use berth_tracker_store::TrackingStore;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub struct Tracking {
    pub store: Arc<TrackingStore>,
    pub known: Known,
}

/// How long a caller is remembered.
const LASTS: Duration = Duration::from_secs(5);
const MOST: usize = 4096;

/// What the rights of callers are looked at for. A route of MLflow reads or writes.
pub static READ: Route = Route {
    id: "tracking_read",
    method: Method::Get,
    path: "/api/2.0/mlflow",
    permission: Permission::LogsRead,
    about: "Reads what is tracked",
};
pub static WRITE: Route = Route {
    id: "tracking_write",
    method: Method::Post,
    path: "/api/2.0/mlflow",
    permission: Permission::JobsSubmit,
    about: "Tracks something",
};

struct Seen {
    caller: Caller,
    /// Of the rights of everybody, when this was looked up.
    rights: u64,
    at: Instant,
}

#[derive(Default)]
pub struct Known(Mutex<HashMap<(String, String, bool), Seen>>);

/// What a request says in its header `authorization`.
#[derive(Debug, PartialEq, Eq)]
pub struct Given {
    pub token: String,
    /// The user name of basic authentication.
    pub name: Option<String>,
}

/// The token of a request: `Bearer TOKEN`, or the password of `Basic`.
pub fn given(headers: &HeaderMap) -> Result<Option<Given>, Error> {
    let Some(value) = headers.get(AUTHORIZATION) else { return Ok(None) };
    let odd = || {
        let said = "The header Authorization is neither `Bearer TOKEN` nor `Basic`";
        Error::new(Code::Unauthenticated, said)
    };
    let (kind, rest) = value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(odd)?;
    if kind.eq_ignore_ascii_case("bearer") {
        return Ok(Some(Given { token: rest.trim().to_owned(), name: None }));
    }
    if !kind.eq_ignore_ascii_case("basic") {
        return Err(odd());
    }
    let decoded = STANDARD.decode(rest.trim()).map_err(|_| odd())?;
    let decoded = String::from_utf8(decoded).map_err(|_| odd())?;
    let (name, token) = decoded.split_once(':').ok_or_else(odd)?;
    // Some clients can say only one of the two.
    let (name, token) = if token.is_empty() { ("", name) } else { (name, token) };
    let name = (!name.is_empty()).then(|| name.to_owned());
    Ok(Some(Given { token: token.to_owned(), name }))
}

impl Known {
    /// Whoever has that token.
    pub async fn caller(
        &self,
        service: &Service,
        token: &str,
        from: String,
        writes: bool,
    ) -> Result<Caller, Unidentified> {
        let rights = *service.engine.rights().borrow();
        let key = (token.to_owned(), from, writes);
        if let Some(caller) = self.remembered(service, &key, rights) {
            return Ok(caller);
        }
        let route = if writes { &WRITE } else { &READ };
        let credential = Credential::Token(token.to_owned());
        let caller = caller::identify(service, Some(credential), key.1.clone(), route).await?;
        let seen = Seen { caller: caller.clone(), rights, at: Instant::now() };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(key, seen);
        Ok(caller)
    }

    fn remembered(
        &self,
        service: &Service,
        key: &(String, String, bool),
        rights: u64,
    ) -> Option<Caller> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen =
            all.get(key).filter(|seen| seen.rights == rights && seen.at.elapsed() < LASTS)?;
        let caller = seen.caller.clone();
        drop(all);
        let is_over = caller.token().expires.is_some_and(|end| end <= clock::now());
        (!is_over && !caller.has_ended(service)).then_some(caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Result<Option<Given>, Code> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.parse().unwrap());
        given(&headers).map_err(|error| error.code)
    }

    #[test]
    fn a_token_comes_as_a_bearer_or_as_the_password_of_any_user() {
        let found = |token: &str, name: Option<&str>| {
            Ok(Some(Given { token: token.to_owned(), name: name.map(str::to_owned) }))
        };
        assert_eq!(read("Bearer brt_1_2"), found("brt_1_2", None));
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        assert_eq!(read(&basic("vision:brt_1_2")), found("brt_1_2", Some("vision")));
        assert_eq!(read(&basic(":brt_1_2")), found("brt_1_2", None));
        assert_eq!(read(&basic("brt_1_2:")), found("brt_1_2", None));
        for odd in ["Digest x", "Basic !!", "brt_1_2", &basic("nothing")] {
            assert_eq!(read(odd), Err(Code::Unauthenticated), "{odd}");
        }
        assert_eq!(given(&HeaderMap::new()), Ok(None));
    }
}
