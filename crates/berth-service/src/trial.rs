//! A copy of the scheduling state in which something is tried out.

use crate::service::Service;
use berth_core::State;
use berth_engine::clock;
use berth_model::{Decision, Event, LeaseOutcome, Stamped, Time};

pub struct Trial {
    pub state: State,
    now: Time,
}

impl Trial {
    pub fn of(service: &Service) -> Trial {
        let state = service.engine.core().state.clone();
        let now = clock::now().max(state.now());
        Trial { state, now }
    }

    /// Whether the state took it.
    pub fn happens(&mut self, event: Event) -> bool {
        let stamped = Stamped { seq: self.state.seq() + 1, at: self.now, event };
        self.state.apply(&stamped).is_ok()
    }

    /// Plans, and lets all that is stopped be over at once. Tells what was decided.
    pub fn settle(&mut self) -> Vec<Decision> {
        let mut all = Vec::new();
        for transaction in self.state.plan().transactions {
            let decisions = transaction.decisions;
            let event = Event::Decided { job: transaction.job, decisions: decisions.clone() };
            if self.happens(event) {
                all.extend(decisions);
            }
        }
        for decision in &all {
            if let Decision::Stop { lease, .. } = decision {
                self.happens(Event::LeaseEnded { lease: *lease, outcome: LeaseOutcome::Stopped });
            }
        }
        all
    }
}
