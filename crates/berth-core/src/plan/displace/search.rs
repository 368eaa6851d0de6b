//! Finding victims for one job by one right, and taking their places.

use crate::cluster::node::Requester;
use crate::ix::{JobIx, QueueIx};
use crate::plan::bounds::bound;
use crate::plan::displace::right::Right;
use crate::plan::fit::spot::Spot;
use crate::plan::planner::Planner;
use crate::plan::units::Unit;

impl Planner<'_> {
    /// Frees GPUs for the job by this right, if that makes it start.
    pub(crate) fn displace(&mut self, job: JobIx, right: Right) -> bool {
        let state = self.state();
        if !state.shape_of(job).possible {
            return false;
        }
        let between = matches!(right, Right::Share | Right::Quota);
        // One that goes after all others takes nothing from them.
        let own = state.jobs.get(job).queue;
        if (between || right == Right::Both)
            && state.queues.path(own).any(|ix| state.queues.get(ix).is_deprioritized())
        {
            return false;
        }
        // What other queues give up does not help against the bounds of its own.
        if between && !bound(state, job, false).is_empty() {
            return false;
        }
        let queues = self.sources(job, right);
        let mark = self.draft.mark();
        let requester = self.claimant(job);
        self.note_gpu_debts(job, &requester);
        if self.releasing_helps(job) {
            let spots = self.fits_releasing(job, requester);
            self.draft.roll_back(mark);
            if let Some(spots) = spots {
                return self.take_places(job, right, Vec::new(), &spots, &[]);
            }
            if bound(self.state(), job, false).is_empty() {
                // The others of its shape need not try: it is there for them when it is free.
                let shape = self.state().jobs.get(job).shape;
                self.helped_by_releasing.insert(shape, false);
            }
        }
        self.draft.roll_back(mark);
        // Reservations that have to give way are no reason to stop anybody else.
        let mut yielding = if between && queues.is_empty() {
            Vec::new()
        } else {
            self.yielding(job, right, false)
        };
        if queues.is_empty() && yielding.is_empty() {
            return false;
        }
        let mut found = self.without_promises(job, right, &queues, requester, &mut yielding);
        self.draft.roll_back(mark);
        if found.is_none() && !queues.is_empty() {
            // What an owner takes from others may have been reserved by anybody.
            let mut all = self.yielding(job, right, true);
            if all.len() > yielding.len() {
                found = self.without_promises(job, right, &queues, requester, &mut all);
                self.draft.roll_back(mark);
                yielding = all;
            }
        }
        let Some((mut units, mut spots)) = found else {
            self.wake_for_protected(job, &queues);
            return false;
        };
        // Rather than stop anybody, it takes what is kept for free GPUs.
        if !units.is_empty() && self.forget_gpu_reserve(job) {
            if self.start_without_victims(job) {
                return true;
            }
            self.draft.roll_back(mark);
            let fewer = self.without_promises(job, right, &queues, requester, &mut yielding);
            self.draft.roll_back(mark);
            (units, spots) = fewer.unwrap_or((units, spots));
        }
        for other in &yielding {
            self.draft.unpromise(*other);
        }
        self.free_releasing();
        let (units, spots) = self.prune(job, requester, units, spots);
        self.draft.roll_back(mark);
        if !self.stays_entitled(job, right, &units, &spots) {
            return false;
        }
        self.take_places(job, right, units, &spots, &yielding)
    }

    /// Starts the job on what is free, if it fits there.
    fn start_without_victims(&mut self, job: JobIx) -> bool {
        let requester = Requester { claims: true, ..self.requester(job) };
        let Some(spots) = self.fits_claim(job, requester) else { return false };
        self.start(job, &spots);
        self.placed.push(job);
        true
    }

    /// Whether the job fits once these reservations have given way: as it is, or with victims.
    /// A share or a quota reclaims what runs, never what is only reserved: where the reserved free
    /// GPUs alone would suffice, no reservation gives way to it.
    fn without_promises(
        &mut self,
        job: JobIx,
        right: Right,
        queues: &[QueueIx],
        requester: Requester,
        yielding: &mut Vec<JobIx>,
    ) -> Option<(Vec<Unit>, Vec<Spot>)> {
        let mark = self.draft.mark();
        for other in yielding.iter() {
            self.draft.unpromise(*other);
        }
        self.free_releasing();
        if !yielding.is_empty()
            && let Some(spots) = self.fits_claim(job, requester)
        {
            if matches!(right, Right::Class | Right::Across) {
                return Some((Vec::new(), spots));
            }
            yielding.clear();
            self.draft.roll_back(mark);
            self.free_releasing();
        }
        if queues.is_empty() { None } else { self.find_victims(job, right, queues, requester) }
    }
}
