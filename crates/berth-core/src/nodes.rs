//! Nodes and their GPUs: what is free, what a task could take there, and taking it.

use crate::ix::{ClassIx, DomainIx, JobIx, ModelIx, QueueIx, TaskIx};
use crate::jobs::mix;
use berth_model::{
    Division, GpuAsk, Health, MigLayout, MigProfile, MigSlot, Milli, Name, NodeSpec, NodeState,
    Share, Slice, Time,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Amounts by name; most nodes and most tasks have none.
pub(crate) type Counted = BTreeMap<Name, i64>;

/// In which way a GPU is shared while anything is on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Free,
    Whole,
    Fraction,
    Mps,
    TimeSlice,
    Mig,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gpu {
    pub model: ModelIx,
    pub memory: i64,
    pub healthy: bool,
    pub island: u8,
    pub mode: Mode,
    /// Thousandths taken.
    pub used: i64,
    pub holders: u16,
    pub mig: Option<Box<MigGpu>>,
    /// Where only such pieces are to be had.
    pub division: Option<Division>,
}

/// The MIG side of a GPU; present while MIG is on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct MigGpu {
    /// Instances that exist and that nobody holds; a new instance may take their place.
    pub idle: Vec<MigSlot>,
    pub held: Vec<MigSlot>,
    /// Slices of the held ones.
    pub layout: MigLayout,
    /// MIG was on before anything asked for it, so it stays on when the GPU is empty.
    pub fixed: bool,
}

/// A place on a GPU that is kept for a job from a time on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub job: JobIx,
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
    pub kept: Vec<Kept>,
    pub blocks: Vec<Block>,
    pub domains: Vec<DomainIx>,
    pub idle_since: Option<Time>,
    pub since: Time,
    /// Price an hour of each GPU.
    pub gpu_prices: Vec<berth_model::Micros>,
    /// How it stands in the free index: its free GPUs if it is there.
    pub indexed: Option<u32>,
    pub removed: bool,
}

/// For whom a place is sought, and until when it would be held.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who {
    pub job: JobIx,
    pub queue: QueueIx,
    pub now: Time,
    pub until: Time,
    /// Its deadline leaves only the fastest models.
    pub rush: bool,
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
    /// All GPUs of the task in one NVLink island, and in which, where that is settled.
    pub island: bool,
    pub only: Option<u8>,
}

impl Node {
    /// Whether new work may start here at all.
    pub fn open(&self) -> bool {
        !self.removed && matches!(self.spec.state, NodeState::Ready | NodeState::Leaving { .. })
    }

    /// Whether every free GPU may be held for any length of time by anybody.
    pub fn clean(&self) -> bool {
        self.open()
            && self.kept.is_empty()
            && self.blocks.is_empty()
            && matches!(self.spec.state, NodeState::Ready)
    }

    /// Whether what is free depends on who asks: parts of it are promised, or only there for a time.
    pub fn contested(&self) -> bool {
        self.open() && (self.is_tight() || !self.clean()) && {
            let promised = || self.kept.iter().flat_map(|kept| &kept.slices);
            self.is_tight()
                || !self.blocks.is_empty()
                || !matches!(self.spec.state, NodeState::Ready)
                || promised().any(|slice| self.gpus[slice.gpu as usize].is_free())
        }
    }

    /// Free GPUs that are promised to nobody who begins before that time.
    pub fn free_before(&self, until: Time) -> u32 {
        if !self.open() {
            return 0;
        }
        if self.kept.is_empty() {
            return self.free_whole();
        }
        let soon = self.kept.iter().filter(|kept| kept.from < until);
        let promised = soon.fold(0, |gpus, kept| gpus | kept.gpus);
        // What is promised of GPUs beyond the first 64 is counted as free.
        let promised = |at: usize| at < 64 && promised >> at & 1 == 1;
        let free = self.gpus.iter().enumerate().filter(|(at, gpu)| gpu.is_free() && !promised(*at));
        free.count() as u32
    }

    /// What a claim may find here, told apart by a number: which GPUs are free, and for whom.
    pub fn looks(&self) -> u64 {
        if !self.open() {
            return 1;
        }
        let free = self.gpus.iter().fold(0, |bits, gpu| bits << 1 ^ u64::from(gpu.is_free()));
        let mut seed = mix(free, self.blocks.len() as u64 + 2);
        for kept in &self.kept {
            seed = mix(mix(mix(seed, kept.gpus), kept.from.0 as u64), u64::from(kept.job.0));
        }
        seed
    }

    /// Whether what is kept is free for it, each slice for itself.
    pub fn is_ready(&self, kept: &Kept) -> bool {
        kept.slices.iter().all(|slice| {
            let at = slice.gpu as usize;
            self.gpus[at].healthy && self.gpus[at].fits(&slice.share, &self.spec.gpus[at].model)
        })
    }

    pub fn free_whole(&self) -> u32 {
        self.gpus.iter().filter(|gpu| gpu.is_free()).count() as u32
    }

    pub fn healthy(&self) -> u32 {
        self.gpus.iter().filter(|gpu| gpu.healthy).count() as u32
    }

    /// Whether the node as a whole may be held by `who` until then.
    pub fn admits(&self, who: &Who) -> bool {
        if !self.open() {
            return false;
        }
        if let NodeState::Leaving { at } = self.spec.state
            && who.until > at
        {
            return false;
        }
        self.blocks.iter().all(|block| {
            block.owner == Some(who.queue) || who.until <= block.from || who.now >= block.to
        })
    }

    /// Promises to other jobs that a holding by `who` would run into.
    pub fn conflicts<'a>(&'a self, who: &'a Who) -> impl Iterator<Item = &'a Kept> + 'a {
        self.kept
            .iter()
            .filter(|kept| kept.job != who.job && kept.from < who.until && who.now < kept.to)
    }

    /// CPU and memory that `who` could hold until then.
    pub fn spare(&self, who: &Who) -> (i64, i64) {
        // What the promised jobs need at their time comes on top of what runs now; what ends
        // before then only makes this stricter than need be.
        let (mut cpu, mut memory) = (self.cpu_free, self.memory_free);
        for kept in self.conflicts(who) {
            if self.spec.cpu.is_some() {
                cpu -= kept.cpu;
            }
            if self.spec.memory.is_some() {
                memory -= kept.memory;
            }
        }
        (cpu, memory)
    }

    /// More tasks that it takes, whatever they ask for.
    pub fn tasks_left(&self) -> i64 {
        self.spec.tasks.map_or(i64::MAX, |most| i64::from(most) - self.tasks.len() as i64)
    }

    /// Whether it may take fewer tasks than it has free GPUs.
    pub fn is_tight(&self) -> bool {
        self.spec.tasks.is_some()
            && self.tasks_left() - (self.kept.len() as i64) < i64::from(self.free_whole())
    }

    /// How many tasks `who` could hold until then, by the number of tasks and by what is counted.
    fn most_by_count(&self, need: &Need, who: &Who) -> i64 {
        let mut most = i64::MAX;
        if need.is_task && self.spec.tasks.is_some() {
            most = self.tasks_left() - self.conflicts(who).count() as i64;
        }
        for (resource, asks) in need.counted.iter() {
            most = most.min(self.spare_of(resource, who) / asks);
        }
        most
    }

    /// What of something counted `who` could hold until then.
    pub fn spare_of(&self, resource: &Name, who: &Who) -> i64 {
        let free = self.counted_free.get(resource).copied().unwrap_or(0);
        let kept = self.conflicts(who).filter_map(|kept| kept.counted.get(resource));
        free - kept.sum::<i64>()
    }

    /// Whether one more task could be here, as far as tasks and what is counted are concerned.
    pub fn takes_one(&self, need: &Need, who: &Who) -> bool {
        self.most_by_count(need, who) >= 1
    }

    /// Whether the GPU is kept for somebody else while `who` would hold it; with the thousandths
    /// that are.
    fn kept_of(&self, gpu: usize, who: &Who) -> i64 {
        let mut total = 0;
        for kept in self.conflicts(who) {
            for slice in &kept.slices {
                if slice.gpu as usize == gpu {
                    total += share_milli(&slice.share, &self.spec.gpus[gpu].model);
                }
            }
        }
        total
    }

    /// Whether this very piece of the GPU is kept for somebody else while `who` would hold it.
    fn keeps(&self, gpu: usize, who: &Who, share: &Share) -> bool {
        let mut slices = self.conflicts(who).flat_map(|kept| &kept.slices);
        slices.any(|slice| slice.gpu as usize == gpu && slice.share == *share)
    }

    /// How many pieces of the GPU are kept for others while `who` would hold it.
    fn kept_slices(&self, gpu: usize, who: &Who) -> u32 {
        let slices = self.conflicts(who).flat_map(|kept| &kept.slices);
        slices.filter(|slice| slice.gpu as usize == gpu).count() as u32
    }

    /// The first 64 GPUs of which anything is promised to somebody else while `who` would hold it.
    fn kept_gpus(&self, who: &Who) -> u64 {
        self.conflicts(who).fold(0, |gpus, kept| gpus | kept.gpus)
    }

    fn in_kept(&self, kept: u64, gpu: usize, who: &Who) -> bool {
        match gpu {
            0..64 => kept >> gpu & 1 == 1,
            _ => self.kept_of(gpu, who) > 0,
        }
    }

    /// Whether any of the GPU is promised to somebody else while `who` would hold it.
    pub fn is_kept(&self, gpu: u32, who: &Who) -> bool {
        self.conflicts(who).any(|kept| kept.slices.iter().any(|slice| slice.gpu == gpu))
    }

    /// Whether the GPU is promised to somebody in another way than by such shares.
    fn kept_otherwise(&self, gpu: usize, who: &Who, share: &Share) -> bool {
        let slices = self.conflicts(who).flat_map(|kept| &kept.slices);
        let here = slices.filter(|slice| slice.gpu as usize == gpu);
        here.into_iter().any(|slice| Gpu::mode_of(&slice.share) != Gpu::mode_of(share))
    }

    fn suits(&self, gpu: &Gpu, need: &Need) -> bool {
        gpu.healthy
            && need.only.is_none_or(|island| gpu.island == island)
            && gpu.memory >= need.min_gpu_memory
            && (need.models.is_empty() || need.models.contains(&gpu.model))
    }

    /// How many tasks with this need fit here now: exact, since the tasks are alike.
    pub fn capacity(&self, need: &Need, who: &Who, most: u32) -> u32 {
        if most == 0 || !self.admits(who) {
            return 0;
        }
        let (cpu, memory) = self.spare(who);
        let mut most = i64::from(most).min(self.most_by_count(need, who));
        if need.cpu > 0 {
            most = most.min(cpu / need.cpu);
        }
        if need.memory > 0 {
            most = most.min(memory / need.memory);
        }
        if most <= 0 {
            return 0;
        }
        let most = most as u32;
        match &need.ask {
            GpuAsk::None => most,
            GpuAsk::Whole { count } if !need.island => {
                let free = self.whole_for(need, who).count() as u32;
                most.min(free / (*count).max(1))
            }
            _ => {
                // Shares and islands: take one after another on a copy of this node alone.
                let mut gpus = self.gpus.clone();
                let mut fit = 0;
                while fit < most {
                    let Some(slices) = Pick { node: self, gpus: &gpus }.choose(need, who) else {
                        break;
                    };
                    for slice in &slices {
                        let at = slice.gpu as usize;
                        gpus[at].take(&slice.share, &self.spec.gpus[at].model);
                    }
                    fit += 1;
                }
                fit
            }
        }
    }

    /// Indices of GPUs that `who` could take whole.
    pub fn whole_for<'a>(
        &'a self,
        need: &'a Need,
        who: &'a Who,
    ) -> impl Iterator<Item = usize> + 'a {
        let kept = self.kept_gpus(who);
        self.gpus.iter().enumerate().filter_map(move |(at, gpu)| {
            (gpu.is_free() && self.suits(gpu, need) && !self.in_kept(kept, at, who)).then_some(at)
        })
    }

    /// The slices one task would take here, by best fit; `None` where it does not fit.
    pub fn choose(&self, need: &Need, who: &Who) -> Option<Vec<Slice>> {
        if !self.admits(who) {
            return None;
        }
        let (cpu, memory) = self.spare(who);
        let lacks = |asks: i64, spare: i64| asks > 0 && spare < asks;
        let crowded = lacks(need.cpu, cpu) || lacks(need.memory, memory);
        if crowded || !self.takes_one(need, who) {
            return None;
        }
        Pick { node: self, gpus: &self.gpus }.choose(need, who)
    }

    /// Takes slices; the caller keeps the previous GPUs to undo it.
    pub fn take(&mut self, task: TaskIx, slices: &[Slice], held: Takes<'_>) {
        for slice in slices {
            let model = self.spec.gpus[slice.gpu as usize].model.clone();
            self.gpus[slice.gpu as usize].take(&slice.share, &model);
        }
        self.count(&held, -1);
        self.tasks.push(task);
    }

    pub fn give(&mut self, task: TaskIx, slices: &[Slice], held: Takes<'_>) {
        for slice in slices {
            let model = self.spec.gpus[slice.gpu as usize].model.clone();
            self.gpus[slice.gpu as usize].give(&slice.share, &model);
        }
        self.count(&held, 1);
        let at = self.tasks.iter().position(|t| *t == task).expect("the task is on the node");
        self.tasks.swap_remove(at);
    }

    fn count(&mut self, held: &Takes<'_>, times: i64) {
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

/// What a task takes of its node beside GPUs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Takes<'a> {
    pub cpu: i64,
    pub memory: i64,
    pub counted: &'a Counted,
}

impl Takes<'_> {
    /// CPU and memory that do not bind are not counted.
    pub fn bound(self, spec: &NodeSpec) -> Self {
        let cpu = if spec.cpu.is_some() { self.cpu } else { 0 };
        let memory = if spec.memory.is_some() { self.memory } else { 0 };
        Takes { cpu, memory, ..self }
    }
}

/// The thousandths of a GPU that a share stands for.
pub(crate) fn share_milli(share: &Share, model: &str) -> i64 {
    match share {
        Share::Whole => 1_000,
        Share::Fraction(milli) | Share::Mps(milli) | Share::TimeSlice(milli) => milli.0,
        Share::Mig(slot) => MigProfile::find(model, &slot.profile).map_or(1_000, MigProfile::milli),
    }
}

impl Gpu {
    pub fn new(spec: &berth_model::GpuSpec, model: ModelIx, island: u8) -> Gpu {
        Gpu {
            model,
            memory: spec.memory.0,
            healthy: spec.health == Health::Ok,
            island,
            mode: unused(spec.division, spec.mig.is_some()),
            used: 0,
            holders: 0,
            mig: spec.mig.as_ref().map(|idle| {
                Box::new(MigGpu { idle: idle.clone(), fixed: true, ..MigGpu::default() })
            }),
            division: spec.division,
        }
    }

    /// The mode of a GPU that nobody uses.
    pub fn unused(&self) -> Mode {
        unused(self.division, self.mig.as_deref().is_some_and(|mig| mig.fixed))
    }

    /// Takes over how it is handed out now. What is held of it stays held.
    pub fn redivide(&mut self, spec: &berth_model::GpuSpec) {
        self.division = spec.division;
        if spec.division == Some(Division::Mig)
            && let (Some(mig), Some(slots)) = (self.mig.as_deref_mut(), &spec.mig)
        {
            mig.idle = slots.iter().filter(|slot| !mig.held.contains(slot)).cloned().collect();
        }
    }

    pub fn is_free(&self) -> bool {
        self.healthy && self.mode == Mode::Free
    }

    fn mode_of(share: &Share) -> Mode {
        match share {
            Share::Whole => Mode::Whole,
            Share::Fraction(_) => Mode::Fraction,
            Share::Mps(_) => Mode::Mps,
            Share::TimeSlice(_) => Mode::TimeSlice,
            Share::Mig(_) => Mode::Mig,
        }
    }

    /// Whether the share could be taken now (the promises on the GPU left aside).
    pub fn fits(&self, share: &Share, model: &str) -> bool {
        let mode = Gpu::mode_of(share);
        if self.mode != Mode::Free && self.mode != mode {
            return false;
        }
        if !self.hands_out(share) {
            return false;
        }
        match share {
            Share::Whole => self.mode == Mode::Free,
            Share::Mig(slot) => MigProfile::find(model, &slot.profile).is_some_and(|profile| {
                let mig = self.mig.as_deref();
                let layout = mig.map_or(MigLayout::default(), |mig| mig.layout);
                let same = mig.map_or(0, |mig| {
                    mig.held.iter().filter(|held| held.profile == slot.profile).count()
                });
                same < profile.at_most as usize && layout.fits(profile, slot.start)
            }),
            _ => self.used + share_milli(share, model) <= 1_000,
        }
    }

    /// Whether there is such a piece left, where pieces are not ours to make.
    fn hands_out(&self, share: &Share) -> bool {
        match (self.division, share) {
            (None, _) | (Some(Division::Whole), Share::Whole | Share::Fraction(_)) => true,
            (Some(Division::Mig), Share::Mig(slot)) => {
                self.mig.as_deref().is_some_and(|mig| mig.idle.contains(slot))
            }
            (Some(Division::Mps { .. }), Share::Mps(_))
            | (Some(Division::TimeSlice { .. }), Share::TimeSlice(_)) => self.has_pieces(1),
            _ => false,
        }
    }

    /// Whether so many more shares of it are handed out.
    fn has_pieces(&self, more: u32) -> bool {
        match self.division {
            Some(Division::Mps { shares } | Division::TimeSlice { shares }) => {
                u32::from(self.holders) + more <= shares
            }
            _ => true,
        }
    }

    pub fn take(&mut self, share: &Share, model: &str) {
        assert!(self.fits(share, model), "a GPU was leased beyond its capacity");
        self.mode = Gpu::mode_of(share);
        self.used += share_milli(share, model);
        self.holders += 1;
        if let Share::Mig(slot) = share {
            let profile = MigProfile::find(model, &slot.profile).expect("checked by fits");
            let mig = self.mig.get_or_insert_default();
            mig.layout.take(profile, slot.start);
            let mask = profile.mask(slot.start);
            mig.idle.retain(|idle| {
                MigProfile::find(model, &idle.profile)
                    .is_none_or(|other| other.mask(idle.start) & mask == 0)
            });
            mig.held.push(slot.clone());
        }
    }

    pub fn give(&mut self, share: &Share, model: &str) {
        self.used -= share_milli(share, model);
        self.holders -= 1;
        if let Share::Mig(slot) = share {
            let profile = MigProfile::find(model, &slot.profile).expect("it was taken");
            let mig = self.mig.as_deref_mut().expect("it was taken");
            mig.layout.give(profile, slot.start);
            let at = mig.held.iter().position(|held| held == slot).expect("it was held");
            mig.held.swap_remove(at);
            // Where MIG was switched on for us, an instance nobody holds is not worth keeping.
            if mig.fixed {
                mig.idle.push(slot.clone());
                mig.idle.sort();
            }
        }
        if self.holders == 0 {
            self.mode = self.unused();
            if self.mode != Mode::Mig {
                self.mig = None;
            }
        }
    }
}

const fn unused(division: Option<Division>, is_mig: bool) -> Mode {
    match division {
        Some(Division::Mps { .. }) => Mode::Mps,
        Some(Division::TimeSlice { .. }) => Mode::TimeSlice,
        _ if is_mig => Mode::Mig,
        _ => Mode::Free,
    }
}

/// Chooses among the GPUs of a node, as they are or as they would be.
pub(crate) struct Pick<'a> {
    pub node: &'a Node,
    pub gpus: &'a [Gpu],
}

impl Pick<'_> {
    pub fn choose(&self, need: &Need, who: &Who) -> Option<Vec<Slice>> {
        let node = self.node;
        let count = need.ask.count() as usize;
        let kept = node.kept_gpus(who);
        let usable = |at: usize, gpu: &Gpu| node.suits(gpu, need) && !node.in_kept(kept, at, who);
        match &need.ask {
            GpuAsk::None => Some(Vec::new()),
            GpuAsk::Whole { .. } => {
                let free: Vec<usize> = self
                    .gpus
                    .iter()
                    .enumerate()
                    .filter(|(at, gpu)| gpu.is_free() && usable(*at, gpu))
                    .map(|(at, _)| at)
                    .collect();
                let chosen = self.by_island(&free, count, need.island)?;
                Some(
                    chosen
                        .iter()
                        .map(|at| Slice { gpu: *at as u32, share: Share::Whole })
                        .collect(),
                )
            }
            GpuAsk::Mig { profile, .. } => self.choose_mig(need, who, profile, count),
            _ => {
                // Best fit: the fullest GPUs that still have room, so that empty ones stay empty.
                let mut fitting: Vec<(i64, usize, Share)> = Vec::new();
                for (at, gpu) in self.gpus.iter().enumerate() {
                    if !node.suits(gpu, need) {
                        continue;
                    }
                    let Some(share) = share_on(&need.ask, gpu.memory) else { continue };
                    let model = &node.spec.gpus[at].model;
                    let kept = if node.kept.is_empty() { 0 } else { node.kept_of(at, who) };
                    // A GPU is shared in one way at a time, also in what is promised of it.
                    if kept > 0 && node.kept_otherwise(at, who, &share) {
                        continue;
                    }
                    let milli = share_milli(&share, model);
                    let has_piece = || kept == 0 || gpu.has_pieces(node.kept_slices(at, who) + 1);
                    if gpu.fits(&share, model) && gpu.used + kept + milli <= 1_000 && has_piece() {
                        fitting.push((1_000 - gpu.used - milli, at, share));
                    }
                }
                fitting.sort_by_key(|(left, at, _)| (*left, *at));
                (fitting.len() >= count).then(|| {
                    fitting
                        .into_iter()
                        .take(count)
                        .map(|(_, at, share)| Slice { gpu: at as u32, share })
                        .collect()
                })
            }
        }
    }

    /// GPUs of as few NVLink islands as possible: the tightest one that holds them all, or, where
    /// they need not be together, the largest first.
    fn by_island(&self, free: &[usize], count: usize, together: bool) -> Option<Vec<usize>> {
        if free.len() < count {
            return None;
        }
        let mut islands: Vec<(u8, Vec<usize>)> = Vec::new();
        for at in free {
            let island = self.gpus[*at].island;
            match islands.iter_mut().find(|(id, _)| *id == island) {
                Some((_, gpus)) => gpus.push(*at),
                None => islands.push((island, vec![*at])),
            }
        }
        if let Some((_, gpus)) = islands
            .iter()
            .filter(|(_, gpus)| gpus.len() >= count)
            .min_by_key(|(id, gpus)| (gpus.len(), *id))
        {
            return Some(gpus[..count].to_vec());
        }
        if together {
            return None;
        }
        islands.sort_by_key(|(id, gpus)| (std::cmp::Reverse(gpus.len()), *id));
        let mut chosen: Vec<usize> =
            islands.into_iter().flat_map(|(_, gpus)| gpus).take(count).collect();
        chosen.sort_unstable();
        Some(chosen)
    }

    /// MIG instances: one that exists already, then GPUs in MIG mode, fullest first, then an idle
    /// GPU that can be switched over.
    fn choose_mig(
        &self,
        need: &Need,
        who: &Who,
        name: &berth_model::Name,
        count: usize,
    ) -> Option<Vec<Slice>> {
        let node = self.node;
        let mut fitting: Vec<((u8, i64, usize), usize, u8)> = Vec::new();
        for (at, gpu) in self.gpus.iter().enumerate() {
            let model = &node.spec.gpus[at].model;
            let Some(profile) = MigProfile::find(model, name) else { continue };
            if !node.suits(gpu, need) {
                continue;
            }
            if gpu.division.is_some() {
                // Any of those that exist, also several of one GPU.
                let idle = gpu.mig.as_deref().map(|mig| mig.idle.as_slice()).unwrap_or_default();
                for slot in idle.iter().filter(|slot| slot.profile == *name) {
                    let share = Share::Mig(slot.clone());
                    if gpu.fits(&share, model) && !node.keeps(at, who, &share) {
                        fitting.push(((0, 1_000 - gpu.used, at), at, slot.start));
                    }
                }
                continue;
            }
            if !(node.kept.is_empty() || node.kept_of(at, who) == 0) {
                continue;
            }
            let existing = gpu.mig.as_deref().and_then(|mig| {
                mig.idle.iter().find(|slot| slot.profile == *name).map(|slot| slot.start)
            });
            let fits =
                |start: u8| gpu.fits(&Share::Mig(MigSlot { profile: name.clone(), start }), model);
            // A start that leaves idle instances of other profiles alone is better.
            let start = existing.filter(|start| fits(*start)).or_else(|| {
                let clear = |start: &u8| {
                    gpu.mig.as_deref().is_none_or(|mig| {
                        mig.idle.iter().all(|idle| {
                            MigProfile::find(model, &idle.profile).is_none_or(|other| {
                                other.mask(idle.start) & profile.mask(*start) == 0
                            })
                        })
                    })
                };
                let open = || profile.starts.iter().copied().filter(|start| fits(*start));
                open().find(clear).or_else(|| open().next())
            });
            if let Some(start) = start {
                let tier = match (existing.is_some(), gpu.mode) {
                    (true, _) => 0,
                    (false, Mode::Mig) => 1,
                    _ => 2,
                };
                fitting.push(((tier, 1_000 - gpu.used, at), at, start));
            }
        }
        fitting.sort();
        (fitting.len() >= count).then(|| {
            fitting
                .into_iter()
                .take(count)
                .map(|(_, at, start)| Slice {
                    gpu: at as u32,
                    share: Share::Mig(MigSlot { profile: name.clone(), start }),
                })
                .collect()
        })
    }
}

/// The share an ask stands for on a GPU with that much memory.
pub(crate) fn share_on(ask: &GpuAsk, memory: i64) -> Option<Share> {
    match ask {
        GpuAsk::None | GpuAsk::Mig { .. } => None,
        GpuAsk::Whole { .. } => Some(Share::Whole),
        GpuAsk::Fraction { milli, .. } => Some(Share::Fraction(*milli)),
        GpuAsk::Memory { bytes, .. } => {
            // Rounded up: the share must be at least as large as what was asked for.
            let milli =
                (i128::from(bytes.0) * 1_000 + i128::from(memory) - 1) / i128::from(memory.max(1));
            (milli <= 1_000).then_some(Share::Fraction(Milli(milli as i64)))
        }
        GpuAsk::Mps { percent, .. } => Some(Share::Mps(Milli(i64::from(*percent) * 10))),
        GpuAsk::TimeSlice { of, .. } => {
            Some(Share::TimeSlice(Milli(1_000 / i64::from((*of).max(1)))))
        }
    }
}
