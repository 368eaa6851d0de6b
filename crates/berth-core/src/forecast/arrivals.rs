//! Jobs that come while a forecast runs: a stretch of the recent past, lived through again.
//!
//! Without them a forecast would be too early: later jobs with less work overtake pending ones. A
//! run takes one of the recent days and goes on from the same hour of it, so that rush hours, bursts
//! and the mix of requests are those of these users.

use crate::forecast::draw::stream_of;
use berth_model::{JobId, JobSpec, Span, Time};
use std::sync::Arc;

/// A submission that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    pub at: Time,
    pub spec: Arc<JobSpec>,
}

/// Numbers from here on are of jobs that only a run knows.
const FIRST_SIMULATED_ID: u64 = 1 << 62;

/// What one run has still to come.
pub(super) struct ArrivalStream<'a> {
    past: &'a [Arrived],
    next: usize,
    shift: Span,
    /// After the last one the first comes again, so much later.
    lap: Span,
    made: u64,
}

impl<'a> ArrivalStream<'a> {
    /// Picks the day to repeat. There are no arrivals where less than a day is known.
    pub fn new(past: &'a [Arrived], now: Time, seed: u64, run: u32) -> Option<ArrivalStream<'a>> {
        let day = Span::days(1).0;
        let first = past.first()?.at;
        let days = (now - first).0 / day;
        if days < 1 {
            return None;
        }
        let mut rng = stream_of(seed, run, JobId::new(FIRST_SIMULATED_ID));
        let shift = Span((rng.below(days as u64) as i64 + 1) * day);
        let next = past.partition_point(|arrived| arrived.at + shift <= now);
        let mut coming = ArrivalStream { past, next, shift, lap: Span(days * day), made: 0 };
        coming.wrap();
        Some(coming)
    }

    fn wrap(&mut self) {
        if self.next == self.past.len() {
            self.next = 0;
            self.shift += self.lap;
        }
    }

    pub fn at(&self) -> Time {
        self.past[self.next].at + self.shift
    }

    /// The next job, as it would be submitted now. What it came after lies in the past.
    pub fn take(&mut self) -> JobSpec {
        let at = self.at();
        let spec = (*self.past[self.next].spec).clone();
        self.next += 1;
        self.wrap();
        self.made += 1;
        let deadline = spec.deadline.map(|deadline| at + (deadline - spec.submitted));
        let id = JobId::new(FIRST_SIMULATED_ID + self.made);
        JobSpec { id, submitted: at, deadline, begin: None, after: Vec::new(), ..spec }
    }
}
