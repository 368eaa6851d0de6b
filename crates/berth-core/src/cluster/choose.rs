//! Chooses the GPUs of a node for one task, by best fit.

use crate::cluster::gpu::{Gpu, Mode, share_milli, share_on};
use crate::cluster::node::{Need, Node, Requester};
use berth_model::{GpuAsk, MigProfile, MigSlot, Share, Slice};

/// Chooses among the GPUs of a node, as they are or as they would be.
pub(crate) struct GpuChoice<'a> {
    pub node: &'a Node,
    pub gpus: &'a [Gpu],
}

impl GpuChoice<'_> {
    pub fn choose(&self, need: &Need, requester: &Requester) -> Option<Vec<Slice>> {
        let node = self.node;
        let count = need.ask.count() as usize;
        let kept = node.promised_gpus(requester);
        let usable = |at: usize, gpu: &Gpu| {
            node.suits(gpu, need) && !node.is_among_promised(kept, at, requester)
        };
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
            GpuAsk::Mig { profile, .. } => self.choose_mig(need, requester, profile, count),
            _ => {
                // Best fit: the fullest GPUs that still have room, so that empty ones stay empty.
                let mut fitting: Vec<(i64, usize, Share)> = Vec::new();
                for (at, gpu) in self.gpus.iter().enumerate() {
                    if !node.suits(gpu, need) {
                        continue;
                    }
                    let Some(share) = share_on(&need.ask, gpu.memory) else { continue };
                    let model = &node.spec.gpus[at].model;
                    let kept = if node.promised_slots.is_empty() {
                        0
                    } else {
                        node.promised_share_of(at, requester)
                    };
                    // A GPU is shared in one way at a time, also in what is promised of it.
                    if kept > 0 && node.is_promised_in_other_mode(at, requester, &share) {
                        continue;
                    }
                    if !node.may_share(self.gpus, at, &share, requester) {
                        continue;
                    }
                    let milli = share_milli(&share, model);
                    let has_piece =
                        || kept == 0 || gpu.has_pieces(node.promised_slices(at, requester) + 1);
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
        requester: &Requester,
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
                    if gpu.fits(&share, model) && !node.is_promised_share(at, requester, &share) {
                        fitting.push(((0, 1_000 - gpu.used, at), at, slot.start));
                    }
                }
                continue;
            }
            if !(node.promised_slots.is_empty() || node.promised_share_of(at, requester) == 0) {
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
