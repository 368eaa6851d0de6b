//! Following what is claimed, where the API server knows of claims.

use super::claims::Claims;
use super::mirror::Mirror;
use super::{AHEAD, Follows, listed, lock, pump};
use crate::engine::Inlet;
use berth_kube::dra::{CLAIMS, CLASSES, Claim, Class, GROUP, SLICES, Slice};
use berth_kube::{Api, Seen, follow};
use serde::de::{DeserializeOwned, IgnoredAny};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

pub struct Watches {
    slices: mpsc::Receiver<Seen<Slice>>,
    classes: mpsc::Receiver<Seen<Class>>,
    claims: mpsc::Receiver<Seen<Claim>>,
}

/// Lists and follows slices, classes and claims; nothing where there are no such things, or where
/// we may not see them.
pub async fn watch(api: &Api, follows: &mut Follows) -> Option<(Watches, Claims)> {
    let asked = [
        api.get::<IgnoredAny>(GROUP).await.err(),
        api.get::<IgnoredAny>(&format!("{CLAIMS}?limit=1")).await.err(),
        api.get::<IgnoredAny>(&format!("{SLICES}?limit=1")).await.err(),
        api.get::<IgnoredAny>(&format!("{CLASSES}?limit=1")).await.err(),
    ];
    if let Some(error) = asked.into_iter().flatten().next() {
        if !error.is_missing() {
            tracing::warn!(%error, "pods that claim devices have to wait");
        }
        return None;
    }
    let mut watches = Watches {
        slices: followed(api, SLICES, follows),
        classes: followed(api, CLASSES, follows),
        claims: followed(api, CLAIMS, follows),
    };
    let mut claims = Claims::default();
    for slice in listed(&mut watches.slices).await {
        claims.put_slice(slice);
    }
    claims.set_classes(listed(&mut watches.classes).await);
    for claim in listed(&mut watches.claims).await {
        claims.put_claim(claim);
    }
    Some((watches, claims))
}

fn followed<T: DeserializeOwned + Send + 'static>(
    api: &Api,
    path: &str,
    follows: &mut Follows,
) -> mpsc::Receiver<Seen<T>> {
    let (tell, told) = mpsc::channel(AHEAD);
    let following = follow::<T>(api.clone(), path.to_owned(), String::new(), tell);
    follows.0.push(tokio::spawn(following));
    told
}

impl Watches {
    /// From now on what happens is told to the mirror.
    pub fn tell(self, inlet: &Inlet, mirror: &Arc<Mutex<Mirror>>, follows: &mut Follows) {
        let (news, to) = (inlet.clone(), mirror.clone());
        follows.0.push(tokio::spawn(pump(self.slices, move |seen| {
            let to = to.clone();
            news.tell(move |turn| lock(&to).see_slices(turn, seen));
        })));
        let (news, to) = (inlet.clone(), mirror.clone());
        follows.0.push(tokio::spawn(pump(self.classes, move |seen| {
            let to = to.clone();
            news.tell(move |turn| lock(&to).see_classes(turn, seen));
        })));
        let (news, to) = (inlet.clone(), mirror.clone());
        follows.0.push(tokio::spawn(pump(self.claims, move |seen| {
            let to = to.clone();
            news.tell(move |turn| lock(&to).see_claims(turn, seen));
        })));
    }
}
