//! What keeps jobs pending, by shape of request and by queue: part of every plan.

use crate::ix::JobIx;
use crate::plan::planner::Planner;
use crate::reasons::never;
use crate::reasons::rooms::Rooms;
use crate::state::State;
use crate::transaction::{Blocked, Blockers, Plan};
use berth_model::{Milli, Name, Reason};

impl State {
    /// Computes the next decisions. It never fails, and leaves the state as it found it: the
    /// borrow is mutable because things are tried on the state itself and rolled back.
    pub fn plan(&mut self) -> Plan {
        self.plan_with(|planner| planner.blocked())
    }
}

impl Planner<'_> {
    /// What blocks the shapes and queues that were tried and did not start. The figures of a
    /// shape, and the bounds of a queue, are worked out once for all its jobs.
    fn blocked(&mut self) -> Blockers {
        let mut blockers = Blockers::default();
        if self.last_tried.is_empty() && self.bound_by_queue.is_empty() {
            return blockers;
        }
        let rooms = Rooms::new(self.state(), false);
        for job in std::mem::take(&mut self.last_tried).into_values() {
            if !self.state().is_waiting(job) {
                continue;
            }
            let reasons = match self.state().shape_of(job).possible {
                true => self.misfit(job, &rooms),
                false => never::reasons(self.state(), job),
            };
            blockers.shapes.push(Blocked { example: self.state().jobs.get(job).id, reasons });
        }
        blockers.shapes.sort_by_key(|blocked| blocked.example);
        let mut bound_by_queue = std::mem::take(&mut self.bound_by_queue);
        let state = self.state();
        for leaf in state.queues.leaves() {
            let queue = state.queues.get(leaf);
            let Some((_, _, oldest)) = queue.pending.oldest.first().copied() else { continue };
            let (job, mut reasons) = bound_by_queue.remove(&leaf).unwrap_or((oldest, Vec::new()));
            reasons.extend(self.over_share(job));
            if !reasons.is_empty() {
                let example = state.jobs.get(job).id;
                blockers.queues.push((queue.spec.name.clone(), Blocked { example, reasons }));
            }
        }
        blockers.queues.sort_by(|a, b| a.0.cmp(&b.0));
        blockers
    }

    /// The queue above whose fair share the job would be, where others could be taken from.
    pub(super) fn over_share(&self, job: JobIx) -> Option<Reason> {
        let state = self.state();
        let amounts = &state.shape_of(job).amounts;
        let leaf = state.jobs.get(job).queue;
        let over = state.queues.path(leaf).find(|ix| !self.shares.within(state, *ix, amounts))?;
        let own = state.queues.get(over);
        let others = state.queues.roots.iter().map(|root| state.queues.get(*root).usage.gpu);
        if others.sum::<i64>() == own.usage.gpu {
            return None;
        }
        let name: &Name = &own.spec.name;
        Some(Reason::OverShare {
            queue: name.clone(),
            used: Milli(own.usage.gpu),
            share: Milli(self.shares.fair[over.at()].gpu),
            asks: Milli(amounts.gpu),
        })
    }
}
