//! Making changes and looking what comes of them.

use crate::ix::JobIx;
use crate::jobs::Parked;
use crate::plan::fit::fit;
use crate::plan::planner::Planner;
use crate::state::State;
use crate::transaction::Plan;
use crate::whatif::change::{Change, Starts, What};
use crate::whatif::spec::respec;
use berth_model::{Decision, Event, JobChange, JobId, JobSpec, Stamped};
use std::collections::BTreeSet;

pub(super) struct Tries {
    /// The state to change copies of.
    pub base: State,
    /// A copy on which it is seen quickly whether the job would fit at all.
    pub scratch: State,
    pub job: JobId,
    pub ix: JobIx,
    pub found: Vec<Change>,
    /// Whether a start after others were stopped would be any better than what is there.
    pub later: bool,
}

impl Tries {
    pub(crate) fn spec(&self) -> JobSpec {
        (*self.base.jobs.get(self.ix).spec).clone()
    }

    /// What a plan would do for the job after that change.
    pub fn outcome(&self, change: impl FnOnce(&mut State) -> bool) -> Option<Starts> {
        let mut copy = self.base.clone();
        if !change(&mut copy) {
            return None;
        }
        let found = starts(&copy.plan_without_blockers(), self.job)?;
        (found == Starts::Now || self.later).then_some(found)
    }

    pub(crate) fn keep(&mut self, what: What, starts: Option<Starts>) -> bool {
        let helps = starts.is_some();
        self.found.extend(starts.map(|starts| Change { what, starts }));
        helps
    }

    pub fn parked(&mut self, parked: &Parked) {
        let (job, ix) = (self.job, self.ix);
        let mut spec = self.spec();
        let what = match parked {
            Parked::Held => {
                let change = JobChange::Hold(false);
                let starts =
                    self.outcome(|copy| apply_event(copy, Event::JobChanged { job, change }));
                self.keep(What::Release, starts);
                return;
            }
            Parked::Dependency | Parked::Never(_) => {
                spec.after.clear();
                What::NoDependencies
            }
            Parked::Begin(_) => {
                spec.begin = None;
                What::NoBeginTime
            }
            Parked::Singleton(_) | Parked::Array | Parked::SetAside => return,
        };
        let starts = self.outcome(|copy| {
            // It stands where its spec so far has put it.
            let before = copy.jobs.get(ix).spec.clone();
            copy.stop_waiting_for_events(ix, job, &before);
            respec(copy, ix, spec);
            copy.reconsider(ix);
            true
        });
        self.keep(what, starts);
    }

    pub fn waiting(&mut self) {
        let spec = self.spec();
        if !spec.preemptible {
            self.respecced(What::Preemptible, JobSpec { preemptible: true, ..spec.clone() });
        }
        self.shorter();
        self.places(&spec);
        self.machines(&spec);
        self.fewer(&spec);
        self.part(&spec);
        self.raised();
        self.classes();
        self.queues();
    }

    /// Whether the job would fit now with that spec, whoever else waits.
    pub(super) fn fits(&mut self, spec: &JobSpec) -> bool {
        respec(&mut self.scratch, self.ix, spec.clone());
        self.fits_now()
    }

    pub(super) fn fits_now(&mut self) -> bool {
        let mut planner = Planner::new(&mut self.scratch);
        let requester = planner.requester(self.ix);
        let mark = planner.draft.mark();
        let fits = fit(&mut planner.draft, &planner.mix, self.ix, requester).is_ok();
        planner.draft.roll_back(mark);
        fits
    }

    pub(super) fn respecced(&mut self, what: What, spec: JobSpec) -> bool {
        if !self.fits(&spec) {
            return false;
        }
        let ix = self.ix;
        let starts = self.outcome(|copy| {
            respec(copy, ix, spec);
            true
        });
        self.keep(what, starts)
    }
}

/// What a plan does for a job.
pub(crate) fn starts(plan: &Plan, job: JobId) -> Option<Starts> {
    let begins = |decision: &Decision| match decision {
        Decision::Start { lease, .. } => lease.job == job,
        _ => false,
    };
    if plan.decisions().any(begins) {
        return Some(Starts::Now);
    }
    plan.transactions.iter().find_map(|made| {
        let at = made.decisions.iter().find_map(|decision| match decision {
            Decision::Reserve { job: of, at, firm: true, .. } if *of == job => Some(*at),
            _ => None,
        })?;
        let stopped: BTreeSet<JobId> = made
            .decisions
            .iter()
            .filter_map(|decision| match decision {
                Decision::Stop { lease, .. } => Some(lease.job),
                _ => None,
            })
            .collect();
        let stops = stopped.len() as u32;
        (stops > 0).then_some(Starts::By { at, stops })
    })
}

pub(crate) fn apply_event(state: &mut State, event: Event) -> bool {
    let stamped = Stamped { seq: state.seq + 1, at: state.now, event };
    state.apply(&stamped).is_ok()
}
