//! A plan in the making: the draft it is tried on, and what its passes know so far.

use crate::cluster::node::Requester;
use crate::cluster::tenants::Apart;
use crate::draft::Draft;
use crate::fair_share::Shares;
use crate::fragmentation::Mix;
use crate::ix::{JobIx, QueueIx, ShapeIx};
use crate::plan::job_set::JobSet;
use crate::plan::units::{NodeVictims, QueueVictims};
use crate::shape::leaf::Leaf;
use crate::state::State;
use crate::transaction::Transaction;
use berth_model::{GpuAsk, Reason, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// A plan in the making.
pub(crate) struct Planner<'a> {
    pub draft: Draft<'a>,
    pub shares: Shares,
    pub mix: Mix,
    pub transactions: Vec<Transaction>,
    pub next: Option<Time>,
    /// The shortest holding for which each shape was found not to fit; it fits for none longer.
    pub failed: BTreeMap<ShapeIx, Span>,
    /// Jobs that wait for a reason of their own; they are not tried again in this plan.
    pub skipped: JobSet,
    /// Shapes that a bound of the queue keeps from starting.
    pub barred: BTreeSet<(QueueIx, ShapeIx)>,
    /// Shapes and classes of queues that may still claim something in this pass.
    pub open_claims: BTreeSet<(QueueIx, ShapeIx, i32)>,
    /// Shapes too large for the share of the queue to hold a reservation.
    pub too_large_to_promise: BTreeSet<(QueueIx, ShapeIx)>,
    /// Whether a shape may fit on GPUs that are being released and promised to no job.
    pub helped_by_releasing: BTreeMap<ShapeIx, bool>,
    /// The job of each shape that was tried last and did not fit.
    pub last_tried: BTreeMap<ShapeIx, JobIx>,
    /// The first job of each queue that a bound kept from starting, with the bounds.
    pub bound_by_queue: BTreeMap<QueueIx, (JobIx, Vec<Reason>)>,
    /// Jobs whose promise from before this plan was renewed.
    pub renewed: BTreeSet<JobIx>,
    /// Jobs that start or are given GPUs in this plan.
    pub served: JobSet,
    /// Jobs that were placed in this plan, in their order.
    pub placed: Vec<JobIx>,
    /// The pass claims GPUs of others: jobs with a promise that is not firm take part too.
    pub claiming: bool,
    /// Victims of each queue, in the order they are taken, made when first needed.
    pub victims: BTreeMap<QueueIx, QueueVictims>,
    /// Victims of each node, made when first needed.
    pub node_victims: NodeVictims,
    /// Claims numbered in this plan so far.
    pub claims: u64,
    /// Victims are sought among those within their disruption budgets.
    pub spares_budgets: bool,
}

impl State {
    /// Whether any waiting job asks for a share of a GPU, whose place depends on the mix.
    fn wants_mix(&self) -> bool {
        self.policy.fragmentation
            && self.shapes.iter().any(|shape| {
                let is_share =
                    |leaf: &Leaf| leaf.whole().is_none() && leaf.need.ask != GpuAsk::None;
                shape.uses > 0 && shape.leaves.iter().any(is_share)
            })
    }
}

impl<'a> Planner<'a> {
    pub fn new(state: &'a mut State) -> Planner<'a> {
        state.refresh();
        state.refresh_estimated_ends();
        state.cluster.take_dirty();
        let shares = Shares::of(state, true);
        let mix = if state.wants_mix() { Mix::of(state) } else { Mix::default() };
        let claims = state.claims_made;
        Planner {
            draft: Draft::new(state),
            shares,
            mix,
            transactions: Vec::new(),
            next: None,
            failed: BTreeMap::new(),
            skipped: JobSet::default(),
            barred: BTreeSet::new(),
            open_claims: BTreeSet::new(),
            too_large_to_promise: BTreeSet::new(),
            helped_by_releasing: BTreeMap::new(),
            last_tried: BTreeMap::new(),
            bound_by_queue: BTreeMap::new(),
            renewed: BTreeSet::new(),
            served: JobSet::default(),
            placed: Vec::new(),
            claiming: false,
            victims: BTreeMap::new(),
            node_victims: NodeVictims::default(),
            claims,
            spares_budgets: false,
        }
    }
}

impl Planner<'_> {
    pub fn state(&self) -> &State {
        self.draft.state
    }

    pub fn now(&self) -> Time {
        self.draft.state.now
    }

    /// Asks to be asked again at that time at the latest.
    pub fn wake(&mut self, at: Time) {
        if at > self.now() {
            self.next = Some(self.next.map_or(at, |next| next.min(at)));
        }
    }

    pub fn requester(&self, job: JobIx) -> Requester {
        let state = self.state();
        let known = state.jobs.get(job);
        // The efficient model may take several times as long as the fastest one.
        let rush = known.deadline.is_some_and(|deadline| {
            let speeds = || state.cluster.models.iter().map(|model| state.models.speed(model));
            let (slow, fast) = (speeds().min().unwrap_or(1), speeds().max().unwrap_or(1));
            let slowed = i128::from(known.estimate_left().0) * i128::from(fast) / i128::from(slow);
            state.now + Span(slowed as i64) > deadline
        });
        Requester {
            job,
            queue: known.queue,
            now: state.now,
            until: state.now + state.hold_span(known),
            rush,
            apart: Apart::of(&state.policy),
            claims: false,
        }
    }

    /// Live tasks of a job.
    pub fn live_tasks(&self, job: JobIx) -> Vec<u32> {
        let known = self.state().jobs.get(job);
        known.leases().filter(|(_, lease)| lease.stopping.is_none()).map(|(task, _)| task).collect()
    }
}
