//! Everything that can be observed of a cluster, as one closed set of values.

use super::orders::OrderOutcome;
use super::pod_orders::LeaseEnd;
use super::{ClusterState, Uid};
use crate::constraints::dynamic::StorageUpdate;
use crate::view::ExternalQueues;
use crate::view::QueuedJob;
use crate::view::{NodeView, PodView};
use berth_engine::Turn;
use berth_kube::WatchUpdate;
use berth_kube::dra::{DeviceClass, ResourceClaim, ResourceSlice};
use berth_kube::hypernode::HyperNodeTree;
use berth_kube::object::PodDisruptionBudget;
use berth_model::{LeaseId, Name};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads the object of a node.
pub type ReadNode = Arc<dyn Fn(&berth_kube::object::Node) -> NodeView + Send + Sync>;

/// What was seen, read, or came of an order.
pub enum Observation {
    Nodes(WatchUpdate<NodeView>),
    Pods(WatchUpdate<PodView>),
    Storage(StorageUpdate),
    Budgets(WatchUpdate<PodDisruptionBudget>),
    ResourceSlices(WatchUpdate<ResourceSlice>),
    DeviceClasses(WatchUpdate<DeviceClass>),
    ResourceClaims(WatchUpdate<ResourceClaim>),
    HyperNodes(HyperNodeTree),
    Topologies {
        read: ReadNode,
        levels: BTreeMap<Name, Vec<Name>>,
    },
    Queues(ExternalQueues),
    /// A queue of Berth's own has come or gone: those of other schedulers may be visible now.
    QueuesAgain,
    QueuedJobs {
        queued: Vec<QueuedJob>,
        gone: Vec<Uid>,
    },
    /// Gangs that were refused may be complete now.
    RetryRefused,
    /// The task of a managed job is over, and no pod says so.
    TaskOver {
        lease: LeaseId,
        over: LeaseEnd,
    },
    /// An order was carried out, or failed.
    OrderDone(OrderOutcome),
    /// A lease ended before it had a pod.
    EndedWithoutPod(LeaseId),
    /// Jobs that wait for each other may be released.
    Release,
    /// Time has passed.
    Tick,
}

impl ClusterState {
    /// Takes in one observation.
    pub fn observe(&mut self, turn: &mut Turn<'_>, observation: Observation) {
        match observation {
            Observation::Nodes(seen) => self.observe_nodes(turn, seen),
            Observation::Pods(seen) => self.observe_pods(turn, seen),
            Observation::Storage(news) => self.observe_storage(turn, news),
            Observation::Budgets(news) => self.observe_budgets(turn, news),
            Observation::ResourceSlices(seen) => self.observe_slices(turn, seen),
            Observation::DeviceClasses(seen) => self.observe_classes(turn, seen),
            Observation::ResourceClaims(seen) => self.observe_claims(turn, seen),
            Observation::HyperNodes(tree) => self.observe_hypernodes(turn, tree),
            Observation::Topologies { read, levels } => {
                self.observe_topologies(turn, &*read, &levels);
            }
            Observation::Queues(queues) => self.observe_queues(turn, queues),
            Observation::QueuesAgain => self.observe_queues_again(turn),
            Observation::QueuedJobs { queued, gone } => self.observe_queued(turn, queued, &gone),
            Observation::RetryRefused => self.retry_refused(turn),
            Observation::TaskOver { lease, over } => self.lease_ended(turn, lease, over),
            Observation::OrderDone(done) => self.done(turn, done),
            Observation::EndedWithoutPod(lease) => self.ended_without_pod(turn, lease),
            Observation::Release => self.release_waiting(turn),
            Observation::Tick => self.tick(turn),
        }
    }
}
