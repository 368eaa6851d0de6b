//! Why a job waits: everything that stands in its way, with figures, worked out when asked.
//!
//! What the plan remembers is by shape and by queue ([`crate::Blockers`]); what is asked about one
//! job is worked out for that job, by trying it on the state and taking everything back.

mod blocked;
mod group;
mod misfit;
mod never;
mod parked;
mod pools;
mod position;
mod preemption;
mod rooms;
mod scattered;

use crate::ix::JobIx;
use crate::jobs::Standing;
use crate::plan::bounds;
use crate::plan::bounds::bound;
use crate::plan::fit::fit;
use crate::plan::planner::Planner;
use crate::reasons::rooms::Rooms;
use crate::state::State;
use berth_model::{JobId, Milli, QueueOrder, Reason};
use std::collections::BTreeSet;

impl State {
    /// Everything that keeps a job from starting now, the most fundamental first. A job that runs,
    /// or does not exist, is kept from nothing. The state is left as it was found.
    pub fn reasons(&mut self, job: JobId) -> Vec<Reason> {
        self.reasons_of(&[job]).pop().unwrap_or_default()
    }

    /// The same for several jobs, in their order. What a plan prepares is prepared once for all.
    pub fn reasons_of(&mut self, jobs: &[JobId]) -> Vec<Vec<Reason>> {
        self.refresh();
        let mut planner = Planner::new(self);
        jobs.iter().map(|job| planner.reasons(*job)).collect()
    }
}

impl Planner<'_> {
    fn reasons(&mut self, job: JobId) -> Vec<Reason> {
        let state = self.state();
        let Some(ix) = state.jobs.find(job) else { return Vec::new() };
        let mut found = parked::reasons(state, ix);
        match state.jobs.get(ix).standing {
            Standing::Running | Standing::Ending => {}
            Standing::Parked(_) => found.extend(never::reasons(state, ix)),
            Standing::Waiting => {
                let mark = self.draft.mark();
                found.extend(self.pending_reasons(ix));
                self.draft.roll_back(mark);
                if found.is_empty() {
                    found.push(Reason::Next);
                }
            }
        }
        let mut seen = Vec::with_capacity(found.len());
        for reason in found {
            if !seen.contains(&reason) {
                seen.push(reason);
            }
        }
        seen
    }

    /// What keeps a waiting job from starting, as things are on the draft.
    fn pending_reasons(&mut self, job: JobIx) -> Vec<Reason> {
        let state = self.state();
        let firm = state.promises.get(&job).is_some_and(|promised| promised.firm);
        let possible = state.shape_of(job).possible;
        let mut found = never::reasons(state, job);
        found.extend(bound(state, job, firm));
        found.extend(self.behind_head(job));
        let mut room = false;
        if possible {
            let requester = self.requester(job);
            let mark = self.draft.mark();
            match fit(&mut self.draft, &self.mix, job, requester) {
                Ok(_) => {
                    room = true;
                    found.extend(bounds::overdrawn(self.state(), job));
                }
                Err(_) => {
                    self.draft.roll_back(mark);
                    let rooms = Rooms::new(self.state(), true);
                    found.extend(self.misfit(job, &rooms));
                }
            }
            self.draft.roll_back(mark);
        }
        found.extend(self.under_way(job));
        let exceeds = &self.state().jobs.get(job).exceeds;
        if !exceeds.is_empty() {
            found.push(Reason::BudgetsExceeded { budgets: exceeds.iter().cloned().collect() });
        }
        if !room {
            found.extend(pools::reasons(self.state(), job));
            let under_way = found.iter().any(|reason| matches!(reason, Reason::Stopping { .. }));
            if possible && !under_way {
                found.extend(self.preemption_reasons(job));
            }
        }
        found
    }

    /// In a queue that keeps strict order only the head is tried.
    fn behind_head(&self, job: JobIx) -> Option<Reason> {
        let state = self.state();
        let queue = state.jobs.get(job).queue;
        let order = state.queues.get(queue).spec.order.unwrap_or(state.policy.order);
        if order != QueueOrder::Strict {
            return None;
        }
        let head = state.head(queue).filter(|head| *head != job)?;
        Some(Reason::Behind { job: state.jobs.get(head).id })
    }

    /// What is already under way for the job: stops, or a promise.
    fn under_way(&self, job: JobIx) -> Option<Reason> {
        let state = self.state();
        let id = state.jobs.get(job).id;
        let promised = state.promises.get(&job);
        let mut jobs = BTreeSet::new();
        let mut until = state.now;
        for task in &state.stopping {
            let known = state.jobs.get(task.job);
            let Some(lease) = known.tasks[task.task as usize].lease.as_deref() else { continue };
            let Some(stop) = &lease.stopping else { continue };
            let on_its_place = promised.is_some_and(|promised| {
                promised.places.iter().any(|(node, place)| {
                    *node == lease.node
                        && place.slices.iter().any(|s| lease.slices.iter().any(|l| l.gpu == s.gpu))
                })
            });
            if stop.for_job == Some(id) || on_its_place {
                jobs.insert(known.id);
                until = until.max(stop.until);
            }
        }
        if !jobs.is_empty() {
            return Some(Reason::Stopping { jobs: jobs.len() as u32, until });
        }
        let promised = promised?;
        let gpus = promised.places.iter().map(|(node, place)| {
            state.charge_of(state.leaf_of(job, place.task), *node, &place.slices).gpu
        });
        Some(Reason::Reserved {
            at: promised.at.max(state.now),
            gpus: Milli(gpus.sum()),
            tasks: promised.places.len() as u32,
        })
    }
}
