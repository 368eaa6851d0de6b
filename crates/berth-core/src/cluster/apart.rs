//! Which shares may lie side by side on the GPUs of a node.

use crate::cluster::gpu::Gpu;
use crate::cluster::node::{Node, PromisedSlot, Requester};
use crate::cluster::tenants::Apart;
use crate::ix::QueueIx;
use berth_model::{Division, Share};

impl Gpu {
    /// Whether somebody else hands out shares of it, and chooses among the GPUs of a node that are
    /// handed out so.
    fn is_pooled(&self) -> bool {
        matches!(self.division, Some(Division::Mps { .. } | Division::TimeSlice { .. }))
    }

    fn keeps_apart(&self, share: &Share, apart: Apart) -> bool {
        match (apart, share) {
            (Apart::None, _) | (_, Share::Whole | Share::Mig(_)) => false,
            // Whoever has set up a device plugin that shares by MPS has taken the risk.
            (Apart::Mps, Share::Mps(_)) => !self.is_pooled(),
            (Apart::Mps, _) => false,
            (Apart::All, _) => true,
        }
    }
}

impl Node {
    /// Whether what is held of one GPU may turn out to lie on the other: where somebody else hands
    /// out shares, it is theirs to choose on which GPU.
    pub fn meets(&self, a: usize, b: usize) -> bool {
        a == b || self.gpus[a].is_pooled() && self.gpus[b].is_pooled()
    }

    /// Whether what is promised of one GPU is in the way of a queue on the other: it is the same
    /// one, or may turn out to be and would be shared with another queue.
    pub fn reaches(&self, kept: &PromisedSlot, gpu: u32, other: u32, queue: QueueIx) -> bool {
        let is_stranger = kept.queue != queue && kept.apart == Apart::All;
        gpu == other || is_stranger && self.meets(gpu as usize, other as usize)
    }

    /// The GPUs that what is held of one may turn out to lie on, by the first of them.
    pub fn pool_of(&self, at: usize) -> usize {
        let mut pool = (0..self.gpus.len()).filter(|other| self.meets(*other, at));
        pool.next().unwrap_or(at)
    }

    /// How many shares of other queues would have to go before one of that queue may lie there.
    pub fn strangers(&self, at: usize, queue: QueueIx, apart: Apart) -> usize {
        if apart != Apart::All {
            return 0;
        }
        let pool = (0..self.gpus.len()).filter(|other| self.meets(*other, at));
        pool.map(|at| self.gpus[at].tenants.strangers(queue)).sum()
    }

    /// Whether a share would lie beside those of its own queue alone, where it has to, as far as
    /// what is held now goes.
    pub fn is_apart(
        &self,
        gpus: &[Gpu],
        at: usize,
        share: &Share,
        (queue, apart): (QueueIx, Apart),
    ) -> bool {
        if !gpus[at].keeps_apart(share, apart) {
            return true;
        }
        match gpus[at].is_pooled() {
            true => gpus.iter().filter(|gpu| gpu.is_pooled()).all(|gpu| gpu.tenants.are(queue)),
            false => gpus[at].tenants.are(queue),
        }
    }

    /// The same with what is promised to others while `requester` would hold it.
    pub fn may_share(&self, gpus: &[Gpu], at: usize, share: &Share, requester: &Requester) -> bool {
        let apart = |share: &Share, apart: Apart| gpus[at].keeps_apart(share, apart);
        let mut others = self.conflicts(requester).filter(|kept| kept.queue != requester.queue);
        self.is_apart(gpus, at, share, (requester.queue, requester.apart))
            && !others.any(|kept| {
                let mut here = kept.slices.iter().filter(|kept| self.meets(kept.gpu as usize, at));
                here.any(|slice| apart(share, requester.apart) || apart(&slice.share, kept.apart))
            })
    }
}
