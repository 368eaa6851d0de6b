//! How many requests the API server is given at once. With too few it is idle between two answers.
//! Some that wait there make the others cheaper: it and its store send, sync and wake up once for
//! many of them. More than that only wait for each other. How long the quickest answers take tells
//! how many wait: whatever took longer has waited.

use std::time::Duration;

const INITIAL_SIZE: f64 = 96.0;
const MIN_SIZE: f64 = 16.0;
const MAX_SIZE: f64 = 512.0;
/// Requests that wait at the server: with fewer it gets more of them, with more it gets fewer.
const MIN_WAITING: f64 = 64.0;
const MAX_WAITING: f64 = 128.0;
/// The quickest answer is forgotten over a million of them: the way to the server may have become
/// longer. Sooner, and what waits all the time would be taken for the way.
const FORGET_RATE: f64 = 1e-6;

#[derive(Debug, Clone, Copy)]
pub struct Window {
    size: f64,
    /// In seconds.
    quickest: f64,
}

impl Default for Window {
    fn default() -> Window {
        Window { size: INITIAL_SIZE, quickest: f64::INFINITY }
    }
}

impl Window {
    /// How many may be under way.
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// An answer came after so long, with so many under way.
    pub fn answered(&mut self, took: Duration, under_way: usize) {
        let took = took.as_secs_f64().max(1e-6);
        self.quickest = (self.quickest * (1.0 + FORGET_RATE)).min(took);
        let waiting = under_way as f64 * (1.0 - self.quickest / took);
        // By one for as many answers as there are requests under way. One that is not used up says
        // nothing about a larger one.
        if waiting > MAX_WAITING {
            self.size -= 1.0 / self.size;
        } else if waiting < MIN_WAITING && under_way >= self.size() {
            self.size += 1.0 / self.size;
        }
        self.size = self.size.clamp(MIN_SIZE, MAX_SIZE);
    }

    /// One that says nothing about how many wait did get through: what was taken away for those that
    /// did not comes back.
    pub fn got_through(&mut self) {
        if self.size < INITIAL_SIZE {
            self.size += 1.0 / self.size;
        }
    }

    /// One was more than the server gets to. When that is true of all, half of them are left.
    pub fn refused(&mut self) {
        self.size = (self.size - 0.5).max(MIN_SIZE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers after `way` at the earliest, and so many a second at the most; returns
    /// what the window comes to, and the answers a second.
    fn settled(window: &mut Window, way: Duration, rate: f64) -> (usize, f64) {
        let mut took = way;
        // The first request finds an idle server.
        window.answered(way, 1);
        for _ in 0..100_000 {
            let under_way = window.size();
            took = way.max(Duration::from_secs_f64(under_way as f64 / rate));
            window.answered(took, under_way);
        }
        (window.size(), window.size() as f64 / took.as_secs_f64())
    }

    #[test]
    fn a_server_that_is_near_gets_few_requests_at_once_and_is_kept_busy() {
        let (size, rate) = settled(&mut Window::default(), Duration::from_millis(2), 1_400.0);
        assert!((64..=160).contains(&size), "{size}");
        assert!(rate > 1_390.0, "{rate}");
    }

    #[test]
    fn a_server_that_is_far_away_gets_as_many_as_it_takes_to_keep_it_busy() {
        let (size, rate) = settled(&mut Window::default(), Duration::from_millis(50), 3_000.0);
        assert!((200..=400).contains(&size), "{size}");
        assert!(rate > 2_990.0, "{rate}");
    }

    #[test]
    fn a_server_that_becomes_slow_gets_fewer_and_one_that_is_quick_again_gets_more() {
        let mut window = Window::default();
        let way = Duration::from_millis(50);
        let (usual, _) = settled(&mut window, way, 3_000.0);
        let (slow, _) = settled(&mut window, way, 300.0);
        let (again, rate) = settled(&mut window, way, 3_000.0);
        assert!(slow < usual && slow < again, "{usual}, {slow}, {again}");
        // On the way are 15 of them.
        assert!((slow as f64) < MAX_WAITING + 20.0, "{slow}");
        assert!(rate > 2_900.0, "{rate}");
    }

    #[test]
    fn a_server_that_answers_nothing_in_time_gets_ever_fewer_until_it_does() {
        let mut window = Window::default();
        for _ in 0..1_000 {
            window.refused();
        }
        assert_eq!(window.size(), MIN_SIZE as usize);
        let mut other = window;
        (0..10_000).for_each(|_| other.got_through());
        assert_eq!(other.size(), INITIAL_SIZE as usize);
        let (size, rate) = settled(&mut window, Duration::from_millis(2), 1_400.0);
        assert!(size >= MIN_WAITING as usize && rate > 1_390.0, "{size}, {rate}");
    }

    #[test]
    fn a_window_that_is_not_used_up_does_not_grow() {
        let mut window = Window::default();
        (0..10_000).for_each(|_| window.answered(Duration::from_millis(3), 1));
        assert_eq!(window.size(), INITIAL_SIZE as usize);
    }
}
