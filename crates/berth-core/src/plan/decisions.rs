//! Decisions of a plan: starts, stops and promises, made on the draft as well.

use crate::ix::{JobIx, TaskIx};
use crate::jobs::{Promised, Standing, Stop};
use crate::plan::fit::spot::Spot;
use crate::plan::planner::Planner;
use crate::transaction::Transaction;
use berth_model::{Cause, Decision, JobId, Place, Span, Time};

impl Planner<'_> {
    /// The starts of a job on places that were taken on the draft.
    pub(super) fn starts(&self, job: JobIx, spots: &[Spot]) -> Vec<Decision> {
        let state = self.state();
        let known = state.jobs.get(job);
        let resume = known.saved > Span::ZERO;
        spots
            .iter()
            .map(|spot| {
                let cpu = state.leaf_of(job, spot.task).need.cpu;
                Decision::Start {
                    lease: known.lease_id(spot.task, known.tasks[spot.task as usize].attempts),
                    node: state.cluster.node(spot.node).spec.name.clone(),
                    slices: spot.slices.clone(),
                    price: state.price_of(spot.node, &spot.slices, cpu),
                    resume,
                }
            })
            .collect()
    }

    /// Makes a start of places that were taken on the draft.
    pub fn start(&mut self, job: JobIx, spots: &[Spot]) {
        let decisions = self.starts(job, spots);
        let state = &self.draft.state;
        let id = state.jobs.get(job).id;
        if state.is_waiting(job) {
            let now = state.now;
            self.draft.unpromise(job);
            self.draft.dequeue(job);
            self.draft.start(job, Some(now));
            self.draft.set_standing(job, Standing::Running);
        }
        self.served.insert(job);
        self.transactions.push(Transaction { job: Some(id), decisions });
    }

    /// Stops every live lease of a job (or some), and says so.
    pub fn stop(
        &mut self,
        job: JobIx,
        tasks: &[u32],
        cause: Cause,
        for_job: Option<JobId>,
        grace: Span,
    ) -> Vec<Decision> {
        let until = self.now() + grace;
        let mut decisions = Vec::new();
        for task in tasks {
            let known = self.draft.state.jobs.get(job);
            let Some(lease) = known.tasks[*task as usize].lease.as_ref() else { continue };
            if lease.stopping.is_some() {
                continue;
            }
            let id = known.lease_id(*task, lease.attempt);
            decisions.push(Decision::Stop { lease: id, cause, for_job, grace });
            let stop = Stop { cause, for_job, until };
            self.draft.stop(TaskIx { job, task: *task }, stop);
        }
        if cause != Cause::Shrink && !self.draft.state.has_minimum(job) {
            self.draft.set_standing(job, Standing::Ending);
        }
        decisions
    }

    /// Promises places to a job; they were found on the draft and rolled back.
    pub fn reserve(&mut self, job: JobIx, at: Time, spots: &[Spot], firm: bool) -> Decision {
        let state = &self.draft.state;
        let places: Vec<Place> = spots
            .iter()
            .map(|spot| Place {
                task: spot.task,
                node: state.cluster.node(spot.node).spec.name.clone(),
                slices: spot.slices.clone(),
            })
            .collect();
        let known = state.jobs.get(job);
        let id = known.id;
        let promised = Promised {
            at,
            to: at + state.hold_span(known),
            places: spots.iter().map(|spot| spot.node).zip(places.iter().cloned()).collect(),
            firm,
        };
        if self.draft.unpromise(job) {
            // This promise replaces one made earlier in this plan. Where that one had itself
            // replaced a promise from before the plan, the old places have to be given up all the
            // same: another job may have been promised them by now.
            let renewed = self.renewed.contains(&job);
            let superseded = |transaction: &Transaction| {
                let decisions = transaction.decisions.as_slice();
                matches!(decisions, [Decision::Reserve { job: of, .. }] if *of == id)
            };
            if renewed {
                let mut found = self.transactions.iter_mut();
                if let Some(transaction) = found.find(|transaction| superseded(transaction)) {
                    transaction.decisions = vec![Decision::Unreserve { job: id }];
                }
            } else {
                self.transactions.retain(|transaction| !superseded(transaction));
            }
        }
        self.draft.promise(job, promised);
        self.wake(at);
        Decision::Reserve { job: id, at, places, firm }
    }
}
