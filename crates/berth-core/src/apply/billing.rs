//! Prices, and cost rows that budgets see.

use crate::apply::applied::Applied;
use crate::ix::{NodeIx, QueueIx};
use crate::state::State;
use berth_ledger::{Burn, CostRow};
use berth_model::{JobId, LeaseId, Micros, NodeSpec, Time};

impl State {
    pub(super) fn tick(&mut self, applied: &mut Applied) {
        let fragmented = crate::fragmentation::unusable(self);
        let rows = self
            .ledger
            .tick(self.now, &|node| fragmented.get(node).copied().unwrap_or(Micros::ZERO));
        self.book(rows, applied);
    }

    pub(super) fn bill_due(&mut self, applied: &mut Applied) {
        let fragmented = crate::fragmentation::unusable(self);
        let now = self.now;
        let reached = |ix: QueueIx| self.mark_at(ix).is_some_and(|mark| mark <= now);
        let owing = self.queues.live().filter(|(ix, _)| reached(*ix)).map(|(ix, _)| ix);
        let owing: Vec<QueueIx> = owing.collect();
        let queues = owing.into_iter().flat_map(|ix| self.with_below(ix));
        let queues = queues.map(|ix| self.queues.get(ix).spec.name.clone()).collect();
        let rows = self.ledger.bill_due(
            now,
            &|node| fragmented.get(node).copied().unwrap_or(Micros::ZERO),
            &queues,
        );
        self.book(rows, applied);
    }

    /// Hands rows out, and lets queues and their budgets see them.
    pub(crate) fn book(&mut self, rows: Vec<CostRow>, applied: &mut Applied) {
        for row in &rows {
            let Some(queue) = row.queue.as_ref().and_then(|name| self.queues.find(name)) else {
                continue;
            };
            let path: Vec<_> = self.queues.path(queue).collect();
            for ix in path {
                let queue = self.queues.get_mut(ix);
                queue.spending.add(row.from, row.amount);
                if let Some(meter) = &mut queue.budget {
                    applied.alerts.extend(meter.add(row.from, row.amount));
                }
            }
        }
        applied.rows.extend(rows);
    }

    /// When what runs now will have brought a queue to the next threshold of its budget.
    pub(crate) fn mark_at(&self, ix: QueueIx) -> Option<Time> {
        let left = self.queues.get(ix).budget.as_ref()?.next_mark()?;
        self.burn_below(ix).reaches(left)
    }

    /// What the open leases of a queue and of all below it cost.
    fn burn_below(&self, ix: QueueIx) -> Burn {
        let each = self.with_below(ix).into_iter();
        each.fold(Burn::default(), |burn, ix| {
            burn.plus(self.ledger.burn(&self.queues.get(ix).spec.name))
        })
    }

    fn with_below(&self, ix: QueueIx) -> Vec<QueueIx> {
        let mut found = vec![ix];
        let mut at = 0;
        while let Some(ix) = found.get(at) {
            found.extend(&self.queues.get(*ix).children);
            at += 1;
        }
        found
    }

    /// What a queue and all below it have spent that is not on a row yet.
    pub fn unbilled_below(&self, queue: &str, at: Time) -> Micros {
        let found = self.queues.find(queue);
        found.map_or(Micros::ZERO, |ix| self.burn_below(ix).amount(at.max(self.now)))
    }

    /// What a job has cost that is not on a row yet.
    pub fn unbilled_of(&self, job: JobId, at: Time) -> Micros {
        self.ledger.unbilled_of(at, job)
    }

    /// What a lease has cost that is not on a row yet.
    pub fn unbilled(&self, lease: LeaseId, at: Time) -> Micros {
        self.ledger.unbilled(at, lease)
    }

    /// Everything that has been spent and is not on a row yet, as the rows that would say so.
    pub fn unbilled_rows(&self, at: Time) -> Vec<CostRow> {
        self.ledger.due(at.max(self.now))
    }

    /// What the open leases of a job cost.
    pub fn burn_of(&self, job: JobId) -> Burn {
        self.ledger.burn_of(job)
    }

    /// Whether a budget has come to a threshold that rows do not show yet: it is time to bill.
    pub fn owes_bill(&self, at: Time) -> bool {
        self.queues.live().any(|(ix, _)| self.mark_at(ix).is_some_and(|mark| mark <= at))
    }

    pub(crate) fn gpu_prices(&self, spec: &NodeSpec) -> Vec<Micros> {
        berth_ledger::cost::gpu_prices(spec, &self.models.prices)
    }

    pub(super) fn reprice(&mut self, applied: &mut Applied) {
        let all: Vec<NodeIx> = self.cluster.live().map(|(ix, _)| ix).collect();
        for ix in all {
            self.price_node(ix, applied);
        }
    }

    /// A new price counts from now on, for the node and for what runs there.
    pub(super) fn price_node(&mut self, ix: NodeIx, applied: &mut Applied) {
        let spec = self.cluster.node(ix).spec.clone();
        self.cluster.nodes[ix.at()].gpu_prices = self.gpu_prices(&spec);
        let tasks = self.cluster.node(ix).tasks.clone();
        let mut prices = Vec::new();
        for task in tasks {
            let (id, slices, cpu) = {
                let job = self.jobs.get(task.job);
                let lease = job.tasks[task.task as usize].lease.as_ref().expect("it is there");
                let id = job.lease_id(task.task, lease.attempt);
                (id, lease.slices.clone(), lease.charge.cpu)
            };
            let price = self.price_of(ix, &slices, cpu);
            let job = self.jobs.get_mut(task.job);
            job.tasks[task.task as usize].lease.as_mut().expect("it is there").price = price;
            prices.push((id, price));
        }
        let price = berth_ledger::cost::node_price(&spec, &self.models.prices);
        let mut rows = self.ledger.node_repriced(self.now, &spec.name, price);
        for (id, price) in prices {
            rows.extend(self.ledger.lease_repriced(self.now, id, price));
        }
        self.book(rows, applied);
    }
}
