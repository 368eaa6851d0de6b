//! The tree of queues: what each may use, uses, and has waiting.

use crate::amounts::{Amounts, Bounds, Resource, UNBOUNDED};
use crate::cluster::Cluster;
use crate::index::held_gpus::HeldByPriority;
use crate::ix::{JobIx, NodeIx, QueueIx, ShapeIx};
use berth_ledger::{BudgetMeter, Spending, Standing};
use berth_model::{Amount, BudgetAction, JobId, Name, QueueSpec, Quota, Span, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A job with the time it is ordered by, such as when it was submitted.
pub(crate) type TimedJob = (Time, JobId, JobIx);

/// Pending jobs of one shape in a queue: by priority, then by class of work, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct PendingOfShape {
    pub lists: BTreeMap<(Reverse<i32>, u32), BTreeSet<TimedJob>>,
    /// How many have which priority.
    pub priorities: BTreeMap<i32, u32>,
    /// How many would hold their places for how long.
    pub holds: BTreeMap<Span, u32>,
    pub count: u32,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct PendingJobs {
    pub shapes: BTreeMap<ShapeIx, PendingOfShape>,
    /// All pending jobs, oldest first.
    pub oldest: BTreeSet<TimedJob>,
    /// Jobs with a deadline, by the latest start that would meet it.
    pub deadlines: BTreeSet<TimedJob>,
    /// How many have which priority.
    pub priorities: BTreeMap<i32, u32>,
}

impl PendingJobs {
    /// The highest priority of a pending job.
    pub fn top_priority(&self) -> Option<i32> {
        self.priorities.keys().next_back().copied()
    }
}

/// Shapes and classes of a queue that have nothing to preempt in lower classes. It holds as long as
/// the versions and fingerprints are the same and no node offers more.
#[derive(Debug, Clone)]
pub(crate) struct HopelessClaims {
    pub held_by_priority: Arc<HeldByPriority>,
    pub pending_version: u64,
    pub soft_fingerprint: u64,
    pub class_version: u64,
    pub hopeless: BTreeSet<(ShapeIx, i32)>,
    /// All pending jobs of the queue are among them.
    pub all: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Queue {
    pub spec: QueueSpec,
    pub parent: Option<QueueIx>,
    pub children: Vec<QueueIx>,
    /// Live leases of the subtree, and what is firmly promised.
    pub usage: Amounts,
    pub users: BTreeMap<Name, Amounts>,
    pub pending: PendingJobs,
    /// Jobs of this leaf that hold leases.
    pub running: BTreeMap<JobId, JobIx>,
    /// How many of them have which priority.
    pub running_priorities: BTreeMap<i32, u32>,
    /// Thousandths of GPUs held on each node by those of them that may be stopped.
    pub on_nodes: BTreeMap<NodeIx, i64>,
    /// GPUs that preemptible jobs hold, by priority, with how many leases share each. Those of
    /// elastic gangs come first, whatever their priority.
    pub held: BTreeMap<(i32, NodeIx, u32), u32>,
    /// The sums over them; `None` where they are outdated.
    pub held_by_priority: Option<Arc<HeldByPriority>>,
    /// Claims on lower classes that were found to be hopeless.
    pub hopeless_claims: Option<HopelessClaims>,
    /// Changes when a shape and class gets its first pending job, or a shorter one.
    pub pending_version: u64,
    /// Jobs with a promise that is not firm: it may have to give way.
    pub soft_promised: BTreeSet<JobIx>,
    /// A fingerprint of these promises.
    pub soft_fingerprint: u64,
    /// How many jobs have a firm promise, of places that victims give up for them. These places
    /// count as used, and the jobs are no longer in the pending line.
    pub firm_promised: u32,
    /// GPU-milliseconds in thousandths of a GPU: credit, and decayed use.
    pub credits: i64,
    pub past_use: i64,
    pub budget: Option<BudgetMeter>,
    /// Of the subtree, whether it has a budget or not.
    pub spending: Spending,
    pub quota: Bounds,
    pub limit: Bounds,
    pub borrow: Bounds,
    pub lend: Bounds,
    pub user_limit: Bounds,
    pub removed: bool,
}

impl Queue {
    /// Whether its budget is spent and says that it goes after all others then.
    pub fn is_deprioritized(&self) -> bool {
        let spent = Standing::Spent(BudgetAction::LowerPriority);
        self.budget.as_ref().is_some_and(|meter| meter.standing() == spent)
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Queues {
    pub all: Vec<Queue>,
    pub by_name: BTreeMap<Name, QueueIx>,
    pub roots: Vec<QueueIx>,
    /// Resources that some quota names, and GPUs always.
    pub resources: Vec<Resource>,
    /// Some queue keeps part of its quota to itself.
    pub some_lend: bool,
    /// Bounds are resolved for this version of the cluster.
    pub resolved: Option<u64>,
}

impl Queues {
    pub fn find(&self, name: &str) -> Option<QueueIx> {
        self.by_name.get(name).copied()
    }

    pub fn get(&self, ix: QueueIx) -> &Queue {
        &self.all[ix.at()]
    }

    pub fn get_mut(&mut self, ix: QueueIx) -> &mut Queue {
        &mut self.all[ix.at()]
    }

    /// The queue and everything above it, lowest first.
    pub fn path(&self, ix: QueueIx) -> impl Iterator<Item = QueueIx> + '_ {
        std::iter::successors(Some(ix), |ix| self.get(*ix).parent)
    }

    pub fn live(&self) -> impl Iterator<Item = (QueueIx, &Queue)> {
        let all = self.all.iter().enumerate().map(|(at, queue)| (QueueIx(at as u32), queue));
        all.filter(|(_, queue)| !queue.removed)
    }

    /// Leaves in the order they were set up.
    pub fn leaves(&self) -> impl Iterator<Item = QueueIx> + '_ {
        self.live().filter(|(_, queue)| queue.children.is_empty()).map(|(ix, _)| ix)
    }

    /// The other children of its parent.
    pub fn beside(&self, ix: QueueIx) -> impl Iterator<Item = QueueIx> + '_ {
        let all = match self.get(ix).parent {
            Some(parent) => &self.get(parent).children,
            None => &self.roots,
        };
        all.iter().copied().filter(move |other| *other != ix)
    }

    pub fn leaves_below(&self, ix: QueueIx, found: &mut Vec<QueueIx>) {
        let children = &self.get(ix).children;
        if children.is_empty() {
            found.push(ix);
        }
        for child in children {
            self.leaves_below(*child, found);
        }
    }

    /// The two ancestors just below the lowest common parent; the same queue twice where one lies
    /// below the other or they are one.
    pub fn rivals(&self, a: QueueIx, b: QueueIx) -> (QueueIx, QueueIx) {
        let (mut a, mut b) = (a, b);
        let (mut depth_a, mut depth_b) = (self.path(a).count(), self.path(b).count());
        let up = |ix: QueueIx| self.get(ix).parent.unwrap_or(ix);
        while depth_a > depth_b {
            (a, depth_a) = (up(a), depth_a - 1);
        }
        while depth_b > depth_a {
            (b, depth_b) = (up(b), depth_b - 1);
        }
        while self.get(a).parent != self.get(b).parent {
            (a, b) = (up(a), up(b));
        }
        (a, b)
    }

    pub fn add(&mut self, spec: QueueSpec, parent: Option<QueueIx>) -> QueueIx {
        let ix = QueueIx(self.all.len() as u32);
        self.by_name.insert(spec.name.clone(), ix);
        match parent {
            Some(parent) => self.get_mut(parent).children.push(ix),
            None => self.roots.push(ix),
        }
        self.all.push(Queue {
            budget: None,
            spending: Spending::default(),
            spec,
            parent,
            children: Vec::new(),
            usage: Amounts::default(),
            users: BTreeMap::new(),
            pending: PendingJobs::default(),
            running: BTreeMap::new(),
            running_priorities: BTreeMap::new(),
            on_nodes: BTreeMap::new(),
            held: BTreeMap::new(),
            held_by_priority: None,
            hopeless_claims: None,
            pending_version: 0,
            soft_promised: BTreeSet::new(),
            soft_fingerprint: 0,
            firm_promised: 0,
            credits: 0,
            past_use: 0,
            quota: Bounds::default(),
            limit: Bounds::default(),
            borrow: Bounds::default(),
            lend: Bounds::default(),
            user_limit: Bounds::default(),
            removed: false,
        });
        self.resolved = None;
        ix
    }

    /// Turns quotas and limits into plain amounts for the cluster as it is.
    pub fn resolve(&mut self, cluster: &Cluster) {
        if self.resolved == Some(cluster.version) {
            return;
        }
        self.resolved = Some(cluster.version);
        let mut named: BTreeSet<Resource> = BTreeSet::from([Resource::Gpu]);
        for (_, queue) in self.live() {
            let own = raw(&queue.spec.quota, cluster);
            named.extend(own.iter().map(|(resource, _)| *resource));
        }
        self.resources = named.into_iter().collect();
        let quota_named: BTreeSet<Resource> = self
            .live()
            .flat_map(|(_, queue)| raw(&queue.spec.quota, cluster))
            .map(|(resource, _)| resource)
            .collect();
        for root in self.roots.clone() {
            self.resolve_below(root, None, cluster);
        }
        for root in self.roots.clone() {
            self.fill_in(root, &quota_named);
        }
        let lends = self.live().any(|(_, queue)| !queue.spec.lend.is_empty());
        self.some_lend = lends;
    }

    fn resolve_below(&mut self, ix: QueueIx, parent: Option<&Bounds>, cluster: &Cluster) {
        let whole = |resource: Resource| match parent {
            Some(parent) => parent.get(resource).unwrap_or(0),
            None => cluster.capacity.get(resource),
        };
        let spec = self.get(ix).spec.clone();
        let plain = |quota: &Quota, of: &dyn Fn(Resource) -> i64| {
            let mut bounds = Bounds::default();
            for (resource, amount) in raw(quota, cluster) {
                let amount = match amount {
                    Amount::Of(amount) => amount,
                    Amount::Share(milli) => {
                        (i128::from(of(resource)) * i128::from(milli.0) / 1_000) as i64
                    }
                    Amount::Unlimited => UNBOUNDED,
                };
                bounds.set(resource, amount);
            }
            bounds
        };
        let quota = plain(&spec.quota, &whole);
        let own = |resource: Resource| quota.get(resource).unwrap_or(0);
        let top = |resource: Resource| cluster.capacity.get(resource);
        let queue = self.get_mut(ix);
        queue.limit = plain(&spec.limit, &top);
        queue.borrow = plain(&spec.borrow, &own);
        queue.lend = plain(&spec.lend, &own);
        queue.user_limit = plain(&spec.user_limit, &own);
        queue.quota = quota.clone();
        for child in queue.children.clone() {
            self.resolve_below(child, Some(&quota), cluster);
        }
    }

    /// A quota that was left out is the sum of the children's; a leaf without one has none of
    /// whatever any other queue is guaranteed.
    fn fill_in(&mut self, ix: QueueIx, named: &BTreeSet<Resource>) {
        let children = self.get(ix).children.clone();
        for child in &children {
            self.fill_in(*child, named);
        }
        for resource in named {
            if self.get(ix).quota.get(*resource).is_none() {
                let sum: i64 = children
                    .iter()
                    .map(|child| self.get(*child).quota.get(*resource).unwrap_or(0))
                    .fold(0, |a: i64, b| a.saturating_add(b).min(UNBOUNDED));
                self.get_mut(ix).quota.set(*resource, sum);
            }
        }
    }

    pub fn charge(&mut self, ix: QueueIx, user: &Name, charge: &crate::amounts::Charge, n: i64) {
        let mut at = Some(ix);
        while let Some(ix) = at {
            let queue = self.get_mut(ix);
            queue.usage.charge(charge, n);
            at = queue.parent;
        }
        let queue = self.get_mut(ix);
        if !queue.users.contains_key(user) {
            queue.users.insert(user.clone(), Amounts::default());
        }
        queue.users.get_mut(user).expect("just there").charge(charge, n);
    }
}

/// The amounts a quota names, in the units of [`Amounts`].
pub(crate) fn raw(quota: &Quota, cluster: &Cluster) -> Vec<(Resource, Amount<i64>)> {
    fn plain<T>(amount: &Amount<T>, value: impl Fn(&T) -> i64) -> Amount<i64> {
        match amount {
            Amount::Of(amount) => Amount::Of(value(amount)),
            Amount::Share(milli) => Amount::Share(*milli),
            Amount::Unlimited => Amount::Unlimited,
        }
    }
    let mut found = Vec::new();
    if let Some(amount) = &quota.gpu.total {
        found.push((Resource::Gpu, plain(amount, |milli| milli.0)));
    }
    if let Some(amount) = &quota.cpu {
        found.push((Resource::Cpu, plain(amount, |cpu| cpu.0)));
    }
    if let Some(amount) = &quota.memory {
        found.push((Resource::Memory, plain(amount, |memory| memory.0)));
    }
    for (model, amount) in &quota.gpu.models {
        if let Some(model) = cluster.find_model(model) {
            found.push((Resource::Model(model), plain(amount, |milli| milli.0)));
        }
    }
    found
}
