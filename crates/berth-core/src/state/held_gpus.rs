//! What the preemptible jobs of a queue hold, kept until it changes.

use crate::index::held_gpus::{Gpus, HeldByPriority, HeldGpus};
use crate::ix::{NodeIx, QueueIx};
use crate::state::State;
use std::sync::Arc;

impl State {
    /// What the queue's jobs below that priority hold and may have to give up, kept until it changes.
    fn held_by_priority(&mut self, queue: QueueIx, top: i32) -> Arc<HeldByPriority> {
        if let Some(known) = self
            .queues
            .get(queue)
            .held_by_priority
            .as_ref()
            .filter(|held_by_priority| held_by_priority.top_priority >= top)
        {
            return known.clone();
        }
        let held_by_priority = Arc::new(self.sum_held_by_priority(queue, top));
        self.queues.get_mut(queue).held_by_priority = Some(held_by_priority.clone());
        held_by_priority
    }

    /// The same for what waits there.
    pub(crate) fn held_by_priority_for_pending(&mut self, queue: QueueIx) -> Arc<HeldByPriority> {
        let top = self.queues.get(queue).pending.top_priority().unwrap_or(i32::MIN);
        self.held_by_priority(queue, top)
    }

    fn sum_held_by_priority(&self, queue: QueueIx, top: i32) -> HeldByPriority {
        let mut steps: Vec<(i32, HeldGpus)> = Vec::new();
        let mut nodes: Vec<(NodeIx, Gpus)> = Vec::new();
        let held = &self.queues.get(queue).held;
        let held = held.range(..(top, NodeIx(0), 0)).map(|(key, _)| *key);
        let held: Vec<(i32, NodeIx, u32)> = held.collect();
        for of_class in held.chunk_by(|a, b| a.0 == b.0) {
            for on_node in of_class.chunk_by(|a, b| a.1 == b.1) {
                let mut gpus = Gpus::default();
                on_node.iter().for_each(|(_, _, gpu)| gpus.add(*gpu));
                nodes.push((on_node[0].1, gpus));
            }
            nodes.sort_by_key(|(node, _)| *node);
            nodes.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    kept.1.first |= next.1.first;
                    kept.1.others += next.1.others;
                }
                same
            });
            steps.push((of_class[0].0, self.cluster.held_gpus(&nodes)));
        }
        HeldByPriority { top_priority: top, steps }
    }
}
