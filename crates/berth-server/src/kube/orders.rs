//! Carrying out what was decided about pods. Many at once, and each until it is done or can never
//! be: the API server may be away for a while.

use berth_kube::{Api, PodRef};
use berth_model::{LeaseId, Name};
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// Writes that are under way at once. More of them only wait for each other at the server.
const AT_ONCE: usize = 128;
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The annotation that says which job and lease a pod is.
pub const LEASE: &str = "berth.dev/lease";

#[derive(Debug)]
pub enum Order {
    Bind { lease: LeaseId, pod: PodRef, node: Name },
    Displace { pod: PodRef, grace_secs: i64, why: &'static str },
    SayWhy { pod: PodRef, message: String },
}

/// What came of a binding.
#[derive(Debug)]
pub enum Bound {
    Yes(LeaseId),
    /// The pod is gone, or somebody else has given it a node.
    Lost(LeaseId, String),
    /// It will never be possible.
    Never(LeaseId, String),
}

/// Takes orders until nobody gives any.
pub async fn work(
    api: Api,
    orders: mpsc::UnboundedReceiver<Order>,
    tell: impl Fn(Bound) + Send + Sync,
) {
    let orders = UnboundedReceiverStream::new(orders);
    orders.for_each_concurrent(AT_ONCE, |order| carry_out(&api, order, &tell)).await;
}

async fn carry_out(api: &Api, order: Order, tell: &(impl Fn(Bound) + Sync)) {
    match order {
        Order::Bind { lease, pod, node } => tell(bind(api, lease, &pod, &node).await),
        Order::Displace { pod, grace_secs, why } => {
            let displaced = patiently(|| api.displace(&pod, grace_secs, why)).await;
            if let Err(error) = displaced {
                tracing::error!(%error, pod = pod.name, "a pod could not be asked to end");
            }
        }
        Order::SayWhy { pod, message } => {
            // The next reason is said anyway.
            if let Err(error) = api.say_why(&pod, &message).await {
                tracing::debug!(%error, pod = pod.name, "a reason could not be written");
            }
        }
    }
}

async fn bind(api: &Api, lease: LeaseId, pod: &PodRef, node: &str) -> Bound {
    let annotations = BTreeMap::from([(LEASE, lease.to_string())]);
    match patiently(|| api.bind(pod, node, &annotations)).await {
        Ok(()) => Bound::Yes(lease),
        Err(error) if error.is_missing() => Bound::Lost(lease, "its pod is gone".to_owned()),
        // Also where our own write came through and its answer did not.
        Err(error) if error.is_conflict() => match patiently(|| api.node_of(pod)).await {
            Ok(Some(bound)) if bound == node => Bound::Yes(lease),
            Ok(Some(bound)) => Bound::Lost(lease, format!("its pod was put on {bound}")),
            Ok(None) => Bound::Lost(lease, "its pod is gone".to_owned()),
            Err(_) => Bound::Lost(lease, error.to_string()),
        },
        Err(error) => Bound::Never(lease, error.to_string()),
    }
}

/// Tries again for as long as another try may help.
async fn patiently<T, F: Future<Output = berth_kube::Result<T>>>(
    mut act: impl FnMut() -> F,
) -> berth_kube::Result<T> {
    let mut pause = FIRST_PAUSE;
    loop {
        match act().await {
            Err(error) if error.is_for_now() => {
                tracing::debug!(%error, "trying again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            done => return done,
        }
    }
}
