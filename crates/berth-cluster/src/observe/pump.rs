//! From what is seen to the loop. Pods and what is around them come by different ways, so whoever
//! reads also tells before anybody else may read: the loop hears of a pod in the order it was read.

use super::follow::Told;
use super::reader::Reader;
use super::related::{Around, News};
use crate::shared::lock;
use crate::state::Mirror;
use crate::state::observation::{Observation, ReadNode};
use crate::view::PodSight;
use berth_engine::Inlet;
use berth_kube::object::Pod;
use berth_kube::{Change, Seen};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// How often it is looked whether something is still missing.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub struct Eye {
    pub reader: Arc<Reader>,
    pub around: Arc<Mutex<Around>>,
    pub inlet: Inlet<Observation>,
    pub mirror: Arc<Mutex<Mirror>>,
}

impl Eye {
    pub fn pods(&self, seen: Seen<Pod>) {
        let mut around = self.around();
        let seen = around.see(&self.reader, seen);
        self.tell(seen);
    }

    /// Takes in what is around pods until nobody tells any more.
    pub async fn look(self, mut told: mpsc::Receiver<Told>) {
        let mut round = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                news = told.recv() => match news {
                    Some(news) => self.take(news),
                    None => return,
                },
                _ = round.tick() => {
                    self.tell_again(self.around().overdue(&self.reader));
                    self.try_again();
                }
            }
        }
    }

    fn take(&self, told: Told) {
        let mut around = self.around();
        let News { pods, queues, topologies, hypernodes, queued, gone, notes } =
            around.take(&self.reader, told);
        lock(&self.mirror).note_all(notes);
        if let Some(tree) = hypernodes {
            self.inlet.site(Observation::HyperNodes(tree));
        }
        if let Some(levels) = topologies {
            self.reader.look_for(&levels);
            self.inlet.site(Observation::Topologies { read: self.read_nodes(), levels });
        }
        if let Some(queues) = queues {
            self.inlet.site(Observation::Queues(queues));
        }
        // Before their pods: these are looked for by the job.
        if !queued.is_empty() || !gone.is_empty() {
            self.inlet.site(Observation::QueuedJobs { queued, gone });
        }
        self.tell_again(pods);
    }

    fn tell_again(&self, pods: Vec<PodSight>) {
        if !pods.is_empty() {
            self.tell(Seen::Changes(pods.into_iter().map(Change::Put).collect()));
        }
    }

    /// How the loop reads nodes again.
    fn read_nodes(&self) -> ReadNode {
        let reader = self.reader.clone();
        Arc::new(move |node| reader.node(node))
    }

    fn try_again(&self) {
        if lock(&self.mirror).has_refused() {
            self.inlet.site(Observation::RetryRefused);
        }
    }

    fn tell(&self, seen: Seen<PodSight>) {
        self.inlet.site(Observation::Pods(seen));
    }

    fn around(&self) -> MutexGuard<'_, Around> {
        self.around.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
