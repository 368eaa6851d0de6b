//! Reservations: places that suit the job, are free at their time, and are promised to no other
//! job; and none that is given up for a later one.

use crate::amounts::Amounts;
use crate::check::checker::{Checker, TransactionEffects};
use crate::check::finding::FindingCode;
use crate::check::gang::{Spot, below_minimum, topology_faults};
use crate::check::overlay::{PromisedPlaces, Stand};
use crate::check::place::{self, Fault};
use crate::check::window::Window;
use crate::ix::{JobIx, NodeIx};
use crate::transaction::Transaction;
use berth_model::{Health, JobId, NodeState, Place, Time};
use std::collections::{BTreeMap, BTreeSet};

impl Checker<'_> {
    pub(super) fn reserve(
        &mut self,
        work: &mut TransactionEffects,
        id: JobId,
        at: Time,
        places: &[Place],
        firm: bool,
    ) -> Vec<Fault> {
        let state = self.view.state;
        let Some(ix) = state.jobs.find(id) else {
            return vec![(FindingCode::Unknown, format!("there is no job {id}"))];
        };
        let mut found = self.may_reserve(ix);
        if at < state.now || places.is_empty() {
            found.push((FindingCode::Promise, format!("job {id} is promised nothing at {at}")));
        }
        work.late.extend(self.moved_later(ix, Some(at)).map(|fault| (ix, fault)));
        let known = self.places(ix, places, &mut found);
        self.view.unpromise(ix);
        let until = at + self.view.stay(ix);
        found.extend(self.free_then(ix, at, until, &known));
        let mut amounts = Amounts::default();
        for (node, place) in &known {
            amounts.add(&place::amounts(state, ix, place.task, *node, &place.slices), 1);
        }
        self.view.promise(ix, PromisedPlaces { at, to: until, firm, places: known, amounts });
        work.reserved.insert(ix);
        if firm {
            work.firm.insert(ix);
        }
        found
    }

    /// Only a job that waits, or is on its way out, has use for a promise.
    fn may_reserve(&self, ix: JobIx) -> Vec<Fault> {
        let now = self.view.job(ix);
        let moving = || self.view.holds(ix).iter().any(|(_, hold)| hold.stopping.is_some());
        let may = matches!(now.stand, Stand::Waiting | Stand::Ending) || moving();
        if may && !now.aside {
            return Vec::new();
        }
        let id = self.view.base(ix).id;
        vec![(FindingCode::NotInLine, format!("job {id} neither waits nor is being moved"))]
    }

    /// A promise that stands is not exchanged for a later one, or for none.
    fn moved_later(&self, ix: JobIx, at: Option<Time>) -> Option<Fault> {
        let state = self.view.state;
        let before = self.view.promised_places(ix)?;
        let stands = before.at > state.now
            && before.places.iter().all(|(node, place)| {
                let spec = &state.cluster.node(*node).spec;
                let healthy = |gpu: u32| {
                    spec.gpus.get(gpu as usize).is_some_and(|gpu| gpu.health == Health::Ok)
                };
                matches!(spec.state, NodeState::Ready | NodeState::Leaving { .. })
                    && place.slices.iter().all(|slice| healthy(slice.gpu))
            });
        let later = at.is_none_or(|at| at > before.at);
        let id = self.view.base(ix).id;
        (stands && later).then(|| {
            let text = format!("job {id} was promised places at {}", before.at);
            (FindingCode::PromiseMoved, text)
        })
    }

    /// The places that are there, each checked against what its task asks for.
    fn places(&self, ix: JobIx, places: &[Place], found: &mut Vec<Fault>) -> Vec<(NodeIx, Place)> {
        let state = self.view.state;
        let job = self.view.base(ix);
        let mut known: Vec<(NodeIx, Place)> = Vec::new();
        let mut tasks: BTreeSet<u32> = BTreeSet::new();
        for place in places {
            let group = place::group_of(&job.spec, place.task);
            let (Some(node), Some((group, _))) = (state.cluster.find(&place.node), group) else {
                let text = format!("job {} has no task {} for {}", job.id, place.task, place.node);
                found.push((FindingCode::Unknown, text));
                continue;
            };
            if !tasks.insert(place.task) {
                let text = format!("task {} of job {} is promised twice", place.task, job.id);
                found.push((FindingCode::Promise, text));
            }
            let spec = &state.cluster.node(node).spec;
            found.extend(place::node_faults(&job.spec, group, spec));
            found.extend(place::slice_faults(group, spec, &place.slices));
            known.push((node, place.clone()));
        }
        if let Some(why) = below_minimum(&job.spec.groups, &tasks) {
            found.push((FindingCode::Minimum, format!("job {}: {why}", job.id)));
        }
        let spots: Vec<Spot> = known
            .iter()
            .map(|(node, place)| Spot {
                task: place.task,
                node: *node,
                slices: place.slices.clone(),
            })
            .collect();
        found.extend(topology_faults(state, &job.spec.groups, &spots));
        known
    }

    /// Whether the places are there from that time on.
    fn free_then(
        &mut self,
        job: JobIx,
        from: Time,
        until: Time,
        known: &[(NodeIx, Place)],
    ) -> Vec<Fault> {
        let mut by_node: BTreeMap<NodeIx, Vec<&Place>> = BTreeMap::new();
        for (node, place) in known {
            by_node.entry(*node).or_default().push(place);
        }
        let mut found = Vec::new();
        for (node, places) in by_node {
            let slices = places.iter().flat_map(|place| &place.slices);
            let mut gpus: Vec<u32> = slices.map(|slice| slice.gpu).collect();
            gpus.sort_unstable();
            gpus.dedup();
            let window = Window { job, node, from, until, places, gpus };
            found.extend(window.node_faults(&self.view));
            found.extend(window.promise_faults(&mut self.view));
        }
        found
    }

    pub(super) fn unreserve(&mut self, work: &mut TransactionEffects, id: JobId) -> Vec<Fault> {
        let Some(ix) = self.view.state.jobs.find(id) else {
            return vec![(FindingCode::Unknown, format!("there is no job {id}"))];
        };
        work.late.extend(self.moved_later(ix, None).map(|fault| (ix, fault)));
        self.view.unpromise(ix);
        Vec::new()
    }

    /// Reservations that moved, except for an owner or a higher class.
    pub(super) fn late(
        &mut self,
        transaction: &Transaction,
        work: &TransactionEffects,
    ) -> Vec<Fault> {
        let claimant = transaction.job.and_then(|id| self.view.state.jobs.find(id));
        let claimant = claimant.filter(|ix| work.firm.contains(ix));
        let mut found = Vec::new();
        for (ix, fault) in &work.late {
            if !claimant.is_some_and(|to| to != *ix && self.gives_way(*ix, to)) {
                found.push(fault.clone());
            }
        }
        found
    }
}
