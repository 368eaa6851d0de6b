//! Publishes the address of the leader. A Service without a selector routes to whatever addresses
//! are published for it, so requests reach the leader, and replicas that stand by can be ready all
//! the same: only so are replicas replaced one after the other.

use crate::options::Publish;
use berth_kube::Api;
use serde_json::{Value, json};
use std::time::Duration;

/// How often the address is checked, also where all is well: a user may have deleted it.
const PUBLISH_INTERVAL: Duration = Duration::from_secs(10);

/// Publishes the address of this replica for as long as it leads.
pub async fn run(api: Api, publish: Publish) {
    loop {
        if let Err(error) = write(&api, &publish).await {
            tracing::warn!(%error, "the address of the leader was not published; trying again");
        }
        tokio::time::sleep(PUBLISH_INTERVAL).await;
    }
}

async fn write(api: &Api, publish: &Publish) -> berth_kube::Result<()> {
    let slice = slice(publish, api.namespace());
    let folder = format!("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices", api.namespace());
    match api.put(&format!("{folder}/{}", name(publish)), &slice).await {
        Err(error) if error.is_not_found() => api.post(&folder, &slice).await.map(drop),
        written => written.map(drop),
    }
}

/// The kind of address cannot be changed later, so it is part of the name.
fn name(publish: &Publish) -> String {
    let family = if publish.address.is_ipv4() { "ipv4" } else { "ipv6" };
    format!("{}-leader-{family}", publish.service)
}

fn slice(publish: &Publish, namespace: &str) -> Value {
    let Publish { service, address } = publish;
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": name(publish),
            "namespace": namespace,
            "labels": {
                "kubernetes.io/service-name": service,
                "endpointslice.kubernetes.io/managed-by": "berth.dev",
            },
        },
        "addressType": if address.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{
            "addresses": [address.ip().to_string()],
            "conditions": { "ready": true },
        }],
        "ports": [{ "name": "api", "port": address.port(), "protocol": "TCP" }],
    })
}
