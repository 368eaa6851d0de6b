//! The money of the log, counted again: price times time in whole numbers, rounded down once for
//! each price, and rows that follow one another without gap or overlap.

use super::shares::milli;
use super::{Class, Finding};
use berth_ledger::CostRow;
use berth_model::{LeaseId, Name, NodeSpec, Slice, Time};
use std::collections::BTreeMap;

/// What has been running up a bill.
#[derive(Debug, Clone)]
struct Meter {
    price: i128,
    since: Time,
    before: i128,
    /// What rows say, and up to when.
    rows: i128,
    billed: Time,
}

impl Meter {
    fn new(price: i128, at: Time) -> Meter {
        Meter { price, since: at, before: 0, rows: 0, billed: at }
    }

    fn due(&self, at: Time) -> i128 {
        self.before + (self.price * i128::from(at.0 - self.since.0)).div_euclid(3_600_000)
    }

    /// A price that stays what it was is not a new one.
    fn reprice(&mut self, price: i128, at: Time) {
        if price == self.price {
            return;
        }
        self.before = self.due(at);
        self.since = at;
        self.price = price;
    }
}

#[derive(Debug, Default)]
pub(super) struct Money {
    models: BTreeMap<Name, i128>,
    nodes: BTreeMap<Name, (NodeSpec, Meter)>,
    leases: BTreeMap<LeaseId, (Name, Vec<Slice>, Meter)>,
}

impl Money {
    /// The price of one of the node's GPUs; the made-up nodes have GPUs of one model.
    fn gpu(&self, node: &NodeSpec) -> i128 {
        match node.price {
            Some(price) => i128::from(price.0) / node.gpus.len() as i128,
            None => self.models.get(&node.gpus[0].model).copied().unwrap_or(0),
        }
    }

    fn lease(&self, node: &NodeSpec, slices: &[Slice]) -> i128 {
        let parts: i128 = slices.iter().map(|slice| i128::from(milli(&slice.share))).sum();
        (self.gpu(node) * parts).div_euclid(1_000)
    }

    pub fn models(&mut self, prices: impl Iterator<Item = (Name, i64)>, at: Time) {
        self.models = prices.map(|(model, price)| (model, i128::from(price))).collect();
        let nodes: Vec<NodeSpec> = self.nodes.values().map(|(spec, _)| spec.clone()).collect();
        for node in nodes {
            let whole = self.gpu(&node) * node.gpus.len() as i128;
            if let Some((_, meter)) =
                self.nodes.get_mut(&node.name).filter(|(_, m)| m.price != whole)
            {
                meter.reprice(whole, at);
            }
            let there: Vec<(LeaseId, i128)> = self
                .leases
                .iter()
                .filter(|(_, (on, _, _))| *on == node.name)
                .map(|(lease, (_, slices, _))| (*lease, self.lease(&node, slices)))
                .collect();
            for (lease, price) in there {
                if let Some((_, _, meter)) = self.leases.get_mut(&lease) {
                    meter.reprice(price, at);
                }
            }
        }
    }

    pub fn joined(&mut self, node: &NodeSpec, at: Time) {
        let whole = self.gpu(node) * node.gpus.len() as i128;
        self.nodes.insert(node.name.clone(), (node.clone(), Meter::new(whole, at)));
    }

    pub fn left(&mut self, node: &Name, at: Time) -> Result<(), Finding> {
        match self.nodes.remove(node) {
            None => Ok(()),
            Some((_, meter)) => settled(&format!("node {node}"), &meter, at),
        }
    }

    pub fn opened(
        &mut self,
        lease: LeaseId,
        node: &Name,
        slices: &[Slice],
        price: i64,
        at: Time,
    ) -> Result<(), Finding> {
        let Some((spec, _)) = self.nodes.get(node) else { return Ok(()) };
        let due = self.lease(spec, slices);
        if due != i128::from(price) {
            return Err(wrong(format!(
                "lease {lease} is priced at {price} an hour, and {due} is right"
            )));
        }
        self.leases.insert(lease, (node.clone(), slices.to_vec(), Meter::new(due, at)));
        Ok(())
    }

    pub fn closed(&mut self, lease: LeaseId, at: Time) -> Result<(), Finding> {
        match self.leases.remove(&lease) {
            None => Ok(()),
            Some((_, _, meter)) => {
                settled(&format!("lease {lease}"), &meter, at)?;
                if meter.billed != at {
                    return Err(wrong(format!(
                        "rows of lease {lease} end at {}, not {at}",
                        meter.billed
                    )));
                }
                Ok(())
            }
        }
    }

    /// A row must begin where the one before it ended and be the difference of two whole sums.
    pub fn row(&mut self, row: &CostRow) -> Result<(), Finding> {
        let amount = i128::from(row.amount.0);
        if let Some((_, meter)) = self.nodes.get_mut(&row.node) {
            meter.rows += amount;
        }
        let Some(lease) = row.lease else { return Ok(()) };
        let Some((node, _, meter)) = self.leases.get_mut(&lease) else {
            return Err(wrong(format!("a row for lease {lease}, which is not open")));
        };
        if *node != row.node || row.from != meter.billed || row.to < row.from {
            return Err(wrong(format!(
                "a row of lease {lease} from {} to {} on {}, and {} on {node} was next",
                row.from, row.to, row.node, meter.billed
            )));
        }
        meter.rows += amount;
        meter.billed = row.to;
        settled(&format!("lease {lease}"), meter, row.to)
    }

    /// Everything is billed up to now: nothing may be left over.
    pub fn all_settled(&self, at: Time) -> Result<(), Finding> {
        for (lease, (_, _, meter)) in &self.leases {
            settled(&format!("lease {lease}"), meter, at)?;
        }
        for (node, (_, meter)) in &self.nodes {
            settled(&format!("node {node}"), meter, at)?;
        }
        Ok(())
    }
}

fn settled(what: &str, meter: &Meter, at: Time) -> Result<(), Finding> {
    let due = meter.due(at);
    if meter.rows == due {
        return Ok(());
    }
    Err(wrong(format!(
        "rows of {what} sum to {} and its price times its time to {due}",
        meter.rows
    )))
}

fn wrong(text: String) -> Finding {
    Finding { class: Class::Money, text }
}
