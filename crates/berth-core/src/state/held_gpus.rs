//! What the preemptible jobs of a queue hold, kept until it changes.

use crate::index::held_gpus::{Gpus, Held, Tops};
use crate::ix::{NodeIx, QueueIx};
use crate::state::State;
use std::sync::Arc;

impl State {
    /// What the queue's jobs below that priority hold and may have to give up, kept until it changes.
    fn tops(&mut self, queue: QueueIx, top: i32) -> Arc<Tops> {
        if let Some(known) = self.queues.get(queue).tops.as_ref().filter(|tops| tops.top >= top) {
            return known.clone();
        }
        let tops = Arc::new(self.tops_of(queue, top));
        self.queues.get_mut(queue).tops = Some(tops.clone());
        tops
    }

    /// The same for what waits there.
    pub(crate) fn tops_for(&mut self, queue: QueueIx) -> Arc<Tops> {
        let top = self.queues.get(queue).line.top().unwrap_or(i32::MIN);
        self.tops(queue, top)
    }

    fn tops_of(&self, queue: QueueIx, top: i32) -> Tops {
        let mut steps: Vec<(i32, Held)> = Vec::new();
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
            steps.push((of_class[0].0, self.cluster.held(&nodes)));
        }
        Tops { top, steps }
    }
}
