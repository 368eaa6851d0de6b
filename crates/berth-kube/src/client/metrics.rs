//! Metrics of the client: bindings by outcome, lists and watches, missing permissions.

use super::error::{Error, Result};
use super::rbac::Permission;
use http::Method;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long until a missing permission is logged again.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// How a Binding ended. The names are labels of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BindOutcome {
    Bound,
    /// The pod has a node already.
    Conflict,
    /// There is no such pod any more.
    Gone,
    Denied,
    Failed,
}

impl BindOutcome {
    pub const ALL: [BindOutcome; 5] = [
        BindOutcome::Bound,
        BindOutcome::Conflict,
        BindOutcome::Gone,
        BindOutcome::Denied,
        BindOutcome::Failed,
    ];

    pub const fn word(self) -> &'static str {
        match self {
            BindOutcome::Bound => "bound",
            BindOutcome::Conflict => "conflict",
            BindOutcome::Gone => "gone",
            BindOutcome::Denied => "denied",
            BindOutcome::Failed => "failed",
        }
    }

    fn of<T>(answer: &Result<T>) -> BindOutcome {
        match answer.as_ref().err().map(Error::code) {
            None => BindOutcome::Bound,
            Some(Some(409)) => BindOutcome::Conflict,
            Some(Some(404)) => BindOutcome::Gone,
            Some(Some(401 | 403)) => BindOutcome::Denied,
            Some(_) => BindOutcome::Failed,
        }
    }
}

/// How often a kind of object was listed, and its watch begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WatchCounts {
    pub lists: u64,
    pub watches: u64,
    /// How many of both were answered in binary.
    pub in_binary: u64,
}

/// Counts since the start.
#[derive(Debug, Default)]
pub struct ClientMetrics {
    bindings: [AtomicU64; BindOutcome::ALL.len()],
    binding_us: AtomicU64,
    watched: Mutex<BTreeMap<String, WatchCounts>>,
    denied: Mutex<BTreeMap<Permission, Denied>>,
}

#[derive(Debug)]
struct Denied {
    count: u64,
    logged: Instant,
}

impl ClientMetrics {
    /// Bindings that were asked for, by how they went.
    pub fn bindings(&self) -> [(BindOutcome, u64); BindOutcome::ALL.len()] {
        BindOutcome::ALL.map(|one| (one, self.bindings[one as usize].load(Ordering::Relaxed)))
    }

    /// How long the API server took for all of them together.
    pub fn binding_time(&self) -> Duration {
        Duration::from_micros(self.binding_us.load(Ordering::Relaxed))
    }

    pub fn watched(&self) -> BTreeMap<String, WatchCounts> {
        lock(&self.watched).clone()
    }

    /// Requests that were refused because a permission is missing.
    pub fn denied(&self) -> BTreeMap<String, u64> {
        let denied = lock(&self.denied);
        denied.iter().map(|(permission, denied)| (permission.to_string(), denied.count)).collect()
    }

    pub(crate) fn answered<T>(
        &self,
        method: &Method,
        path: &str,
        answer: &Result<T>,
        took: Duration,
    ) {
        if *method == Method::POST && path.ends_with("/binding") {
            self.bindings[BindOutcome::of(answer) as usize].fetch_add(1, Ordering::Relaxed);
            let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            self.binding_us.fetch_add(us, Ordering::Relaxed);
        }
        if let Err(error) = answer {
            self.failed(error);
        }
    }

    /// Counts and logs a missing permission, at most once per interval.
    pub(crate) fn failed(&self, error: &Error) {
        let Error::Refused { code: 403 | 422, message, .. } = error else { return };
        // What is refused for what it says has the same codes.
        if let Some(permission) = Permission::from_forbidden_message(message) {
            self.denied_for(permission, error);
        }
    }

    /// The same for a request whose refusal does not name the permission that it needs.
    pub(crate) fn failed_within(&self, error: &Error, permission: Permission) {
        match error {
            Error::Refused { code: 403, message, .. }
                if Permission::from_forbidden_message(message).is_none() =>
            {
                self.denied_for(permission, error);
            }
            _ => self.failed(error),
        }
    }

    fn denied_for(&self, permission: Permission, error: &Error) {
        let now = Instant::now();
        let mut all = lock(&self.denied);
        let is_new = !all.contains_key(&permission);
        let denied = all.entry(permission.clone()).or_insert(Denied { count: 0, logged: now });
        denied.count += 1;
        if is_new || now.duration_since(denied.logged) > LOG_INTERVAL {
            denied.logged = now;
            tracing::error!(
                "may not {permission}, so what needs it waits: {error}. Give the account the roles of \
                 the Helm chart; nothing has to be restarted then"
            );
        }
    }

    pub(crate) fn listed(&self, path: &str, in_binary: bool) {
        let mut watched = lock(&self.watched);
        let watched = watched.entry(kind(path)).or_default();
        watched.lists += 1;
        watched.in_binary += u64::from(in_binary);
    }

    pub(crate) fn watches(&self, path: &str, in_binary: bool) {
        let mut watched = lock(&self.watched);
        let watched = watched.entry(kind(path)).or_default();
        watched.watches += 1;
        watched.in_binary += u64::from(in_binary);
    }
}

/// The kind of object that a path to all of them names.
fn kind(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16) -> Result<()> {
        let message = r#"pods "b" is forbidden: User "c" cannot create resource "pods/binding" in
            API group "" in the namespace "a""#;
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        let (what, reason) = (String::new(), String::new());
        Err(Error::Refused { what, code, reason, message, retry_after: None })
    }

    #[test]
    fn bindings_are_counted_by_how_they_went_and_missing_rights_by_name() {
        let metrics = ClientMetrics::default();
        let path = "/api/v1/namespaces/a/pods/b/binding";
        for answer in [Ok(()), Ok(()), refused(409), refused(404), refused(403), refused(500)] {
            metrics.answered(&Method::POST, path, &answer, Duration::from_millis(2));
        }
        let counts: Vec<u64> = metrics.bindings().iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 1, 1, 1, 1]);
        assert_eq!(metrics.binding_time(), Duration::from_millis(12));
        assert_eq!(metrics.denied(), [("create pods/binding".into(), 1)].into());
    }

    #[test]
    fn a_right_that_is_looked_for_within_a_request_is_named_by_whoever_asked() {
        let metrics = ClientMetrics::default();
        let (what, reason, message) = (String::new(), String::new(), "pods \"b\" is forbidden: ");
        let error = Error::Refused {
            what,
            code: 403,
            reason,
            message: message.to_owned(),
            retry_after: None,
        };
        metrics.failed(&error);
        assert!(metrics.denied().is_empty(), "nothing says what is missing");
        metrics.failed_within(&error, Permission::new("create", "", "pods/exec"));
        assert_eq!(metrics.denied(), [("create pods/exec".into(), 1)].into());
    }
}
