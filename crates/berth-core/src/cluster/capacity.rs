//! How many tasks a node could take, and which slices one of them would get.

use crate::cluster::choose::Pick;
use crate::cluster::gpu::{Gpu, share_milli};
use crate::cluster::node::{Need, Node, Who};
use berth_model::{GpuAsk, Share, Slice};

impl Node {
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

    /// Whether one more task could be here, as far as tasks and what is counted are concerned.
    pub fn takes_one(&self, need: &Need, who: &Who) -> bool {
        self.most_by_count(need, who) >= 1
    }

    /// Whether the GPU is kept for somebody else while `who` would hold it; with the thousandths
    /// that are.
    pub(super) fn kept_of(&self, gpu: usize, who: &Who) -> i64 {
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
    pub(super) fn keeps(&self, gpu: usize, who: &Who, share: &Share) -> bool {
        let mut slices = self.conflicts(who).flat_map(|kept| &kept.slices);
        slices.any(|slice| slice.gpu as usize == gpu && slice.share == *share)
    }

    /// How many pieces of the GPU are kept for others while `who` would hold it.
    pub(super) fn kept_slices(&self, gpu: usize, who: &Who) -> u32 {
        let slices = self.conflicts(who).flat_map(|kept| &kept.slices);
        slices.filter(|slice| slice.gpu as usize == gpu).count() as u32
    }

    /// The first 64 GPUs of which anything is promised to somebody else while `who` would hold it.
    pub(super) fn kept_gpus(&self, who: &Who) -> u64 {
        self.conflicts(who).fold(0, |gpus, kept| gpus | kept.gpus)
    }

    pub(super) fn in_kept(&self, kept: u64, gpu: usize, who: &Who) -> bool {
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
    pub(super) fn kept_otherwise(&self, gpu: usize, who: &Who, share: &Share) -> bool {
        let slices = self.conflicts(who).flat_map(|kept| &kept.slices);
        let here = slices.filter(|slice| slice.gpu as usize == gpu);
        here.into_iter().any(|slice| Gpu::mode_of(&slice.share) != Gpu::mode_of(share))
    }

    pub(super) fn suits(&self, gpu: &Gpu, need: &Need) -> bool {
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
}
