//! The pending jobs of a queue: entering and leaving the line.

use crate::ix::{JobIx, ShapeIx};
use crate::jobs::Standing;
use crate::queues::TimedJob;
use crate::state::State;
use berth_model::Span;
use std::cmp::Reverse;
use std::collections::BTreeMap;

impl State {
    /// How the job stands in its queue's line.
    fn pending_key(&self, ix: JobIx) -> (ShapeIx, (Reverse<i32>, u32), TimedJob, Option<TimedJob>) {
        let job = self.jobs.get(ix);
        let gpus = self.shapes[job.shape.at()].amounts.gpu.max(1);
        let class = work_class(gpus, job.estimate_left());
        let place = (job.spec.submitted, job.id, ix);
        let latest = job.deadline.map(|deadline| (deadline - job.estimate_left(), job.id, ix));
        (job.shape, (Reverse(job.priority), class), place, latest)
    }

    /// Puts a waiting job in line, unless others make place for it already.
    pub(crate) fn enqueue(&mut self, ix: JobIx) {
        if self.jobs.get(ix).enqueued
            || self.promises.get(&ix).is_some_and(|promised| promised.firm)
        {
            return;
        }
        self.jobs.get_mut(ix).enqueued = true;
        let (shape, list, place, latest) = self.pending_key(ix);
        let job = self.jobs.get(ix);
        let hold = self.hold_span(job);
        let queue = self.queues.get_mut(job.queue);
        let line = &mut queue.pending;
        let of_shape = line.shapes.entry(shape).or_default();
        let first = of_shape.holds.keys().next().is_none_or(|first| hold < *first);
        queue.pending_version += u64::from(first || !of_shape.priorities.contains_key(&list.0.0));
        *of_shape.holds.entry(hold).or_default() += 1;
        of_shape.count += 1;
        *of_shape.priorities.entry(list.0.0).or_default() += 1;
        of_shape.lists.entry(list).or_default().insert(place);
        *line.priorities.entry(list.0.0).or_default() += 1;
        line.oldest.insert(place);
        line.deadlines.extend(latest);
    }

    /// Takes a job out of the line; whether it was there.
    pub(crate) fn dequeue(&mut self, ix: JobIx) -> bool {
        if !self.jobs.get(ix).enqueued {
            return false;
        }
        self.jobs.get_mut(ix).enqueued = false;
        let (shape, list, place, latest) = self.pending_key(ix);
        let job = self.jobs.get(ix);
        let hold = self.hold_span(job);
        let line = &mut self.queues.get_mut(job.queue).pending;
        let of_shape = line.shapes.get_mut(&shape).expect("the job is in line");
        decrement(&mut of_shape.holds, hold);
        of_shape.count -= 1;
        decrement(&mut of_shape.priorities, list.0.0);
        let jobs = of_shape.lists.get_mut(&list).expect("the job is in line");
        assert!(jobs.remove(&place), "the job is in line");
        if jobs.is_empty() {
            of_shape.lists.remove(&list);
        }
        if of_shape.count == 0 {
            line.shapes.remove(&shape);
        }
        decrement(&mut line.priorities, list.0.0);
        line.oldest.remove(&place);
        if let Some(latest) = latest {
            line.deadlines.remove(&latest);
        }
        true
    }

    pub(crate) fn is_waiting(&self, ix: JobIx) -> bool {
        self.jobs.get(ix).standing == Standing::Waiting
    }
}

/// Takes one away from a count, and the count with it when none is left.
pub(crate) fn decrement<K: Ord>(counts: &mut BTreeMap<K, u32>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

/// The class of a job's work: the exponent of √2 at or above GPU-seconds.
pub(crate) fn work_class(gpu_milli: i64, span: Span) -> u32 {
    let work = i128::from(gpu_milli) * i128::from(span.0.max(1)) / 1_000_000;
    // No more than what can be squared.
    let work = work.clamp(1, i128::from(i64::MAX)) as u128;
    let square = work * work;
    // The least k with 2^k >= work².
    128 - (square - 1).leading_zeros()
}

/// The work a class stands for, in GPU-seconds.
pub(crate) fn work_of(class: u32) -> u128 {
    let half = 1u128 << (class / 2);
    if class.is_multiple_of(2) { half } else { (half * 1_414_213_562).div_ceil(1_000_000_000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_of_work_is_the_next_power_of_root_two() {
        assert_eq!(work_class(1_000, Span::secs(1)), 0);
        assert_eq!(work_class(1_000, Span::secs(2)), 2);
        assert_eq!(work_class(1_000, Span::secs(3)), 4);
        assert_eq!(work_class(2_000, Span::secs(1_000)), work_class(1_000, Span::secs(2_000)));
        for class in 0..80 {
            assert!(work_of(class) <= work_of(class + 1));
        }
    }
}
