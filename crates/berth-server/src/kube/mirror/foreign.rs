//! What other schedulers have described, as the core is told of it.

use super::Mirror;
use crate::engine::Turn;
use crate::kube::foreign::Described;
use crate::kube::orders::{Note, Order};
use crate::kube::read::Reader;
use crate::kube::topology;
use berth_model::{Event, Name, QueueSpec};
use std::collections::{BTreeMap, BTreeSet};

impl Mirror {
    /// Makes queues of those that others describe, and takes away those that they do not describe
    /// any more. One that cannot be does not stand in the way of the others.
    pub fn see_queues(&mut self, turn: &mut Turn<'_>, queues: Vec<Described>) {
        let known: BTreeMap<Name, QueueSpec> = turn
            .core
            .state
            .queue_snapshots()
            .into_iter()
            .map(|queue| (queue.spec.name.clone(), queue.spec))
            .collect();
        let there: BTreeSet<Name> = queues.iter().map(|(queue, _)| queue.name.clone()).collect();
        for (queue, about) in queues {
            let queue = with_ours(queue, &known);
            self.foreign_queues.insert(queue.name.clone());
            if known.get(&queue.name) == Some(&queue) {
                continue;
            }
            let name = queue.name.clone();
            let set = turn.all(vec![Event::QueueSet { queue: Box::new(queue) }]);
            if let Err(refused) = set {
                tracing::warn!(%refused, queue = %name, "a queue of another scheduler is left out");
                let note = format!("it is left out: {refused}");
                let note = about.map(|about| Note { about, reason: "Refused", note });
                self.note_all(note);
            }
        }
        // Children before their parents: a queue with others below it stays.
        let mut gone: Vec<Name> = self.foreign_queues.difference(&there).cloned().collect();
        gone.sort_by_key(|name| std::cmp::Reverse(depth(name, &known)));
        for name in gone {
            let removed = turn.all(vec![Event::QueueRemoved { queue: name.clone() }]);
            match removed {
                Ok(()) => drop(self.foreign_queues.remove(&name)),
                // It is tried again with the next change.
                Err(refused) => tracing::info!(%refused, queue = %name, "a queue is kept for now"),
            }
        }
        self.try_again(turn);
    }

    /// Has things said about objects that are no pods.
    pub fn note_all(&self, notes: impl IntoIterator<Item = Note>) {
        notes.into_iter().for_each(|note| self.order(Order::Note(note)));
    }

    /// Looks at nodes by the labels that others have described as places.
    pub fn see_topologies(
        &mut self,
        turn: &mut Turn<'_>,
        reader: &Reader,
        described: &BTreeMap<Name, Vec<Name>>,
    ) {
        self.nodes.read_again(|node| reader.node(node));
        let known = turn.core.state.snapshot().topologies;
        topology::tell(turn, topology::event(&known, self.nodes.sights(), described));
        self.try_again(turn);
    }
}

/// What a queue has here that others cannot say stays.
fn with_ours(queue: QueueSpec, known: &BTreeMap<Name, QueueSpec>) -> QueueSpec {
    let Some(ours) = known.get(&queue.name) else { return queue };
    QueueSpec {
        user_limit: ours.user_limit.clone(),
        preempt_after: ours.preempt_after,
        time_sharing: ours.time_sharing,
        budget: ours.budget.clone(),
        ..queue
    }
}

fn depth(name: &Name, known: &BTreeMap<Name, QueueSpec>) -> usize {
    let above = |name: &&Name| known.get(*name)?.parent.as_ref();
    // A circle is refused by the core, so this ends.
    std::iter::successors(Some(name), above).count()
}
