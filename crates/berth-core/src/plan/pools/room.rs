//! What is left of a machine, and filling it with tasks.

use crate::shape::leaf::Leaf;
use berth_model::Offering;

/// What is left of a machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Thousandths of GPUs.
    gpu: i64,
    cpu: Option<i64>,
    memory: Option<i64>,
}

impl Room {
    pub(crate) fn of(offering: &Offering) -> Room {
        Room {
            gpu: i64::from(offering.gpus) * 1_000,
            cpu: offering.cpu.map(|cpu| cpu.0),
            memory: offering.memory.map(|memory| memory.0),
        }
    }

    /// How many tasks fit; a share of a GPU does not reach over two.
    pub(super) fn holds(&self, leaf: &Leaf, milli: i64) -> i64 {
        // An offering says neither what else the machine has nor what its name will be.
        if !leaf.need.counted.is_empty() || leaf.nodes.as_ref().is_some_and(|n| n.only.is_some()) {
            return 0;
        }
        let by_gpu = match milli {
            0 => i64::MAX,
            1_000.. => self.gpu / milli,
            share => self.gpu / 1_000 * (1_000 / share) + self.gpu % 1_000 / share,
        };
        let by = |room: Option<i64>, need: i64| match room {
            Some(room) if need > 0 => room / need,
            _ => i64::MAX,
        };
        by_gpu.min(by(self.cpu, leaf.need.cpu)).min(by(self.memory, leaf.need.memory))
    }
}

/// Puts up to `n` tasks into the rooms, in order; returns how many.
pub(crate) fn fill(rooms: &mut [Room], leaf: &Leaf, milli: i64, n: u32) -> u32 {
    let mut left = i64::from(n);
    for room in rooms {
        let take = room.holds(leaf, milli).min(left);
        room.gpu -= milli * take;
        room.cpu = room.cpu.map(|cpu| cpu - leaf.need.cpu * take);
        room.memory = room.memory.map(|memory| memory - leaf.need.memory * take);
        left -= take;
    }
    n - left as u32
}
