//! Promises that are due: the job starts on its places, or is promised others.

use crate::ix::{JobIx, ShapeIx};
use crate::plan::planner::Planner;
use crate::queues::TimedJob;
use crate::transaction::Transaction;
use std::collections::BTreeSet;
use std::ops::Bound;

impl Planner<'_> {
    /// Jobs with a promise start as soon as their places are free, or any others are.
    pub(super) fn keep_promises(&mut self) {
        self.renew_expired();
        let state = self.state();
        let now = state.now;
        // Those whose time has come, those whose places are free, and of each shape the first: the
        // next one is looked at where that one fits.
        let mut promised: BTreeSet<TimedJob> =
            state.promises_by_time.iter().take_while(|(at, _, _)| *at <= now).copied().collect();
        promised.extend(state.promises_by_shape.values().filter_map(|of_shape| of_shape.first()));
        promised.extend(state.cluster.ready.iter().map(|ix| {
            let job = state.jobs.get(*ix);
            (state.promises[ix].at, job.id, *ix)
        }));
        // Shapes found not to fit elsewhere: the next of them would not either.
        let mut nowhere: BTreeSet<ShapeIx> = BTreeSet::new();
        while let Some(place) = promised.pop_first() {
            let (at, _, ix) = place;
            let shape = self.state().jobs.get(ix).shape;
            if !nowhere.contains(&shape) {
                let of_shape = self.state().promises_by_shape.get(&shape).into_iter();
                let after = (Bound::Excluded(place), Bound::Unbounded);
                promised.extend(of_shape.flat_map(|places| places.range(after)).next());
            }
            // What is promised to one whose turn it is not stays so.
            if !self.state().is_waiting(ix) || self.state().jobs.get(ix).waits_turn {
                continue;
            }
            let firm = self.state().promises[&ix].firm;
            if !crate::plan::bounds::bound(self.state(), ix, firm).is_empty() {
                // Places that a bound keeps it from taking are kept for nothing.
                if at <= self.now() {
                    self.draft.unpromise(ix);
                    let id = self.state().jobs.get(ix).id;
                    let decisions = vec![berth_model::Decision::Unreserve { job: id }];
                    self.transactions.push(Transaction { job: Some(id), decisions });
                }
                continue;
            }
            let mark = self.draft.mark();
            if let Some(spots) = self.take_promised(ix)
                && self.stays_within(ix)
            {
                self.start(ix, &spots);
                continue;
            }
            self.draft.roll_back(mark);
            if !nowhere.contains(&shape) {
                let requester = self.requester(ix);
                match super::fit::fit(&mut self.draft, &self.mix, ix, requester) {
                    Ok(spots) if self.stays_within(ix) => {
                        self.start(ix, &spots);
                        continue;
                    }
                    _ => {
                        self.draft.roll_back(mark);
                        nowhere.insert(shape);
                    }
                }
            }
            if at <= self.now() && !self.still_coming(ix) {
                self.renew(ix);
            }
        }
    }

    /// Renews promises whose whole time passed without a plan. This comes first, so that no job is
    /// started on places that are then promised to another.
    fn renew_expired(&mut self) {
        let state = self.state();
        let due = state.promises_by_time.iter().take_while(|(at, _, _)| *at <= state.now);
        let expired = due.filter(|(_, _, ix)| {
            state.promises[ix].to <= state.now && state.is_waiting(*ix) && !self.still_coming(*ix)
        });
        let expired: Vec<JobIx> = expired.map(|(_, _, ix)| *ix).collect();
        for ix in expired {
            self.renew(ix);
        }
    }

    /// Whether what the job has got now, rather than what was promised, keeps to all bounds.
    fn stays_within(&mut self, ix: JobIx) -> bool {
        self.draft.unpromise(ix);
        !self.overdraws(ix)
    }

    /// Takes the promised places if all of them are free.
    fn take_promised(&mut self, ix: JobIx) -> Option<Vec<crate::plan::fit::spot::Spot>> {
        let promise = self.state().promises[&ix].clone();
        let requester = self.requester(ix);
        let mut spots = Vec::new();
        for (node, place) in &promise.places {
            let state = self.state();
            let leaf = state.leaf_of(ix, place.task);
            let target = state.cluster.node(*node);
            // Started early or late, it may run into what others were promised, or an operator has.
            let contested = target
                .conflicts(&requester)
                .flat_map(|kept| &kept.slices)
                .any(|kept| place.slices.iter().any(|slice| slice.gpu == kept.gpu));
            let (cpu, memory) = target.spare(&requester);
            let near = crate::plan::fit::nearby::Nearby::of(state, leaf, ix);
            if contested || !target.admits(&requester) || !near.admits(state, *node) {
                return None;
            }
            let free = place.slices.iter().all(|slice| {
                let at = slice.gpu as usize;
                let gpu = &target.gpus[at];
                gpu.healthy
                    && gpu.fits(&slice.share, &target.spec.gpus[at].model)
                    && target.may_share(&target.gpus, at, &slice.share, &requester)
            });
            let bound = |is: bool, free: i64, asks: i64| is && free < asks;
            if !free
                || !target.takes_one(&leaf.need, &requester)
                || bound(target.spec.cpu.is_some(), cpu, leaf.need.cpu)
                || bound(target.spec.memory.is_some(), memory, leaf.need.memory)
            {
                return None;
            }
            let spot = crate::plan::fit::spot::Spot {
                task: place.task,
                node: *node,
                slices: place.slices.clone(),
            };
            self.open_spot(ix, &spot);
            spots.push(spot);
        }
        (!spots.is_empty()).then_some(spots)
    }

    /// Whether what the promise waits for is being stopped and only late.
    fn still_coming(&self, ix: JobIx) -> bool {
        let state = self.state();
        let promise = &state.promises[&ix];
        let queue = state.jobs.get(ix).queue;
        let requester = self.requester(ix);
        promise.places.iter().any(|(node, place)| {
            let node = state.cluster.node(*node);
            // CPU, memory and whatever else is counted come from any task that is stopped there.
            let is_short = node.is_short_of(&state.leaf_of(ix, place.task).need, &requester);
            node.tasks.iter().any(|task| {
                let other = state.jobs.get(task.job);
                let lease = other.tasks[task.task as usize].lease.as_ref();
                let waits_for = |held: u32, gpu: u32| {
                    let is_stranger = other.queue != queue;
                    held == gpu || is_stranger && node.meets(held as usize, gpu as usize)
                };
                let on_its_place = |held: u32| {
                    let mut slices = place.slices.iter();
                    slices.any(|slice| waits_for(held, slice.gpu))
                };
                lease.is_some_and(|lease| {
                    lease.stopping.is_some()
                        && (is_short || lease.slices.iter().any(|held| on_its_place(held.gpu)))
                })
            })
        })
    }

    /// A promise that came to nothing is made anew.
    fn renew(&mut self, ix: JobIx) {
        self.draft.unpromise(ix);
        self.renewed.insert(ix);
        let id = self.state().jobs.get(ix).id;
        let now = self.now();
        let decision = match self.earliest(ix).filter(|(at, _)| *at > now) {
            Some((at, spots)) => self.reserve(ix, at, &spots, false),
            None => berth_model::Decision::Unreserve { job: id },
        };
        self.transactions.push(Transaction { job: Some(id), decisions: vec![decision] });
    }
}
