//! The order of the passes, and when the next plan is due.

use crate::ix::JobIx;
use crate::plan::planner::Planner;
use berth_model::{JobId, Pass, Span, Time};

impl Planner<'_> {
    pub(super) fn run(&mut self) {
        let runs = |planner: &Planner<'_>, pass| planner.draft.state.policy.runs(pass);
        self.settle();
        if runs(self, Pass::Place) {
            self.keep_promises();
            self.place();
        }
        if runs(self, Pass::Defragment) {
            self.defragment();
        }
        if runs(self, Pass::Reclaim) {
            self.reclaim();
        }
        if runs(self, Pass::Pools) {
            self.pools();
        }
        if runs(self, Pass::Preempt) {
            self.preempt();
        }
        if runs(self, Pass::Grow) {
            self.grow();
        }
        if runs(self, Pass::Pools) {
            self.give_back();
        }
        self.when_next();
    }

    /// When something will be due although nothing happens.
    fn when_next(&mut self) {
        let mut times: Vec<Time> = Vec::new();
        let state = self.state();
        let now = state.now;
        // Those that are over already are being stopped.
        let later = (now + Span::ms(1), JobId::new(0), JobIx(0));
        times.extend(state.ends.range(later..).next().map(|(ends, _, _)| *ends));
        times.extend(state.begins.first().map(|(begins, _, _)| *begins));
        for id in &state.stale {
            if let Some(ix) = state.jobs.find(*id) {
                times
                    .extend(state.jobs.get(ix).stale_since.map(|since| since + state.policy.stale));
            }
        }
        for ix in &state.closing {
            if let berth_model::NodeState::Leaving { at } = state.cluster.node(*ix).spec.state {
                times.push(at - state.policy.grace);
                times.push(at);
            }
        }
        for reservation in state.reservations.values() {
            times.push(reservation.from - state.policy.grace);
            times.push(reservation.to);
        }
        times.extend(state.promises_by_time.range(later..).next().map(|(at, _, _)| *at));
        times.extend(crate::fair_share::credit_ends(state));
        for (ix, queue) in state.queues.live() {
            if let Some(meter) = &queue.budget {
                times.extend(meter.next_period(now));
                // What is running has to be billed when a budget, or a part of it, is used up.
                times.extend(state.mark_at(ix).map(|at| at.max(now + Span::ms(1))));
            }
        }
        for at in times {
            self.wake(at);
        }
    }
}
