//! Where jobs stand in the line of their queue.

use crate::ix::{JobIx, QueueIx};
use crate::plan::order::{Candidate, before, risky};
use crate::share;
use crate::state::{State, work_class};
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
        let line = &self.queues.get(queue).line;
        if !self.jobs.get(ix).lined {
            // Places are being cleared for it.
            return Some((0, line.oldest.len() + 1));
        }
        let own = self.standing(ix);
        let goes_before = |other: JobIx| self.compare(queue, self.standing(other), own).is_lt();
        let ahead = line.oldest.iter().filter(|(_, _, other)| goes_before(*other)).count();
        Some((ahead, line.oldest.len()))
    }

    /// How many jobs of their queues go before each of these that waits. Every line is put in order
    /// once, however many of its jobs are asked for.
    pub fn positions(&self, jobs: &[JobId]) -> BTreeMap<JobId, usize> {
        let mut by_queue: BTreeMap<QueueIx, Vec<JobIx>> = BTreeMap::new();
        let waiting = jobs.iter().filter_map(|job| self.jobs.find(*job));
        for ix in waiting.filter(|ix| self.is_waiting(*ix)) {
            by_queue.entry(self.jobs.get(ix).queue).or_default().push(ix);
        }
        let mut positions = BTreeMap::new();
        for (queue, wanted) in by_queue {
            let line = self.in_order(queue);
            for ix in wanted {
                let own = self.standing(ix);
                let ahead = match self.jobs.get(ix).lined {
                    true => line.partition_point(|other| self.compare(queue, *other, own).is_lt()),
                    false => 0,
                };
                positions.insert(self.jobs.get(ix).id, ahead);
            }
        }
        positions
    }

    /// The job that goes first in a queue: one for which places are being cleared, if there is one.
    pub(super) fn head(&self, queue: QueueIx) -> Option<JobIx> {
        if self.queues.get(queue).claims > 0 {
            let all = self.due.iter().map(|(_, _, ix)| *ix);
            let mut of_queue = all.filter(|ix| self.jobs.get(*ix).queue == queue);
            return of_queue.find(|ix| self.promises[ix].firm);
        }
        let all = self.queues.get(queue).line.oldest.iter();
        let first = all.map(|(_, _, ix)| self.standing(*ix)).reduce(|first, other| {
            std::cmp::min_by(first, other, |a, b| self.compare(queue, *a, *b))
        });
        first.map(|(_, (_, _, (_, _, ix)))| ix)
    }

    /// The whole line, the first to go first.
    fn in_order(&self, queue: QueueIx) -> Vec<Standing> {
        let all = self.queues.get(queue).line.oldest.iter();
        let mut line: Vec<Standing> = all.map(|(_, _, ix)| self.standing(*ix)).collect();
        line.sort_unstable_by(|a, b| self.compare(queue, *a, *b));
        line
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
                && risky(self, job, latest)
                && share::within_quota(self, job.queue, &self.shape_of(ix).amounts)
        })
    }
}
