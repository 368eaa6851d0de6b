//! Tasks that follow one kind of object each.

use crate::state::observation::Observation;
use berth_engine::Inlet;
use berth_kube::WatchUpdate;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Updates that wait to be applied.
pub const WATCH_BUFFER: usize = 64;

/// Tasks that follow the cluster; they end with this.
#[derive(Default)]
pub struct Tasks(pub Vec<JoinHandle<()>>);

impl Tasks {
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        // Boxed: the runtime's part of a task is then compiled once, not once per task.
        let task: BoxFuture<'static, ()> = Box::pin(task);
        self.0.push(tokio::spawn(task));
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// The first update of a watch, which lists all objects.
pub async fn listed<T>(seen: &mut mpsc::Receiver<WatchUpdate<T>>) -> Vec<T> {
    match seen.recv().await {
        Some(WatchUpdate::Snapshot(all)) => all,
        Some(WatchUpdate::Changes(_)) | None => Vec::new(),
    }
}

/// Reports each update as an observation until the watch ends.
pub async fn pump<T>(
    mut updates: mpsc::Receiver<T>,
    inlet: Inlet<Observation>,
    observation: impl Fn(T) -> Observation,
) {
    while let Some(update) = updates.recv().await {
        inlet.site(observation(update)).await;
    }
}
