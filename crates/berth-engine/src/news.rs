//! What happens, for whoever listens. The newest events are kept, so that a listener who was away, or
//! reads slowly, gets exactly what it missed. Each event is written as JSON once, whoever hears it.

use berth_api::wire;
use berth_model::Time;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What is kept, whichever limit is met first.
const MOST: usize = 50_000;
const MOST_BYTES: usize = 16 << 20;
/// Events that one look takes along.
const BUNCH: usize = 256;
/// Numbers that a millisecond has for events. A server that starts again begins above all that the
/// last one has given, because its time goes on.
const PER_MS: i64 = 1_000;

/// An event, with its text as JSON.
#[derive(Debug)]
pub struct Told {
    pub event: wire::Event,
    pub json: String,
}

#[derive(Debug, Clone)]
pub struct News(Arc<Desk>);

#[derive(Debug)]
struct Desk {
    kept: Mutex<Kept>,
    newest: watch::Sender<u64>,
}

#[derive(Debug)]
struct Kept {
    events: VecDeque<Arc<Told>>,
    bytes: usize,
    newest: u64,
}

impl News {
    /// None has happened yet.
    pub fn since(start: Time) -> News {
        let newest = start.0.max(0).saturating_mul(PER_MS).unsigned_abs();
        let kept = Kept { events: VecDeque::new(), bytes: 0, newest };
        News(Arc::new(Desk { kept: Mutex::new(kept), newest: watch::Sender::new(newest) }))
    }

    pub(crate) fn tell(&self, at: Time, kinds: Vec<wire::EventKind>) {
        if kinds.is_empty() {
            return;
        }
        let mut kept = self.0.kept();
        for kind in kinds {
            kept.newest += 1;
            let event = wire::Event { seq: kept.newest, at: at.into(), kind };
            let json = serde_json::to_string(&event).expect("events are plain data");
            kept.bytes += json.len();
            kept.events.push_back(Arc::new(Told { event, json }));
            while kept.events.len() > MOST || kept.bytes > MOST_BYTES {
                let Some(oldest) = kept.events.pop_front() else { break };
                kept.bytes -= oldest.json.len();
            }
        }
        let newest = kept.newest;
        drop(kept);
        self.0.newest.send_replace(newest);
    }

    /// What happens from now on, or after the event of that number.
    pub fn listen(&self, after: Option<u64>) -> Listener {
        let last = after.unwrap_or_else(|| self.0.kept().newest);
        Listener {
            desk: self.0.clone(),
            last,
            ahead: VecDeque::new(),
            newest: self.0.newest.subscribe(),
        }
    }

    /// What is kept, with the number of the newest event.
    pub fn listen_to_kept(&self) -> (Listener, u64) {
        let (before, newest) = self.0.oldest_and_newest();
        (self.listen(Some(before)), newest)
    }
}

impl Desk {
    fn oldest_and_newest(&self) -> (u64, u64) {
        let kept = self.kept();
        (kept.newest - kept.events.len() as u64, kept.newest)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// The first events after one; the newest number where some of them are not kept any more, or
    /// the number is none of this server's.
    fn after(&self, last: u64) -> Result<VecDeque<Arc<Told>>, u64> {
        let before = self.newest - self.events.len() as u64;
        if last < before || last > self.newest {
            return Err(self.newest);
        }
        let heard = usize::try_from(last - before).unwrap_or(usize::MAX);
        Ok(self.events.range(heard..).take(BUNCH).cloned().collect())
    }
}

/// Hears every event once.
#[derive(Debug)]
pub struct Listener {
    desk: Arc<Desk>,
    last: u64,
    ahead: VecDeque<Arc<Told>>,
    newest: watch::Receiver<u64>,
}

#[derive(Debug)]
pub enum Heard {
    Event(Arc<Told>),
    /// Some were missed. It goes on after the event of this number.
    Gap(u64),
}

impl Listener {
    /// The number after which it goes on.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Waits for the next event. To give up waiting loses nothing.
    pub async fn next(&mut self) -> Option<Heard> {
        loop {
            if let Some(told) = self.ahead.pop_front() {
                self.last = told.event.seq;
                return Some(Heard::Event(told));
            }
            // Before the look: what comes during it is looked for once more.
            self.newest.borrow_and_update();
            let found = self.desk.kept().after(self.last);
            match found {
                Err(newest) => {
                    self.last = newest;
                    return Some(Heard::Gap(newest));
                }
                Ok(events) if events.is_empty() => self.newest.changed().await.ok()?,
                Ok(events) => self.ahead = events,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    const START: Time = Time(7);

    fn tell(news: &News, queues: impl IntoIterator<Item = u32>) {
        for queue in queues {
            news.tell(START, vec![wire::EventKind::Queue { queue: queue.to_string() }]);
        }
    }

    /// All that can be heard without waiting: queues, and gaps.
    async fn hear(listener: &mut Listener) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let mut next = pin!(listener.next());
            let heard = poll_fn(|context| match next.as_mut().poll(context) {
                Poll::Ready(heard) => Poll::Ready(heard),
                Poll::Pending => Poll::Ready(None),
            });
            match heard.await {
                None => return all,
                Some(Heard::Gap(_)) => all.push("gap".to_owned()),
                Some(Heard::Event(told)) => match &told.event.kind {
                    wire::EventKind::Queue { queue } => all.push(queue.clone()),
                    other => panic!("{other:?}"),
                },
            }
        }
    }

    #[tokio::test]
    async fn who_comes_back_hears_what_was_missed_and_nothing_twice() {
        let news = News::since(START);
        let mut listener = news.listen(None);
        tell(&news, 0..3);
        assert_eq!(hear(&mut listener).await, ["0", "1", "2"]);
        let last = listener.last();
        drop(listener);
        tell(&news, 3..600);
        let mut listener = news.listen(Some(last));
        let expect: Vec<String> = (3..600).map(|n| n.to_string()).collect();
        assert_eq!(hear(&mut listener).await, expect);
        assert!(hear(&mut news.listen(None)).await.is_empty(), "a new one hears what comes");
    }

    #[tokio::test]
    async fn what_is_kept_is_heard_from_the_oldest_on() {
        let news = News::since(START);
        tell(&news, 0..3);
        let (mut listener, newest) = news.listen_to_kept();
        assert_eq!(hear(&mut listener).await, ["0", "1", "2"]);
        assert_eq!(listener.last(), newest);
    }

    #[tokio::test]
    async fn what_is_too_old_or_of_another_start_is_a_gap_and_then_it_goes_on() {
        let news = News::since(START);
        tell(&news, 0..1);
        let (old, ahead) = (1, 9_000_000);
        for after in [old, ahead] {
            let mut listener = news.listen(Some(after));
            assert_eq!(hear(&mut listener).await, ["gap"]);
            tell(&news, 5..6);
            assert_eq!(hear(&mut listener).await, ["5"]);
        }
        let again = News::since(START + berth_model::Span(1));
        let first = news.listen(None).last();
        assert_eq!(hear(&mut again.listen(Some(first))).await, ["gap"]);
    }

    #[tokio::test]
    async fn no_more_is_kept_than_there_is_room_for() {
        let news = News::since(START);
        let mut slow = news.listen(None);
        tell(&news, 0..MOST as u32 + 10);
        assert_eq!(hear(&mut slow).await, ["gap"]);
        assert_eq!(news.0.kept().events.len(), MOST);
    }
}
