//! A node: what is free on it, what is promised there, and taking slices of its GPUs.

use crate::cluster::gpu::Gpu;
use crate::cluster::tenants::Apart;
use crate::ix::{ClassIx, DomainIx, JobIx, ModelIx, QueueIx, TaskIx};
use crate::jobs::hash_with;
use berth_model::{Bytes, GpuAsk, Name, NodeSpec, NodeState, Slice, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Amounts by name; most nodes and most tasks have none.
pub(crate) type Counted = BTreeMap<Name, i64>;

/// A place on a GPU that is kept for a job from a time on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromisedSlot {
    pub job: JobIx,
    pub queue: QueueIx,
    pub apart: Apart,
    pub from: Time,
    pub to: Time,
    pub slices: Vec<Slice>,
    /// The first 64 GPUs it touches, a bit each.
    pub gpus: u64,
    pub cpu: i64,
    pub memory: i64,
    pub counted: Arc<Counted>,
    /// The GPUs are free for it now.
    pub ready: bool,
}

/// When a task on a node is taken to be over, and what it gives back then beside GPUs. Kept where
/// places are promised, so that what is free at their time is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskEnd {
    pub task: TaskIx,
    pub at: Time,
    pub cpu: i64,
    pub memory: i64,
    pub counted: Arc<Counted>,
}

/// A time in which a node is for its owner alone: an operator's reservation, or after it leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub from: Time,
    pub to: Time,
    pub owner: Option<QueueIx>,
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub spec: NodeSpec,
    pub class: ClassIx,
    pub gpus: Vec<Gpu>,
    pub cpu_free: i64,
    pub memory_free: i64,
    /// What is free of whatever else it counts.
    pub counted_free: Counted,
    pub tasks: Vec<TaskIx>,
    pub promised_slots: Vec<PromisedSlot>,
    /// What is short of the CPU and memory that free GPUs are left, as it was when a claim of a job
    /// without GPUs began.
    pub gpu_debt: (i64, i64),
    /// When its tasks end, where anything is promised here. One that is missing is taken to stay.
    pub ends: Vec<TaskEnd>,
    pub blocks: Vec<Block>,
    pub domains: Vec<DomainIx>,
    pub idle_since: Option<Time>,
    pub since: Time,
    /// The versions of data that it keeps, with their sizes.
    pub data: BTreeMap<Name, Bytes>,
    /// Price an hour of each GPU.
    pub gpu_prices: Vec<berth_model::Micros>,
    /// How it stands in the free index: its free GPUs if it is there.
    pub indexed: Option<u32>,
    pub removed: bool,
}

/// For whom a place is sought, and until when it would be held.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Requester {
    pub job: JobIx,
    pub queue: QueueIx,
    pub now: Time,
    pub until: Time,
    /// Its deadline leaves only the fastest models.
    pub rush: bool,
    /// Which shares lie beside those of its queue alone.
    pub apart: Apart,
    /// It takes the places of others: what is short already of what free GPUs are left is no
    /// reason to take more from them.
    pub claims: bool,
}

/// What one task of a leaf group needs on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    pub ask: GpuAsk,
    pub cpu: i64,
    pub memory: i64,
    pub counted: Arc<Counted>,
    /// Whether it is one of the tasks that a node takes only so many of; not so where it is asked
    /// what else there would be room for.
    pub is_task: bool,
    pub min_gpu_memory: i64,
    /// Which models will do; empty: any.
    pub models: Vec<ModelIx>,
    /// All GPUs of the task lie in one NVLink island; in `only`, where that is set.
    pub island: bool,
    pub only: Option<u8>,
    /// How much of its part of the CPU and memory of a node it leaves to each free GPU there, in
    /// thousandths: nothing where its job asks for GPUs.
    pub left_to_gpus: i64,
}

impl Node {
    /// Whether new work may start here at all.
    pub fn open(&self) -> bool {
        !self.removed && matches!(self.spec.state, NodeState::Ready | NodeState::Leaving { .. })
    }

    /// Whether every free GPU may be held for any length of time by anybody.
    pub fn clean(&self) -> bool {
        self.open()
            && self.promised_slots.is_empty()
            && self.blocks.is_empty()
            && matches!(self.spec.state, NodeState::Ready)
    }

    /// Whether what is free depends on who asks: parts of it are promised, or only there for a time.
    pub fn contested(&self) -> bool {
        self.open() && (self.is_tight() || !self.clean()) && {
            let promised = || self.promised_slots.iter().flat_map(|kept| &kept.slices);
            self.is_tight()
                || !self.blocks.is_empty()
                || !matches!(self.spec.state, NodeState::Ready)
                || promised().any(|slice| self.gpus[slice.gpu as usize].is_free())
        }
    }

    /// Free GPUs without a promise that begins before that time.
    pub fn free_before(&self, until: Time) -> u32 {
        if !self.open() {
            return 0;
        }
        if self.promised_slots.is_empty() {
            return self.free_whole();
        }
        let soon = self.promised_slots.iter().filter(|kept| kept.from < until);
        let promised = soon.fold(0, |gpus, kept| gpus | kept.gpus);
        // What is promised of GPUs beyond the first 64 is counted as free.
        let promised = |at: usize| at < 64 && promised >> at & 1 == 1;
        let free = self.gpus.iter().enumerate().filter(|(at, gpu)| gpu.is_free() && !promised(*at));
        free.count() as u32
    }

    /// A fingerprint of what a claim may find here: which GPUs are free, and for which queues.
    pub fn fingerprint(&self) -> u64 {
        if !self.open() {
            return 1;
        }
        let free = self.gpus.iter().fold(0, |bits, gpu| bits << 1 ^ u64::from(gpu.is_free()));
        let mut seed = hash_with(free, self.blocks.len() as u64 + 2);
        for kept in &self.promised_slots {
            seed = hash_with(
                hash_with(hash_with(seed, kept.gpus), kept.from.0 as u64),
                u64::from(kept.job.0),
            );
        }
        seed
    }

    /// Whether what is kept is free for it, each slice for itself.
    pub fn is_ready(&self, kept: &PromisedSlot) -> bool {
        kept.slices.iter().all(|slice| {
            let at = slice.gpu as usize;
            self.gpus[at].healthy
                && self.gpus[at].fits(&slice.share, &self.spec.gpus[at].model)
                && self.is_apart(&self.gpus, at, &slice.share, (kept.queue, kept.apart))
        })
    }

    pub fn free_whole(&self) -> u32 {
        self.gpus.iter().filter(|gpu| gpu.is_free()).count() as u32
    }

    pub fn healthy(&self) -> u32 {
        self.gpus.iter().filter(|gpu| gpu.healthy).count() as u32
    }

    /// Whether the node as a whole may be held by `requester` until then.
    pub fn admits(&self, requester: &Requester) -> bool {
        if !self.open() {
            return false;
        }
        if let NodeState::Leaving { at } = self.spec.state
            && requester.until > at
        {
            return false;
        }
        self.blocks.iter().all(|block| {
            block.owner == Some(requester.queue)
                || requester.until <= block.from
                || requester.now >= block.to
        })
    }

    /// Promises to other jobs that a holding by `requester` would run into.
    pub fn conflicts<'a>(
        &'a self,
        requester: &'a Requester,
    ) -> impl Iterator<Item = &'a PromisedSlot> + 'a {
        self.promised_slots.iter().filter(|kept| {
            kept.job != requester.job && kept.from < requester.until && requester.now < kept.to
        })
    }

    /// CPU and memory that `requester` could hold until then: what is free now, and no more than
    /// what is left whenever a promised job begins, with what ends before that given back.
    pub fn spare(&self, requester: &Requester) -> (i64, i64) {
        let (mut cpu, mut memory) = (self.cpu_free, self.memory_free);
        if self.spec.cpu.is_none() && self.spec.memory.is_none() {
            return (cpu, memory);
        }
        // Promises are in the order of their times, and many of them begin together.
        let mut last = None;
        for instant in self.instants(requester) {
            if last.replace(instant) == Some(instant) {
                continue;
            }
            let (mut cpu_then, mut memory_then) = (self.cpu_free, self.memory_free);
            for end in self.ended(instant) {
                cpu_then += end.cpu;
                memory_then += end.memory;
            }
            for kept in self.kept_at(requester, instant) {
                if self.spec.cpu.is_some() {
                    cpu_then -= kept.cpu;
                }
                if self.spec.memory.is_some() {
                    memory_then -= kept.memory;
                }
            }
            cpu = cpu.min(cpu_then);
            memory = memory.min(memory_then);
        }
        (cpu, memory)
    }

    /// The same for one task, which may leave something to free GPUs.
    pub(super) fn spare_for(&self, need: &Need, requester: &Requester) -> (i64, i64) {
        let (cpu, memory) = self.spare(requester);
        let (cpu_kept, memory_kept) = self.kept_for_gpus(need, requester);
        (cpu - cpu_kept, memory - memory_kept)
    }

    /// CPU and memory that such a task leaves to the GPUs that are free here and promised to no
    /// job: what jobs that come for them will need.
    pub fn kept_for_gpus(&self, need: &Need, requester: &Requester) -> (i64, i64) {
        if need.left_to_gpus == 0 || self.gpus.is_empty() {
            return (0, 0);
        }
        let free = self.free_gpu_milli(requester);
        let part = |all: i64| {
            let parts = i128::from(free) * i128::from(need.left_to_gpus);
            (i128::from(all) * parts / (1_000_000 * self.gpus.len() as i128)) as i64
        };
        let cpu = self.spec.cpu.map_or(0, |cpu| part(cpu.0));
        let memory = self.spec.memory.map_or(0, |memory| part(memory.0));
        match requester.claims {
            true => ((cpu - self.gpu_debt.0).max(0), (memory - self.gpu_debt.1).max(0)),
            false => (cpu, memory),
        }
    }

    /// What is short now of what such a task leaves to free GPUs.
    pub fn gpu_debt(&self, need: &Need, requester: &Requester) -> (i64, i64) {
        let requester = Requester { claims: false, ..*requester };
        let (cpu, memory) = self.spare(&requester);
        let (cpu_kept, memory_kept) = self.kept_for_gpus(need, &requester);
        ((cpu_kept - cpu.max(0)).max(0), (memory_kept - memory.max(0)).max(0))
    }

    /// Thousandths of GPUs that are free and that no other job has a promise of.
    pub fn free_gpu_milli(&self, requester: &Requester) -> i64 {
        let promised = |at: usize| {
            let mut slices = self.conflicts(requester).flat_map(|kept| &kept.slices);
            slices.any(|slice| slice.gpu as usize == at)
        };
        let gpus = self.gpus.iter().enumerate();
        let free = gpus.filter(|(at, gpu)| gpu.healthy && gpu.used < 1_000 && !promised(*at));
        free.map(|(_, gpu)| 1_000 - gpu.used).sum()
    }

    /// When promised jobs begin while `requester` would be here: in between there is only more.
    pub(super) fn instants<'a>(
        &'a self,
        requester: &'a Requester,
    ) -> impl Iterator<Item = Time> + 'a {
        self.conflicts(requester).map(|kept| kept.from.max(requester.now))
    }

    /// Promises to others in force at a time.
    pub(super) fn kept_at<'a>(
        &'a self,
        requester: &'a Requester,
        instant: Time,
    ) -> impl Iterator<Item = &'a PromisedSlot> + 'a {
        let of_others = self.conflicts(requester);
        of_others.filter(move |kept| kept.from <= instant && instant < kept.to)
    }

    /// Tasks that are over by then.
    pub(super) fn ended(&self, instant: Time) -> impl Iterator<Item = &TaskEnd> {
        self.ends.iter().filter(move |end| end.at <= instant)
    }

    /// More tasks that it takes, whatever they ask for.
    pub fn tasks_left(&self) -> i64 {
        self.spec.tasks.map_or(i64::MAX, |most| i64::from(most) - self.tasks.len() as i64)
    }

    /// Whether it may take fewer tasks than it has free GPUs.
    pub fn is_tight(&self) -> bool {
        self.spec.tasks.is_some()
            && self.tasks_left() - (self.promised_slots.len() as i64) < i64::from(self.free_whole())
    }

    /// What of something counted `requester` could hold until then.
    pub fn spare_of(&self, resource: &Name, requester: &Requester) -> i64 {
        let amount = |counted: &Counted| counted.get(resource).copied().unwrap_or(0);
        let free = amount(&self.counted_free);
        let then = |instant| {
            let given: i64 = self.ended(instant).map(|end| amount(&end.counted)).sum();
            let kept: i64 =
                self.kept_at(requester, instant).map(|kept| amount(&kept.counted)).sum();
            free + given - kept
        };
        self.instants(requester).map(then).fold(free, i64::min)
    }

    /// More tasks that `requester` could have here until then, whatever they ask for.
    pub fn spare_tasks(&self, requester: &Requester) -> i64 {
        let left = self.tasks_left();
        let then = |instant| {
            let ended = self.ended(instant).count() as i64;
            left.saturating_add(ended) - self.kept_at(requester, instant).count() as i64
        };
        self.instants(requester).map(then).fold(left, i64::min)
    }

    /// Takes slices; the caller keeps the previous GPUs to undo it.
    pub fn take(&mut self, task: TaskIx, slices: &[Slice], held: TaskAmounts<'_>) {
        for slice in slices {
            let model = self.spec.gpus[slice.gpu as usize].model.clone();
            self.gpus[slice.gpu as usize].take(&slice.share, &model, held.queue);
        }
        self.count(&held, -1);
        self.tasks.push(task);
    }

    pub fn give(&mut self, task: TaskIx, slices: &[Slice], held: TaskAmounts<'_>) {
        for slice in slices {
            let model = self.spec.gpus[slice.gpu as usize].model.clone();
            self.gpus[slice.gpu as usize].give(&slice.share, &model, held.queue);
        }
        self.count(&held, 1);
        let at = self.tasks.iter().position(|t| *t == task).expect("the task is on the node");
        self.tasks.swap_remove(at);
        self.ends.retain(|end| end.task != task);
    }

    fn count(&mut self, held: &TaskAmounts<'_>, times: i64) {
        self.cpu_free += held.cpu * times;
        self.memory_free += held.memory * times;
        for (resource, amount) in held.counted {
            match self.counted_free.get_mut(resource) {
                Some(free) => *free += amount * times,
                // The node is described without it by now.
                None => drop(self.counted_free.insert(resource.clone(), amount * times)),
            }
        }
    }
}

/// For whom a task takes something of its node, and what beside GPUs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskAmounts<'a> {
    pub queue: QueueIx,
    pub cpu: i64,
    pub memory: i64,
    pub counted: &'a Counted,
}

impl TaskAmounts<'_> {
    /// CPU and memory that do not bind are not counted.
    pub fn bound(self, spec: &NodeSpec) -> Self {
        let cpu = if spec.cpu.is_some() { self.cpu } else { 0 };
        let memory = if spec.memory.is_some() { self.memory } else { 0 };
        TaskAmounts { cpu, memory, ..self }
    }
}
