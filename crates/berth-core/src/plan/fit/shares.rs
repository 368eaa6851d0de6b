//! Placing shares of GPUs where they strand the least.

use crate::cluster::gpu::{Gpu, Mode, share_milli, share_on};
use crate::cluster::node::Node;
use crate::fragmentation::{Free, free_gpus};
use crate::ix::{ClassIx, DomainIx};
use crate::plan::fit::nearby::Nearby;
use crate::plan::fit::pack::gpu_states;
use crate::plan::fit::search::{Rank, Search};
use crate::shape::leaf::Leaf;
use berth_model::{GpuAsk, Slice};
use std::collections::BTreeSet;

impl<'d, 's> Search<'d, 's> {
    /// Shares of GPUs, and single tasks where shares are in use: each where it strands the least of
    /// what is free for the mix. Whole GPUs and CPU break up a node no less than shares do.
    pub(super) fn shares(
        &mut self,
        leaf: &Leaf,
        n: u32,
        domain: DomainIx,
        tier: &[ClassIx],
    ) -> bool {
        for task in self.free_tasks(leaf, n) {
            let near = Nearby::of(self.state(), leaf, self.job);
            let state = self.state();
            let cluster = &state.cluster;
            let mut best: Option<((i128, i64, Rank), Vec<Slice>)> = None;
            // Nodes that look the same score the same.
            let mut known = BTreeSet::new();
            for ix in &cluster.domains[domain.at()].nodes {
                let node = cluster.node(*ix);
                if !tier.contains(&node.class) || !leaf.suits(node) || !near.admits(state, *ix) {
                    continue;
                }
                let plain = node.clean() && leaf.need.counted.is_empty() && !node.is_tight();
                let uncut = |gpu: &Gpu| gpu.mig.is_none() && gpu.unused() == Mode::Free;
                if plain && node.gpus.iter().all(uncut) {
                    let gpus = gpu_states(node, &self.requester);
                    let (kept, _) = self.rank(*ix);
                    let looks = (node.class, gpus, node.cpu_free, node.memory_free, kept);
                    if !known.insert(looks) {
                        continue;
                    }
                }
                let Some((score, slices)) = self.best_share(leaf, node) else { continue };
                let key = (score.0, score.1, self.rank(*ix));
                if best.as_ref().is_none_or(|(other, _)| key < *other) {
                    best = Some((key, slices));
                }
            }
            let Some(((_, _, (_, ix)), slices)) = best else { return false };
            self.open(leaf, task, ix, slices);
        }
        true
    }

    /// The place on this node that strands the least, with what it strands and, where that is much
    /// the same, what it leaves over.
    fn best_share(&self, leaf: &Leaf, node: &Node) -> Option<((i128, i64), Vec<Slice>)> {
        let chosen = node.choose(&leaf.need, &self.requester)?;
        let single = leaf.need.ask.count() == 1 && !matches!(leaf.need.ask, GpuAsk::Mig { .. });
        let mix = self.mix;
        let use_mix = self.measures();
        let before = free_gpus(node);
        let milli =
            |slice: &Slice| share_milli(&slice.share, &node.spec.gpus[slice.gpu as usize].model);
        let score = |slices: &[Slice]| -> (i128, i64) {
            let mut after = before.clone();
            for slice in slices {
                let at = slice.gpu as usize;
                after[at] = (after[at] - milli(slice)).max(0);
            }
            let left: i64 = slices.iter().map(|slice| after[slice.gpu as usize]).sum();
            // An instance of a GPU that is cut up already leaves whole GPUs alone.
            let fresh = slices.iter().filter(|s| before[s.gpu as usize] == 1_000).count() as i64;
            if !use_mix || matches!(leaf.need.ask, GpuAsk::Mig { .. }) {
                return (i128::from(fresh), left);
            }
            let measure =
                |gpus: &[i64], cpu: i64, memory: i64| mix.fragments(&Free { gpus, cpu, memory });
            let now = measure(&before, node.cpu_free, node.memory_free);
            let cpu = node.cpu_free - leaf.need.cpu;
            let then = measure(&after, cpu, node.memory_free - leaf.need.memory);
            // Nodes with little left are filled up first: a GPU weighs as much as 32 CPUs.
            let cpus = if node.spec.cpu.is_some() { cpu / 16 } else { 0 };
            let leftover = 2 * after.iter().sum::<i64>() + cpus;
            (-i128::from(mix.gain(now - then)), leftover)
        };
        if !single {
            return Some((score(&chosen), chosen));
        }
        // One share: every GPU with a different remainder is a choice of its own.
        let mut best = (score(&chosen), chosen);
        let mut seen: BTreeSet<i64> = BTreeSet::new();
        for (at, gpu) in node.gpus.iter().enumerate() {
            let Some(share) = share_on(&leaf.need.ask, gpu.memory) else { continue };
            let beside_others = !node.may_share(&node.gpus, at, &share, &self.requester);
            if beside_others || !seen.insert(before[at]) || before[at] == 0 {
                continue;
            }
            let model = &node.spec.gpus[at].model;
            let suits = gpu.healthy
                && gpu.memory >= leaf.need.min_gpu_memory
                && (leaf.need.models.is_empty() || leaf.need.models.contains(&gpu.model))
                && gpu.fits(&share, model)
                && node.promised_slots.is_empty();
            if !suits {
                continue;
            }
            let slices = vec![Slice { gpu: at as u32, share }];
            let scored = (score(&slices), slices);
            if scored.0 < best.0 {
                best = scored;
            }
        }
        Some(best)
    }
}
