//! Placing: the queue furthest under its share goes next, with its next job. A job that does not
//! fit may hold a reservation, which later jobs must not move: that is backfill.

use crate::cluster::node::Requester;
use crate::fair_share::Ratio;
use crate::ix::{JobIx, QueueIx, TaskIx};
use crate::jobs::Lease;
use crate::plan::bounds::bound;
use crate::plan::order::Candidates;
use crate::plan::planner::Planner;
use crate::transaction::Transaction;
use berth_model::{Bound, JobId, Pass, QueueOrder, Reason, Span, Time};
use std::cmp::Ordering;

/// What a queue may still do in this plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Turn {
    /// It has nothing more to start.
    over: bool,
    /// Reservations its jobs hold, what others were stopped for left aside.
    promises: u32,
    /// No more of its jobs may hold one: it is over its share.
    no_more_promises: bool,
    /// Aged jobs that could not be given a promise.
    aged: u32,
}

impl Planner<'_> {
    pub(super) fn place(&mut self) {
        let state = self.state();
        let mut turns = vec![Turn::default(); state.queues.all.len()];
        // How many leaves at or below each queue have something to start.
        let mut open = vec![0; state.queues.all.len()];
        for leaf in state.queues.leaves() {
            let queue = state.queues.get(leaf);
            turns[leaf.at()].promises = queue.soft_promised.len() as u32;
            if !queue.pending.oldest.is_empty() {
                state.queues.path(leaf).for_each(|ix| open[ix.at()] += 1);
            }
        }
        while let Some(leaf) = self.next_queue(&open) {
            let mut turn = turns[leaf.at()];
            self.take_turn(leaf, &mut turn);
            turns[leaf.at()] = turn;
            if turn.over {
                self.state().queues.path(leaf).for_each(|ix| open[ix.at()] -= 1);
            }
        }
        self.wake_for_age();
    }

    /// Looks again when the next job has waited so long that it may hold a reservation.
    fn wake_for_age(&mut self) {
        let state = self.state();
        let span = state.policy.aging_max;
        let young = (state.now - span + Span::ms(1), JobId::new(0), JobIx(0));
        let next = state
            .queues
            .leaves()
            .filter_map(|leaf| {
                let oldest = &state.queues.get(leaf).pending.oldest;
                let first = oldest.first()?;
                if *first >= young { Some(first) } else { oldest.range(young..).next() }
            })
            .map(|(since, _, _)| *since + span)
            .min();
        if let Some(next) = next {
            self.wake(next);
        }
    }

    /// The leaf to serve next: from the root down, the queue furthest under its share.
    fn next_queue(&self, open: &[u32]) -> Option<QueueIx> {
        let queues = &self.state().queues;
        let mut among = &queues.roots;
        let mut chosen = None;
        loop {
            let mut best: Option<((bool, Ratio), QueueIx)> = None;
            for ix in among {
                if open[ix.at()] == 0 {
                    continue;
                }
                let key =
                    (queues.get(*ix).is_deprioritized(), self.shares.ratio(self.state(), *ix));
                let better = best.as_ref().is_none_or(|(other, at)| {
                    let by_name = || queues.get(*ix).spec.name.cmp(&queues.get(*at).spec.name);
                    let order = key.0.cmp(&other.0).then_with(|| key.1.cmp(other.1));
                    order.then_with(by_name) == Ordering::Less
                });
                if better {
                    best = Some((key, *ix));
                }
            }
            let Some((_, ix)) = best else { return chosen };
            chosen = Some(ix);
            among = &queues.get(ix).children;
            if among.is_empty() {
                return chosen;
            }
        }
    }

    fn take_turn(&mut self, leaf: QueueIx, turn: &mut Turn) {
        let strict = self.order_of(leaf) == QueueOrder::Strict;
        if self.promise_to_aged(leaf, turn) {
            return;
        }
        let reserving = self.state().policy.runs(Pass::Backfill)
            && turn.promises < self.state().policy.reservations
            && !turn.no_more_promises;
        let among = if reserving || strict { Candidates::All } else { Candidates::Startable };
        let Some(job) = self.next_of(leaf, among) else {
            turn.over = true;
            return;
        };
        let queue = self.state().queues.get(leaf);
        if strict && (queue.firm_promised > 0 || !queue.soft_promised.is_empty()) {
            // The head has a promise: nothing of this queue goes before it.
            turn.over = true;
            return;
        }
        let shape = self.state().jobs.get(job).shape;
        if self.is_bound(leaf, job) {
            turn.over = strict;
            return;
        }
        if !self.failed_for(shape, job) && self.try_start(job) {
            return;
        }
        // It is blocked: the first such jobs within their share hold a reservation.
        if reserving {
            self.promise_to(job, turn);
        }
        turn.over = strict;
        if !self.failed_for(shape, job) {
            // It failed for a reason of its own: bounds of the model it would have got.
            self.skipped.insert(job);
        }
    }

    /// Whether a bound keeps the job from starting: then so it does for all of its shape in the
    /// queue, unless it is a bound of its user or for what may not be stopped.
    fn is_bound(&mut self, leaf: QueueIx, job: JobIx) -> bool {
        let bounds = bound(self.state(), job, false);
        if bounds.is_empty() {
            return false;
        }
        let personal = bounds.iter().any(|reason| {
            let of_user = matches!(reason, Reason::QueueBound { bound: Bound::UserLimit, .. });
            of_user || matches!(reason, Reason::OverQuota { .. })
        });
        self.bound_by_queue.entry(leaf).or_insert((job, bounds));
        if personal {
            self.skipped.insert(job);
        } else {
            let shape = self.state().jobs.get(job).shape;
            self.barred.insert((leaf, shape));
        }
        true
    }

    /// A job that has waited too long holds a reservation whatever its share.
    fn promise_to_aged(&mut self, leaf: QueueIx, turn: &mut Turn) -> bool {
        let state = self.state();
        // A few that fail are enough: the others wait for the same.
        if !state.policy.runs(Pass::Backfill)
            || turn.promises > state.policy.reservations
            || turn.aged >= 4
        {
            return false;
        }
        let old = state.now - state.policy.aging_max;
        let may = |ix: JobIx| {
            let shape = state.jobs.get(ix).shape;
            self.open_to(ix)
                && state.shapes[shape.at()].possible
                && !self.barred.contains(&(leaf, shape))
        };
        let oldest = &state.queues.get(leaf).pending.oldest;
        let mut aged = oldest.iter().take_while(|(since, _, _)| *since <= old);
        let Some((_, _, job)) = aged.find(|(_, _, ix)| may(*ix)).copied() else { return false };
        if self.is_bound(leaf, job) {
            return true;
        }
        turn.aged += 1;
        let shape = self.state().jobs.get(job).shape;
        if !self.failed_for(shape, job) && self.try_start(job) {
            return true;
        }
        if !self.make_promise(job, turn) {
            self.skipped.insert(job);
        }
        true
    }

    /// Starts the job if it fits; remembers for its shape if it does not.
    pub(super) fn try_start(&mut self, job: JobIx) -> bool {
        let shape = self.state().jobs.get(job).shape;
        if !self.state().shape_of(job).possible {
            self.failed.insert(shape, Span::ZERO);
            self.last_tried.insert(shape, job);
            return false;
        }
        let requester = self.requester(job);
        let mark = self.draft.mark();
        match super::fit::fit(&mut self.draft, &self.mix, job, requester) {
            Ok(spots) => {
                if self.overdraws(job) {
                    self.draft.roll_back(mark);
                    return false;
                }
                self.start(job, &spots);
                self.placed.push(job);
                true
            }
            Err(_) if self.repack(job) => {
                self.placed.push(job);
                true
            }
            Err(_) => {
                self.last_tried.insert(shape, job);
                // A job with wishes about other jobs says nothing about the next of its shape.
                if !self.state().shape_of(job).has_near() {
                    let least = self.too_long(job, requester);
                    let known = self.failed.entry(shape).or_insert(least);
                    *known = (*known).min(least);
                }
                false
            }
        }
    }

    /// Too long for a job of the shape to hold what is free now: it has to be over before others get
    /// what they were promised. The job itself was found not to fit.
    fn too_long(&self, job: JobIx, requester: Requester) -> Span {
        let holding = self.holding(job);
        let fits = |until: Time| self.could_fit(job, &Requester { until, ..requester });
        if !fits(requester.now) {
            return Span::ZERO;
        }
        if fits(requester.until) {
            return holding;
        }
        let cluster = &self.state().cluster;
        let kept = cluster.contested.iter().flat_map(|ix| &cluster.node(*ix).promised_slots);
        let soon = kept
            .map(|kept| kept.from)
            .filter(|from| (requester.now..requester.until).contains(from));
        let mut times: Vec<Time> = soon.collect();
        times.sort_unstable();
        times.dedup();
        // From one of these to the next nothing changes, and there is less and less room.
        match times.partition_point(|until| fits(*until)).checked_sub(1) {
            Some(last) => (times[last] - requester.now + Span::ms(1)).min(holding),
            None => holding,
        }
    }

    /// Whether what the job has got now, on the models it has got, exceeds a bound of its queues.
    pub(super) fn overdraws(&self, job: JobIx) -> bool {
        super::bounds::overdraws(self.state(), job)
    }

    /// Reserves for a blocked job, if its share holds it once what its queue runs now is over,
    /// and is not overdrawn.
    fn promise_to(&mut self, job: JobIx, turn: &mut Turn) {
        let state = self.state();
        let amounts = &state.shape_of(job).amounts;
        let known = state.jobs.get(job);
        let (queue, shape) = (known.queue, known.shape);
        if state.queues.path(queue).any(|ix| self.shares.over(state, ix)) {
            turn.no_more_promises = true;
            return;
        }
        let holds = state.queues.path(queue).all(|ix| self.shares.holds(state, ix, amounts));
        if !holds || !self.make_promise(job, turn) {
            self.too_large_to_promise.insert((queue, shape));
            if self.failed.get(&shape) != Some(&Span::ZERO) {
                self.skipped.insert(job);
            }
        }
    }

    fn make_promise(&mut self, job: JobIx, turn: &mut Turn) -> bool {
        if !self.state().shape_of(job).possible {
            return false;
        }
        let Some((at, spots)) = self.earliest(job) else { return false };
        if at <= self.now() {
            // There is room, so that something else keeps it from starting.
            return false;
        }
        let id = self.state().jobs.get(job).id;
        let decision = self.reserve(job, at, &spots, false);
        self.transactions.push(Transaction { job: Some(id), decisions: vec![decision] });
        turn.promises += 1;
        true
    }

    /// Takes one place on the draft.
    pub(super) fn open_spot(&mut self, job: JobIx, spot: &crate::plan::fit::spot::Spot) {
        let state = &self.draft.state;
        let leaf = state.leaf_of(job, spot.task);
        let lease = Lease {
            attempt: state.jobs.get(job).tasks[spot.task as usize].attempts,
            node: spot.node,
            charge: state.charge_of(leaf, spot.node, &spot.slices),
            price: berth_model::Micros::ZERO,
            since: state.now,
            bound: false,
            stopping: None,
            slices: spot.slices.clone(),
        };
        self.draft.open(TaskIx { job, task: spot.task }, lease);
    }
}
