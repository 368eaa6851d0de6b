//! The tracking store, and a cache of recent callers. A training script sends many requests a second, while
//! the owner and the rights of its token change rarely. So the server caches a caller for a few seconds, and
//! drops it after any change of a user, a team, a member or a token.

use berth_api::access::Permission;
use berth_api::routes::{Method, Route};
use berth_engine::clock;
use berth_record::runs::Runs;
use berth_service::Service;
use berth_service::caller::{self, Caller, Credential, Unidentified};
use berth_tracker_store::TrackingStore;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub struct Tracking {
    pub store: Arc<TrackingStore>,
    /// The runs of jobs.
    pub runs: Runs,
    pub known: Known,
    /// Held while a team is added, and while the records of a removed team are marked for removal. So
    /// what a new team logs is never taken for records of a removed one.
    pub teams: tokio::sync::Mutex<()>,
}

/// How long a caller is remembered.
const LASTS: Duration = Duration::from_secs(5);
const MOST: usize = 4096;

/// MLflow's routes read or write. Checks of tokens use these two routes in place of all.
pub static READ: Route = Route {
    id: "tracking_read",
    method: Method::Get,
    path: "/api/2.0/mlflow",
    permission: Permission::LogsRead,
    about: "Reads experiments, runs and models",
};
pub static WRITE: Route = Route {
    id: "tracking_write",
    method: Method::Post,
    path: "/api/2.0/mlflow",
    permission: Permission::JobsSubmit,
    about: "Changes experiments, runs and models",
};

struct Seen {
    caller: Caller,
    /// The version of all users' rights at the time of the lookup.
    rights: u64,
    at: Instant,
}

#[derive(Default)]
pub struct Known(Mutex<HashMap<(String, String, bool), Seen>>);

impl Known {
    /// The owner of a token, with the rights that the token has.
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
