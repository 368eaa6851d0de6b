//! Opening, closing and stopping leases, with everything that is counted along.

use crate::amounts::Charge;
use crate::cluster::Cluster;
use crate::cluster::gpu::share_milli;
use crate::cluster::node::{Counted, TaskAmounts};
use crate::ix::{NodeIx, QueueIx, TaskIx};
use crate::jobs::{Lease, Stop};
use crate::queues::Queues;
use crate::shape::leaf::Leaf;
use crate::state::State;
use crate::state::pending::decrement;
use berth_model::{Micros, Name, Slice};

impl State {
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
        let held = TaskAmounts { queue, cpu: charge.cpu, memory: charge.memory, counted };
        self.cluster.take(lease.node, task, &lease.slices, &held);
        slot.lease = Some(Box::new(lease));
        job.open += 1;
        if stopping {
            job.stopping += 1;
            self.stopping.insert(task);
        } else {
            self.queues.charge(queue, &user, &charge, 1);
            if job.preemptible() {
                add_held(&mut self.cluster, &mut self.queues, node, queue, charge.gpu);
            }
            self.count_held_gpus(task, 1);
        }
        let job = self.jobs.get(task.job);
        if job.open == 1 {
            let (id, priority) = (job.id, job.priority);
            let queue = self.queues.get_mut(queue);
            queue.running.insert(id, task.job);
            *queue.running_priorities.entry(priority).or_default() += 1;
        }
        self.renew_task_end(task);
        if stopping {
            self.update_releasing(node);
        }
    }

    /// Closes a lease and hands it out.
    pub(crate) fn close_lease(&mut self, task: TaskIx) -> Lease {
        let held = self.jobs.get(task.job).tasks[task.task as usize].lease.as_deref();
        if held.is_some_and(|lease| lease.stopping.is_none()) {
            self.count_held_gpus(task, -1);
        }
        let job = self.jobs.get_mut(task.job);
        let (queue, user) = (job.queue, job.spec.user.clone());
        let lease = *job.tasks[task.task as usize].lease.take().expect("the lease is open");
        let charge = lease.charge;
        let shape = &self.shapes[job.shape.at()];
        let counted = &shape.leaves[shape.leaf_of(task.task)].need.counted;
        let held = TaskAmounts { queue, cpu: charge.cpu, memory: charge.memory, counted };
        self.cluster.give(lease.node, task, &lease.slices, &held);
        job.open -= 1;
        if lease.stopping.is_some() {
            job.stopping -= 1;
            self.stopping.remove(&task);
            self.releasing.remove(&task);
        } else {
            self.queues.charge(queue, &user, &charge, -1);
            if job.preemptible() {
                add_held(&mut self.cluster, &mut self.queues, lease.node, queue, -charge.gpu);
            }
        }
        if job.open == 0 {
            let (id, priority) = (job.id, job.priority);
            let queue = self.queues.get_mut(queue);
            queue.running.remove(&id);
            decrement(&mut queue.running_priorities, priority);
        }
        lease
    }

    /// Marks a lease as being stopped, or takes the mark away; returns the mark it had.
    pub(crate) fn mark_stopping(&mut self, task: TaskIx, stop: Option<Stop>) -> Option<Stop> {
        let held = self.jobs.get(task.job).tasks[task.task as usize].lease.as_deref();
        let was = held.is_some_and(|lease| lease.stopping.is_some());
        if was != stop.is_some() {
            self.count_held_gpus(task, if was { 1 } else { -1 });
        }
        let job = self.jobs.get_mut(task.job);
        let (queue, user) = (job.queue, job.spec.user.clone());
        let lease = job.tasks[task.task as usize].lease.as_mut().expect("the lease is open");
        let (charge, node) = (lease.charge, lease.node);
        let is = stop.is_some();
        let before = std::mem::replace(&mut lease.stopping, stop);
        if is != before.is_some() {
            self.count_disruption(task.job, is);
        }
        let job = self.jobs.get_mut(task.job);
        match (before.is_some(), is) {
            (false, true) => {
                job.stopping += 1;
                self.stopping.insert(task);
                self.queues.charge(queue, &user, &charge, -1);
                if job.preemptible() {
                    add_held(&mut self.cluster, &mut self.queues, node, queue, -charge.gpu);
                }
            }
            (true, false) => {
                job.stopping -= 1;
                self.stopping.remove(&task);
                self.releasing.remove(&task);
                self.queues.charge(queue, &user, &charge, 1);
                if job.preemptible() {
                    add_held(&mut self.cluster, &mut self.queues, node, queue, charge.gpu);
                }
            }
            _ => {}
        }
        self.cluster.mark_dirty(node);
        self.renew_task_end(task);
        self.update_releasing(node);
        before
    }

    /// Counts the GPUs of a live lease among those that its queue may have to give up.
    pub(crate) fn count_held_gpus(&mut self, task: TaskIx, times: i32) {
        let job = self.jobs.get(task.job);
        // What a gang has beyond its minimum anybody in its queue may have.
        let class = match self.elastic.contains(&job.id) {
            true => i32::MIN,
            false if job.preemptible() => job.priority,
            false => return,
        };
        let Some(lease) = job.tasks[task.task as usize].lease.as_deref() else { return };
        let queue = self.queues.get_mut(job.queue);
        queue.held_by_priority = None;
        for slice in &lease.slices {
            let key = (class, lease.node, slice.gpu);
            let count = queue.held.entry(key).or_default();
            *count = count.wrapping_add_signed(times);
            if *count == 0 {
                queue.held.remove(&key);
            }
        }
    }

    /// Finds the leases that are being stopped on a node and of which something is promised to no
    /// job: GPUs, or what else the node has too little of for all.
    pub(super) fn update_releasing(&mut self, ix: NodeIx) {
        if self.stopping.is_empty() {
            return;
        }
        let given = self.given_back(ix);
        let node = self.cluster.node(ix);
        for task in &node.tasks {
            let lease = self.jobs.get(task.job).tasks[task.task as usize].lease.as_deref();
            let is_releasing = lease.is_some_and(|lease| {
                let kept = |gpu: u32| {
                    let mut slices = node.promised_slots.iter().flat_map(|kept| &kept.slices);
                    slices.any(|slice| slice.gpu == gpu)
                };
                let gives = || {
                    let counted = &self.leaf_of(task.job, task.task).need.counted;
                    given.comes_of(lease, counted)
                };
                lease.stopping.is_some()
                    && (lease.slices.iter().any(|slice| !kept(slice.gpu)) || gives())
            });
            match is_releasing {
                true => self.releasing.insert(*task),
                false => self.releasing.remove(task),
            };
        }
    }
}

/// What all that is being stopped on a node gives back, beside GPUs, less what is promised there;
/// and what is free there now. Nothing of what does not bind the node.
#[derive(Debug, Default)]
struct GivenBack {
    cpu: i64,
    memory: i64,
    tasks: i64,
    counted: Counted,
    free: (i64, i64, i64),
}

impl GivenBack {
    /// Whether the lease gives anything back that no job has a promise of. What a task without GPUs
    /// gives back may be needed beside what is free; of others only what is more than is promised.
    fn comes_of(&self, lease: &Lease, counted: &Counted) -> bool {
        let (cpu, memory, tasks) = match lease.slices.is_empty() {
            true => self.free,
            false => (0, 0, 0),
        };
        (lease.charge.cpu > 0 && self.cpu + cpu > 0)
            || (lease.charge.memory > 0 && self.memory + memory > 0)
            || (lease.slices.is_empty() && tasks <= 0 && self.tasks > 0)
            || counted.keys().any(|resource| self.counted.get(resource).is_some_and(|n| *n > 0))
    }
}

impl State {
    fn given_back(&self, ix: NodeIx) -> GivenBack {
        let node = self.cluster.node(ix);
        let (cpu, memory) = (node.spec.cpu.is_some(), node.spec.memory.is_some());
        let tasks = node.spec.tasks.is_some();
        let binds = |is: bool, amount: i64| if is { amount } else { 0 };
        let mut given = GivenBack {
            free: (
                binds(cpu, node.cpu_free),
                binds(memory, node.memory_free),
                binds(tasks, node.tasks_left()),
            ),
            ..GivenBack::default()
        };
        let mut add = |held: (i64, i64), counted: &Counted, times: i64| {
            given.cpu += binds(cpu, held.0 * times);
            given.memory += binds(memory, held.1 * times);
            given.tasks += binds(tasks, times);
            for (resource, amount) in counted {
                *given.counted.entry(resource.clone()).or_default() += amount * times;
            }
        };
        for task in &node.tasks {
            let lease = self.jobs.get(task.job).tasks[task.task as usize].lease.as_deref();
            if let Some(lease) = lease.filter(|lease| lease.stopping.is_some()) {
                let counted = &self.leaf_of(task.job, task.task).need.counted;
                add((lease.charge.cpu, lease.charge.memory), counted, 1);
            }
        }
        for kept in &node.promised_slots {
            add((kept.cpu, kept.memory), &kept.counted, -1);
        }
        given
    }
}

/// A queue holds so much more, by jobs that may be stopped, on a node.
pub(crate) fn add_held(
    cluster: &mut Cluster,
    queues: &mut Queues,
    node: NodeIx,
    queue: QueueIx,
    gpu: i64,
) {
    cluster.held_by_queue[node.at()].add(queue, gpu);
    let on_nodes = &mut queues.get_mut(queue).on_nodes;
    let held = on_nodes.entry(node).or_default();
    *held += gpu;
    if *held == 0 {
        on_nodes.remove(&node);
    }
}
