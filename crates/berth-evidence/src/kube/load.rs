//! The nodes and pods of a run.

use anyhow::Result;
use berth_kube::Api;
use futures_util::TryStreamExt;
use serde_json::{Value, json};
use std::ops::Range;

/// Requests at once while a run is prepared.
const AT_ONCE: usize = 16;

pub const NAMESPACE: &str = "default";

#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub nodes: u32,
    pub pods: u32,
    pub shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Single,
    /// Gangs of so many pods.
    Gangs(u32),
}

impl Load {
    pub fn title(&self) -> String {
        let Load { nodes, pods, shape } = self;
        match shape {
            Shape::Single => format!("{pods} pods of one GPU on {nodes} nodes"),
            Shape::Gangs(size) => format!("{} gangs of {size} on {nodes} nodes", pods / size),
        }
    }

    pub async fn prepare(&self, api: &Api, scheduler: &str) -> Result<()> {
        let nodes = (0..self.nodes).map(node);
        put(api, "/api/v1/nodes", nodes).await?;
        self.more(api, scheduler, 0..self.pods).await
    }

    /// Pods of these numbers.
    pub async fn more(&self, api: &Api, scheduler: &str, numbers: Range<u32>) -> Result<()> {
        let pods = numbers.map(|number| self.pod(number, scheduler));
        put(api, &format!("/api/v1/namespaces/{NAMESPACE}/pods"), pods).await
    }

    fn pod(&self, number: u32, scheduler: &str) -> Value {
        let amounts = json!({ "cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1" });
        let mut metadata = json!({ "name": format!("p{number}"), "namespace": NAMESPACE });
        if let Shape::Gangs(size) = self.shape {
            let gang = format!("g{}", number / size);
            metadata["labels"] = json!({ "gang": gang });
            metadata["annotations"] = json!({
                "berth.dev/gang": gang,
                "berth.dev/gang-size": size.to_string(),
            });
        }
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {
                "schedulerName": scheduler,
                "containers": [{
                    "name": "main",
                    "image": "none",
                    "resources": { "requests": amounts, "limits": amounts },
                }],
            },
        })
    }
}

fn node(number: u32) -> Value {
    let amounts = json!({
        "cpu": "192", "memory": "2Ti", "pods": "250", "nvidia.com/gpu": "8",
    });
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": format!("n{number}"),
            "labels": {
                "kubernetes.io/hostname": format!("n{number}"),
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "nvidia.com/gpu.memory": "81559",
                "nvidia.com/gpu.count": "8",
                "rack": format!("r{}", number / 16),
                "topology.kubernetes.io/zone": format!("z{}", number / 256),
            },
        },
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
        },
    })
}

async fn put(api: &Api, path: &str, objects: impl Iterator<Item = Value>) -> Result<()> {
    let posts = futures_util::stream::iter(objects.map(Ok::<Value, anyhow::Error>));
    posts
        .try_for_each_concurrent(AT_ONCE, async |object| {
            api.post(path, &object).await?;
            Ok(())
        })
        .await
}
