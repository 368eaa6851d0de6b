//! The number of a request: it is in its answer, in problems, and in what the log says of it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

tokio::task_local! {
    static CURRENT: RequestId;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(String);

impl RequestId {
    /// One that no other request of this machine has.
    pub fn next() -> RequestId {
        static START: OnceLock<u64> = OnceLock::new();
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let start = START.get_or_init(|| {
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
        });
        let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
        RequestId(format!("{start:x}-{count}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Runs what answers a request. A problem that it answers with names the request.
pub async fn scope<F: Future>(id: RequestId, answer: F) -> F::Output {
    CURRENT.scope(id, answer).await
}

/// The same for what answers the request of this moment in a task of its own.
pub fn carried<F: Future>(answer: F) -> impl Future<Output = F::Output> {
    let id = CURRENT.try_with(Clone::clone).ok();
    async move {
        match id {
            Some(id) => scope(id, answer).await,
            None => answer.await,
        }
    }
}

/// The request that is being answered, if one is.
pub fn current() -> Option<String> {
    CURRENT.try_with(|id| id.as_str().to_owned()).ok()
}
