//! Books of our own: what every machine and every lease must have cost, from the events alone.

use berth_core::Applied;
use berth_ledger::{CostRow, cost};
use berth_model::*;
use std::collections::BTreeMap;

/// Something that costs money: the price since when, and what it cost before that.
#[derive(Clone, Debug)]
struct Meter {
    price: Micros,
    since: Time,
    before: i128,
}

impl Meter {
    fn new(price: Micros, since: Time) -> Meter {
        Meter { price, since, before: 0 }
    }

    /// Price times time, rounded down once for each price.
    fn total(&self, at: Time) -> i128 {
        let span = i128::from((at - self.since).0);
        self.before + (i128::from(self.price.0) * span).div_euclid(3_600_000)
    }

    /// A price that stays what it was is not a new one.
    fn reprice(&mut self, price: Micros, at: Time) {
        if price != self.price {
            *self = Meter { price, since: at, before: self.total(at) };
        }
    }
}

#[derive(Clone, Debug)]
struct Held {
    meter: Meter,
    node: Name,
    slices: Vec<Slice>,
    cpu: Cpu,
}

/// All machines and leases, open and closed, and all rows.
#[derive(Clone, Debug, Default)]
pub struct Books {
    pub rows: Vec<CostRow>,
    prices: BTreeMap<Name, Micros>,
    nodes: BTreeMap<Name, (NodeSpec, Meter)>,
    leases: BTreeMap<LeaseId, Held>,
    /// What those that are gone have cost.
    past_nodes: BTreeMap<Name, i128>,
    past_leases: BTreeMap<LeaseId, i128>,
    specs: BTreeMap<JobId, JobSpec>,
}

impl Books {
    pub fn write(&mut self, stamped: &Stamped, applied: &Applied) {
        let at = stamped.at;
        match &stamped.event {
            Event::JobSubmitted { spec } => {
                self.specs.insert(spec.id, (**spec).clone());
            }
            Event::NodeAdded { node } | Event::ClaimReady { node, .. } => self.node(node, at),
            Event::NodeRemoved { node } => self.node_gone(node, at),
            Event::ModelsSet { prices, .. } => {
                self.prices = prices.clone();
                let all: Vec<NodeSpec> = self.nodes.values().map(|(n, _)| n.clone()).collect();
                all.iter().for_each(|node| self.reprice(node, at));
            }
            Event::Decided { decisions, .. } => {
                for decision in decisions {
                    if let Decision::Start { lease, node, slices, price, .. } = decision {
                        let held = Held {
                            meter: Meter::new(*price, at),
                            node: node.clone(),
                            slices: slices.clone(),
                            cpu: self.cpu(*lease),
                        };
                        self.leases.insert(*lease, held);
                    }
                }
            }
            Event::LeaseEnded { lease, .. } => {
                if let Some(held) = self.leases.remove(lease) {
                    self.past_leases.insert(*lease, held.meter.total(at));
                }
            }
            _ => {}
        }
        self.rows.extend(applied.rows.iter().cloned());
    }

    fn cpu(&self, lease: LeaseId) -> Cpu {
        let spec = &self.specs[&lease.job.array()];
        let leaves = spec.groups.iter().flat_map(|group| group.leaves());
        let mut first = 0;
        for leaf in leaves {
            first += leaf.count;
            if lease.task < first {
                return leaf.cpu;
            }
        }
        Cpu::ZERO
    }

    fn node(&mut self, spec: &NodeSpec, at: Time) {
        let busy = self.leases.values().any(|held| held.node == spec.name);
        if self.nodes.contains_key(&spec.name) && busy {
            return self.reprice(spec, at);
        }
        self.node_gone(&spec.name, at);
        let meter = Meter::new(cost::node_price(spec, &self.prices), at);
        self.nodes.insert(spec.name.clone(), (spec.clone(), meter));
    }

    fn node_gone(&mut self, name: &Name, at: Time) {
        if let Some((_, meter)) = self.nodes.remove(name) {
            *self.past_nodes.entry(name.clone()).or_default() += meter.total(at);
        }
    }

    fn reprice(&mut self, spec: &NodeSpec, at: Time) {
        let (known, meter) = self.nodes.get_mut(&spec.name).expect("the node is there");
        *known = spec.clone();
        let price = cost::node_price(spec, &self.prices);
        meter.reprice(price, at);
        let each = cost::gpu_prices(spec, &self.prices);
        let models: Vec<Name> = spec.gpus.iter().map(|gpu| gpu.model.clone()).collect();
        for held in self.leases.values_mut().filter(|held| held.node == spec.name) {
            let price = match spec.gpus.is_empty() {
                true => cost::cpu_price(price, spec.cpu, held.cpu),
                false => cost::lease_price(&each, &held.slices, &models),
            };
            held.meter.reprice(price, at);
        }
    }

    /// What every node cost in all up to then; all rows must have been written.
    pub fn node_totals(&self, at: Time) -> BTreeMap<Name, i128> {
        let mut totals = self.past_nodes.clone();
        for (name, (_, meter)) in &self.nodes {
            *totals.entry(name.clone()).or_default() += meter.total(at);
        }
        totals
    }

    pub fn lease_totals(&self, at: Time) -> BTreeMap<LeaseId, i128> {
        let mut totals = self.past_leases.clone();
        totals.extend(self.leases.iter().map(|(id, held)| (*id, held.meter.total(at))));
        totals
    }

    pub fn rows_by_node(&self) -> BTreeMap<Name, i128> {
        let mut totals: BTreeMap<Name, i128> = BTreeMap::new();
        for row in &self.rows {
            *totals.entry(row.node.clone()).or_default() += i128::from(row.amount.0);
        }
        totals
    }

    pub fn rows_by_lease(&self) -> BTreeMap<LeaseId, i128> {
        let mut totals: BTreeMap<LeaseId, i128> = BTreeMap::new();
        for row in &self.rows {
            if let Some(lease) = row.lease {
                *totals.entry(lease).or_default() += i128::from(row.amount.0);
            }
        }
        totals
    }
}
