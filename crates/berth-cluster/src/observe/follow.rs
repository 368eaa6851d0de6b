//! Following the kinds that an API server serves, also those that are installed later.

use super::kinds::{KINDS, Kind};
use super::slim::{self, Slim};
use berth_kube::{Api, GroupResource, WatchUpdate, watch_objects};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// How often it is asked whether there are other kinds by now.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(5);
/// Between two tries when the server starts.
const DISCOVERY_RETRY: Duration = Duration::from_secs(1);
/// Updates that wait to be applied.
const KIND_BUFFER: usize = 64;

/// What was seen, and of which kind.
pub struct KindUpdate {
    pub kind: &'static Kind,
    /// Where objects of the kind are, such as `/apis/batch/v1/jobs`.
    pub path: Arc<str>,
    pub seen: WatchUpdate<Box<RawValue>>,
}

/// The kinds that are followed.
pub struct Following {
    api: Api,
    updates: mpsc::Sender<KindUpdate>,
    followed: BTreeMap<GroupResource, AbortHandle>,
    wanted: Vec<&'static Kind>,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.followed.values().for_each(AbortHandle::abort);
    }
}

impl Following {
    /// Begins with what is served now.
    pub async fn begin(
        api: Api,
        is_wanted: impl Fn(&Kind) -> bool,
    ) -> (Following, mpsc::Receiver<KindUpdate>) {
        let (updates, received) = mpsc::channel(KIND_BUFFER);
        let wanted = KINDS.iter().filter(|kind| is_wanted(kind)).collect();
        let mut following = Following { api, updates, followed: BTreeMap::new(), wanted };
        while let Err(error) = following.ask().await {
            tracing::warn!(%error, "which kinds there are could not be asked; trying again");
            tokio::time::sleep(DISCOVERY_RETRY).await;
        }
        (following, received)
    }

    /// Follows what is served now and was not before, and no longer what is not served any more. That
    /// a kind is not served says nothing of its objects: where they were deleted, the watch has said
    /// so. What was known of them holds until they are listed again.
    async fn ask(&mut self) -> berth_kube::Result<()> {
        let wanted: Vec<GroupResource> = self.wanted.iter().map(|kind| kind.wanted).collect();
        let served = self.api.served(&wanted).await?;
        for kind in self.wanted.clone() {
            match served.get(&kind.wanted) {
                Some(path) if !self.followed.contains_key(&kind.wanted) => {
                    let (api, updates) = (self.api.clone(), self.updates.clone());
                    let task = tokio::spawn(hand_over(api, path.as_str().into(), kind, updates));
                    self.followed.insert(kind.wanted, task.abort_handle());
                }
                None => {
                    if let Some(task) = self.followed.remove(&kind.wanted) {
                        task.abort();
                    }
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// How many kinds there are to hear of.
    pub fn len(&self) -> usize {
        self.followed.len()
    }

    /// Asks again and again, for as long as this runs.
    pub async fn go_on(mut self) {
        loop {
            tokio::time::sleep(DISCOVERY_INTERVAL).await;
            if let Err(error) = self.ask().await {
                tracing::debug!(%error, "which kinds there are could not be asked");
            }
        }
    }
}

async fn hand_over(
    api: Api,
    path: Arc<str>,
    kind: &'static Kind,
    updates: mpsc::Sender<KindUpdate>,
) {
    if kind.is_slim() {
        pass_on_as::<Slim>(api, path, kind, updates, slim::raw).await;
    } else {
        pass_on_as::<Box<RawValue>>(api, path, kind, updates, |seen| seen).await;
    }
}

async fn pass_on_as<T: DeserializeOwned + Send + 'static>(
    api: Api,
    path: Arc<str>,
    kind: &'static Kind,
    updates: mpsc::Sender<KindUpdate>,
    raw: fn(WatchUpdate<T>) -> WatchUpdate<Box<RawValue>>,
) {
    let (sender, mut received) = mpsc::channel(1);
    let following = watch_objects::<T>(api, path.to_string(), String::new(), sender);
    let passing = async {
        while let Some(seen) = received.recv().await {
            if updates.send(KindUpdate { kind, path: path.clone(), seen: raw(seen) }).await.is_err()
            {
                return;
            }
        }
    };
    tokio::join!(following, passing);
}

/// The first lists of so many kinds, and whatever comes between them.
pub async fn listed(
    received: &mut mpsc::Receiver<KindUpdate>,
    mut kinds: usize,
) -> Vec<KindUpdate> {
    let mut first = Vec::new();
    while kinds > 0 {
        let Some(news) = received.recv().await else { break };
        kinds -= usize::from(matches!(news.seen, WatchUpdate::Snapshot(_)));
        first.push(news);
    }
    first
}
