//! What befalls the cluster, and how it is repaired.

use super::machines::Due;
use super::play::{Play, Seam};
use super::tale::Blow;
use berth_model::{
    ClaimSpec, Event, GpuSpec, Health, JobChange, Lifecycle, Name, NodeSpec, NodeState, Rejected,
    Span,
};
use std::collections::BTreeMap;

impl<S: Seam> Play<'_, S> {
    pub(super) fn strike(&mut self, blow: Blow) {
        let now = self.now;
        self.machines.faults += 1;
        let tell = |node: &Name, state| Due::Told(Event::NodeChanged { node: node.clone(), state });
        match blow {
            Blow::Dies { node, back } => {
                self.machines.dark(now, &node);
                self.dark.insert(node.clone());
                self.machines.send(now, tell(&node, NodeState::Failed));
                self.machines.at(now + back, Due::Back(node));
            }
            Blow::Leaves { node, notice, back } => self.leave(node, notice, back),
            Blow::Wave { zone, notice, back } => {
                let fixed = self.tale.nodes.iter().filter(|node| {
                    node.lifecycle == Lifecycle::Spot && node.labels.get("zone") == Some(&zone)
                });
                let mut all: Vec<Name> = fixed.map(|node| node.name.clone()).collect();
                all.extend(self.machines.spot_in(&zone));
                all.into_iter().for_each(|node| self.leave(node, notice, back));
            }
            Blow::Drained { node, back } => {
                self.machines.send(now, tell(&node, NodeState::Draining));
                self.machines.at(now + back, Due::Back(node));
            }
            Blow::Breaks { node, gpu, back } => {
                let told =
                    |health| Due::Told(Event::GpuChanged { node: node.clone(), gpu, health });
                self.machines.send(now, told(Health::Failed));
                self.machines.at(now + back, told(Health::Ok));
            }
            Blow::Said(event) => _ = self.append(event),
        }
    }

    fn leave(&mut self, node: Name, notice: Span, back: Span) {
        let at = self.now + notice;
        let state = NodeState::Leaving { at };
        let told = Due::Told(Event::NodeChanged { node: node.clone(), state });
        self.machines.send(self.now, told);
        self.machines.at(at, Due::Forget { node, back });
    }

    /// The machine is gone; the scheduler lets go of it once it has heard of every task there.
    pub(super) fn forget(&mut self, node: Name, back: Span) {
        let fixed = self.tale.nodes.iter().any(|known| known.name == node);
        if self.calm && fixed {
            return;
        }
        self.machines.dark(self.now, &node);
        self.machines.hand_over(&node);
        self.dark.insert(node.clone());
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
        let pool = self.tale.pools.iter().find(|pool| pool.name == claim.pool);
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
            self.machines.dark(self.now, &node);
            self.dark.insert(node.clone());
            self.machines.send(self.now, Due::Told(Event::NodeRemoved { node }));
        }
    }

    pub(super) fn join(&mut self, name: &Name) {
        self.dark.remove(name);
        let there = self.state.snapshot().nodes.iter().any(|node| node.spec.name == *name);
        let spec = self.tale.nodes.iter().find(|node| node.name == *name);
        if let Some(spec) = spec.filter(|_| !there) {
            let _ = self.append(Event::NodeAdded { node: Box::new(spec.clone()) });
        }
    }

    /// Everything is repaired, and nothing goes wrong any more.
    pub(super) fn calm_down(&mut self) {
        self.calm = true;
        self.machines.quiet();
        for spec in &self.tale.nodes {
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
