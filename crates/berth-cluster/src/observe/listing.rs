//! The first list of everything, and the watches that go on from there.

use super::budgets;
use super::dra;
use super::follow::{Following, KindUpdate, listed as listed_kinds};
use super::names::Names;
use super::reader::Reader;
use super::related::RelatedObjects;
use super::storage::Storage;
use super::tasks::{Tasks, WATCH_BUFFER, listed};
use crate::constraints::dynamic::StorageUpdate;
use crate::options::Options;
use crate::state::InitialObjects;
use crate::state::device_claims::Claims;
use berth_kube::hypernode::HyperNodeTree;
use berth_kube::object::{Node, Pod, PodDisruptionBudget};
use berth_kube::{Api, WatchUpdate, watch_objects_protobuf};
use std::sync::Arc;
use tokio::sync::mpsc;

const NODES_PATH: &str = "/api/v1/nodes";
const PODS_PATH: &str = "/api/v1/pods";

/// Everything there was, and where updates arrive.
pub struct Listing {
    pub reader: Arc<Reader>,
    pub initial: InitialObjects,
    pub nodes: mpsc::Receiver<WatchUpdate<Node>>,
    pub pods: mpsc::Receiver<WatchUpdate<Pod>>,
    pub related: RelatedObjects,
    pub related_updates: mpsc::Receiver<KindUpdate>,
    pub dra: Option<(dra::Watches, Claims)>,
    pub storage: mpsc::Receiver<StorageUpdate>,
    pub budgets: mpsc::Receiver<WatchUpdate<PodDisruptionBudget>>,
    pub tasks: Tasks,
}

impl Listing {
    pub async fn list(api: &Api, options: &Options) -> Listing {
        let mut tasks = Tasks::default();
        let (node_updates, mut nodes) = mpsc::channel(WATCH_BUFFER);
        let (pod_updates, mut pods) = mpsc::channel(WATCH_BUFFER);
        let (path, query) = (NODES_PATH.to_owned(), String::new());
        let following = watch_objects_protobuf::<Node>(api.clone(), path, query, node_updates);
        tasks.spawn(following);
        let (path, query) = (PODS_PATH.to_owned(), String::new());
        let following = watch_objects_protobuf::<Pod>(api.clone(), path, query, pod_updates);
        tasks.spawn(following);
        let compat = &options.compat;
        let reader =
            Arc::new(Reader::new(&options.scheduler_names, compat, &options.reservation_namespace));
        let mut related = RelatedObjects::new(Names::new(compat));
        let (mut stored, mut claimed) = (Tasks::default(), Tasks::default());
        let ((following, mut related_updates), storage, dra) = tokio::join!(
            Following::begin(api.clone(), |kind| kind.matters(compat)),
            Storage::follow(api, &mut stored),
            dra::watch(api, &mut claimed),
        );
        for mut also in [stored, claimed] {
            tasks.0.append(&mut also.0);
        }
        let (mut events, mut hypernodes) = (Vec::new(), HyperNodeTree::default());
        for update in listed_kinds(&mut related_updates, following.len()).await {
            let updates = related.apply(&reader, update);
            events.extend(updates.events);
            hypernodes = updates.hypernodes.unwrap_or(hypernodes);
        }
        reader.add_topology_labels(related.topologies());
        tasks.spawn(following.go_on());
        let all_pods = WatchUpdate::Snapshot(listed(&mut pods).await);
        let initial = InitialObjects {
            queues: related.queues(),
            events,
            queued: related.all_queued(&reader),
            topologies: related.topologies().clone(),
            hypernodes,
            storage: storage.first,
            nodes: listed(&mut nodes).await.iter().map(|node| reader.node(node)).collect(),
            pods: match related.read_pods(&reader, all_pods) {
                WatchUpdate::Snapshot(pods) => pods,
                WatchUpdate::Changes(_) => Vec::new(),
            },
        };
        let storage = storage.news;
        let budgets = budgets::follow(api, &mut tasks);
        Listing {
            reader,
            initial,
            nodes,
            pods,
            related,
            related_updates,
            dra,
            storage,
            budgets,
            tasks,
        }
    }
}
