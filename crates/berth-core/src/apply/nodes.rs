//! Nodes that join, change or leave, topologies, and reservations by operators.

use crate::apply::applied::Applied;
use crate::apply::validate::nodes;
use crate::ix::{JobIx, NodeIx};
use crate::state::State;
use berth_model::{Bytes, LeaseId, Name, NodeSpec, NodeState};
use std::collections::{BTreeMap, BTreeSet};

impl State {
    pub(super) fn node_added(&mut self, spec: &NodeSpec, applied: &mut Applied) {
        // A new description says nothing about the data that a node keeps.
        let known = self.cluster.find(&spec.name);
        let kept = known.map(|ix| self.cluster.node(ix).data.clone()).unwrap_or_default();
        if let Some(ix) = self.cluster.find(&spec.name) {
            if !self.cluster.node(ix).tasks.is_empty() {
                // Validated: it has the GPUs that are held.
                self.drop_promises_on(ix);
                let ix = match nodes::same_machine(self.cluster.node(ix), spec) {
                    true => {
                        self.cluster.describe(ix, spec);
                        ix
                    }
                    false => self.refit(spec, applied),
                };
                self.price_node(ix, applied);
                self.node_state_changed(ix);
                self.wake_set_aside();
                return;
            }
            self.take_node_out(ix, applied);
        }
        let ix = self.cluster.add(spec.clone(), self.now);
        self.cluster.keep_data(ix, kept);
        self.cluster.nodes[ix.at()].gpu_prices = self.gpu_prices(spec);
        let price = berth_ledger::cost::node_price(spec, &self.models.prices);
        let rows = self.ledger.node_joined(self.now, &spec.name, price);
        self.book(rows, applied);
        self.set_blocks(std::slice::from_ref(&spec.name));
        self.node_state_changed(ix);
        self.wake_set_aside();
    }

    /// Gives a node other GPUs than it had, while leases on those that stay go on.
    fn refit(&mut self, spec: &NodeSpec, applied: &mut Applied) -> NodeIx {
        // Up to now it has cost what it did.
        let price = berth_ledger::cost::node_price(spec, &self.models.prices);
        let rows = self.ledger.node_repriced(self.now, &spec.name, price);
        self.book(rows, applied);
        let mut snapshot = self.snapshot();
        let known = snapshot.nodes.iter_mut().find(|node| node.spec.name == spec.name);
        known.expect("it is known by its name").spec = spec.clone();
        *self = State::load(&snapshot).expect("validated: what is held is still there");
        self.cluster.find(&spec.name).expect("it is in the snapshot")
    }

    /// Leases on a node of that name that could not go on if it were described so: their GPUs are
    /// gone, or are other ones.
    pub fn unfit_leases(&self, spec: &NodeSpec) -> Vec<LeaseId> {
        let Some(ix) = self.cluster.find(&spec.name) else { return Vec::new() };
        let node = self.cluster.node(ix);
        let binds = nodes::binds_alike(&node.spec, spec);
        let mut unfit = Vec::new();
        for task in &node.tasks {
            let job = self.jobs.get(task.job);
            let Some(lease) = &job.tasks[task.task as usize].lease else { continue };
            let mut held = lease.slices.iter().map(|slice| slice.gpu as usize);
            if !binds || !held.all(|gpu| nodes::is_alike(node, spec, gpu)) {
                unfit.push(job.lease_id(task.task, lease.attempt));
            }
        }
        unfit.sort();
        unfit
    }

    pub(super) fn node_changed(&mut self, name: &Name, state: NodeState) {
        let ix = self.cluster.find(name).expect("validated");
        self.cluster.set_state(ix, state);
        self.node_state_changed(ix);
        self.wake_set_aside();
    }

    pub(super) fn node_state_changed(&mut self, ix: NodeIx) {
        let state = self.cluster.node(ix).spec.state;
        match state {
            NodeState::Draining | NodeState::Leaving { .. } => self.closing.insert(ix),
            _ => self.closing.remove(&ix),
        };
        if state != NodeState::Ready {
            self.drop_promises_on(ix);
        }
        let jobs: BTreeSet<JobIx> =
            self.cluster.node(ix).tasks.iter().map(|task| task.job).collect();
        for job in jobs {
            self.find_missing_members(job);
        }
    }

    /// Promises that lean on this node are made anew by the next plan.
    pub(crate) fn drop_promises_on(&mut self, ix: NodeIx) {
        let jobs: Vec<JobIx> =
            self.cluster.node(ix).promised_slots.iter().map(|slot| slot.job).collect();
        for job in jobs {
            self.unpromise(job);
        }
    }

    fn take_node_out(&mut self, ix: NodeIx, applied: &mut Applied) {
        self.drop_promises_on(ix);
        let name = self.cluster.node(ix).spec.name.clone();
        let rows = self.ledger.node_left(self.now, &name);
        self.book(rows, applied);
        self.closing.remove(&ix);
        self.cluster.remove(ix);
    }

    pub(super) fn node_removed(&mut self, name: &Name, applied: &mut Applied) {
        let ix = self.cluster.find(name).expect("validated");
        self.take_node_out(ix, applied);
        // A reservation is for nodes that are there.
        for reservation in self.reservations.values_mut() {
            reservation.nodes.retain(|node| node != name);
        }
        self.reservations.retain(|_, reservation| !reservation.nodes.is_empty());
        // Ordinals of removed nodes are not used again, so that order is age; once most are dead
        // the tables are built anew.
        if self.cluster.removed > 1_024
            && self.cluster.removed as usize * 2 > self.cluster.nodes.len()
        {
            self.rebuild();
        }
    }

    pub(crate) fn rebuild(&mut self) {
        let snapshot = self.snapshot();
        *self = State::load(&snapshot).expect("a snapshot of a state loads");
    }

    pub(super) fn set_topologies(
        &mut self,
        topologies: &std::collections::BTreeMap<Name, Vec<Name>>,
    ) {
        let mut snapshot = self.snapshot();
        snapshot.topologies = topologies.clone();
        *self = State::load(&snapshot).expect("validated");
    }

    pub(crate) fn set_blocks(&mut self, nodes: &[Name]) {
        for name in nodes {
            let Some(ix) = self.cluster.find(name) else { continue };
            let blocks = self
                .reservations
                .values()
                .filter(|reservation| reservation.nodes.contains(name))
                .map(|reservation| crate::cluster::node::Block {
                    from: reservation.from,
                    to: reservation.to,
                    owner: self.queues.find(&reservation.owner),
                })
                .collect();
            self.cluster.set_node_blocks(ix, blocks);
            self.drop_promises_on(ix);
        }
    }

    /// No promise and no reason depends on it: only among equal places does the next plan choose
    /// another one.
    pub(super) fn data_kept(&mut self, node: &Name, data: &BTreeMap<Name, Bytes>) {
        let ix = self.cluster.find(node).expect("validated");
        self.cluster.keep_data(ix, data.clone());
    }

    pub(super) fn gpu_changed(&mut self, node: &Name, gpu: u32, health: berth_model::Health) {
        let ix = self.cluster.find(node).expect("validated");
        self.cluster.set_health(ix, gpu as usize, health);
        self.drop_promises_on(ix);
        self.wake_set_aside();
    }
}
