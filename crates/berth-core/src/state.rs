//! Everything a plan depends on, and the few operations that change it. `apply` and the draft of a
//! plan use the same ones, so what a plan tried is what applying its decisions does.

use crate::amounts::Charge;
use crate::cluster::Cluster;
use crate::ix::{JobIx, ModelIx, NodeIx, QueueIx, ShapeIx, TaskIx};
use crate::jobs::{Job, Jobs, Lease, Promised, Standing, Stop};
use crate::nodes::{Kept, Takes, share_milli};
use crate::past::History;
use crate::queues::{InLine, Queues};
use crate::shape::{Leaf, ModelFacts, Shape, ShapeKey, Tree};
use berth_ledger::Ledger;
use berth_model::{
    Bytes, ClaimSpec, GroupSpec, JobId, Lifecycle, Micros, Milli, Name, NodeState, Outcome, Policy,
    PoolSpec, PriorityClass, RecentAsk, Reservation, Slice, Span, Time, catalog,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What is known of a GPU model here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Models {
    pub prices: BTreeMap<Name, Micros>,
    pub speeds: BTreeMap<Name, Milli>,
    pub watts: BTreeMap<Name, i64>,
}

impl Models {
    /// Speed in thousandths of an H100; a model nobody knows counts as one.
    pub fn speed(&self, model: &str) -> i64 {
        let known = self.speeds.get(model).map(|speed| speed.0);
        known.or_else(|| catalog(model).map(|info| info.speed)).unwrap_or(1_000).max(1)
    }

    pub fn watts(&self, model: &str) -> i64 {
        let known = self.watts.get(model).copied();
        known.or_else(|| catalog(model).map(|info| info.watts)).unwrap_or(400).max(1)
    }

    /// Work per watt in thousandths of an H100's.
    pub fn efficiency(&self, model: &str) -> i64 {
        self.speed(model) * 700 / self.watts(model)
    }
}

/// What a parked job may be woken by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wake {
    Job(u64),
    Name(Name),
    Same(Name, Name),
    Array(u64),
}

/// The state of the cluster, its queues and its jobs at one instant.
#[derive(Debug, Clone)]
pub struct State {
    pub(crate) now: Time,
    pub(crate) seq: u64,
    pub(crate) policy: Policy,
    pub(crate) classes: BTreeMap<Name, PriorityClass>,
    pub(crate) models: Models,
    pub(crate) cluster: Cluster,
    pub(crate) shapes: Vec<Arc<Shape>>,
    pub(crate) shape_by_key: BTreeMap<ShapeKey, ShapeIx>,
    pub(crate) free_shapes: Vec<ShapeIx>,
    pub(crate) queues: Queues,
    pub(crate) jobs: Jobs,
    /// Jobs that run, by the time they must have ended.
    pub(crate) ends: BTreeSet<InLine>,
    /// Leases being stopped, and those of them with GPUs that are promised to nobody.
    pub(crate) stopping: BTreeSet<TaskIx>,
    pub(crate) loose: BTreeSet<TaskIx>,
    pub(crate) promises: BTreeMap<JobIx, Promised>,
    /// Jobs with a promise by its time; of each shape, and all.
    pub(crate) promised: BTreeMap<ShapeIx, BTreeSet<InLine>>,
    pub(crate) due: BTreeSet<InLine>,
    /// Parked jobs that begin at a time.
    pub(crate) begins: BTreeSet<InLine>,
    pub(crate) wakes: BTreeMap<Wake, BTreeSet<JobIx>>,
    /// How many elements of an array may run, and do.
    pub(crate) arrays: BTreeMap<u64, u32>,
    /// Jobs by name and user, for singletons, dependencies, near and away.
    pub(crate) named: BTreeMap<(Name, Name), BTreeSet<JobId>>,
    pub(crate) labelled: BTreeMap<(Name, Name), BTreeSet<JobId>>,
    /// Jobs with a group that may grow.
    pub(crate) elastic: BTreeSet<JobId>,
    pub(crate) stale: BTreeSet<JobId>,
    /// Jobs with leases that must be stopped: cancelled, failed or held.
    pub(crate) unsettled: BTreeSet<JobId>,
    /// Nodes that drain or leave.
    pub(crate) closing: BTreeSet<NodeIx>,
    /// Jobs whose decisions failed the check.
    pub(crate) aside: BTreeSet<JobId>,
    pub(crate) outcomes: BTreeMap<JobId, (Name, Outcome)>,
    pub(crate) outcome_order: VecDeque<JobId>,
    pub(crate) history: History,
    pub(crate) pools: BTreeMap<Name, PoolSpec>,
    pub(crate) claims: BTreeMap<Name, ClaimSpec>,
    pub(crate) claims_made: u64,
    pub(crate) reservations: BTreeMap<Name, Reservation>,
    pub(crate) moves: VecDeque<Time>,
    pub(crate) recent: VecDeque<RecentAsk>,
    pub(crate) ledger: Ledger,
}

impl Default for State {
    fn default() -> State {
        State::new()
    }
}

impl State {
    pub fn new() -> State {
        let class = |value, across| PriorityClass { value, across };
        State {
            now: Time(0),
            seq: 0,
            policy: Policy::default(),
            classes: BTreeMap::from([
                (Name::new("critical"), class(1_000, true)),
                (Name::new("high"), class(100, false)),
                (Name::new("normal"), class(50, false)),
                (Name::new("low"), class(10, false)),
            ]),
            models: Models::default(),
            cluster: Cluster::new(),
            shapes: Vec::new(),
            shape_by_key: BTreeMap::new(),
            free_shapes: Vec::new(),
            queues: Queues::default(),
            jobs: Jobs::default(),
            ends: BTreeSet::new(),
            stopping: BTreeSet::new(),
            loose: BTreeSet::new(),
            promises: BTreeMap::new(),
            promised: BTreeMap::new(),
            due: BTreeSet::new(),
            begins: BTreeSet::new(),
            wakes: BTreeMap::new(),
            arrays: BTreeMap::new(),
            named: BTreeMap::new(),
            labelled: BTreeMap::new(),
            closing: BTreeSet::new(),
            aside: BTreeSet::new(),
            elastic: BTreeSet::new(),
            stale: BTreeSet::new(),
            unsettled: BTreeSet::new(),
            outcomes: BTreeMap::new(),
            outcome_order: VecDeque::new(),
            history: BTreeMap::new(),
            pools: BTreeMap::new(),
            claims: BTreeMap::new(),
            claims_made: 0,
            reservations: BTreeMap::new(),
            moves: VecDeque::new(),
            recent: VecDeque::new(),
            ledger: Ledger::default(),
        }
    }

    /// The time of the last event.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The place of the last event in the log.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    pub fn classes(&self) -> &BTreeMap<Name, PriorityClass> {
        &self.classes
    }

    /// Dollars per GPU-hour by model, where one is set.
    pub fn prices(&self) -> &BTreeMap<Name, Micros> {
        &self.models.prices
    }

    /// The GPU models there are, with their memory.
    pub fn gpu_models(&self) -> BTreeMap<Name, Bytes> {
        let gpus = self.cluster.nodes.iter().flat_map(|node| &node.spec.gpus);
        gpus.map(|gpu| (gpu.model.clone(), gpu.memory)).collect()
    }

    /// The levels of all topologies, besides `node` and `nvlink`.
    pub fn levels(&self) -> BTreeSet<Name> {
        self.cluster.topologies.iter().flat_map(|(_, keys)| keys.iter().cloned()).collect()
    }

    /// What a job that has not ended asks for.
    pub fn asks_of(&self, job: JobId) -> Option<&[GroupSpec]> {
        Some(&self.jobs.get(self.jobs.find(job)?).spec.groups)
    }

    /// How long a job that has not ended is expected to run in all.
    pub fn estimate(&self, job: JobId) -> Option<Span> {
        self.jobs.find(job).map(|ix| self.jobs.get(ix).estimate)
    }

    /// The groups of tasks of a job: how many each has, and how many of them at the most may share
    /// a domain.
    pub fn groups_of(&self, job: JobId) -> Vec<(u32, Option<u32>)> {
        let Some(ix) = self.jobs.find(job) else { return Vec::new() };
        let leaves = self.shape_of(ix).leaves.iter();
        leaves.map(|leaf| (leaf.count, leaf.spread.map(|(_, at_most)| at_most))).collect()
    }

    /// How many GPUs of a node nobody has anything of. None where the node takes nobody.
    pub fn free_gpus(&self, node: &str) -> u32 {
        let node = self.cluster.find(node).map(|ix| self.cluster.node(ix));
        node.filter(|node| node.open()).map_or(0, |node| node.free_whole())
    }

    /// Whether places are kept for a job, now or from some time on.
    pub fn is_promised(&self, job: JobId) -> bool {
        self.jobs.find(job).is_some_and(|ix| self.promises.contains_key(&ix))
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether jobs of this priority reach across queues: those of the class it falls into do.
    pub(crate) fn across(&self, priority: i32) -> bool {
        let reached = self.classes.values().filter(|class| class.value <= priority);
        reached.max_by_key(|class| (class.value, class.across)).is_some_and(|class| class.across)
    }

    pub(crate) fn model_facts(&self) -> ModelFacts {
        let models = &self.cluster.models;
        ModelFacts {
            efficiency: models.iter().map(|model| self.models.efficiency(model)).collect(),
            speed: models.iter().map(|model| self.models.speed(model)).collect(),
        }
    }

    /// The shape of a request, counted as used once more.
    pub(crate) fn intern_shape(
        &mut self,
        groups: &[GroupSpec],
        lifecycle: Option<Lifecycle>,
    ) -> ShapeIx {
        let key = ShapeKey::of(groups, lifecycle);
        if let Some(ix) = self.shape_by_key.get(&key) {
            Arc::make_mut(&mut self.shapes[ix.at()]).uses += 1;
            return *ix;
        }
        let known = self.model_facts();
        let mut shape = Shape::new(key.clone(), &mut self.cluster, &self.policy, &known);
        shape.uses = 1;
        let shape = Arc::new(shape);
        let ix = match self.free_shapes.pop() {
            Some(ix) => {
                self.shapes[ix.at()] = shape;
                ix
            }
            None => {
                self.shapes.push(shape);
                ShapeIx(self.shapes.len() as u32 - 1)
            }
        };
        self.shape_by_key.insert(key, ix);
        ix
    }

    pub(crate) fn drop_shape(&mut self, ix: ShapeIx) {
        let shape = Arc::make_mut(&mut self.shapes[ix.at()]);
        shape.uses -= 1;
        if shape.uses == 0 {
            self.shape_by_key.remove(&shape.key);
            self.free_shapes.push(ix);
        }
    }

    /// Brings what depends on classes of nodes and on capacity up to date; changes no meaning.
    pub(crate) fn refresh(&mut self) {
        let version = self.cluster.version;
        self.queues.resolve(&self.cluster);
        if self.shapes.iter().all(|shape| shape.uses == 0 || shape.version == version) {
            return;
        }
        let known = self.model_facts();
        for at in 0..self.shapes.len() {
            if self.shapes[at].uses == 0 || self.shapes[at].version == version {
                continue;
            }
            let mut shape = (*self.shapes[at]).clone();
            shape.refresh(&self.cluster, &self.policy, &known);
            // A share by memory may be of another size now, and jobs stand in line by size.
            let resized = shape.amounts.gpu != self.shapes[at].amounts.gpu;
            let lined: Vec<JobIx> =
                if resized { self.in_line(ShapeIx(at as u32)) } else { Vec::new() };
            for job in &lined {
                self.step_out(*job);
            }
            self.shapes[at] = Arc::new(shape);
            for job in lined {
                self.line_up(job);
            }
        }
    }

    /// The jobs of a shape that are in line.
    fn in_line(&self, shape: ShapeIx) -> Vec<JobIx> {
        let lines = self.queues.all.iter().filter_map(|queue| queue.line.shapes.get(&shape));
        let jobs = lines.flat_map(|line| line.lists.values()).flatten();
        jobs.map(|(_, _, job)| *job).collect()
    }

    pub(crate) fn shape_of(&self, job: JobIx) -> &Shape {
        &self.shapes[self.jobs.get(job).shape.at()]
    }

    pub(crate) fn leaf_of(&self, job: JobIx, task: u32) -> &Leaf {
        let shape = self.shape_of(job);
        &shape.leaves[shape.leaf_of(task)]
    }

    /// What a task holds with these slices.
    pub(crate) fn charge_of(&self, leaf: &Leaf, node: NodeIx, slices: &[Slice]) -> Charge {
        let node = self.cluster.node(node);
        let milli =
            |slice: &Slice| share_milli(&slice.share, &node.spec.gpus[slice.gpu as usize].model);
        Charge {
            gpu: slices.iter().map(milli).sum(),
            model: slices.first().map(|slice| node.gpus[slice.gpu as usize].model),
            cpu: leaf.need.cpu,
            memory: leaf.need.memory,
        }
    }

    pub(crate) fn price_of(&self, node: NodeIx, slices: &[Slice], cpu: i64) -> Micros {
        let node = self.cluster.node(node);
        let models: Vec<Name> = node.spec.gpus.iter().map(|gpu| gpu.model.clone()).collect();
        if node.spec.gpus.is_empty() {
            let price = berth_ledger::cost::node_price(&node.spec, &self.models.prices);
            return berth_ledger::cost::cpu_price(price, node.spec.cpu, berth_model::Cpu(cpu));
        }
        berth_ledger::cost::lease_price(&node.gpu_prices, slices, &models)
    }

    /// Opens a lease: the task holds the slices from now on.
    pub(crate) fn open_lease(&mut self, task: TaskIx, lease: Lease) {
        let job = self.jobs.get_mut(task.job);
        let (queue, user) = (job.queue, job.spec.user.clone());
        let slot = &mut job.tasks[task.task as usize];
        assert!(slot.lease.is_none(), "a task was started twice");
        let stopping = lease.stopping.is_some();
        let (charge, node) = (lease.charge, lease.node);
        let shape = &self.shapes[job.shape.at()];
        let counted = &shape.leaves[shape.leaf_of(task.task)].need.counted;
        let held = Takes { cpu: charge.cpu, memory: charge.memory, counted };
        self.cluster.take(lease.node, task, &lease.slices, &held);
        slot.lease = Some(Box::new(lease));
        job.open += 1;
        if stopping {
            job.stopping += 1;
            self.stopping.insert(task);
        } else {
            self.queues.charge(queue, &user, &charge, 1);
            if job.preemptible() {
                hold(&mut self.cluster, &mut self.queues, node, queue, charge.gpu);
            }
            self.hold_gpus(task, 1);
        }
        let job = self.jobs.get(task.job);
        if job.open == 1 {
            let (id, priority) = (job.id, job.priority);
            let queue = self.queues.get_mut(queue);
            queue.running.insert(id, task.job);
            *queue.running_priorities.entry(priority).or_default() += 1;
        }
        if stopping {
            self.look_for_loose(node);
        }
    }

    /// Closes a lease and hands it out.
    pub(crate) fn close_lease(&mut self, task: TaskIx) -> Lease {
        let held = self.jobs.get(task.job).tasks[task.task as usize].lease.as_deref();
        if held.is_some_and(|lease| lease.stopping.is_none()) {
            self.hold_gpus(task, -1);
        }
        let job = self.jobs.get_mut(task.job);
        let (queue, user) = (job.queue, job.spec.user.clone());
        let lease = *job.tasks[task.task as usize].lease.take().expect("the lease is open");
        let charge = lease.charge;
        let shape = &self.shapes[job.shape.at()];
        let counted = &shape.leaves[shape.leaf_of(task.task)].need.counted;
        let held = Takes { cpu: charge.cpu, memory: charge.memory, counted };
        self.cluster.give(lease.node, task, &lease.slices, &held);
        job.open -= 1;
        if lease.stopping.is_some() {
            job.stopping -= 1;
            self.stopping.remove(&task);
            self.loose.remove(&task);
        } else {
            self.queues.charge(queue, &user, &charge, -1);
            if job.preemptible() {
                hold(&mut self.cluster, &mut self.queues, lease.node, queue, -charge.gpu);
            }
        }
        if job.open == 0 {
            let (id, priority) = (job.id, job.priority);
            let queue = self.queues.get_mut(queue);
            queue.running.remove(&id);
            less(&mut queue.running_priorities, priority);
        }
        lease
    }

    /// Marks a lease as being stopped, or takes the mark away; returns the mark it had.
    pub(crate) fn mark_stopping(&mut self, task: TaskIx, stop: Option<Stop>) -> Option<Stop> {
        let held = self.jobs.get(task.job).tasks[task.task as usize].lease.as_deref();
        let was = held.is_some_and(|lease| lease.stopping.is_some());
        if was != stop.is_some() {
            self.hold_gpus(task, if was { 1 } else { -1 });
        }
        let job = self.jobs.get_mut(task.job);
        let (queue, user) = (job.queue, job.spec.user.clone());
        let lease = job.tasks[task.task as usize].lease.as_mut().expect("the lease is open");
        let (charge, node) = (lease.charge, lease.node);
        let is = stop.is_some();
        let before = std::mem::replace(&mut lease.stopping, stop);
        match (before.is_some(), is) {
            (false, true) => {
                job.stopping += 1;
                self.stopping.insert(task);
                self.queues.charge(queue, &user, &charge, -1);
                if job.preemptible() {
                    hold(&mut self.cluster, &mut self.queues, node, queue, -charge.gpu);
                }
            }
            (true, false) => {
                job.stopping -= 1;
                self.stopping.remove(&task);
                self.loose.remove(&task);
                self.queues.charge(queue, &user, &charge, 1);
                if job.preemptible() {
                    hold(&mut self.cluster, &mut self.queues, node, queue, charge.gpu);
                }
            }
            _ => {}
        }
        self.cluster.outdate(node);
        self.look_for_loose(node);
        before
    }

    /// Counts the GPUs of a live lease among those that its queue may have to give up.
    pub(crate) fn hold_gpus(&mut self, task: TaskIx, times: i32) {
        let job = self.jobs.get(task.job);
        // What a gang has beyond its minimum anybody in its queue may have.
        let class = match self.elastic.contains(&job.id) {
            true => i32::MIN,
            false if job.preemptible() => job.priority,
            false => return,
        };
        let Some(lease) = job.tasks[task.task as usize].lease.as_deref() else { return };
        let queue = self.queues.get_mut(job.queue);
        queue.tops = None;
        for slice in &lease.slices {
            let key = (class, lease.node, slice.gpu);
            let count = queue.held.entry(key).or_default();
            *count = count.wrapping_add_signed(times);
            if *count == 0 {
                queue.held.remove(&key);
            }
        }
    }

    /// Finds out which leases that are being stopped on a node have GPUs promised to nobody.
    fn look_for_loose(&mut self, ix: NodeIx) {
        if self.stopping.is_empty() {
            return;
        }
        let node = self.cluster.node(ix);
        for task in &node.tasks {
            let lease = self.jobs.get(task.job).tasks[task.task as usize].lease.as_deref();
            let is_loose = lease.is_some_and(|lease| {
                let kept = |gpu: u32| {
                    let mut slices = node.kept.iter().flat_map(|kept| &kept.slices);
                    slices.any(|slice| slice.gpu == gpu)
                };
                lease.stopping.is_some() && lease.slices.iter().any(|slice| !kept(slice.gpu))
            });
            match is_loose {
                true => self.loose.insert(*task),
                false => self.loose.remove(task),
            };
        }
    }

    /// How the job stands in its queue's line.
    fn line_key(&self, ix: JobIx) -> (ShapeIx, (Reverse<i32>, u32), InLine, Option<InLine>) {
        let job = self.jobs.get(ix);
        let gpus = self.shapes[job.shape.at()].amounts.gpu.max(1);
        let class = work_class(gpus, job.estimate_left());
        let place = (job.spec.submitted, job.id, ix);
        let latest = job.deadline.map(|deadline| (deadline - job.estimate_left(), job.id, ix));
        (job.shape, (Reverse(job.priority), class), place, latest)
    }

    /// Puts a waiting job in line, unless others make place for it already.
    pub(crate) fn line_up(&mut self, ix: JobIx) {
        if self.jobs.get(ix).lined || self.promises.get(&ix).is_some_and(|promised| promised.firm) {
            return;
        }
        self.jobs.get_mut(ix).lined = true;
        let (shape, list, place, latest) = self.line_key(ix);
        let job = self.jobs.get(ix);
        let hold = self.hold(job);
        let queue = self.queues.get_mut(job.queue);
        let line = &mut queue.line;
        let of_shape = line.shapes.entry(shape).or_default();
        let first = of_shape.holds.keys().next().is_none_or(|first| hold < *first);
        queue.heads += u64::from(first || !of_shape.priorities.contains_key(&list.0.0));
        *of_shape.holds.entry(hold).or_default() += 1;
        of_shape.count += 1;
        *of_shape.priorities.entry(list.0.0).or_default() += 1;
        of_shape.lists.entry(list).or_default().insert(place);
        *line.priorities.entry(list.0.0).or_default() += 1;
        line.oldest.insert(place);
        line.deadlines.extend(latest);
    }

    /// Takes a job out of the line; whether it was there.
    pub(crate) fn step_out(&mut self, ix: JobIx) -> bool {
        if !self.jobs.get(ix).lined {
            return false;
        }
        self.jobs.get_mut(ix).lined = false;
        let (shape, list, place, latest) = self.line_key(ix);
        let job = self.jobs.get(ix);
        let hold = self.hold(job);
        let line = &mut self.queues.get_mut(job.queue).line;
        let of_shape = line.shapes.get_mut(&shape).expect("the job is in line");
        less(&mut of_shape.holds, hold);
        of_shape.count -= 1;
        less(&mut of_shape.priorities, list.0.0);
        let jobs = of_shape.lists.get_mut(&list).expect("the job is in line");
        assert!(jobs.remove(&place), "the job is in line");
        if jobs.is_empty() {
            of_shape.lists.remove(&list);
        }
        if of_shape.count == 0 {
            line.shapes.remove(&shape);
        }
        less(&mut line.priorities, list.0.0);
        line.oldest.remove(&place);
        if let Some(latest) = latest {
            line.deadlines.remove(&latest);
        }
        true
    }

    pub(crate) fn set_started(&mut self, ix: JobIx, started: Option<Time>) -> Option<Time> {
        let job = self.jobs.get_mut(ix);
        let before = job.started;
        if let Some(ends) = job.ends() {
            self.ends.remove(&(ends, job.id, ix));
        }
        job.started = started;
        if let Some(ends) = job.ends() {
            self.ends.insert((ends, job.id, ix));
        }
        if let Some(at) = started.filter(|_| job.displaced > 0) {
            self.jobs.last_return = self.jobs.last_return.max(at);
        }
        self.outdate_under(ix);
        before
    }

    /// The GPUs the job holds come free at another time than before.
    pub(crate) fn outdate_under(&mut self, ix: JobIx) {
        for (_, lease) in self.jobs.get(ix).leases() {
            self.cluster.outdate(lease.node);
        }
    }

    /// Keeps places for a job. What is firmly promised counts as used.
    pub(crate) fn promise(&mut self, ix: JobIx, promised: Promised) {
        for (node, place) in &promised.places {
            let leaf = self.leaf_of(ix, place.task);
            let kept = Kept {
                job: ix,
                from: promised.at,
                to: promised.to,
                slices: place.slices.clone(),
                gpus: place
                    .slices
                    .iter()
                    .filter(|slice| slice.gpu < 64)
                    .fold(0, |gpus, slice| gpus | 1 << slice.gpu),
                cpu: leaf.need.cpu,
                memory: leaf.need.memory,
                counted: leaf.need.counted.clone(),
                ready: false,
            };
            self.cluster.keep(*node, kept);
            self.look_for_loose(*node);
        }
        if promised.firm {
            self.charge_promise(ix, &promised, 1);
        }
        self.list_promise(ix, &promised, true);
        let firm = promised.firm;
        let before = self.promises.insert(ix, promised);
        assert!(before.is_none(), "a job was promised two sets of places");
        if firm {
            self.step_out(ix);
        }
    }

    pub(crate) fn unpromise(&mut self, ix: JobIx) -> Option<Promised> {
        let promised = self.promises.remove(&ix)?;
        for (node, _) in &promised.places {
            self.cluster.unkeep(*node, ix);
            self.look_for_loose(*node);
        }
        self.cluster.forget(ix);
        if promised.firm {
            self.charge_promise(ix, &promised, -1);
        }
        self.list_promise(ix, &promised, false);
        if promised.firm && self.is_waiting(ix) {
            self.line_up(ix);
        }
        Some(promised)
    }

    /// Enters a promise in the lists of promises, or strikes it out.
    fn list_promise(&mut self, ix: JobIx, promised: &Promised, enter: bool) {
        let job = self.jobs.get(ix);
        let place = (promised.at, job.id, ix);
        let of_shape = self.promised.entry(job.shape).or_default();
        let queue = self.queues.get_mut(job.queue);
        if enter {
            of_shape.insert(place);
            self.due.insert(place);
        } else {
            of_shape.remove(&place);
            self.due.remove(&place);
        }
        if of_shape.is_empty() {
            self.promised.remove(&job.shape);
        }
        // The same whether it was never entered or struck out again.
        if !promised.firm {
            queue.ways ^= promised.looks(ix);
        }
        match (promised.firm, enter) {
            (true, true) => queue.claims += 1,
            (true, false) => queue.claims -= 1,
            (false, true) => {
                queue.distant.insert(ix);
            }
            (false, false) => {
                queue.distant.remove(&ix);
            }
        }
    }

    /// Works out anew until when what is promised to the job would be held by it.
    pub(crate) fn retime(&mut self, ix: JobIx) {
        if let Some(mut promised) = self.unpromise(ix) {
            promised.to = promised.at + self.hold(self.jobs.get(ix));
            self.promise(ix, promised);
        }
    }

    fn charge_promise(&mut self, ix: JobIx, promised: &Promised, times: i64) {
        let (queue, user) = {
            let job = self.jobs.get(ix);
            (job.queue, job.spec.user.clone())
        };
        for (node, place) in &promised.places {
            let charge = self.charge_of(self.leaf_of(ix, place.task), *node, &place.slices);
            self.queues.charge(queue, &user, &charge, times);
        }
    }

    /// How long the job would hold what it starts on, for the promises made to others.
    pub(crate) fn hold(&self, job: &Job) -> Span {
        match self.policy.backfill {
            berth_model::BackfillEnds::Limits => job.limit_left() + job.grace(&self.policy),
            berth_model::BackfillEnds::Estimates => job.estimate_left(),
        }
    }

    /// When a running job's GPUs are taken to be free again.
    pub(crate) fn expected_end(&self, job: &Job, lease: &Lease) -> Time {
        if let Some(stop) = &lease.stopping {
            return stop.until.max(self.now);
        }
        let started = job.started.unwrap_or(lease.since);
        match self.policy.backfill {
            berth_model::BackfillEnds::Limits => {
                // Past its limit it is being stopped, with its grace still to run.
                (started + job.limit_left()).max(self.now) + job.grace(&self.policy)
            }
            berth_model::BackfillEnds::Estimates => {
                // Slower models than asked for first take longer.
                let slowed = i128::from(job.estimate_left().0) * 1_000 / i128::from(job.speed);
                let expected = started + Span(slowed as i64);
                // An overrun is taken to last as long again as it already has.
                if expected > self.now {
                    expected
                } else {
                    self.now + (self.now - expected).max(Span::mins(1))
                }
            }
        }
    }

    pub(crate) fn model_name(&self, model: ModelIx) -> &Name {
        &self.cluster.models[model.at()]
    }

    /// Whether every group has at least its minimum of live tasks (ended ones count).
    pub(crate) fn whole(&self, ix: JobIx) -> bool {
        self.missing(ix) == 0
    }

    /// Tasks missing to the minimum.
    pub(crate) fn missing(&self, ix: JobIx) -> u32 {
        let job = self.jobs.get(ix);
        let shape = self.shape_of(ix);
        self.missing_in(job, shape, &shape.tree)
    }

    /// Tasks missing to the minimum of a subtree.
    pub(crate) fn missing_in(&self, job: &Job, shape: &Shape, tree: &Tree) -> u32 {
        match tree {
            Tree::Leaf(at) => {
                let leaf = &shape.leaves[*at];
                let range = leaf.first as usize..(leaf.first + leaf.count) as usize;
                let alive = job.tasks[range].iter().filter(|task| {
                    task.done
                        || task.lease.as_ref().is_some_and(|lease| {
                            let state = self.cluster.node(lease.node).spec.state;
                            lease.stopping.is_none() && state != NodeState::Failed
                        })
                });
                leaf.min.saturating_sub(alive.count() as u32)
            }
            Tree::Group { children, min, .. } => {
                let each = children.iter().map(|child| self.missing_in(job, shape, child));
                let mut each: Vec<u32> = each.collect();
                each.sort_unstable();
                each.iter().take(*min as usize).sum()
            }
        }
    }

    pub(crate) fn is_waiting(&self, ix: JobIx) -> bool {
        self.jobs.get(ix).standing == Standing::Waiting
    }

    /// A cost that orders victims: run time that would be lost, and restarting, times GPUs.
    pub(crate) fn loss(&self, ix: JobIx) -> i128 {
        let job = self.jobs.get(ix);
        let span = job.unsaved(self.now) + job.restart_cost(&self.policy);
        i128::from(span.0) * i128::from(job.held_gpu())
    }
}

/// Takes one away from a count, and the count with it when none is left.
pub(crate) fn less<K: Ord>(counts: &mut BTreeMap<K, u32>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

/// A queue holds so much more, by jobs that may be stopped, on a node.
fn hold(cluster: &mut Cluster, queues: &mut Queues, node: NodeIx, queue: QueueIx, gpu: i64) {
    cluster.held[node.at()].add(queue, gpu);
    let on_nodes = &mut queues.get_mut(queue).on_nodes;
    let held = on_nodes.entry(node).or_default();
    *held += gpu;
    if *held == 0 {
        on_nodes.remove(&node);
    }
}

/// The class of a job's work: the exponent of √2 at or above GPU-seconds.
pub(crate) fn work_class(gpu_milli: i64, span: Span) -> u32 {
    let work = i128::from(gpu_milli) * i128::from(span.0.max(1)) / 1_000_000;
    // No more than what can be squared.
    let work = work.clamp(1, i128::from(i64::MAX)) as u128;
    let square = work * work;
    // The least k with 2^k >= work².
    128 - (square - 1).leading_zeros()
}

/// The work a class stands for, in GPU-seconds.
pub(crate) fn work_of(class: u32) -> u128 {
    let half = 1u128 << (class / 2);
    if class.is_multiple_of(2) { half } else { (half * 1_414_213_562).div_ceil(1_000_000_000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_of_work_is_the_next_power_of_root_two() {
        assert_eq!(work_class(1_000, Span::secs(1)), 0);
        assert_eq!(work_class(1_000, Span::secs(2)), 2);
        assert_eq!(work_class(1_000, Span::secs(3)), 4);
        assert_eq!(work_class(2_000, Span::secs(1_000)), work_class(1_000, Span::secs(2_000)));
        for class in 0..80 {
            assert!(work_of(class) <= work_of(class + 1));
        }
    }
}
