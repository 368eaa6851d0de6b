//! The clock of the peers that never stop a job.

use super::floor::{Floor, Place};
use super::{Job, Pool, blank};
use crate::outcome::{Outcome, Segment};
use berth_model::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A job that is to start, and where. The floor has it already.
pub(super) type Start = (u32, Place);

/// Who waits, and in which order they start.
pub(super) trait Line {
    fn arrive(&mut self, job: u32);
    fn ended(&mut self, job: u32);
    /// Everything that starts now.
    fn start(&mut self, now: Time, floor: &mut Floor, started: &mut Vec<Start>);
}

pub(super) fn play(pool: Pool, jobs: &[Job], line: &mut impl Line) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> =
        jobs.iter().enumerate().map(|(index, job)| blank(index, job)).collect();
    let empty = Floor::new(pool);
    let mut floor = empty.clone();
    let mut places: Vec<Option<Place>> = vec![None; jobs.len()];
    let mut ends: BinaryHeap<Reverse<(Time, u32)>> = BinaryHeap::new();
    let mut arrivals = jobs.iter().enumerate().peekable();
    let mut started = Vec::new();
    loop {
        let next_end = ends.peek().map(|Reverse((end, _))| *end);
        let next_arrival = arrivals.peek().map(|(_, job)| job.submit);
        let Some(now) = next_end.into_iter().chain(next_arrival).min() else {
            return outcomes;
        };
        while let Some(Reverse((end, job))) = ends.peek().copied()
            && end == now
        {
            ends.pop();
            let place = places[job as usize].take().expect("what ends was running");
            floor.give(&place);
            line.ended(job);
            outcomes[job as usize].end = Some(now);
        }
        while let Some((index, job)) = arrivals.next_if(|(_, job)| job.submit == now) {
            if empty.fits(job.gpus) {
                line.arrive(index as u32);
            }
        }
        line.start(now, &mut floor, &mut started);
        for (job, place) in started.drain(..) {
            let end = now + jobs[job as usize].duration;
            outcomes[job as usize].segments.push(Segment::new(now, end));
            places[job as usize] = Some(place);
            ends.push(Reverse((end, job)));
        }
    }
}
