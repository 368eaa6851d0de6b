//! Snapshots: the whole state as plain values, and back. A loaded state plans like the one it was
//! taken of.

use crate::cluster::gpu::Mode;
use crate::ix::{NodeIx, QueueIx, TaskIx};
use crate::jobs::{Lease, Standing, Stop};
use crate::state::State;
use crate::state::history::Past;
use crate::state::models::Models;
use crate::{apply, validate};
use berth_ledger::{BudgetMeter, LeaseAccount, NodeAccount};
use berth_model::{
    History, JobId, JobSnapshot, LeaseSnapshot, Micros, Name, NodeSnapshot, Promise, QueueSnapshot,
    Rejected, Snapshot, StopSnapshot,
};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Why a snapshot makes no sense, and which part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {rejected}")]
pub struct LoadError {
    /// Such as `jobs[3].groups[0]`.
    pub path: String,
    pub rejected: Rejected,
}

fn at(path: String) -> impl FnOnce(Rejected) -> LoadError {
    move |rejected| LoadError { path, rejected }
}

impl State {
    pub fn load(snapshot: &Snapshot) -> Result<State, LoadError> {
        let mut state = State::new();
        state.now = snapshot.now;
        state.seq = snapshot.seq;
        validate::policy(&snapshot.policy).map_err(at("policy".to_owned()))?;
        state.policy = snapshot.policy.clone();
        if !snapshot.classes.is_empty() {
            state.classes = snapshot.classes.clone();
        }
        state.models = Models {
            prices: snapshot.prices.clone(),
            speeds: snapshot.speeds.clone(),
            watts: snapshot.watts.clone(),
        };
        state.cluster.topologies =
            snapshot.topologies.iter().map(|(name, keys)| (name.clone(), keys.clone())).collect();
        state.load_nodes(snapshot)?;
        state.load_queues(snapshot)?;
        for (n, pool) in snapshot.pools.iter().enumerate() {
            let event = berth_model::Event::PoolSet { pool: Box::new(pool.clone()) };
            validate::event(&state, &event, state.now).map_err(at(format!("pools[{n}]")))?;
            state.pools.insert(pool.name.clone(), pool.clone());
        }
        state.claims =
            snapshot.claims.iter().map(|claim| (claim.name.clone(), claim.clone())).collect();
        state.claims_made = snapshot.claims_made;
        for past in &snapshot.history {
            let key = (past.user.clone(), past.name.clone());
            state.history.insert(key, Past { runs: past.runs, ratio: past.ratio });
        }
        for (id, name, outcome) in &snapshot.outcomes {
            state.outcomes.insert(*id, (name.clone(), *outcome));
            state.outcome_order.push_back(*id);
        }
        for (n, reservation) in snapshot.reservations.iter().enumerate() {
            let event = berth_model::Event::ReservationSet { reservation: reservation.clone() };
            validate::event(&state, &event, state.now).map_err(at(format!("reservations[{n}]")))?;
            state.reservations.insert(reservation.name.clone(), reservation.clone());
        }
        let all: Vec<Name> = state.cluster.by_name.keys().cloned().collect();
        state.lay_blocks_on(&all);
        state.load_jobs(snapshot)?;
        state.moves = snapshot.moves.iter().copied().collect();
        state.recent = snapshot.recent.iter().cloned().collect();
        Ok(state)
    }

    fn load_nodes(&mut self, snapshot: &Snapshot) -> Result<(), LoadError> {
        for (n, node) in snapshot.nodes.iter().enumerate() {
            let path = || format!("nodes[{n}]");
            validate::node(self, &node.spec).map_err(at(path()))?;
            if self.cluster.find(&node.spec.name).is_some() {
                let why = "another node has the same name".to_owned();
                let rejected = Rejected::BadNode { node: node.spec.name.clone(), why };
                return Err(LoadError { path: path(), rejected });
            }
            let ix = self.cluster.add(node.spec.clone(), node.since);
            let price = berth_ledger::cost::node_price(&node.spec, &self.models.prices);
            let account = NodeAccount {
                price,
                since: node.since,
                billed: node.billed,
                fragmented: Micros::ZERO,
            };
            self.ledger.restore_node(&node.spec.name, account);
            let prices = self.gpu_prices(&node.spec);
            let known = &mut self.cluster.nodes[ix.at()];
            known.gpu_prices = prices;
            known.idle_since = node.idle_since;
            if matches!(
                node.spec.state,
                berth_model::NodeState::Draining | berth_model::NodeState::Leaving { .. }
            ) {
                self.closing.insert(ix);
            }
        }
        Ok(())
    }

    fn load_queues(&mut self, snapshot: &Snapshot) -> Result<(), LoadError> {
        // Parents may come after their children: first all queues, then the tree.
        for (n, queue) in snapshot.queues.iter().enumerate() {
            let path = || format!("queues[{n}]");
            let alone = berth_model::QueueSpec { parent: None, ..queue.spec.clone() };
            validate::queue(self, &alone).map_err(at(path()))?;
            if self.queues.find(&queue.spec.name).is_some() {
                let rejected = Rejected::QueueInUse { queue: queue.spec.name.clone() };
                return Err(LoadError { path: path(), rejected });
            }
            let ix = self.queues.add(queue.spec.clone(), None);
            let known = self.queues.get_mut(ix);
            known.credits = queue.credits;
            known.past_use = queue.past_use;
            known.budget = queue.spec.budget.as_ref().map(|budget| {
                BudgetMeter::restore(queue.spec.name.clone(), budget.clone(), self.now, queue.spent)
            });
        }
        self.queues.roots.clear();
        for (n, queue) in snapshot.queues.iter().enumerate() {
            let path = || format!("queues[{n}]");
            let ix = QueueIx(n as u32);
            let Some(parent) = &queue.spec.parent else {
                self.queues.roots.push(ix);
                continue;
            };
            let unknown = Rejected::UnknownQueue { queue: parent.clone() };
            let up =
                self.queues.find(parent).ok_or(LoadError { path: path(), rejected: unknown })?;
            if self.queues.path(up).any(|other| other == ix) {
                let rejected =
                    Rejected::QueueCycle { queue: queue.spec.name.clone(), parent: parent.clone() };
                return Err(LoadError { path: path(), rejected });
            }
            let above = self.queues.get(up).spec.quota.clone();
            validate::percentages(&queue.spec, &above, parent).map_err(at(path()))?;
            self.queues.get_mut(ix).parent = Some(up);
            self.queues.get_mut(up).children.push(ix);
        }
        Ok(())
    }

    fn load_jobs(&mut self, snapshot: &Snapshot) -> Result<(), LoadError> {
        let mut loaded = Vec::with_capacity(snapshot.jobs.len());
        for (n, job) in snapshot.jobs.iter().enumerate() {
            let path = || format!("jobs[{n}]");
            validate::job(self, &job.spec, validate::When::Loaded).map_err(at(path()))?;
            if self.jobs.find(job.id()).is_some() {
                let rejected = Rejected::JobExists { job: job.id() };
                return Err(LoadError { path: path(), rejected });
            }
            let made = self.make(Arc::new(job.spec.clone()), job.id());
            let ix = self.insert(made);
            let known = self.jobs.get_mut(ix);
            known.first_start = job.first_start;
            known.last_checkpoint = job.last_checkpoint;
            known.saved = job.saved;
            known.estimate = job.estimate.unwrap_or(known.estimate);
            known.stale_since = job.stale_since;
            known.displaced = job.displaced;
            known.moved = job.moved;
            known.pauses = job.pauses.clone();
            known.paused = job.paused;
            known.released = job.released;
            known.failed = job.failed;
            known.cancelled = job.cancelled;
            known.set_aside = job.set_aside.clone();
            for (task, attempts) in &job.attempts {
                if let Some(task) = known.tasks.get_mut(*task as usize) {
                    task.attempts = *attempts;
                }
            }
            for task in &job.done {
                if let Some(task) = known.tasks.get_mut(*task as usize) {
                    task.done = true;
                    known.done += 1;
                }
            }
            if job.set_aside.is_some() {
                self.aside.insert(job.id());
            }
            loaded.push(ix);
        }
        for (n, job) in snapshot.jobs.iter().enumerate() {
            for (m, lease) in job.leases.iter().enumerate() {
                let path = format!("jobs[{n}].leases[{m}]");
                self.load_lease(loaded[n], job, lease).map_err(at(path))?;
            }
        }
        for (n, job) in snapshot.jobs.iter().enumerate() {
            if !job.leases.is_empty() {
                self.stand_running(loaded[n], job);
            }
        }
        let mut order: Vec<usize> = (0..loaded.len()).collect();
        // Elements of an array that hold a promise keep their place in line.
        let promised: std::collections::BTreeSet<_> =
            snapshot.promises.iter().map(|promise| promise.job).collect();
        order.sort_by_key(|n| {
            let id = snapshot.jobs[*n].id();
            (!promised.contains(&id), id)
        });
        for n in order {
            self.reconsider(loaded[n]);
        }
        for (n, promise) in snapshot.promises.iter().enumerate() {
            let path = format!("reservations[{n}]");
            let found = self.jobs.find(promise.job);
            let unknown = Rejected::UnknownJob { job: promise.job };
            let ix = found.ok_or(LoadError { path: path.clone(), rejected: unknown })?;
            if !matches!(self.jobs.get(ix).standing, Standing::Waiting | Standing::Ending) {
                continue;
            }
            let made = apply::promised(self, ix, promise.at, &promise.places, promise.firm)
                .map_err(|why| LoadError { path, rejected: Rejected::BadDecision { why } })?;
            self.promise(ix, made);
        }
        Ok(())
    }

    fn load_lease(
        &mut self,
        ix: crate::ix::JobIx,
        job: &JobSnapshot,
        lease: &LeaseSnapshot,
    ) -> Result<(), Rejected> {
        let bad = |why: String| Rejected::BadJob { what: format!("job {}", job.spec.name), why };
        let unknown = || Rejected::UnknownNode { node: lease.node.clone() };
        let node: NodeIx = self.cluster.find(&lease.node).ok_or_else(unknown)?;
        let known = self.jobs.get(ix);
        let Some(task) = known.tasks.get(lease.task as usize) else {
            return Err(bad(format!("it has no task {}", lease.task)));
        };
        if task.lease.is_some() {
            return Err(bad(format!("task {} is placed twice", lease.task)));
        }
        let leaf = self.leaf_of(ix, lease.task).clone();
        let target = self.cluster.node(node);
        let mut gpus = target.gpus.clone();
        for slice in &lease.slices {
            let has = gpus.len() as u32;
            let at = slice.gpu as usize;
            let Some(gpu) = gpus.get_mut(at) else {
                return Err(Rejected::UnknownGpu { node: lease.node.clone(), gpu: slice.gpu, has });
            };
            let model = &target.spec.gpus[at].model;
            if !gpu.fits(&slice.share, model) {
                return Err(bad(format!(
                    "GPU {} of {} is held already, or has no room for this share beside the others",
                    slice.gpu, lease.node
                )));
            }
            gpu.take(&slice.share, model);
        }
        let charge = self.charge_of(&leaf, node, &lease.slices);
        // What is placed is placed: a node may have less CPU and memory than when it was.
        let id = known.lease_id(lease.task, lease.attempt);
        let keys = berth_ledger::Keys::from(&*known.spec);
        let opened = Lease {
            attempt: lease.attempt,
            node,
            slices: lease.slices.clone(),
            charge,
            price: lease.price,
            since: lease.since,
            bound: lease.bound,
            stopping: lease.stopping.as_ref().map(|stop| Stop {
                cause: stop.cause,
                for_job: stop.for_job,
                until: stop.until,
            }),
        };
        let account = LeaseAccount {
            keys,
            gpus: berth_model::Milli(charge.gpu),
            price: lease.price,
            since: lease.since,
            billed: lease.billed,
            bound: lease.bound,
        };
        self.ledger.restore_lease(id, &lease.node, account);
        self.open_lease(TaskIx { job: ix, task: lease.task }, opened);
        let attempts = &mut self.jobs.get_mut(ix).tasks[lease.task as usize].attempts;
        *attempts = (*attempts).max(lease.attempt + 1);
        Ok(())
    }

    fn stand_running(&mut self, ix: crate::ix::JobIx, job: &JobSnapshot) {
        let started = job.started.or_else(|| job.leases.iter().map(|lease| lease.since).min());
        self.set_started(ix, started);
        let speed = crate::plan::job_speed(self, ix);
        let known = self.jobs.get_mut(ix);
        known.speed = speed;
        known.released |= !known.spec.after.is_empty();
        known.first_start = known.first_start.or(started);
        let id = known.id;
        let ending = known.live() == 0 || (known.stopping > 0 && job.stale_since.is_none());
        let whole = self.whole(ix);
        let known = self.jobs.get_mut(ix);
        known.standing = if ending && !whole { Standing::Ending } else { Standing::Running };
        if known.standing == Standing::Running {
            if known.failed || known.cancelled || known.hold {
                self.unsettled.insert(id);
            }
            if known.stale_since.is_some() {
                self.stale.insert(id);
            }
        }
        if known.spec.array.as_ref().is_some_and(|array| array.at_most.is_some()) {
            *self.arrays.entry(id.number).or_default() += 1;
        }
        self.look_for_gaps(ix);
    }

    fn lay_blocks_on(&mut self, nodes: &[Name]) {
        if !self.reservations.is_empty() {
            self.lay_blocks(nodes);
        }
    }

    /// The state as plain values.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { jobs: self.job_snapshots(None, usize::MAX), ..self.outline() }
    }

    /// Some jobs of a snapshot, at the most so many: those after one, by id.
    pub fn job_snapshots(&self, after: Option<JobId>, most: usize) -> Vec<JobSnapshot> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let jobs = self.jobs.by_id.range((from, Bound::Unbounded)).take(most);
        jobs.map(|(_, ix)| self.job_snapshot(self.jobs.get(*ix))).collect()
    }

    /// A snapshot without its jobs, which are most of it.
    pub fn outline(&self) -> Snapshot {
        let claims = self.claims.values().cloned().collect();
        Snapshot {
            now: self.now,
            seq: self.seq,
            topologies: self.cluster.topologies.iter().cloned().collect::<BTreeMap<_, _>>(),
            policy: self.policy.clone(),
            classes: self.classes.clone(),
            prices: self.models.prices.clone(),
            speeds: self.models.speeds.clone(),
            watts: self.models.watts.clone(),
            nodes: self.node_snapshots(),
            pools: self.pools.values().cloned().collect(),
            claims,
            claims_made: self.claims_made,
            queues: self.queue_snapshots(),
            history: self
                .history
                .iter()
                .map(|((user, name), past)| History {
                    user: user.clone(),
                    name: name.clone(),
                    runs: past.runs,
                    ratio: past.ratio,
                })
                .collect(),
            jobs: Vec::new(),
            outcomes: self
                .outcome_order
                .iter()
                .map(|id| {
                    let (name, outcome) = &self.outcomes[id];
                    (*id, name.clone(), *outcome)
                })
                .collect(),
            reservations: self.reservations.values().cloned().collect(),
            promises: self.promise_snapshots(),
            moves: self.moves.iter().copied().collect(),
            recent: self.recent.iter().cloned().collect(),
        }
    }

    /// The nodes of a snapshot alone, for which nobody has to wait until all jobs are copied.
    pub fn node_snapshots(&self) -> Vec<NodeSnapshot> {
        self.cluster.live().map(|(_, node)| self.node_snapshot(node)).collect()
    }

    /// The queues of a snapshot alone.
    pub fn queue_snapshots(&self) -> Vec<QueueSnapshot> {
        let snapshot = |queue: &crate::queues::Queue| QueueSnapshot {
            spec: queue.spec.clone(),
            credits: queue.credits,
            past_use: queue.past_use,
            spent: queue.budget.as_ref().map_or(Micros::ZERO, |meter| meter.spent),
        };
        self.queues.live().map(|(_, queue)| snapshot(queue)).collect()
    }

    fn promise_snapshots(&self) -> Vec<Promise> {
        let mut all: Vec<Promise> = self
            .promises
            .iter()
            .map(|(ix, promised)| Promise {
                job: self.jobs.get(*ix).id,
                at: promised.at,
                places: promised.places.iter().map(|(_, place)| place.clone()).collect(),
                firm: promised.firm,
            })
            .collect();
        all.sort_by_key(|promise| promise.job);
        all
    }

    fn node_snapshot(&self, node: &crate::cluster::node::Node) -> NodeSnapshot {
        let mut spec = node.spec.clone();
        for (at, gpu) in node.gpus.iter().enumerate() {
            // Idle instances are part of what is there; held ones are told by their leases.
            // Where no new ones can be made, those that are held are among those that there are.
            if gpu.mode == Mode::Mig && gpu.division.is_none() {
                let mig = gpu.mig.as_deref().filter(|mig| mig.fixed);
                spec.gpus[at].mig = mig.map(|mig| mig.idle.clone());
            }
        }
        let account = self.ledger.node(&node.spec.name);
        NodeSnapshot {
            spec,
            idle_since: node.idle_since,
            since: account.map_or(node.since, |account| account.since),
            billed: account.map_or(node.since, |account| account.billed),
        }
    }

    fn job_snapshot(&self, job: &crate::jobs::Job) -> JobSnapshot {
        let mut spec = (*job.spec).clone();
        spec.priority = job.priority;
        spec.hold = job.hold;
        spec.deadline = job.deadline;
        spec.queue = self.queues.get(job.queue).spec.name.clone();
        spec.time_limit = Some(job.time_limit);
        let leases = job.leases().map(|(task, lease)| {
            let id = job.lease_id(task, lease.attempt);
            let account = self.ledger.lease(id).map(|(_, account)| account);
            LeaseSnapshot {
                task,
                attempt: lease.attempt,
                node: self.cluster.node(lease.node).spec.name.clone(),
                slices: lease.slices.clone(),
                price: lease.price,
                since: account.map_or(lease.since, |account| account.since),
                billed: account.map_or(lease.since, |account| account.billed),
                bound: lease.bound,
                stopping: lease.stopping.as_ref().map(|stop| StopSnapshot {
                    cause: stop.cause,
                    for_job: stop.for_job,
                    until: stop.until,
                }),
            }
        });
        JobSnapshot {
            element: job.id.element,
            leases: leases.collect(),
            done: (0..job.tasks.len() as u32).filter(|t| job.tasks[*t as usize].done).collect(),
            attempts: job
                .tasks
                .iter()
                .enumerate()
                .filter(|(_, task)| task.attempts > 0)
                .map(|(at, task)| (at as u32, task.attempts))
                .collect(),
            first_start: job.first_start,
            started: job.started,
            last_checkpoint: job.last_checkpoint,
            saved: job.saved,
            estimate: Some(job.estimate),
            stale_since: job.stale_since,
            displaced: job.displaced,
            moved: job.moved,
            pauses: job.pauses.clone(),
            paused: job.paused,
            released: job.released,
            failed: job.failed,
            cancelled: job.cancelled,
            set_aside: job.set_aside.clone(),
            spec,
        }
    }

    /// A digest of everything a plan depends on (FNV-1a over the snapshot's text form).
    pub fn hash(&self) -> u64 {
        struct Fnv(u64);
        impl std::fmt::Write for Fnv {
            fn write_str(&mut self, text: &str) -> std::fmt::Result {
                for byte in text.bytes() {
                    self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
                }
                Ok(())
            }
        }
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        std::fmt::write(&mut hash, format_args!("{:?}", self.snapshot())).expect("never fails");
        hash.0
    }
}
