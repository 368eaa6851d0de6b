//! Events on pods, as `kubectl describe pod` shows them: where a pod was scheduled, and why it is not.
//!
//! They are written behind everything else. The queue has a bound and drops its oldest event, putting
//! one in never waits, and while bindings are under way the API server is left to them.

use crate::view::PodEvent;
use berth_kube::event::{EventRecorder, Level, NewEvent, ObjectReference};
use berth_model::{Name, PodRef};
use futures_util::future::join_all;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Events that wait; beyond these the oldest is dropped.
const MAX_WAITING: usize = 20_000;
/// Events that are written at once: the API server and its store take many together for less than one
/// after the other. And the time that is left to others for each.
const BATCH: usize = 64;
const PAUSE: Duration = Duration::from_millis(4);
/// An event waits so long for bindings that are under way.
const MAX_PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_STEP: Duration = Duration::from_millis(50);

const SCHEDULED: &str = "Scheduled";

/// The events that are to be written.
pub struct PodEvents {
    /// Whether `Scheduled` is written at all.
    scheduled: bool,
    waiting: Mutex<VecDeque<(Instant, PodEvent)>>,
    more: Notify,
    under_way: AtomicUsize,
    written: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

/// How many events came to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PodEventCounts {
    pub written: u64,
    /// The queue was full.
    pub dropped: u64,
    /// The API server did not take them.
    pub failed: u64,
    pub waiting: u64,
}

impl PodEvents {
    pub fn new(scheduled: bool) -> Arc<PodEvents> {
        Arc::new(PodEvents {
            scheduled,
            waiting: Mutex::default(),
            more: Notify::new(),
            under_way: AtomicUsize::new(0),
            written: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        })
    }

    /// A pod was bound.
    pub fn scheduled(&self, pod: &PodRef, node: &Name) {
        if !self.scheduled {
            return;
        }
        let PodRef { namespace, name, .. } = pod;
        let note = format!("Successfully assigned {namespace}/{name} to {node}");
        let (pod, level, reason, key) = (pod.clone(), Level::Normal, SCHEDULED, node.to_string());
        self.put(PodEvent { pod, level, reason, note, key });
    }

    pub fn put(&self, event: PodEvent) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MAX_WAITING {
            waiting.pop_front();
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        waiting.push_back((Instant::now(), event));
        drop(waiting);
        self.more.notify_one();
    }

    /// How many orders are with the API server.
    pub fn set_under_way(&self, count: usize) {
        self.under_way.store(count, Ordering::Relaxed);
    }

    pub fn counts(&self) -> PodEventCounts {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).len() as u64;
        PodEventCounts {
            written: count(&self.written),
            dropped: count(&self.dropped),
            failed: count(&self.failed),
            waiting,
        }
    }

    /// Writes events for as long as it is polled.
    pub async fn write(self: Arc<PodEvents>, recorder: EventRecorder) {
        loop {
            let mut batch = vec![self.next().await];
            let more = BATCH - batch.len();
            {
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                let more = more.min(waiting.len());
                batch.extend(waiting.drain(..more).map(|(_, event)| event));
            }
            join_all(batch.iter().map(|event| self.write_one(&recorder, event))).await;
            tokio::time::sleep(PAUSE * batch.len() as u32).await;
        }
    }

    /// The next event, when its time has come.
    async fn next(&self) -> PodEvent {
        loop {
            let next = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some((since, event)) = next else {
                self.more.notified().await;
                continue;
            };
            while self.under_way.load(Ordering::Relaxed) > 0 && since.elapsed() < MAX_PATIENCE {
                tokio::time::sleep(PATIENCE_STEP).await;
            }
            return event;
        }
    }

    async fn write_one(&self, recorder: &EventRecorder, event: &PodEvent) {
        let PodEvent { pod, level, reason, note, key } = event;
        let action = if *reason == SCHEDULED { "Binding" } else { "Scheduling" };
        let new = NewEvent { level: *level, action, reason, note, dedup_key: Some(key) };
        let about = ObjectReference::from(pod);
        let written = match *reason == SCHEDULED {
            true => recorder.record(&about, new).await,
            false => recorder.record_again(&about, new).await,
        };
        match written {
            Ok(()) => self.written.fetch_add(1, Ordering::Relaxed),
            Err(error) => {
                tracing::debug!(%error, pod = pod.name, reason, "an event could not be written");
                self.failed.fetch_add(1, Ordering::Relaxed)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str) -> PodEvent {
        let pod = PodRef { namespace: "ml".into(), name: name.into(), uid: name.into() };
        let (level, reason) = (Level::Warning, "FailedScheduling");
        PodEvent { pod, level, reason, note: "no room".into(), key: "no-fit".into() }
    }

    #[tokio::test]
    async fn a_full_queue_drops_its_oldest_event_and_says_so() {
        let events = PodEvents::new(true);
        for at in 0..=MAX_WAITING {
            events.put(event(&at.to_string()));
        }
        let counts = events.counts();
        assert_eq!((counts.waiting, counts.dropped), (MAX_WAITING as u64, 1));
        assert_eq!(events.next().await.pod.name, "1");
    }

    #[tokio::test]
    async fn an_event_waits_while_bindings_are_under_way() {
        let events = PodEvents::new(true);
        events.set_under_way(3);
        events.put(event("a"));
        let next = tokio::time::timeout(Duration::from_millis(200), events.next());
        assert!(next.await.is_err(), "it is not in the way of the bindings");
        events.put(event("b"));
        events.set_under_way(0);
        assert_eq!(events.next().await.pod.name, "b");
    }

    #[test]
    fn scheduled_events_can_be_switched_off_alone() {
        let events = PodEvents::new(false);
        let PodEvent { pod, .. } = event("a");
        events.scheduled(&pod, &Name::new("n1"));
        assert_eq!(events.counts().waiting, 0);
        events.put(event("a"));
        assert_eq!(events.counts().waiting, 1);
        let events = PodEvents::new(true);
        events.scheduled(&pod, &Name::new("n1"));
        assert_eq!(events.counts().waiting, 1);
    }
}
