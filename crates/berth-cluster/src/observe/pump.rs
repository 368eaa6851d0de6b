//! Reports pods and related objects to the loop. They arrive on different watches. Each task reads
//! and reports under one lock, so the loop gets the readings of a pod in their order.

use super::follow::KindUpdate;
use super::reader::Reader;
use super::related::{RelatedObjects, RelatedUpdates};
use crate::shared::SharedState;
use crate::state::ClusterState;
use crate::state::observation::{Observation, ReadNode};
use crate::view::PodView;
use berth_engine::Inlet;
use berth_kube::object::Pod;
use berth_kube::{Change, WatchUpdate};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard, mpsc};

/// How often Berth checks whether related objects are still missing.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub struct PodFeed {
    pub reader: Arc<Reader>,
    pub related: Arc<Mutex<RelatedObjects>>,
    pub inlet: Inlet<Observation>,
    pub state: Arc<SharedState>,
}

impl PodFeed {
    async fn observe_pods(&self, seen: WatchUpdate<Pod>) {
        let mut related = self.related().await;
        let seen = related.read_pods(&self.reader, seen);
        self.report(seen).await;
    }

    /// Reports pods until the watch ends.
    pub async fn run_pods(self, mut pods: mpsc::Receiver<WatchUpdate<Pod>>) {
        while let Some(seen) = pods.recv().await {
            self.observe_pods(seen).await;
        }
    }

    /// Applies updates of related objects until the watches end.
    pub async fn run(self, mut updates: mpsc::Receiver<KindUpdate>) {
        let mut round = tokio::time::interval(CHECK_INTERVAL);
        loop {
            tokio::select! {
                news = updates.recv() => match news {
                    Some(news) => self.apply(news).await,
                    None => return,
                },
                _ = round.tick() => {
                    let mut related = self.related().await;
                    self.report_again(related.overdue(&self.reader)).await;
                    drop(related);
                    self.retry_refused().await;
                }
            }
        }
    }

    async fn apply(&self, update: KindUpdate) {
        let mut related = self.related().await;
        let RelatedUpdates { pods, queues, topologies, hypernodes, queued, gone, events } =
            related.apply(&self.reader, update);
        self.state.update(|state| state.write_events(events));
        if let Some(tree) = hypernodes {
            self.inlet.site(Observation::HyperNodes(tree)).await;
        }
        if let Some(levels) = topologies {
            self.reader.add_topology_labels(&levels);
            self.inlet.site(Observation::Topologies { read: self.read_nodes(), levels }).await;
        }
        if let Some(queues) = queues {
            self.inlet.site(Observation::Queues(queues)).await;
        }
        // Before their pods: these are looked for by the job.
        if !queued.is_empty() || !gone.is_empty() {
            self.inlet.site(Observation::QueuedJobs { queued, gone }).await;
        }
        self.report_again(pods).await;
    }

    async fn report_again(&self, pods: Vec<PodView>) {
        if !pods.is_empty() {
            self.report(WatchUpdate::Changes(pods.into_iter().map(Change::Applied).collect()))
                .await;
        }
    }

    /// How the loop reads nodes again.
    fn read_nodes(&self) -> ReadNode {
        let reader = self.reader.clone();
        Arc::new(move |node| reader.node(node))
    }

    async fn retry_refused(&self) {
        if self.state.read(ClusterState::has_refused) {
            self.inlet.site(Observation::RetryRefused).await;
        }
    }

    async fn report(&self, seen: WatchUpdate<PodView>) {
        self.inlet.site(Observation::Pods(seen)).await;
    }

    /// Held until what was read is reported: the loop takes readings of a pod in their order.
    async fn related(&self) -> MutexGuard<'_, RelatedObjects> {
        self.related.lock().await
    }
}
