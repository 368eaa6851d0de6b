//! The passing of time, which an event that is refused takes back.

use crate::fair_share;
use crate::jobs::{Parked, Standing};
use crate::queues::TimedJob;
use crate::state::State;
use berth_model::{Span, Time};
use std::collections::VecDeque;

impl State {
    /// Lets time pass: use and credits accrue, begin times come, budgets start anew. Returns the
    /// jobs whose begin time has come.
    pub(crate) fn advance(&mut self, at: Time) -> Vec<TimedJob> {
        let mut begun = Vec::new();
        if at > self.now {
            fair_share::accrue(self, at);
            self.now = at;
        }
        while let Some((begin, _, ix)) = self.begins.first().copied() {
            if begin > at {
                break;
            }
            begun.extend(self.begins.pop_first());
            self.reconsider(ix);
        }
        let hour = at - Span::hours(1);
        while self.moves.front().is_some_and(|moved| *moved <= hour) {
            self.moves.pop_front();
        }
        for at_queue in 0..self.queues.all.len() {
            let queue = &mut self.queues.all[at_queue];
            if let Some(meter) = &mut queue.budget {
                meter.roll(at);
            }
        }
        begun
    }

    /// Takes back that time has passed.
    pub(super) fn rewind(&mut self, before: BeforeAdvance, begun: Vec<TimedJob>) {
        for (begin, id, ix) in begun {
            if self.is_waiting(ix) {
                self.dequeue(ix);
                self.free_array_place(ix);
            }
            self.jobs.get_mut(ix).standing = Standing::Parked(Parked::Begin(begin));
            self.begins.insert((begin, id, ix));
        }
        for (queue, (credits, past_use, budget)) in self.queues.all.iter_mut().zip(before.queues) {
            queue.credits = credits;
            queue.past_use = past_use;
            queue.budget = budget;
        }
        self.moves = before.moves;
        self.now = before.now;
    }
}

/// What the passing of time changes.
pub(crate) struct BeforeAdvance {
    now: Time,
    queues: Vec<(i64, i64, Option<berth_ledger::BudgetMeter>)>,
    moves: VecDeque<Time>,
}

impl BeforeAdvance {
    pub(super) fn of(state: &State) -> BeforeAdvance {
        let all = state.queues.all.iter();
        BeforeAdvance {
            now: state.now,
            queues: all.map(|q| (q.credits, q.past_use, q.budget.clone())).collect(),
            moves: state.moves.clone(),
        }
    }
}
