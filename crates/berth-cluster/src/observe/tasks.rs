//! Tasks that follow one kind of object each.

use berth_kube::Seen;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// News that are read before anybody has taken them in.
pub const WATCH_BUFFER: usize = 64;

/// Tasks that follow the cluster; they end with this.
#[derive(Default)]
pub struct Tasks(pub Vec<JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// The first thing that is told: everything there is.
pub async fn listed<T>(seen: &mut mpsc::Receiver<Seen<T>>) -> Vec<T> {
    match seen.recv().await {
        Some(Seen::All(all)) => all,
        Some(Seen::Changes(_)) | None => Vec::new(),
    }
}

pub async fn pump<T>(mut seen: mpsc::Receiver<Seen<T>>, tell: impl Fn(Seen<T>)) {
    while let Some(news) = seen.recv().await {
        tell(news);
    }
}
