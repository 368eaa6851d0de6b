//! Queues that are set or removed.

use crate::apply::applied::Applied;
use crate::state::State;
use berth_ledger::BudgetMeter;
use berth_model::Name;

impl State {
    pub(super) fn queue_set(&mut self, spec: &berth_model::QueueSpec, applied: &mut Applied) {
        let parent = spec.parent.as_ref().and_then(|name| self.queues.find(name));
        let ix = match self.queues.find(&spec.name) {
            None => self.queues.add(spec.clone(), parent),
            Some(ix) => {
                let old = self.queues.get(ix).parent;
                if old != parent {
                    let usage = self.queues.get(ix).usage.clone();
                    let siblings = match old {
                        Some(old) => &mut self.queues.get_mut(old).children,
                        None => &mut self.queues.roots,
                    };
                    siblings.retain(|sibling| *sibling != ix);
                    let mut at = old;
                    while let Some(up) = at {
                        self.queues.get_mut(up).usage.add(&usage, -1);
                        at = self.queues.get(up).parent;
                    }
                    match parent {
                        Some(parent) => self.queues.get_mut(parent).children.push(ix),
                        None => self.queues.roots.push(ix),
                    }
                    let mut at = parent;
                    while let Some(up) = at {
                        self.queues.get_mut(up).usage.add(&usage, 1);
                        at = self.queues.get(up).parent;
                    }
                }
                let queue = self.queues.get_mut(ix);
                queue.parent = parent;
                queue.spec = spec.clone();
                ix
            }
        };
        let now = self.now;
        let queue = self.queues.get_mut(ix);
        queue.budget = match (&spec.budget, queue.budget.take()) {
            (None, _) => None,
            (Some(budget), Some(mut meter)) => {
                applied.alerts.extend(meter.set(now, budget.clone(), &queue.spending));
                Some(meter)
            }
            (Some(budget), None) => {
                let (meter, alerts) =
                    BudgetMeter::begin(spec.name.clone(), budget.clone(), now, &queue.spending);
                applied.alerts.extend(alerts);
                Some(meter)
            }
        };
        self.queues.resolved = None;
    }

    pub(super) fn queue_removed(&mut self, name: &Name) {
        let ix = self.queues.find(name).expect("validated");
        let parent = self.queues.get(ix).parent;
        match parent {
            Some(parent) => self.queues.get_mut(parent).children.retain(|child| *child != ix),
            None => self.queues.roots.retain(|root| *root != ix),
        }
        self.queues.get_mut(ix).removed = true;
        self.queues.by_name.remove(name);
        self.queues.resolved = None;
    }
}
