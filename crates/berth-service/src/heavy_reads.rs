//! Turns for requests that read much. Every request looks up its token in the same database, so
//! lists of one user must not keep the connections from everybody else.

use crate::fault::Fault;
use berth_api::Code;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument;

/// Of the connections for reading, the others are left for what is quick.
const AT_ONCE: usize = 2;
/// Heavy reads of one user that run, or wait for one that runs.
const AT_ONCE_PER_USER: usize = 2;
/// Heavy reads of one user that wait for those. What comes on top is refused at once.
const WAITING_PER_USER: usize = 32;
/// How long one waits. The command line waits longer for its answer.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Routes that may read many rows, or hold the state for long.
const ROUTES: &[&str] = &[
    "list_jobs",
    "get_job",
    "why_job",
    "job_figures",
    "node_figures",
    "gpu_figures",
    "job_timeline",
    "list_leases",
    "preview_drain",
    "preview_stop",
    "list_queues",
    "get_queue",
    "list_cost",
    "cost_rows",
    "cost_series",
    "cost_idle",
    "budget_forecast",
    "list_volumes",
    "list_audit",
    "experiment_returns",
    "lineage",
    "run_recipe",
    "get_world",
    "metrics",
];

/// Reads the whole audit log, which may take minutes: lists must not wait for that, so it has turns
/// of its own, one at a time.
const VERIFY: &str = "verify_audit";

/// Looks through logs for some seconds, with a processor of its own: lists do not wait for that.
const SEARCH: &str = "search_logs";
/// Searches that run at once.
const SEARCHES: usize = 2;

/// Searches for runs and models. They use the connections of the tracking store, and leave one for quick
/// requests.
const TRACKED: &[&str] = &[
    "search_runs",
    "search_logged_models",
    "search_registered_models",
    "search_model_versions",
    "search_datasets",
];
const TRACKED_AT_ONCE: usize = 3;

/// Gives turns to heavy reads, fairly between users.
#[derive(Debug, Clone)]
pub struct HeavyReads {
    lists: Turns,
    verifying: Turns,
    searching: Turns,
    tracked: Turns,
    refused: Arc<AtomicU64>,
    longest_wait: Duration,
}

#[derive(Debug, Clone)]
struct Turns {
    all: Arc<Semaphore>,
    users: Arc<Mutex<BTreeMap<String, User>>>,
    at_once_per_user: usize,
}

#[derive(Debug)]
struct User {
    turns: Arc<Semaphore>,
    /// Requests that run or wait. Without any, nothing is kept of the user.
    present: usize,
}

/// While it is held, a request may read.
#[derive(Debug)]
pub struct ReadTurn {
    // Dropped in this order: the user leaves last.
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
    _present: Present,
    stops_at_hang_up: bool,
}

impl ReadTurn {
    /// Answers a request within its turn. Whoever hangs up stops neither a thread that works for
    /// them nor the statement that the database is at, so the turn lasts until the answer is there:
    /// else the next request would come on top of that work.
    pub async fn hold<T: Send + 'static>(
        self,
        answer: impl Future<Output = T> + Send + 'static,
    ) -> T {
        if self.stops_at_hang_up {
            return answer.await;
        }
        let within = async move {
            let answer = answer.await;
            drop(self);
            answer
        };
        match tokio::spawn(within.in_current_span()).await {
            Ok(answer) => answer,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

#[derive(Debug)]
struct Present {
    users: Arc<Mutex<BTreeMap<String, User>>>,
    user: String,
}

impl Drop for Present {
    fn drop(&mut self) {
        let mut users = lock(&self.users);
        if let Some(user) = users.get_mut(&self.user) {
            user.present -= 1;
            if user.present == 0 {
                users.remove(&self.user);
            }
        }
    }
}

impl Default for HeavyReads {
    fn default() -> HeavyReads {
        HeavyReads::waiting_for(LONGEST_WAIT)
    }
}

impl HeavyReads {
    fn waiting_for(longest_wait: Duration) -> HeavyReads {
        HeavyReads {
            lists: Turns::new(AT_ONCE, AT_ONCE_PER_USER),
            verifying: Turns::new(1, 1),
            searching: Turns::new(SEARCHES, 1),
            tracked: Turns::new(TRACKED_AT_ONCE, AT_ONCE_PER_USER),
            refused: Arc::default(),
            longest_wait,
        }
    }

    /// A turn for a request of a user, where its route needs one. Whoever finds too many of their
    /// own requests before this one, or waits too long, is refused.
    pub async fn enter(&self, route: &str, user: &str) -> Result<Option<ReadTurn>, Fault> {
        let turns = match route {
            VERIFY => &self.verifying,
            SEARCH => &self.searching,
            route if ROUTES.contains(&route) => &self.lists,
            route if TRACKED.contains(&route) => &self.tracked,
            _ => return Ok(None),
        };
        let turn = tokio::time::timeout(self.longest_wait, turns.take(user)).await;
        if let Ok(Some(turn)) = turn {
            // Verifying stops between two of its many short reads.
            return Ok(Some(ReadTurn { stops_at_hang_up: route == VERIFY, ..turn }));
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        let detail = match turn {
            Ok(_) => format!("{user} has {WAITING_PER_USER} requests like this waiting already"),
            Err(_) if route == VERIFY => "the server verifies its audit log already".to_owned(),
            Err(_) if route == SEARCH => "the server was busy with other searches".to_owned(),
            Err(_) => "the server was busy with other lists for too long".to_owned(),
        };
        Err(Fault::new(Code::TooMany, detail))
    }

    /// Requests that were refused since the start.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Turns {
    fn new(at_once: usize, at_once_per_user: usize) -> Turns {
        let (all, users) = (Arc::new(Semaphore::new(at_once)), Arc::default());
        Turns { all, users, at_once_per_user }
    }

    /// Nothing where too many of the user's requests are here.
    async fn take(&self, user: &str) -> Option<ReadTurn> {
        let (present, turns) = self.come(user)?;
        let own = turns.acquire_owned().await.ok()?;
        let all = self.all.clone().acquire_owned().await.ok()?;
        Some(ReadTurn { _all: all, _own: own, _present: present, stops_at_hang_up: false })
    }

    /// Nothing where too many of the user's requests are here.
    fn come(&self, name: &str) -> Option<(Present, Arc<Semaphore>)> {
        let mut users = lock(&self.users);
        let user = users.entry(name.to_owned()).or_insert_with(|| User {
            turns: Arc::new(Semaphore::new(self.at_once_per_user)),
            present: 0,
        });
        if user.present >= self.at_once_per_user + WAITING_PER_USER {
            return None;
        }
        user.present += 1;
        let present = Present { users: self.users.clone(), user: name.to_owned() };
        Some((present, user.turns.clone()))
    }
}

fn lock(users: &Mutex<BTreeMap<String, User>>) -> MutexGuard<'_, BTreeMap<String, User>> {
    users.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::Poll;

    #[test]
    fn every_route_with_turns_is_one_of_the_api() {
        for id in ROUTES.iter().chain(&[VERIFY, SEARCH]) {
            assert!(berth_api::routes::named(id).is_some(), "{id}");
        }
    }

    #[tokio::test]
    async fn what_is_quick_waits_for_nobody() {
        let reads = HeavyReads::default();
        let _held = [reads.enter("list_jobs", "a").await, reads.enter("list_jobs", "b").await];
        assert!(reads.enter("submit_job", "a").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_user_with_many_lists_lets_another_go_before_the_rest_of_them() {
        let reads = HeavyReads::default();
        let first = reads.enter("list_jobs", "greedy").await.unwrap();
        let second = reads.enter("list_jobs", "greedy").await.unwrap();
        let mut more = pin!(reads.enter("list_jobs", "greedy"));
        let mut modest = pin!(reads.enter("list_jobs", "modest"));
        assert!(poll(&mut more).await.is_none());
        assert!(poll(&mut modest).await.is_none());
        drop(first);
        let modest = poll(&mut modest).await;
        assert!(modest.is_some(), "the other user is next");
        assert!(poll(&mut more).await.is_none());
        drop(second);
        assert!(poll(&mut more).await.is_some());
    }

    #[tokio::test]
    async fn who_verifies_the_audit_log_keeps_nobody_from_lists() {
        let reads = HeavyReads::default();
        let first = poll(&mut pin!(reads.enter("verify_audit", "ada"))).await;
        assert!(matches!(first, Some(Ok(Some(_)))));
        let mut second = pin!(reads.enter("verify_audit", "ada"));
        let mut third = pin!(reads.enter("verify_audit", "eve"));
        assert!(poll(&mut second).await.is_none() && poll(&mut third).await.is_none());
        for user in ["ada", "kim"] {
            let list = poll(&mut pin!(reads.enter("list_jobs", user))).await;
            assert!(matches!(list, Some(Ok(Some(_)))), "{user}");
        }
        drop(first);
        assert!(poll(&mut third).await.is_some(), "the other user is next");
    }

    #[tokio::test]
    async fn who_searches_logs_keeps_nobody_from_lists_and_does_it_once_at_a_time() {
        let reads = HeavyReads::default();
        let first = poll(&mut pin!(reads.enter("search_logs", "kim"))).await;
        assert!(matches!(first, Some(Ok(Some(_)))));
        assert!(poll(&mut pin!(reads.enter("search_logs", "kim"))).await.is_none());
        let _other = poll(&mut pin!(reads.enter("search_logs", "lea"))).await.expect("a turn");
        assert!(poll(&mut pin!(reads.enter("search_logs", "eve"))).await.is_none());
        assert!(poll(&mut pin!(reads.enter("list_jobs", "kim"))).await.is_some());
    }

    #[tokio::test]
    async fn a_turn_lasts_until_its_work_is_done_although_the_client_hangs_up() {
        let reads = HeavyReads::default();
        let turn = reads.enter("search_logs", "kim").await.unwrap().expect("it needs one");
        let (done, works) = tokio::sync::oneshot::channel::<()>();
        let mut answer = Box::pin(turn.hold(works));
        assert!(poll(&mut answer).await.is_none());
        drop(answer);
        let mut next = Box::pin(reads.enter("search_logs", "kim"));
        assert!(poll(&mut next).await.is_none(), "the first one works still");
        done.send(()).unwrap();
        assert!(next.await.unwrap().is_some());
    }

    #[tokio::test]
    async fn whoever_waits_too_long_is_refused_with_a_code() {
        let reads = HeavyReads::waiting_for(Duration::ZERO);
        let held = [reads.enter("list_jobs", "a").await, reads.enter("list_cost", "b").await];
        assert!(held.iter().all(Result::is_ok));
        let refused = reads.enter("list_audit", "c").await.unwrap_err();
        assert_eq!((refused.0.code.as_str(), refused.0.status), ("BRT0017", 429));
        assert_eq!(reads.refused(), 1);
        drop(held);
        assert!(reads.enter("list_audit", "c").await.is_ok());
        assert!(lock(&reads.lists.users).is_empty(), "nothing is kept of who is gone");
    }

    #[tokio::test]
    async fn lists_beyond_a_users_limit_are_refused_at_once() {
        let reads = HeavyReads::default();
        let mut waiting: Vec<_> = (0..AT_ONCE_PER_USER + WAITING_PER_USER)
            .map(|_| Box::pin(reads.enter("list_jobs", "greedy")))
            .collect();
        let mut turns = Vec::new();
        for one in &mut waiting {
            turns.extend(poll(one).await);
        }
        assert_eq!(turns.len(), AT_ONCE_PER_USER);
        let refused = poll(&mut pin!(reads.enter("list_jobs", "greedy"))).await.unwrap();
        assert_eq!(refused.unwrap_err().0.code, "BRT0017");
    }

    /// The result, if it is there without waiting.
    async fn poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        std::future::poll_fn(|context| match std::pin::Pin::new(&mut *future).poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }
}
