//! Injecting faults into the cluster, and repairing them.

use super::case::Fault;
use super::machines::Due;
use super::play::Play;
use super::seam::Seam;
use berth_model::{
    ClaimSpec, Event, GpuSpec, Health, JobChange, Lifecycle, Name, NodeSpec, NodeState, Rejected,
    Span,
};
use std::collections::BTreeMap;

impl<S: Seam> Play<'_, S> {
    pub(super) fn inject(&mut self, fault: Fault) {
        let now = self.now;
        self.machines.faults += 1;
        let tell = |node: &Name, state| Due::Told(Event::NodeChanged { node: node.clone(), state });
        match fault {
            Fault::NodeFails { node, back } => {
                self.machines.down(now, &node);
                self.down.insert(node.clone());
                self.machines.send(now, tell(&node, NodeState::Failed));
                self.machines.at(now + back, Due::Back(node));
            }
            Fault::NodeLeaves { node, notice, back } => self.leave(node, notice, back),
            Fault::SpotWave { zone, notice, back } => {
                let fixed = self.case.nodes.iter().filter(|node| {
                    node.lifecycle == Lifecycle::Spot && node.labels.get("zone") == Some(&zone)
                });
                let mut all: Vec<Name> = fixed.map(|node| node.name.clone()).collect();
                all.extend(self.machines.spot_in(&zone));
                all.into_iter().for_each(|node| self.leave(node, notice, back));
            }
            Fault::NodeDrained { node, back } => {
                self.machines.send(now, tell(&node, NodeState::Draining));
                self.machines.at(now + back, Due::Back(node));
            }
            Fault::GpuFails { node, gpu, back } => {
                let report =
                    |health| Due::Told(Event::GpuChanged { node: node.clone(), gpu, health });
                self.machines.send(now, report(Health::Failed));
                self.machines.at(now + back, report(Health::Ok));
            }
            Fault::Request(event) => _ = self.append(event),
        }
    }

    fn leave(&mut self, node: Name, notice: Span, back: Span) {
        let at = self.now + notice;
        let state = NodeState::Leaving { at };
        let report = Due::Told(Event::NodeChanged { node: node.clone(), state });
        self.machines.send(self.now, report);
        self.machines.at(at, Due::Forget { node, back });
    }

    /// The machine is gone; the scheduler lets go of it once it has heard of every task there.
    pub(super) fn forget(&mut self, node: Name, back: Span) {
        let fixed = self.case.nodes.iter().any(|known| known.name == node);
        if self.calm && fixed {
            return;
        }
        self.machines.down(self.now, &node);
        self.machines.hand_over(&node);
        self.down.insert(node.clone());
        let again = match self.append(Event::NodeRemoved { node: node.clone() }) {
            Ok(()) if fixed => return self.machines.at(self.now + back, Due::Joins(node)),
            // Whoever sells machines knows that it is gone, though the notice may be lost.
            Err(Rejected::NodeInUse { .. }) => {
                let state = NodeState::Failed;
                let _ = self.append(Event::NodeChanged { node: node.clone(), state });
                true
            }
            // It was taken back before the scheduler heard that it had come.
            Err(Rejected::UnknownNode { .. }) => {
                self.state.snapshot().claims.iter().any(|claim| claim.name == node)
            }
            Ok(()) | Err(_) => false,
        };
        if again {
            self.machines.at(self.now + Span::mins(1), Due::Forget { node, back });
        }
    }

    /// Orders a machine from its seller.
    pub(super) fn buy(&mut self, claim: &ClaimSpec) {
        let pool = self.case.pools.iter().find(|pool| pool.name == claim.pool);
        let offering = pool.and_then(|pool| {
            pool.offerings.iter().find(|o| {
                o.instance == claim.instance
                    && o.zone == claim.zone
                    && o.lifecycle == claim.lifecycle
            })
        });
        // A claim of something nobody sells is for the books to find.
        let Some(offering) = offering else { return };
        let gpu = GpuSpec {
            model: offering.model.clone(),
            memory: offering.memory_per_gpu,
            health: Health::Ok,
            mig: None,
            division: None,
        };
        let node = NodeSpec {
            name: claim.name.clone(),
            gpus: vec![gpu; offering.gpus as usize],
            cpu: None,
            memory: None,
            labels: BTreeMap::from([(Name::new("zone"), offering.zone.clone())]),
            taints: Vec::new(),
            nvlink: Vec::new(),
            state: NodeState::Ready,
            price: Some(offering.price),
            pool: Some(claim.pool.clone()),
            lifecycle: offering.lifecycle,
            tasks: None,
            counted: BTreeMap::new(),
        };
        let boot = offering.boot;
        self.machines.send(self.now, Due::Buy { node: Box::new(node), boot });
    }

    /// A machine is given back: it is gone at once, and the scheduler hears of it.
    pub(super) fn give_back(&mut self, node: Name) {
        if self.machines.hand_over(&node) {
            self.machines.down(self.now, &node);
            self.down.insert(node.clone());
            self.machines.send(self.now, Due::Told(Event::NodeRemoved { node }));
        }
    }

    pub(super) fn join(&mut self, name: &Name) {
        self.down.remove(name);
        let there = self.state.snapshot().nodes.iter().any(|node| node.spec.name == *name);
        let spec = self.case.nodes.iter().find(|node| node.name == *name);
        if let Some(spec) = spec.filter(|_| !there) {
            let _ = self.append(Event::NodeAdded { node: Box::new(spec.clone()) });
        }
    }

    /// Everything is repaired, and nothing goes wrong any more.
    pub(super) fn repair_all(&mut self) {
        self.calm = true;
        self.machines.quiet();
        for spec in &self.case.nodes {
            self.join(&spec.name);
            let node = spec.name.clone();
            let _ = self.append(Event::NodeChanged { node, state: NodeState::Ready });
            for gpu in 0..spec.gpus.len() as u32 {
                let node = spec.name.clone();
                let _ = self.append(Event::GpuChanged { node, gpu, health: Health::Ok });
            }
        }
        for reservation in self.state.snapshot().reservations {
            let _ = self.append(Event::ReservationRemoved { name: reservation.name });
        }
        for job in self.state.snapshot().jobs.iter().filter(|job| job.spec.hold) {
            let change = JobChange::Hold(false);
            let _ = self.append(Event::JobChanged { job: job.id(), change });
        }
    }
}
