//! Whose shares may lie on one GPU: those of one queue, or anybody's, as the policy says.

use crate::ix::QueueIx;
use berth_model::{Policy, Share, ShareGpus};

/// Which shares lie beside those of their own queue alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Apart {
    /// None: to see what else is in the way, and for what runs already.
    None,
    /// Those under MPS, whatever the policy: a fault of one ends all of them.
    Mps,
    All,
}

impl Apart {
    pub fn of(policy: &Policy) -> Apart {
        match policy.share_gpus {
            ShareGpus::Team => Apart::All,
            ShareGpus::Anyone => Apart::Mps,
        }
    }
}

/// The queues that shares of a GPU belong to, by ordinal, with how many. Instances are apart and do
/// not count, nor do whole GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Tenants(Vec<(QueueIx, u16)>);

impl Tenants {
    pub(super) fn count(&mut self, share: &Share, queue: QueueIx, times: i16) {
        if matches!(share, Share::Whole | Share::Mig(_)) {
            return;
        }
        let at = self.0.partition_point(|(of, _)| *of < queue);
        if self.0.get(at).is_none_or(|(of, _)| *of != queue) {
            self.0.insert(at, (queue, 0));
        }
        let count = &mut self.0[at].1;
        *count = count.checked_add_signed(times).expect("what is given back was taken");
        if *count == 0 {
            self.0.remove(at);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// How many shares belong to others than that queue.
    pub(super) fn strangers(&self, queue: QueueIx) -> usize {
        let others = self.0.iter().filter(|(of, _)| *of != queue);
        others.map(|(_, shares)| usize::from(*shares)).sum()
    }

    /// Whether nobody has a share but that queue.
    pub fn are(&self, queue: QueueIx) -> bool {
        self.strangers(queue) == 0
    }
}
