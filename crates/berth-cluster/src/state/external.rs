//! Queues, topologies and HyperNodes that other schedulers describe, as the core learns of them.

use super::ClusterState;
use super::orders::ApiOrder;
use super::topology;
use crate::tenancy::ownership as object;
use crate::view::NodeViews;
use crate::view::{ExternalKind, ExternalQueue, ExternalQueues, NodeView, ObjectEvent};
use berth_engine::{Core, Turn};
use berth_kube::hypernode::{self, HyperNodeTree};
use berth_model::{Event, Name, QueueSpec};
use berth_store::Batch;
use std::collections::{BTreeMap, BTreeSet};

impl ClusterState {
    /// Makes queues of those that others describe, and takes away those that they do not describe
    /// any more. One that cannot be does not stand in the way of the others.
    pub fn observe_queues(&mut self, turn: &mut Turn<'_>, queues: ExternalQueues) {
        let known: BTreeMap<Name, QueueSpec> = turn
            .core
            .state
            .queue_snapshots()
            .into_iter()
            .map(|queue| (queue.spec.name.clone(), queue.spec))
            .collect();
        for described in &queues.all {
            self.observe_queue(turn, described, &known);
        }
        let there: BTreeSet<&Name> = queues.all.iter().map(|queue| &queue.spec.name).collect();
        // Of a kind that was not seen yet it is not known what is gone.
        let is_gone = |(name, what): &(&Name, &ExternalKind)| {
            queues.listed.contains(*what) && !there.contains(*name)
        };
        let gone = self.queue_ownership.made.iter().filter(is_gone);
        let mut gone: Vec<Name> = gone.map(|(name, _)| name.clone()).collect();
        // Children before their parents: a queue with others below it stays.
        gone.sort_by_key(|name| std::cmp::Reverse(depth(name, &known)));
        for name in gone {
            let is_needed = name == self.queue || self.queue_ownership.own.has(&name);
            let goes = known.contains_key(&name) && !is_needed;
            let event = goes.then(|| Event::QueueRemoved { queue: name.clone() });
            if let Err(refused) =
                self.queue_ownership.remove(turn, &name, event.into_iter().collect())
            {
                // It is tried again with the next change.
                tracing::info!(%refused, queue = %name, "a queue is kept for now");
            }
        }
        self.queue_ownership.described = queues;
        self.retry_refused(turn);
    }

    /// The owners of queues may have changed.
    pub fn observe_queues_again(&mut self, turn: &mut Turn<'_>) {
        let described = std::mem::take(&mut self.queue_ownership.described);
        self.observe_queues(turn, described);
    }

    fn observe_queue(
        &mut self,
        turn: &mut Turn<'_>,
        ExternalQueue { spec, what, about }: &ExternalQueue,
        known: &BTreeMap<Name, QueueSpec>,
    ) {
        let name = &spec.name;
        if self.queue_ownership.own.has(name) {
            if self.queue_ownership.hidden.insert(name.clone()) {
                let note = format!(
                    "it is left out: the queue {name} is set up by queues.berth.dev {name}, which \
                     goes before it; give one of them another name, or say with --map which queue \
                     is meant"
                );
                self.write_events(about.clone().map(|about| ObjectEvent {
                    about,
                    reason: "Hidden",
                    note,
                    dedup_key: None,
                }));
            }
            return;
        }
        self.queue_ownership.hidden.remove(name);
        let queue = with_ours(spec.clone(), known);
        let is_new = known.get(name) != Some(&queue);
        let event = is_new.then(|| Event::QueueSet { queue: Box::new(queue) });
        let events: Vec<Event> = event.into_iter().collect();
        let made = self.queue_ownership.made.get(name);
        // A queue that existed before belongs to a user, and stays when this object is deleted.
        let is_made = made.is_some() || !known.contains_key(name);
        let set = match (is_made, is_new || made != Some(what)) {
            (true, true) => self.queue_ownership.put(turn, name, *what, events),
            (false, _) if is_new => {
                object::write(turn, "apply_object", name, Batch::default(), events)
            }
            _ => return,
        };
        if let Err(refused) = set {
            tracing::warn!(%refused, queue = %name, "a queue of another scheduler is left out");
            let note = format!("it is left out: {refused}");
            let event = about.clone().map(|about| ObjectEvent {
                about,
                reason: "Refused",
                note,
                dedup_key: None,
            });
            self.write_events(event);
        }
    }

    /// Orders events on objects.
    pub fn write_events(&mut self, events: impl IntoIterator<Item = ObjectEvent>) {
        events.into_iter().for_each(|event| self.order(ApiOrder::WriteEvent(event)));
    }

    /// Looks at nodes by the labels that others have described as places.
    pub fn observe_topologies(
        &mut self,
        turn: &mut Turn<'_>,
        read: &dyn Fn(&berth_kube::object::Node) -> NodeView,
        described: &BTreeMap<Name, Vec<Name>>,
    ) {
        self.nodes.read_again(read);
        let known = turn.core.state.outline().topologies;
        topology::report(turn, &known, topology::event(&known, self.nodes.views(), described));
        self.observe_levels(turn.core);
        self.retry_refused(turn);
    }

    /// Sets the places of nodes by HyperNodes at the levels that the core has accepted.
    pub fn observe_levels(&mut self, core: &Core) {
        let known = core.state.outline().topologies;
        self.nodes.set_levels(known.get(hypernode::TOPOLOGY).map_or(&[], Vec::as_slice));
    }

    /// Nodes are close to others than before.
    pub fn observe_hypernodes(&mut self, turn: &mut Turn<'_>, tree: HyperNodeTree) {
        self.nodes.set_hypernodes(tree);
        self.nodes.report(turn);
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
        class_limit: ours.class_limit.clone(),
        ..queue
    }
}

fn depth(name: &Name, known: &BTreeMap<Name, QueueSpec>) -> usize {
    let above = |name: &&Name| known.get(*name)?.parent.as_ref();
    // A circle is refused by the core, so this ends.
    std::iter::successors(Some(name), above).count()
}
