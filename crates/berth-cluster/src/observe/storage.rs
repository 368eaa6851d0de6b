//! Follows claims, volumes, storage classes, CSI objects and namespaces.

use super::tasks::{Tasks, WATCH_BUFFER};
use crate::constraints::dynamic::StorageUpdate;
use berth_kube::object::{
    CsiCapacity, CsiDriver, CsiNode, Namespace, PersistentVolume, PersistentVolumeClaim,
    StorageClass, VolumeAttachment,
};
use berth_kube::{Api, WatchUpdate, watch_objects};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

/// What there was at first, and what comes.
pub struct Storage {
    pub first: Vec<StorageUpdate>,
    pub news: mpsc::Receiver<StorageUpdate>,
}

impl Storage {
    pub async fn follow(api: &Api, follows: &mut Tasks) -> Storage {
        let (tell, news) = mpsc::channel(WATCH_BUFFER);
        let mut storage = Storage { first: Vec::new(), news };
        let claims = "/api/v1/persistentvolumeclaims";
        let volumes = "/api/v1/persistentvolumes";
        let stored = |kind: &str| format!("/apis/storage.k8s.io/v1/{kind}");
        let (classes, drivers) = (&stored("storageclasses"), &stored("csidrivers"));
        let (nodes, capacities) = (&stored("csinodes"), &stored("csistoragecapacities"));
        let attachments = &stored("volumeattachments");
        let begun = [
            begin::<Namespace>(
                api,
                "/api/v1/namespaces",
                StorageUpdate::Namespaces,
                &tell,
                follows,
            ),
            begin::<PersistentVolumeClaim>(api, claims, StorageUpdate::Claims, &tell, follows),
            begin::<PersistentVolume>(api, volumes, StorageUpdate::Volumes, &tell, follows),
            begin::<StorageClass>(api, classes, StorageUpdate::Classes, &tell, follows),
            begin::<CsiDriver>(api, drivers, StorageUpdate::Drivers, &tell, follows),
            begin::<CsiNode>(api, nodes, StorageUpdate::Nodes, &tell, follows),
            begin::<CsiCapacity>(api, capacities, StorageUpdate::Capacities, &tell, follows),
            begin::<VolumeAttachment>(api, attachments, StorageUpdate::Attachments, &tell, follows),
        ];
        for first in begun {
            // The sender is gone only when the server stops.
            storage.first.extend(first.await.ok());
        }
        storage
    }
}

/// Follows one kind. The first of its news comes by itself.
fn begin<T: DeserializeOwned + Send + 'static>(
    api: &Api,
    path: &str,
    wrap: fn(WatchUpdate<T>) -> StorageUpdate,
    tell: &mpsc::Sender<StorageUpdate>,
    follows: &mut Tasks,
) -> tokio::sync::oneshot::Receiver<StorageUpdate> {
    let (to, mut seen) = mpsc::channel(WATCH_BUFFER);
    let following = watch_objects::<T>(api.clone(), path.to_owned(), String::new(), to);
    follows.spawn(following);
    let (first, begun) = tokio::sync::oneshot::channel();
    let tell = tell.clone();
    follows.spawn(async move {
        if let Some(news) = seen.recv().await {
            let _ = first.send(wrap(news));
        }
        while let Some(news) = seen.recv().await {
            if tell.send(wrap(news)).await.is_err() {
                return;
            }
        }
    });
    begun
}
