//! What was asked of the API server and how it went, for whoever looks after the cluster.

use crate::error::{Error, Result};
use crate::rights::Right;
use http::Method;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A right that is missing is told again after so long.
const TOLD_AGAIN: Duration = Duration::from_secs(60);

/// How a Binding went. The names are those of the figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Bound,
    /// The pod has a node already.
    Conflict,
    /// There is no such pod any more.
    Gone,
    Denied,
    Failed,
}

impl Outcome {
    pub const ALL: [Outcome; 5] =
        [Outcome::Bound, Outcome::Conflict, Outcome::Gone, Outcome::Denied, Outcome::Failed];

    pub const fn word(self) -> &'static str {
        match self {
            Outcome::Bound => "bound",
            Outcome::Conflict => "conflict",
            Outcome::Gone => "gone",
            Outcome::Denied => "denied",
            Outcome::Failed => "failed",
        }
    }

    fn of<T>(answer: &Result<T>) -> Outcome {
        match answer.as_ref().err().map(Error::code) {
            None => Outcome::Bound,
            Some(Some(409)) => Outcome::Conflict,
            Some(Some(404)) => Outcome::Gone,
            Some(Some(401 | 403)) => Outcome::Denied,
            Some(_) => Outcome::Failed,
        }
    }
}

/// How often a kind of object was listed, and its watch begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watched {
    pub lists: u64,
    pub watches: u64,
    /// How many of both were answered in binary.
    pub in_binary: u64,
}

/// Counts since the start.
#[derive(Debug, Default)]
pub struct Figures {
    bindings: [AtomicU64; Outcome::ALL.len()],
    binding_us: AtomicU64,
    watched: Mutex<BTreeMap<String, Watched>>,
    denied: Mutex<BTreeMap<Right, Denied>>,
}

#[derive(Debug)]
struct Denied {
    count: u64,
    told: Instant,
}

impl Figures {
    /// Bindings that were asked for, by how they went.
    pub fn bindings(&self) -> [(Outcome, u64); Outcome::ALL.len()] {
        Outcome::ALL.map(|one| (one, self.bindings[one as usize].load(Ordering::Relaxed)))
    }

    /// How long the API server took for all of them together.
    pub fn binding_time(&self) -> Duration {
        Duration::from_micros(self.binding_us.load(Ordering::Relaxed))
    }

    pub fn watched(&self) -> BTreeMap<String, Watched> {
        lock(&self.watched).clone()
    }

    /// Requests that were refused because a right is missing.
    pub fn denied(&self) -> BTreeMap<String, u64> {
        let denied = lock(&self.denied);
        denied.iter().map(|(right, denied)| (right.to_string(), denied.count)).collect()
    }

    pub(crate) fn answered<T>(
        &self,
        method: &Method,
        path: &str,
        answer: &Result<T>,
        took: Duration,
    ) {
        if *method == Method::POST && path.ends_with("/binding") {
            self.bindings[Outcome::of(answer) as usize].fetch_add(1, Ordering::Relaxed);
            let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            self.binding_us.fetch_add(us, Ordering::Relaxed);
        }
        if let Err(error) = answer {
            self.failed(error);
        }
    }

    /// Says which right is missing, and not at every try.
    pub(crate) fn failed(&self, error: &Error) {
        let Error::Refused { code: 403 | 422, message, .. } = error else { return };
        // What is refused for what it says has the same codes.
        if let Some(right) = Right::of_refusal(message) {
            self.denied_for(right, error);
        }
    }

    /// The same of a request that needs that right, too, and is refused without a word about it.
    pub(crate) fn failed_within(&self, error: &Error, right: Right) {
        match error {
            Error::Refused { code: 403, message, .. } if Right::of_refusal(message).is_none() => {
                self.denied_for(right, error);
            }
            _ => self.failed(error),
        }
    }

    fn denied_for(&self, right: Right, error: &Error) {
        let now = Instant::now();
        let mut all = lock(&self.denied);
        let is_new = !all.contains_key(&right);
        let denied = all.entry(right.clone()).or_insert(Denied { count: 0, told: now });
        denied.count += 1;
        if is_new || now.duration_since(denied.told) > TOLD_AGAIN {
            denied.told = now;
            tracing::error!(
                "may not {right}, so what needs it waits: {error}. Give the account the roles of \
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
        Err(Error::Refused { what, code, reason, message, wait: None })
    }

    #[test]
    fn bindings_are_counted_by_how_they_went_and_missing_rights_by_name() {
        let figures = Figures::default();
        let path = "/api/v1/namespaces/a/pods/b/binding";
        for answer in [Ok(()), Ok(()), refused(409), refused(404), refused(403), refused(500)] {
            figures.answered(&Method::POST, path, &answer, Duration::from_millis(2));
        }
        let counts: Vec<u64> = figures.bindings().iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 1, 1, 1, 1]);
        assert_eq!(figures.binding_time(), Duration::from_millis(12));
        assert_eq!(figures.denied(), [("create pods/binding".into(), 1)].into());
    }

    #[test]
    fn a_right_that_is_looked_for_within_a_request_is_named_by_whoever_asked() {
        let figures = Figures::default();
        let (what, reason, message) = (String::new(), String::new(), "pods \"b\" is forbidden: ");
        let error =
            Error::Refused { what, code: 403, reason, message: message.to_owned(), wait: None };
        figures.failed(&error);
        assert!(figures.denied().is_empty(), "nothing says what is missing");
        figures.failed_within(&error, Right::new("create", "", "pods/exec"));
        assert_eq!(figures.denied(), [("create pods/exec".into(), 1)].into());
    }
}
