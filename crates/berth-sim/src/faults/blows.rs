//! What befalls the cluster, and how it is repaired.

use super::machines::Due;
use super::play::{Play, Seam};
use super::tale::Blow;
use berth_model::{Event, Health, JobChange, Name, NodeState, Rejected, Span};

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
            Blow::Leaves { node, notice, back } => {
                let at = now + notice;
                self.machines.send(now, tell(&node, NodeState::Leaving { at }));
                self.machines.at(at, Due::Forget { node, back });
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

    /// The machine is gone; the scheduler lets go of it once it has heard of every task there.
    pub(super) fn forget(&mut self, node: Name, back: Span) {
        self.machines.dark(self.now, &node);
        self.dark.insert(node.clone());
        match self.append(Event::NodeRemoved { node: node.clone() }) {
            Ok(()) => self.machines.at(self.now + back, Due::Joins(node)),
            Err(Rejected::NodeInUse { .. }) => {
                self.machines.at(self.now + Span::mins(1), Due::Forget { node, back });
            }
            Err(_) => {}
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
        for job in self.state.snapshot().jobs.iter().filter(|job| job.spec.hold) {
            let change = JobChange::Hold(false);
            let _ = self.append(Event::JobChanged { job: job.id(), change });
        }
    }
}
