//! What queues hold on a node. A search for victims looks at every node, so the common case of a
//! few queues lies in one line of the cache, side by side with those of the next node.

use crate::ix::QueueIx;

/// Queues that are stored inline, within one cache line.
const INLINE_QUEUES: usize = 7;
const NO_QUEUE: QueueIx = QueueIx(u32::MAX);

/// Thousandths of GPUs by queue.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(crate) struct GpusByQueue {
    inline: [(QueueIx, u32); INLINE_QUEUES],
    /// Queues beyond these, or that hold more than an inline entry can store.
    overflow: Option<Box<Overflow>>,
}

/// Behind one pointer: a list takes three times the place.
#[derive(Debug, Clone, Default)]
struct Overflow {
    list: Vec<(QueueIx, i64)>,
}

impl Default for GpusByQueue {
    fn default() -> GpusByQueue {
        GpusByQueue { inline: [(NO_QUEUE, 0); INLINE_QUEUES], overflow: None }
    }
}

impl GpusByQueue {
    /// Adds to what a queue holds, or takes from it.
    pub fn add(&mut self, queue: QueueIx, gpu: i64) {
        let now = self.remove(queue) + gpu;
        if now == 0 {
            return;
        }
        let place = self.inline.iter_mut().find(|(of, _)| *of == NO_QUEUE);
        match (place, u32::try_from(now)) {
            (Some(place), Ok(now)) => *place = (queue, now),
            _ => self.overflow.get_or_insert_default().list.push((queue, now)),
        }
    }

    /// Takes a queue out; how much it held.
    fn remove(&mut self, queue: QueueIx) -> i64 {
        if let Some(place) = self.inline.iter_mut().find(|(of, _)| *of == queue) {
            return i64::from(std::mem::replace(place, (NO_QUEUE, 0)).1);
        }
        let Some(overflow) = self.overflow.as_deref_mut() else { return 0 };
        let Some(at) = overflow.list.iter().position(|(of, _)| *of == queue) else { return 0 };
        let (_, held) = overflow.list.swap_remove(at);
        if overflow.list.is_empty() {
            self.overflow = None;
        }
        held
    }

    /// What these queues hold together.
    pub fn of(&self, among: &[bool]) -> i64 {
        // Whether a queue is among them is a toss-up, so it is a factor and not a branch.
        let times = |queue: QueueIx| i64::from(among.get(queue.at()).copied().unwrap_or(false));
        let inline = self.inline.iter().map(|(of, gpu)| i64::from(*gpu) * times(*of)).sum::<i64>();
        let overflow = self.overflow.iter().flat_map(|overflow| &overflow.list);
        inline + overflow.map(|(of, gpu)| gpu * times(*of)).sum::<i64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_counts_as_a_map_does_for_any_number_of_queues_and_any_amount() {
        let mut held = GpusByQueue::default();
        let mut plain: BTreeMap<u32, i64> = BTreeMap::new();
        let mut seed = 1_u64;
        for _ in 0..5_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let queue = (seed >> 33) as u32 % 12;
            let large = (seed >> 20).is_multiple_of(50);
            let gpu = if large { i64::from(u32::MAX) } else { (seed >> 40) as i64 % 8_000 };
            let before = plain.get(&queue).copied().unwrap_or(0);
            let gpu = if (seed >> 62) & 1 == 1 { -before } else { gpu };
            held.add(QueueIx(queue), gpu);
            plain.insert(queue, before + gpu);
            for asked in 0..12 {
                let mut among = vec![false; 12];
                among[asked as usize] = true;
                assert_eq!(held.of(&among), plain.get(&asked).copied().unwrap_or(0));
            }
            assert_eq!(held.of(&[true; 12]), plain.values().sum::<i64>());
        }
    }

    #[test]
    fn a_node_with_few_queues_takes_one_line_of_the_cache() {
        assert_eq!(std::mem::size_of::<GpusByQueue>(), 64);
    }
}
