//! From what is seen to the loop. Pods and what is around them come by different ways, so whoever
//! reads also tells before anybody else may read: the loop hears of a pod in the order it was read.

use super::follow::KindUpdate;
use super::reader::Reader;
use super::related::{RelatedObjects, RelatedUpdates};
use crate::shared::lock;
use crate::state::ClusterState;
use crate::state::observation::{Observation, ReadNode};
use crate::view::PodView;
use berth_engine::Inlet;
use berth_kube::object::Pod;
use berth_kube::{Change, Seen};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// How often it is looked whether something is still missing.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub struct PodFeed {
    pub reader: Arc<Reader>,
    pub related: Arc<Mutex<RelatedObjects>>,
    pub inlet: Inlet<Observation>,
    pub state: Arc<Mutex<ClusterState>>,
}

impl PodFeed {
    pub fn observe_pods(&self, seen: Seen<Pod>) {
        let mut related = self.related();
        let seen = related.read_pods(&self.reader, seen);
        self.report(seen);
    }

    /// Takes in what is around pods until nobody tells any more.
    pub async fn run(self, mut told: mpsc::Receiver<KindUpdate>) {
        let mut round = tokio::time::interval(CHECK_INTERVAL);
        loop {
            tokio::select! {
                news = told.recv() => match news {
                    Some(news) => self.apply(news),
                    None => return,
                },
                _ = round.tick() => {
                    self.report_again(self.related().overdue(&self.reader));
                    self.retry_refused();
                }
            }
        }
    }

    fn apply(&self, told: KindUpdate) {
        let mut related = self.related();
        let RelatedUpdates { pods, queues, topologies, hypernodes, queued, gone, notes } =
            related.apply(&self.reader, told);
        lock(&self.state).note_all(notes);
        if let Some(tree) = hypernodes {
            self.inlet.site(Observation::HyperNodes(tree));
        }
        if let Some(levels) = topologies {
            self.reader.add_topology_labels(&levels);
            self.inlet.site(Observation::Topologies { read: self.read_nodes(), levels });
        }
        if let Some(queues) = queues {
            self.inlet.site(Observation::Queues(queues));
        }
        // Before their pods: these are looked for by the job.
        if !queued.is_empty() || !gone.is_empty() {
            self.inlet.site(Observation::QueuedJobs { queued, gone });
        }
        self.report_again(pods);
    }

    fn report_again(&self, pods: Vec<PodView>) {
        if !pods.is_empty() {
            self.report(Seen::Changes(pods.into_iter().map(Change::Put).collect()));
        }
    }

    /// How the loop reads nodes again.
    fn read_nodes(&self) -> ReadNode {
        let reader = self.reader.clone();
        Arc::new(move |node| reader.node(node))
    }

    fn retry_refused(&self) {
        if lock(&self.state).has_refused() {
            self.inlet.site(Observation::RetryRefused);
        }
    }

    fn report(&self, seen: Seen<PodView>) {
        self.inlet.site(Observation::Pods(seen));
    }

    fn related(&self) -> MutexGuard<'_, RelatedObjects> {
        self.related.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
