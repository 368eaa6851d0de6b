//! Watches those of Berth's kinds that the API server has. A definition that is installed later is
//! found by polling.

use crate::crd::object::Object;
use berth_file::object::{GROUP, Kind, VERSION};
use berth_kube::{Api, GroupResource, WatchUpdate, watch_objects};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How often Berth looks for its kinds while some are missing, and when all are served.
const INTERVAL_WHILE_MISSING: Duration = Duration::from_secs(3);
const INTERVAL_WHILE_SERVED: Duration = Duration::from_secs(60);
/// Updates that wait to be applied.
const KIND_BUFFER: usize = 16;

pub type ObjectUpdate = (Kind, WatchUpdate<Object>);

/// What follows each kind; they end with this.
#[derive(Default)]
struct Followed(BTreeMap<Kind, [JoinHandle<()>; 2]>);

impl Drop for Followed {
    fn drop(&mut self) {
        self.0.values().flatten().for_each(JoinHandle::abort);
    }
}

/// Watches the kinds that are served until the receiver is dropped.
pub async fn watch(api: Api, tell: mpsc::Sender<ObjectUpdate>) {
    let mut followed = Followed::default();
    while !tell.is_closed() {
        match served(&api).await {
            Ok(served) => {
                // What is not served any more is no object that was deleted.
                followed.0.retain(|kind, tasks| {
                    let stays = served.contains(kind);
                    if !stays {
                        tasks.iter().for_each(JoinHandle::abort);
                    }
                    stays
                });
                for kind in served {
                    followed.0.entry(kind).or_insert_with(|| begin(&api, kind, &tell));
                }
            }
            Err(error) => tracing::debug!(%error, "looking for the kinds of {GROUP}"),
        }
        let all = followed.0.len() == Kind::ALL.len();
        tokio::time::sleep(if all { INTERVAL_WHILE_SERVED } else { INTERVAL_WHILE_MISSING }).await;
    }
}

fn begin(api: &Api, kind: Kind, tell: &mpsc::Sender<ObjectUpdate>) -> [JoinHandle<()>; 2] {
    let (tell_one, mut seen) = mpsc::channel(KIND_BUFFER);
    let path = format!("/apis/{GROUP}/{VERSION}/{}", kind.plural());
    let following =
        tokio::spawn(watch_objects::<Object>(api.clone(), path, String::new(), tell_one));
    let tell = tell.clone();
    let passing = tokio::spawn(async move {
        while let Some(seen) = seen.recv().await {
            if tell.send((kind, seen)).await.is_err() {
                return;
            }
        }
    });
    [following, passing]
}

/// The kinds that the API server has. None of them is no mistake.
async fn served(api: &Api) -> berth_kube::Result<BTreeSet<Kind>> {
    let wanted = |kind: Kind| GroupResource { group: GROUP, plural: kind.plural() };
    let found = api.served(&Kind::ALL.map(wanted)).await?;
    Ok(Kind::ALL.into_iter().filter(|kind| found.contains_key(&wanted(*kind))).collect())
}
