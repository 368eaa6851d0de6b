//! Follows resource slices, device classes and resource claims, where the API server has them.

use super::tasks::{Tasks, WATCH_BUFFER, listed, pump};
use crate::retry::retry_until_answered;
use crate::state::device_claims::Claims;
use crate::state::observation::Observation;
use berth_engine::Inlet;
use berth_kube::dra::{CLAIMS, CLASSES, DeviceClass, GROUP, ResourceClaim, ResourceSlice, SLICES};
use berth_kube::{Api, WatchUpdate, watch_objects};
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::sync::mpsc;

pub struct Watches {
    slices: mpsc::Receiver<WatchUpdate<ResourceSlice>>,
    classes: mpsc::Receiver<WatchUpdate<DeviceClass>>,
    claims: mpsc::Receiver<WatchUpdate<ResourceClaim>>,
}

/// Lists and follows slices, classes and claims; nothing where there are no such things. Where we
/// may not see them nothing is claimed for now, and what there is becomes known when we may.
pub async fn watch(api: &Api, follows: &mut Tasks) -> Option<(Watches, Claims)> {
    let mut may_see = true;
    for path in [GROUP, CLAIMS, SLICES, CLASSES] {
        let one = if path == GROUP { path.to_owned() } else { format!("{path}?limit=1") };
        match retry_until_answered(|| api.get::<IgnoredAny>(&one)).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => return None,
            Err(error) => {
                tracing::warn!(%error, "pods that claim devices have to wait");
                may_see = false;
            }
        }
    }
    let mut watches = Watches {
        slices: followed(api, SLICES, follows),
        classes: followed(api, CLASSES, follows),
        claims: followed(api, CLAIMS, follows),
    };
    let mut claims = Claims::default();
    if may_see {
        for slice in listed(&mut watches.slices).await {
            claims.put_slice(slice);
        }
        claims.set_classes(listed(&mut watches.classes).await);
        for claim in listed(&mut watches.claims).await {
            claims.put_claim(claim);
        }
    }
    Some((watches, claims))
}

fn followed<T: DeserializeOwned + Send + 'static>(
    api: &Api,
    path: &str,
    follows: &mut Tasks,
) -> mpsc::Receiver<WatchUpdate<T>> {
    let (tell, received) = mpsc::channel(WATCH_BUFFER);
    let following = watch_objects::<T>(api.clone(), path.to_owned(), String::new(), tell);
    follows.spawn(following);
    received
}

impl Watches {
    /// From now on what happens is reported.
    pub fn report(self, inlet: &Inlet<Observation>, tasks: &mut Tasks) {
        let slices = pump(self.slices, inlet.clone(), Observation::ResourceSlices);
        let classes = pump(self.classes, inlet.clone(), Observation::DeviceClasses);
        let claims = pump(self.claims, inlet.clone(), Observation::ResourceClaims);
        tasks.spawn(slices);
        tasks.spawn(classes);
        tasks.spawn(claims);
    }
}
