//! How much of the cluster was used.

use super::{GpuTime, gpu_time, seconds};
use crate::outcome::{Outcome, Segment};
use berth_model::{Milli, Span, Time};
use serde::{Deserialize, Serialize};

/// Parts of the cluster's GPU time between the first and the last submission. What comes after is
/// left out: a few jobs of a week at the end would say more about the trace than about the policy.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Held by jobs and brought them nearer their end.
    pub utilization: f64,
    /// Held by jobs.
    pub allocation: f64,
    /// From the first submission to the last end, in seconds.
    pub makespan: f64,
}

impl Usage {
    pub(super) fn new(outcomes: &[Outcome], gpus: u64) -> Usage {
        let submits = || outcomes.iter().map(|outcome| outcome.submit);
        let (Some(first), Some(last)) = (submits().min(), submits().max()) else {
            return Usage::default();
        };
        let (mut useful, mut held): (GpuTime, GpuTime) = (0, 0);
        for outcome in outcomes {
            for segment in &outcome.segments {
                let Segment { from, to, restart, lost, saving, .. } = *segment;
                held += gpu_time(outcome.gpus, overlap(from, to, first, last));
                let (began, saved_until) = ((from + restart).min(to), to - lost);
                let time = overlap(began, saved_until, first, last);
                // Saves are spread over the stretch, so a part of it holds a part of them.
                let saves = match (saved_until - began).0 {
                    ..=0 => 0,
                    whole => i128::from(saving.0) * i128::from(time.0) / i128::from(whole),
                };
                useful += gpu_time(outcome.gpus, time - Span(saves as i64));
            }
        }
        let end = outcomes.iter().filter_map(|outcome| outcome.end).max().unwrap_or(first);
        let capacity = gpu_time(Milli::whole(gpus as i64), last - first);
        let part = |time: GpuTime| if capacity > 0 { time as f64 / capacity as f64 } else { 0.0 };
        Usage { utilization: part(useful), allocation: part(held), makespan: seconds(end - first) }
    }
}

/// How much of one stretch of time lies in another.
pub(super) fn overlap(from: Time, to: Time, first: Time, last: Time) -> Span {
    (to.min(last) - from.max(first)).max(Span::ZERO)
}
