//! How many tasks a node could take, and which slices one of them would get.

use crate::cluster::choose::GpuChoice;
use crate::cluster::gpu::{Gpu, share_milli};
use crate::cluster::node::{Need, Node, Requester};
use berth_model::{GpuAsk, Share, Slice};

impl Node {
    /// How many tasks `requester` could hold until then, by the number of tasks and by what is counted.
    fn most_by_count(&self, need: &Need, requester: &Requester) -> i64 {
        let mut most = i64::MAX;
        if need.is_task && self.spec.tasks.is_some() {
            most = self.spare_tasks(requester);
        }
        for (resource, asks) in need.counted.iter() {
            most = most.min(self.spare_of(resource, requester) / asks);
        }
        most
    }

    /// Whether one more task could be here, as far as tasks and what is counted are concerned.
    pub fn takes_one(&self, need: &Need, requester: &Requester) -> bool {
        self.most_by_count(need, requester) >= 1
    }

    /// Whether CPU, memory, room for one more task or anything counted is short for one task.
    pub fn is_short_of(&self, need: &Need, requester: &Requester) -> bool {
        let asks = need.cpu > 0 || need.memory > 0;
        let (cpu, memory) = if asks { self.spare_for(need, requester) } else { (0, 0) };
        let lacks = |asks: i64, spare: i64| asks > 0 && spare < asks;
        lacks(need.cpu, cpu) || lacks(need.memory, memory) || !self.takes_one(need, requester)
    }

    /// How many thousandths of the GPU are promised to other jobs while `requester` would hold it.
    pub(super) fn promised_share_of(&self, gpu: usize, requester: &Requester) -> i64 {
        let mut total = 0;
        for kept in self.conflicts(requester) {
            for slice in &kept.slices {
                if slice.gpu as usize == gpu {
                    total += share_milli(&slice.share, &self.spec.gpus[gpu].model);
                }
            }
        }
        total
    }

    /// Whether this very piece of the GPU is promised to another job while `requester` would hold it.
    pub(super) fn is_promised_share(
        &self,
        gpu: usize,
        requester: &Requester,
        share: &Share,
    ) -> bool {
        let mut slices = self.conflicts(requester).flat_map(|kept| &kept.slices);
        slices.any(|slice| slice.gpu as usize == gpu && slice.share == *share)
    }

    /// How many pieces of the GPU are kept for others while `requester` would hold it.
    pub(super) fn promised_slices(&self, gpu: usize, requester: &Requester) -> u32 {
        let slices = self.conflicts(requester).flat_map(|kept| &kept.slices);
        slices.filter(|slice| slice.gpu as usize == gpu).count() as u32
    }

    /// Those of the first 64 GPUs of which something is promised to another job while `requester`
    /// would hold them.
    pub(super) fn promised_gpus(&self, requester: &Requester) -> u64 {
        self.conflicts(requester).fold(0, |gpus, kept| gpus | kept.gpus)
    }

    pub(super) fn is_among_promised(&self, kept: u64, gpu: usize, requester: &Requester) -> bool {
        match gpu {
            0..64 => kept >> gpu & 1 == 1,
            _ => self.promised_share_of(gpu, requester) > 0,
        }
    }

    /// Whether any of the GPU is promised to another job while `requester` would hold it.
    pub fn is_promised_gpu(&self, gpu: u32, requester: &Requester) -> bool {
        self.conflicts(requester).any(|kept| kept.slices.iter().any(|slice| slice.gpu == gpu))
    }

    /// Whether another job has a promise of the GPU in another mode than such shares.
    pub(super) fn is_promised_in_other_mode(
        &self,
        gpu: usize,
        requester: &Requester,
        share: &Share,
    ) -> bool {
        let slices = self.conflicts(requester).flat_map(|kept| &kept.slices);
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
    pub fn capacity(&self, need: &Need, requester: &Requester, most: u32) -> u32 {
        if most == 0 || !self.admits(requester) {
            return 0;
        }
        let asks = need.cpu > 0 || need.memory > 0;
        let (cpu, memory) = if asks { self.spare_for(need, requester) } else { (0, 0) };
        let mut most = i64::from(most).min(self.most_by_count(need, requester));
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
                let free = self.whole_for(need, requester).count() as u32;
                most.min(free / (*count).max(1))
            }
            _ => {
                // Shares and islands: take one after another on a copy of this node alone.
                let mut gpus = self.gpus.clone();
                let mut fit = 0;
                while fit < most {
                    let Some(slices) =
                        GpuChoice { node: self, gpus: &gpus }.choose(need, requester)
                    else {
                        break;
                    };
                    for slice in &slices {
                        let at = slice.gpu as usize;
                        gpus[at].take(&slice.share, &self.spec.gpus[at].model, requester.queue);
                    }
                    fit += 1;
                }
                fit
            }
        }
    }

    /// Indices of GPUs that `requester` could take whole.
    pub fn whole_for<'a>(
        &'a self,
        need: &'a Need,
        requester: &'a Requester,
    ) -> impl Iterator<Item = usize> + 'a {
        let kept = self.promised_gpus(requester);
        self.gpus.iter().enumerate().filter_map(move |(at, gpu)| {
            (gpu.is_free() && self.suits(gpu, need) && !self.is_among_promised(kept, at, requester))
                .then_some(at)
        })
    }

    /// The slices one task would take here, by best fit; `None` where it does not fit.
    pub fn choose(&self, need: &Need, requester: &Requester) -> Option<Vec<Slice>> {
        if !self.admits(requester) {
            return None;
        }
        if self.is_short_of(need, requester) {
            return None;
        }
        GpuChoice { node: self, gpus: &self.gpus }.choose(need, requester)
    }
}
