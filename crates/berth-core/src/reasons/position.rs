//! Where jobs stand in the line of their queue.

use crate::fair_share;
use crate::ix::{JobIx, QueueIx};
use crate::plan::order::{Candidate, before, near_deadline};
use crate::state::State;
use crate::state::pending::work_class;
use berth_model::{JobId, QueueOrder};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// What a job's place follows from: whether a deadline puts it ahead of its class, and the rest.
type Standing = (bool, Candidate);

impl State {
    /// How many jobs of its queue go before a waiting one, and how many wait there in all.
    pub fn position(&self, job: JobId) -> Option<(usize, usize)> {
        let ix = self.jobs.find(job).filter(|ix| self.is_waiting(*ix))?;
        let queue = self.jobs.get(ix).queue;
        let line = &self.queues.get(queue).pending;
        if !self.jobs.get(ix).enqueued {
            // Places are being cleared for it.
            return Some((0, line.oldest.len() + 1));
        }
        let own = self.standing(ix);
        let goes_before = |other: JobIx| self.compare(queue, self.standing(other), own).is_lt();
        let ahead = line.oldest.iter().filter(|(_, _, other)| goes_before(*other)).count();
        Some((ahead, line.oldest.len()))
    }

    /// How many jobs of their queues go before each of these that waits. Every line is gone through
    /// once, however many of its jobs are asked for.
    pub fn positions(&self, jobs: &[JobId]) -> BTreeMap<JobId, usize> {
        let mut by_queue: BTreeMap<QueueIx, Vec<Standing>> = BTreeMap::new();
        let mut positions = BTreeMap::new();
        let waiting = jobs.iter().filter_map(|job| self.jobs.find(*job));
        for ix in waiting.filter(|ix| self.is_waiting(*ix)) {
            let job = self.jobs.get(ix);
            match job.enqueued {
                true => by_queue.entry(job.queue).or_default().push(self.standing(ix)),
                false => drop(positions.insert(job.id, 0)),
            }
        }
        for (queue, wanted) in by_queue {
            positions.extend(self.places(queue, wanted));
        }
        positions
    }

    /// The same for jobs in the line of one queue.
    fn places(&self, queue: QueueIx, mut wanted: Vec<Standing>) -> Vec<(JobId, usize)> {
        wanted.sort_unstable_by(|a, b| self.compare(queue, *a, *b));
        // For each place among those that are asked for, how many of the line go just before it.
        let mut before = vec![0; wanted.len() + 1];
        for (_, _, ix) in &self.queues.get(queue).pending.oldest {
            let one = self.standing(*ix);
            before[wanted.partition_point(|asked| self.compare(queue, one, *asked).is_ge())] += 1;
        }
        let ahead = before.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        wanted.iter().zip(ahead).map(|((_, (_, _, (_, id, _))), ahead)| (*id, ahead)).collect()
    }

    /// The job that goes first in a queue: one for which places are being cleared, if there is one.
    pub(super) fn head(&self, queue: QueueIx) -> Option<JobIx> {
        if self.queues.get(queue).firm_promised > 0 {
            let all = self.promises_by_time.iter().map(|(_, _, ix)| *ix);
            let mut of_queue = all.filter(|ix| self.jobs.get(*ix).queue == queue);
            return of_queue.find(|ix| self.promises[ix].firm);
        }
        let all = self.queues.get(queue).pending.oldest.iter();
        let first = all.map(|(_, _, ix)| self.standing(*ix)).reduce(|first, other| {
            std::cmp::min_by(first, other, |a, b| self.compare(queue, *a, *b))
        });
        first.map(|(_, (_, _, (_, _, ix)))| ix)
    }

    fn compare(&self, queue: QueueIx, a: Standing, b: Standing) -> Ordering {
        let order = self.queues.get(queue).spec.order.unwrap_or(self.policy.order);
        let by_risk = match order {
            QueueOrder::ResponseRatio => b.0.cmp(&a.0),
            _ => Ordering::Equal,
        };
        by_risk.then_with(|| before(order, self.now, a.1, b.1))
    }

    fn standing(&self, ix: JobIx) -> Standing {
        let job = self.jobs.get(ix);
        let class = work_class(self.shape_of(ix).amounts.gpu.max(1), job.estimate_left());
        (self.at_risk(ix), (job.priority, class, (job.spec.submitted, job.id, ix)))
    }

    /// Whether a deadline puts the job ahead of its class.
    fn at_risk(&self, ix: JobIx) -> bool {
        let job = self.jobs.get(ix);
        job.deadline.is_some_and(|deadline| {
            let latest = deadline - job.estimate_left();
            latest >= self.now
                && near_deadline(self, job, latest)
                && fair_share::within_quota(self, job.queue, &self.shape_of(ix).amounts)
        })
    }
}
