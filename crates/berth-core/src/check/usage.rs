//! What queues use and may use: bounds from their specs, usage with what the plan adds, and how
//! much of the quotas is kept from others.

use crate::amounts::{Amounts, Bounds, Resource, UNBOUNDED};
use crate::ix::QueueIx;
use crate::state::State;
use berth_model::{Amount, Name, Quota};
use std::collections::{BTreeMap, BTreeSet};

/// The bounds of one queue as plain amounts.
#[derive(Debug, Clone, Default)]
pub(super) struct QueueBounds {
    pub quota: Bounds,
    pub limit: Bounds,
    pub borrow: Bounds,
    pub lend: Bounds,
    pub user: Bounds,
}

/// The tree of queues with its bounds; made once, when a decision first asks.
pub(super) struct Tree {
    pub plain: Vec<QueueBounds>,
    /// Resources that a quota names, and GPUs.
    pub named: Vec<Resource>,
    /// Some queue keeps part of its quota to itself.
    pub some_lend: bool,
}

pub(super) struct Usage<'a> {
    state: &'a State,
    tree: Option<Tree>,
    plan: BTreeMap<QueueIx, Amounts>,
    /// What this transaction adds.
    transaction: BTreeMap<QueueIx, Amounts>,
    users: BTreeMap<(QueueIx, Name), Amounts>,
    users_transaction: BTreeMap<(QueueIx, Name), Amounts>,
    /// Growth of gangs that start in this plan. It is decided last, whichever transaction it is
    /// in, so it does not count against the rights of others.
    grown: BTreeMap<QueueIx, Amounts>,
    unlent_quota: Vec<UnlentQuota>,
}

/// How much unused quota of one resource each subtree does not lend.
struct UnlentQuota {
    resource: Resource,
    of: Vec<i64>,
    /// The sum over the children.
    below: Vec<i64>,
    roots: i64,
    used: i64,
}

impl<'a> Usage<'a> {
    pub fn new(state: &'a State) -> Usage<'a> {
        Usage {
            state,
            tree: None,
            plan: BTreeMap::new(),
            transaction: BTreeMap::new(),
            users: BTreeMap::new(),
            users_transaction: BTreeMap::new(),
            grown: BTreeMap::new(),
            unlent_quota: Vec::new(),
        }
    }

    /// A new transaction begins.
    pub fn begin(&mut self) {
        self.transaction.clear();
        self.users_transaction.clear();
    }

    pub fn tree(&mut self) -> &Tree {
        let state = self.state;
        self.tree.get_or_insert_with(|| Tree::of(state))
    }

    pub fn path(&self, leaf: QueueIx) -> Vec<QueueIx> {
        let parent = |ix: &QueueIx| self.state.queues.all[ix.at()].parent;
        std::iter::successors(Some(leaf), parent).collect()
    }

    pub fn charge(&mut self, leaf: QueueIx, user: &Name, amounts: &Amounts, times: i64) {
        for ix in self.path(leaf) {
            self.plan.entry(ix).or_default().add(amounts, times);
            self.transaction.entry(ix).or_default().add(amounts, times);
        }
        let key = (leaf, user.clone());
        self.users.entry(key.clone()).or_default().add(amounts, times);
        self.users_transaction.entry(key).or_default().add(amounts, times);
        let mut unlent_quota = std::mem::take(&mut self.unlent_quota);
        for kept in &mut unlent_quota {
            kept.used += amounts.get(kept.resource) * times;
            self.adjust(kept, leaf);
        }
        self.unlent_quota = unlent_quota;
    }

    pub fn grow(&mut self, leaf: QueueIx, amounts: &Amounts) {
        for ix in self.path(leaf) {
            self.grown.entry(ix).or_default().add(amounts, 1);
        }
    }

    pub fn grown(&self, ix: QueueIx, resource: Resource) -> i64 {
        self.grown.get(&ix).map_or(0, |grown| grown.get(resource))
    }

    pub fn used(&self, ix: QueueIx, resource: Resource) -> i64 {
        let base = self.state.queues.all[ix.at()].usage.get(resource);
        base + self.plan.get(&ix).map_or(0, |plan| plan.get(resource))
    }

    /// By how much the transaction raises the use of a resource.
    pub fn added(&self, ix: QueueIx, resource: Resource) -> i64 {
        self.transaction.get(&ix).map_or(0, |added| added.get(resource))
    }

    /// What a user uses in a leaf, and by how much the transaction raises it.
    pub fn of_user(&self, leaf: QueueIx, user: &Name, resource: Resource) -> (i64, i64) {
        let key = (leaf, user.clone());
        let base = self.state.queues.all[leaf.at()].users.get(user);
        let base = base.map_or(0, |used| used.get(resource));
        let get = |map: &BTreeMap<(QueueIx, Name), Amounts>| {
            map.get(&key).map_or(0, |amounts| amounts.get(resource))
        };
        (base + get(&self.users), get(&self.users_transaction))
    }

    /// Quota of other queues that they do not lend to this leaf, and what is used in all.
    pub fn unlent_quota(&mut self, leaf: QueueIx, resource: Resource) -> (i64, i64) {
        if !self.unlent_quota.iter().any(|kept| kept.resource == resource) {
            let made = self.sum_unlent_quota(resource);
            self.unlent_quota.push(made);
        }
        let path = self.path(leaf);
        let kept = self.unlent_quota.iter().find(|kept| kept.resource == resource).expect("made");
        let mut total = 0;
        let mut siblings = kept.roots;
        for ix in path.iter().rev() {
            total += siblings - kept.of[ix.at()];
            siblings = kept.below[ix.at()];
        }
        (total, kept.used)
    }

    fn sum_unlent_quota(&mut self, resource: Resource) -> UnlentQuota {
        let all = self.state.queues.all.len();
        let roots = self.state.queues.roots.clone();
        let used = roots.iter().map(|root| self.used(*root, resource)).sum();
        let mut kept =
            UnlentQuota { resource, of: vec![0; all], below: vec![0; all], roots: 0, used };
        for leaf in self.leaves() {
            self.adjust(&mut kept, leaf);
        }
        kept
    }

    fn leaves(&self) -> Vec<QueueIx> {
        let all = self.state.queues.all.iter().enumerate();
        let leaf = all.filter(|(_, queue)| !queue.removed && queue.children.is_empty());
        leaf.map(|(at, _)| QueueIx(at as u32)).collect()
    }

    /// Brings the way from a leaf to its root up to date.
    fn adjust(&mut self, kept: &mut UnlentQuota, leaf: QueueIx) {
        for ix in self.path(leaf) {
            let used = self.used(ix, kept.resource);
            let plain = &self.tree().plain[ix.at()];
            let own = match (plain.quota.get(kept.resource), plain.lend.get(kept.resource)) {
                (Some(quota), Some(lend)) => (quota - lend - used).max(0),
                _ => 0,
            };
            let now = own.max(kept.below[ix.at()]);
            let change = now - kept.of[ix.at()];
            kept.of[ix.at()] = now;
            match self.state.queues.all[ix.at()].parent {
                Some(parent) => kept.below[parent.at()] += change,
                None => kept.roots += change,
            }
        }
    }
}

impl Tree {
    fn of(state: &State) -> Tree {
        let queues = &state.queues;
        let mut tree = Tree {
            plain: vec![QueueBounds::default(); queues.all.len()],
            named: Vec::new(),
            some_lend: false,
        };
        let mut by_quota: BTreeSet<Resource> = BTreeSet::new();
        for root in &queues.roots {
            tree.fill(state, *root, None, &mut by_quota);
        }
        for root in &queues.roots {
            tree.sum_up(state, *root, &by_quota);
        }
        let mut named = by_quota;
        named.insert(Resource::Gpu);
        tree.some_lend = tree.plain.iter().any(|plain| !plain.lend.is_empty());
        tree.named = named.into_iter().collect();
        tree
    }

    fn fill(
        &mut self,
        state: &State,
        ix: QueueIx,
        above: Option<QueueIx>,
        named: &mut BTreeSet<Resource>,
    ) {
        let queue = &state.queues.all[ix.at()];
        for (resource, amount) in amounts_of(state, &queue.spec.quota) {
            let whole = match above {
                Some(above) => self.plain[above.at()].quota.get(resource).unwrap_or(0),
                None => state.cluster.capacity.get(resource),
            };
            self.plain[ix.at()].quota.set(resource, part(amount, whole));
            named.insert(resource);
        }
        for child in &queue.children {
            self.fill(state, *child, Some(ix), named);
        }
    }

    /// A quota that was left out is the sum of the children's. What is a part of it comes after.
    fn sum_up(&mut self, state: &State, ix: QueueIx, named: &BTreeSet<Resource>) {
        let queue = &state.queues.all[ix.at()];
        for child in &queue.children {
            self.sum_up(state, *child, named);
        }
        for resource in named {
            if self.plain[ix.at()].quota.get(*resource).is_none() {
                let of = |child: &QueueIx| self.plain[child.at()].quota.get(*resource);
                let sum: i64 = queue.children.iter().filter_map(of).fold(0, i64::saturating_add);
                self.plain[ix.at()].quota.set(*resource, sum.min(UNBOUNDED));
            }
        }
        let quota = self.plain[ix.at()].quota.clone();
        let own = |resource: Resource| quota.get(resource).unwrap_or(0);
        let top = |resource: Resource| state.cluster.capacity.get(resource);
        let plain = |quota: &Quota, whole: &dyn Fn(Resource) -> i64| {
            let mut bounds = Bounds::default();
            for (resource, amount) in amounts_of(state, quota) {
                bounds.set(resource, part(amount, whole(resource)));
            }
            bounds
        };
        let spec = &queue.spec;
        let at = &mut self.plain[ix.at()];
        at.limit = plain(&spec.limit, &top);
        at.borrow = plain(&spec.borrow, &own);
        at.lend = plain(&spec.lend, &own);
        at.user = plain(&spec.user_limit, &own);
    }
}

fn part(amount: Amount<i64>, whole: i64) -> i64 {
    match amount {
        Amount::Of(amount) => amount,
        Amount::Share(milli) => (i128::from(whole) * i128::from(milli.0) / 1_000) as i64,
        Amount::Unlimited => UNBOUNDED,
    }
}

fn amounts_of(state: &State, quota: &Quota) -> Vec<(Resource, Amount<i64>)> {
    fn units<T: Copy>(amount: &Amount<T>, unit: fn(T) -> i64) -> Amount<i64> {
        match amount {
            Amount::Of(value) => Amount::Of(unit(*value)),
            Amount::Share(milli) => Amount::Share(*milli),
            Amount::Unlimited => Amount::Unlimited,
        }
    }
    let mut found = Vec::new();
    let total = quota.gpu.total.iter().map(|a| (Resource::Gpu, units(a, |m| m.0)));
    found.extend(total);
    found.extend(quota.cpu.iter().map(|a| (Resource::Cpu, units(a, |c| c.0))));
    found.extend(quota.memory.iter().map(|a| (Resource::Memory, units(a, |b| b.0))));
    for (model, amount) in &quota.gpu.models {
        // A model that no node has ever had cannot be used, so it needs no bound.
        if let Some(model) = state.cluster.find_model(model) {
            found.push((Resource::Model(model), units(amount, |m| m.0)));
        }
    }
    found
}
