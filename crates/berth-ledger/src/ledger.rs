//! Open accounts of machines and leases, and the rows they turn into.
//!
//! A machine's bill runs from when it joined at its price; a lease's from when it was opened at its
//! own. Idle is what is left of the machine's bill when the leases' are taken off. An account
//! remembers only its price, since when, and up to when rows exist: whoever restores these three
//! gets exactly the rows that would have followed.

use crate::burn::Burn;
use crate::cost::{cumulative, row};
use crate::row::{CostRow, Keys, Loss};
use berth_model::CostKind;
use berth_model::{JobId, LeaseId, Micros, Milli, Name, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

const HOUR: Span = Span::hours(1);

/// The bill of one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeAccount {
    /// Per hour.
    pub price: Micros,
    /// Since when it has had this price. Rows are differences of the cost since then.
    pub since: Time,
    /// Idle and shared rows exist up to here.
    pub billed: Time,
    /// How much of an idle hour was of no use to anybody, as last told. It only divides idle in
    /// two, so an account restored with zero here still sums to the same bill.
    pub fragmented: Micros,
}

/// The bill of one lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseAccount {
    pub keys: Keys,
    pub gpus: Milli,
    /// Per hour.
    pub price: Micros,
    /// Since when it has had this price.
    pub since: Time,
    /// Rows of this lease exist up to here.
    pub billed: Time,
    /// Whether the task runs: used from then on, only held before.
    pub bound: bool,
}

/// What is known when a lease has ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Closed {
    pub rows: Vec<CostRow>,
    pub loss: Option<Loss>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    account: NodeAccount,
    leases: BTreeMap<LeaseId, LeaseAccount>,
}

/// Everything that is being paid for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    /// The latest time seen. An event stamped earlier counts as now: what has been billed once
    /// cannot be billed differently.
    now: Time,
    nodes: BTreeMap<Name, Node>,
    /// On which node each open lease is.
    places: BTreeMap<LeaseId, Name>,
    /// What the open leases of each queue cost.
    burns: BTreeMap<Name, Burn>,
}

impl LeaseAccount {
    /// The row from the last one on.
    fn due(&self, id: LeaseId, node: &Name, at: Time) -> Option<CostRow> {
        if at <= self.billed {
            return None;
        }
        let amount = row(self.price, self.since, self.billed, at);
        let kind = if self.bound { CostKind::Used } else { CostKind::Held };
        let interval = (self.billed, at);
        Some(CostRow::of_lease(id, &self.keys, self.gpus, node, interval, (amount, kind)))
    }

    fn bill(&mut self, id: LeaseId, node: &Name, at: Time, rows: &mut Vec<CostRow>) {
        rows.extend(self.due(id, node, at));
        self.billed = self.billed.max(at);
    }
}

impl Node {
    /// The rows of what no lease has held since the last ones.
    ///
    /// The cost of open leases is taken off whether or not their rows have been written, so their
    /// rows may be cut at other moments.
    fn idle(&self, name: &Name, at: Time, rows: &mut Vec<CostRow>) {
        let account = &self.account;
        if at <= account.billed {
            return;
        }
        let from = account.billed;
        let mut left = row(account.price, account.since, from, at);
        // The same without rounding, to tell idle from rounding.
        let mut idle = i128::from(account.price.0) * i128::from((at - from).0);
        for lease in self.leases.values() {
            let from = from.max(lease.since).min(at);
            left -= row(lease.price, lease.since, from, at);
            idle -= i128::from(lease.price.0) * i128::from((at - from).0);
        }
        let mut push = |amount: Micros, kind: CostKind| {
            if !amount.is_zero() {
                rows.push(CostRow::of_node(name, (from, at), (amount, kind)));
            }
        };
        if idle > 0 && left > Micros::ZERO {
            let useless = row(account.fragmented, account.since, from, at);
            let useless = useless.clamp(Micros::ZERO, left);
            push(useless, CostKind::Fragmented);
            push(left - useless, CostKind::Unallocated);
        } else {
            push(left, CostKind::Shared);
        }
    }

    /// Bills what no lease has held. A lease must not leave before this was done, since nothing
    /// would remember what it had taken.
    fn settle(&mut self, name: &Name, at: Time, rows: &mut Vec<CostRow>) {
        self.idle(name, at, rows);
        self.account.billed = self.account.billed.max(at);
    }

    fn bill(
        &mut self,
        name: &Name,
        at: Time,
        rows: &mut Vec<CostRow>,
        burns: &mut BTreeMap<Name, Burn>,
    ) {
        self.settle(name, at, rows);
        for (id, lease) in &mut self.leases {
            let burn = burns.entry(lease.keys.queue.clone()).or_default();
            burn.remove(lease.price, lease.billed);
            lease.bill(*id, name, at, rows);
            burn.add(lease.price, lease.billed);
        }
    }
}

impl Ledger {
    pub fn new() -> Ledger {
        Ledger::default()
    }

    fn advance(&mut self, at: Time) -> Time {
        self.now = self.now.max(at);
        self.now
    }

    /// The node's bill begins. One that is there already gets the price from now on.
    pub fn node_joined(&mut self, at: Time, name: &Name, price: Micros) -> Vec<CostRow> {
        if self.nodes.contains_key(name) {
            return self.node_repriced(at, name, price);
        }
        let now = self.advance(at);
        let account = NodeAccount { price, since: now, billed: now, fragmented: Micros::ZERO };
        self.nodes.insert(name.clone(), Node { account, leases: BTreeMap::new() });
        Vec::new()
    }

    /// A new price from now on. Its open leases keep theirs unless [`Ledger::lease_repriced`] is
    /// called for them: what they are then priced above the node shows as a negative shared row.
    pub fn node_repriced(&mut self, at: Time, name: &Name, price: Micros) -> Vec<CostRow> {
        let now = self.advance(at);
        let mut rows = Vec::new();
        if let Some(node) = self.nodes.get_mut(name).filter(|node| node.account.price != price) {
            node.settle(name, now, &mut rows);
            node.account.price = price;
            node.account.since = now;
        }
        rows
    }

    /// The node's bill ends, and with it those of leases still on it.
    pub fn node_left(&mut self, at: Time, name: &Name) -> Vec<CostRow> {
        let now = self.advance(at);
        let mut rows = Vec::new();
        if let Some(mut node) = self.nodes.remove(name) {
            node.bill(name, now, &mut rows, &mut self.burns);
            for (id, lease) in &node.leases {
                self.places.remove(id);
                self.extinguish(lease);
            }
        }
        rows
    }

    /// The lease's bill begins; until it is bound it is held and not used.
    pub fn lease_opened(
        &mut self,
        at: Time,
        id: LeaseId,
        keys: Keys,
        node: &Name,
        gpus: Milli,
        price: Micros,
    ) {
        let now = self.advance(at);
        let account = LeaseAccount { keys, gpus, price, since: now, billed: now, bound: false };
        self.insert(id, node, account);
    }

    fn insert(&mut self, id: LeaseId, node: &Name, account: LeaseAccount) {
        let holder = self.nodes.get_mut(node);
        let holder = holder.expect("a lease is opened on a node that has an account");
        self.burns
            .entry(account.keys.queue.clone())
            .or_default()
            .add(account.price, account.billed);
        holder.leases.insert(id, account);
        let before = self.places.insert(id, node.clone());
        assert!(before.is_none(), "lease {id} was opened twice");
    }

    /// Writes the lease's row up to now, then changes its account.
    fn cut(
        &mut self,
        at: Time,
        id: LeaseId,
        change: impl FnOnce(&mut LeaseAccount),
    ) -> Vec<CostRow> {
        let now = self.advance(at);
        let mut rows = Vec::new();
        let Some(name) = self.places.get(&id) else { return rows };
        let lease = self.nodes.get_mut(name).and_then(|node| node.leases.get_mut(&id));
        let lease = lease.expect("a lease is on the node it was placed on");
        let before = lease.clone();
        lease.bill(id, name, now, &mut rows);
        change(lease);
        self.burns.entry(lease.keys.queue.clone()).or_default().add(lease.price, lease.billed);
        self.extinguish(&before);
        rows
    }

    fn extinguish(&mut self, lease: &LeaseAccount) {
        if let Some(burn) = self.burns.get_mut(&lease.keys.queue) {
            burn.remove(lease.price, lease.billed);
            if burn.is_nothing() {
                self.burns.remove(&lease.keys.queue);
            }
        }
    }

    /// What the open leases of a job cost.
    pub fn burn_of(&self, job: JobId) -> Burn {
        let mut burn = Burn::default();
        for (_, lease) in self.leases_of(job).filter_map(|id| self.lease(id)) {
            burn.add(lease.price, lease.billed);
        }
        burn
    }

    /// What the open leases of a queue cost, without the queues below it.
    pub fn burn(&self, queue: &Name) -> Burn {
        self.burns.get(queue).copied().unwrap_or_default()
    }

    /// The task runs: from now on the lease is used.
    pub fn lease_bound(&mut self, at: Time, id: LeaseId) -> Vec<CostRow> {
        match self.lease(id) {
            Some((_, lease)) if !lease.bound => self.cut(at, id, |lease| lease.bound = true),
            Some(_) | None => Vec::new(),
        }
    }

    /// The task was asked to stop. It goes on paying; its row is cut here, so that what the grace
    /// costs is on rows of its own.
    pub fn lease_stopping(&mut self, at: Time, id: LeaseId) -> Vec<CostRow> {
        self.cut(at, id, |_| ())
    }

    /// A new price for the lease from now on. One that is the same changes nothing: its cost is
    /// rounded once, from its start.
    pub fn lease_repriced(&mut self, at: Time, id: LeaseId, price: Micros) -> Vec<CostRow> {
        let now = self.advance(at);
        if self.lease(id).is_none_or(|(_, lease)| lease.price == price) {
            return Vec::new();
        }
        let mut rows = self.settle_under(now, id);
        rows.extend(self.cut(now, id, |lease| {
            lease.price = price;
            lease.since = now;
        }));
        rows
    }

    fn leases_of(&self, job: JobId) -> impl Iterator<Item = LeaseId> {
        let first = LeaseId { job, task: 0, attempt: 0 };
        let last = LeaseId { job, task: u32::MAX, attempt: u32::MAX };
        self.places.range(first..=last).map(|(id, _)| *id)
    }

    /// The job's leases are charged to another queue from now on.
    pub fn queue_changed(&mut self, at: Time, job: JobId, queue: &Name) -> Vec<CostRow> {
        let leases: Vec<LeaseId> = self.leases_of(job).collect();
        let mut rows = Vec::new();
        for id in leases {
            rows.extend(self.cut(at, id, |lease| lease.keys.queue = queue.clone()));
        }
        rows
    }

    /// The lease's bill ends. `lost` is the run time that no checkpoint holds. A lease that is not
    /// open has nothing left to pay.
    pub fn lease_closed(&mut self, at: Time, id: LeaseId, lost: Option<Span>) -> Closed {
        let now = self.advance(at);
        let mut rows = self.settle_under(now, id);
        rows.extend(self.cut(now, id, |_| ()));
        let lease = self
            .places
            .remove(&id)
            .and_then(|name| self.nodes.get_mut(&name))
            .and_then(|node| node.leases.remove(&id));
        if let Some(lease) = &lease {
            self.extinguish(lease);
        }
        let lost = lost.filter(|span| *span > Span::ZERO);
        let loss = lease.zip(lost).map(|(lease, span)| Loss {
            job: id.job,
            span,
            gpus: lease.gpus,
            amount: cumulative(lease.price, span),
        });
        Closed { rows, loss }
    }

    /// Bills the idle part of the node that the lease is on.
    fn settle_under(&mut self, now: Time, id: LeaseId) -> Vec<CostRow> {
        let mut rows = Vec::new();
        if let Some(name) = self.places.get(&id)
            && let Some(node) = self.nodes.get_mut(name)
        {
            node.settle(name, now, &mut rows);
        }
        rows
    }

    /// Bills everything up to now. `fragmented` tells how much of an hour of each node is idle and
    /// of no use to the requests there are; it is cut to what is idle.
    pub fn tick(&mut self, at: Time, fragmented: &dyn Fn(&Name) -> Micros) -> Vec<CostRow> {
        let now = self.advance(at);
        let mut rows = Vec::new();
        for (name, node) in &mut self.nodes {
            node.account.fragmented = fragmented(name);
            node.bill(name, now, &mut rows, &mut self.burns);
        }
        rows
    }

    /// Bills what is due: full hours of everything, up to now the machines whose useless part has
    /// changed, and the leases of these queues. All else goes on without a row.
    pub fn bill_due(
        &mut self,
        at: Time,
        fragmented: &dyn Fn(&Name) -> Micros,
        queues: &BTreeSet<Name>,
    ) -> Vec<CostRow> {
        let now = self.advance(at);
        let hour = Time(now.0 - now.0.rem_euclid(HOUR.0));
        let mut rows = Vec::new();
        for (name, node) in &mut self.nodes {
            let useless = fragmented(name);
            let changed = useless != node.account.fragmented;
            node.settle(name, if changed { now } else { hour }, &mut rows);
            node.account.fragmented = useless;
            for (id, lease) in &mut node.leases {
                let until = if queues.contains(&lease.keys.queue) { now } else { hour };
                if until > lease.billed {
                    let burn = self.burns.entry(lease.keys.queue.clone()).or_default();
                    burn.remove(lease.price, lease.billed);
                    lease.bill(*id, name, until, &mut rows);
                    burn.add(lease.price, lease.billed);
                }
            }
        }
        rows
    }

    /// The rows that [`Ledger::tick`] would write: what runs has cost so much beyond its rows.
    pub fn due(&self, at: Time) -> Vec<CostRow> {
        let at = self.now.max(at);
        let mut rows = Vec::new();
        for (name, node) in &self.nodes {
            node.idle(name, at, &mut rows);
            rows.extend(node.leases.iter().filter_map(|(id, lease)| lease.due(*id, name, at)));
        }
        rows
    }

    /// Puts back a node as [`Ledger::nodes`] told it.
    pub fn restore_node(&mut self, name: &Name, account: NodeAccount) {
        self.advance(account.billed.max(account.since));
        let node = Node { account, leases: BTreeMap::new() };
        let before = self.nodes.insert(name.clone(), node);
        assert!(before.is_none(), "node {name} was restored twice");
    }

    /// Puts back a lease as [`Ledger::leases`] told it; its node first.
    pub fn restore_lease(&mut self, id: LeaseId, node: &Name, account: LeaseAccount) {
        self.advance(account.billed.max(account.since));
        self.insert(id, node, account);
    }

    pub fn now(&self) -> Time {
        self.now
    }

    pub fn node(&self, name: &Name) -> Option<&NodeAccount> {
        self.nodes.get(name).map(|node| &node.account)
    }

    pub fn nodes(&self) -> impl Iterator<Item = (&Name, &NodeAccount)> {
        self.nodes.iter().map(|(name, node)| (name, &node.account))
    }

    pub fn lease(&self, id: LeaseId) -> Option<(&Name, &LeaseAccount)> {
        let name = self.places.get(&id)?;
        self.nodes.get(name)?.leases.get(&id).map(|lease| (name, lease))
    }

    /// All open leases, by node and then by id.
    pub fn leases(&self) -> impl Iterator<Item = (LeaseId, &Name, &LeaseAccount)> {
        self.nodes
            .iter()
            .flat_map(|(name, node)| node.leases.iter().map(move |(id, lease)| (*id, name, lease)))
    }

    /// What the open leases of a job have cost that is not on a row yet.
    pub fn unbilled_of(&self, at: Time, job: JobId) -> Micros {
        self.leases_of(job).map(|id| self.unbilled(at, id)).sum()
    }

    /// What the lease has cost that is not on a row yet.
    pub fn unbilled(&self, at: Time, id: LeaseId) -> Micros {
        self.lease(id).map_or(Micros::ZERO, |(_, lease)| {
            row(lease.price, lease.since, lease.billed, at.max(lease.billed))
        })
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
