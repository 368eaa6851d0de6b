//! What queues hold on a node. A search for victims looks at every node, so the common case of a
//! few queues lies in one line of the cache, side by side with those of the next node.

use crate::ix::QueueIx;

/// Queues that find their place in the line.
const FEW: usize = 7;
const NOBODY: QueueIx = QueueIx(u32::MAX);

/// Thousandths of GPUs by queue.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(crate) struct Held {
    few: [(QueueIx, u32); FEW],
    /// Those for which there was no place, or that hold more than a place can say.
    more: Option<Box<Vec<(QueueIx, i64)>>>,
}

impl Default for Held {
    fn default() -> Held {
        Held { few: [(NOBODY, 0); FEW], more: None }
    }
}

impl Held {
    /// Adds to what a queue holds, or takes from it.
    pub fn add(&mut self, queue: QueueIx, gpu: i64) {
        let here = self.few.iter().position(|(of, _)| *of == queue);
        let beyond =
            self.more.as_deref().and_then(|more| more.iter().position(|(of, _)| *of == queue));
        let before = match (here, beyond) {
            (Some(at), _) => i64::from(self.few[at].1),
            (None, Some(at)) => self.more.as_deref().expect("it is there")[at].1,
            (None, None) => 0,
        };
        let now = before + gpu;
        let small = u32::try_from(now).ok().filter(|now| *now > 0);
        let place = here.or_else(|| self.few.iter().position(|(of, _)| *of == NOBODY));
        if let Some(at) = here {
            self.few[at] = (NOBODY, 0);
        }
        if let (Some(at), Some(more)) = (beyond, self.more.as_deref_mut()) {
            more.swap_remove(at);
            if more.is_empty() {
                self.more = None;
            }
        }
        match (small, place) {
            (Some(small), Some(at)) => self.few[at] = (queue, small),
            _ if now != 0 => self.more.get_or_insert_default().push((queue, now)),
            _ => {}
        }
    }

    /// What these queues hold together.
    pub fn of(&self, among: &[bool]) -> i64 {
        // Whether a queue is among them is a toss-up, so it is a factor and not a branch.
        let times = |queue: QueueIx| i64::from(among.get(queue.at()).copied().unwrap_or(false));
        let few = self.few.iter().map(|(of, gpu)| i64::from(*gpu) * times(*of)).sum::<i64>();
        let more = self.more.as_deref().into_iter().flatten();
        few + more.map(|(of, gpu)| gpu * times(*of)).sum::<i64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_counts_as_a_map_does_for_any_number_of_queues_and_any_amount() {
        let mut held = Held::default();
        let mut plain: BTreeMap<u32, i64> = BTreeMap::new();
        let mut seed = 1_u64;
        for _ in 0..5_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let queue = (seed >> 33) as u32 % 12;
            let large = (seed >> 20) % 50 == 0;
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
        assert_eq!(std::mem::size_of::<Held>(), 64);
    }
}
