//! Everything that the cluster can tell Berth, as one closed set of values.

use super::orders::Done;
use super::pod_orders::Over;
use super::{Mirror, Uid};
use crate::constraints::dynamic::News as StorageNews;
use crate::view::Queued;
use crate::view::Queues;
use crate::view::{NodeSight, PodSight};
use berth_engine::Turn;
use berth_kube::Seen;
use berth_kube::dra::{Claim, Class, Slice};
use berth_kube::hypernode::Tree;
use berth_model::{LeaseId, Name};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads the object of a node.
pub type ReadNode = Arc<dyn Fn(&berth_kube::object::Node) -> NodeSight + Send + Sync>;

/// What was seen, read, or came of an order.
pub enum Observation {
    Nodes(Seen<NodeSight>),
    Pods(Seen<PodSight>),
    Storage(StorageNews),
    ResourceSlices(Seen<Slice>),
    DeviceClasses(Seen<Class>),
    ResourceClaims(Seen<Claim>),
    HyperNodes(Tree),
    Topologies {
        read: ReadNode,
        levels: BTreeMap<Name, Vec<Name>>,
    },
    Queues(Queues),
    /// A queue of Berth's own has come or gone: those of other schedulers may be visible now.
    QueuesAgain,
    QueuedJobs {
        queued: Vec<Queued>,
        gone: Vec<Uid>,
    },
    /// Gangs that were refused may be complete now.
    RetryRefused,
    /// The task of a managed job is over, and no pod says so.
    TaskOver {
        lease: LeaseId,
        over: Over,
    },
    /// An order was carried out, or failed.
    OrderDone(Done),
    /// A lease ended before it had a pod.
    EndedWithoutPod(LeaseId),
    /// Jobs that wait for each other may be released.
    Release,
    /// Time has passed.
    Tick,
}

impl Mirror {
    /// Takes in one observation.
    pub fn observe(&mut self, turn: &mut Turn<'_>, observation: Observation) {
        match observation {
            Observation::Nodes(seen) => self.see_nodes(turn, seen),
            Observation::Pods(seen) => self.see_pods(turn, seen),
            Observation::Storage(news) => self.see_storage(turn, news),
            Observation::ResourceSlices(seen) => self.see_slices(turn, seen),
            Observation::DeviceClasses(seen) => self.see_classes(turn, seen),
            Observation::ResourceClaims(seen) => self.see_claims(turn, seen),
            Observation::HyperNodes(tree) => self.see_hypernodes(turn, tree),
            Observation::Topologies { read, levels } => {
                self.see_topologies(turn, &*read, &levels);
            }
            Observation::Queues(queues) => self.see_queues(turn, queues),
            Observation::QueuesAgain => self.see_queues_again(turn),
            Observation::QueuedJobs { queued, gone } => self.see_queued(turn, queued, &gone),
            Observation::RetryRefused => self.try_again(turn),
            Observation::TaskOver { lease, over } => self.over_own(turn, lease, over),
            Observation::OrderDone(done) => self.done(turn, done),
            Observation::EndedWithoutPod(lease) => self.ended_without_pod(turn, lease),
            Observation::Release => self.settle(turn),
            Observation::Tick => self.tick(turn),
        }
    }
}
