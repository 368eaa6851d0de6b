//! Background tasks that go on after a panic: one bad job must not end the record of all others.

use futures_util::FutureExt;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// The wait before a task begins again. It doubles after each panic.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);
/// After so long without a panic, the next wait is the shortest again.
const CALM: Duration = Duration::from_mins(10);

/// Runs a task, and begins it again after a panic. Aborting the handle ends it.
pub fn begin<F>(what: &'static str, task: impl Fn() -> F + Send + 'static) -> JoinHandle<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    tokio::spawn(kept_up(what, task, FIRST))
}

async fn kept_up<F>(what: &'static str, task: impl Fn() -> F, first: Duration)
where
    F: Future<Output = ()>,
{
    let mut pause = first;
    loop {
        let began = Instant::now();
        let Err(why) = caught(task()).await else { return };
        if began.elapsed() >= CALM {
            pause = first;
        }
        tracing::error!(why, seconds = pause.as_secs(), "{what} has panicked; it begins again");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
    }
}

/// The result of a future, or what it said when it panicked.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| words(&*panic))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without words".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn a_task_that_panics_begins_again_until_it_ends_by_itself() {
        let begun = Arc::new(AtomicU32::new(0));
        let counted = begun.clone();
        let task = move || {
            let begun = counted.clone();
            async move {
                let before = begun.fetch_add(1, Ordering::Relaxed);
                assert!(before >= 2, "time {before}");
            }
        };
        kept_up("a test", task, Duration::from_millis(1)).await;
        assert_eq!(begun.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn a_panic_is_a_value_with_its_words() {
        let broken = async { panic!("no {}", "metric") };
        assert_eq!(caught::<()>(broken).await, Err("no metric".to_owned()));
        assert_eq!(caught(async { 5 }).await, Ok(5));
    }
}
