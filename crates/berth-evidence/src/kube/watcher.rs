//! Somebody who looks on: when each pod got its node, as the API server tells it.

use berth_kube::{Api, Change, WatchUpdate, watch_objects};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

#[derive(Debug, Clone, Deserialize)]
struct Pod {
    metadata: Meta,
    spec: Spec,
}

#[derive(Debug, Clone, Deserialize)]
struct Meta {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: String,
}

/// When a pod was bound, and where.
#[derive(Debug, Clone)]
pub struct Bound {
    pub at: Instant,
    pub node: String,
    pub gang: Option<String>,
}

pub struct Watcher {
    seen: mpsc::Receiver<WatchUpdate<Pod>>,
    pub bound: BTreeMap<String, Bound>,
    /// Pods that were seen on two nodes: there must be none.
    pub twice: u32,
}

impl Watcher {
    pub fn begin(api: &Api) -> Watcher {
        let (tell, seen) = mpsc::channel(64);
        let path = "/api/v1/pods".to_owned();
        tokio::spawn(watch_objects::<Pod>(api.clone(), path, String::new(), tell));
        Watcher { seen, bound: BTreeMap::new(), twice: 0 }
    }

    /// Looks on until so many pods are bound, or nothing has happened for that long.
    pub async fn until(&mut self, count: usize, timeout: Duration) -> bool {
        while self.bound.len() < count {
            match tokio::time::timeout(timeout, self.seen.recv()).await {
                Ok(Some(seen)) => self.take(seen),
                Ok(None) | Err(_) => return false,
            }
        }
        true
    }

    fn take(&mut self, seen: WatchUpdate<Pod>) {
        let at = Instant::now();
        let pods: Vec<Pod> = match seen {
            WatchUpdate::Snapshot(pods) => pods,
            WatchUpdate::Changes(changes) => changes
                .into_iter()
                .filter_map(|change| match change {
                    Change::Applied(pod) => Some(pod),
                    Change::Deleted(_) => None,
                })
                .collect(),
        };
        for pod in pods.into_iter().filter(|pod| !pod.spec.node_name.is_empty()) {
            let node = pod.spec.node_name;
            let gang = pod.metadata.labels.get("gang").cloned();
            let known = self.bound.entry(pod.metadata.name);
            let bound = known.or_insert_with(|| Bound { at, node: node.clone(), gang });
            self.twice += u32::from(bound.node != node);
        }
    }
}
