//! Queues of Volcano: `scheduling.volcano.sh/v1beta1`.

use super::amounts::Which;
use super::{Draft, ImportedQueue};
use crate::object::{Map, Meta, Raw, Text};
use berth_model::{Amount, Milli, QueueOrder, Quota};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::ops::Sub;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Queue {
    pub metadata: Meta,
    pub spec: Spec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    pub weight: Option<i64>,
    /// What the queue never exceeds.
    pub capability: Map<Raw>,
    /// What is its own, and lent while it is idle.
    pub deserved: Map<Raw>,
    pub guarantee: Guarantee,
    pub reclaimable: Option<bool>,
    pub parent: Option<Text>,
    pub priority: Option<i64>,
    pub dequeue_strategy: Option<Text>,
    pub affinity: Option<IgnoredAny>,
    pub extend_clusters: Option<IgnoredAny>,
    pub dra: Option<IgnoredAny>,
}

/// What is its own and never lent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Guarantee {
    pub resource: Map<Raw>,
}

pub fn read(queue: &Queue) -> ImportedQueue {
    let mut draft = Draft::new("Queue", &queue.metadata.name);
    let spec = &queue.spec;
    // Volcano's tree has a root by that name, ours has none.
    draft.parent(spec.parent.as_deref().filter(|parent| *parent != "root"));
    draft.priority(spec.priority);
    if let Some(weight) = spec.weight {
        match weight {
            1..=65_535 => draft.spec.weight = Milli::whole(weight),
            _ => draft.unmappable("weight", &weight.to_string(), "write a number from 1 to 65535"),
        }
    }
    draft.list(Which::Limit, "capability", &spec.capability);
    draft.list(Which::Quota, "deserved", &spec.deserved);
    guarantee(&mut draft, &spec.guarantee);
    draft.spec.order = match spec.dequeue_strategy.as_deref() {
        None | Some("traverse") => Some(QueueOrder::Fifo),
        Some("fifo") => Some(QueueOrder::Strict),
        Some(other) => {
            draft.unmappable("dequeueStrategy", other, "write fifo or traverse");
            None
        }
    };
    if spec.reclaimable == Some(false) {
        let what = "others get back what they lent; mark jobs as not preemptible instead";
        draft.unmappable("reclaimable", "false", what);
    }
    for (field, is_there) in [
        ("affinity", spec.affinity.is_some()),
        ("extendClusters", spec.extend_clusters.is_some()),
        ("dra", spec.dra.is_some()),
    ] {
        if is_there {
            draft.unmappable(field, "set", "queues have nothing of the kind here; leave it out");
        }
    }
    draft.finish()
}

/// The quota is at least what is guaranteed, and what is above that may be lent.
fn guarantee(draft: &mut Draft, written: &Guarantee) {
    if written.resource.is_empty() {
        return;
    }
    let deserved = std::mem::take(&mut draft.spec.quota);
    draft.list(Which::Quota, "guarantee", &written.resource);
    let kept = std::mem::take(&mut draft.spec.quota);
    let quota = Quota {
        cpu: larger(deserved.cpu, kept.cpu),
        memory: larger(deserved.memory, kept.memory),
        gpu: berth_model::GpuQuota {
            total: larger(deserved.gpu.total, kept.gpu.total),
            models: deserved.gpu.models,
        },
    };
    draft.spec.lend.cpu = rest(quota.cpu, kept.cpu);
    draft.spec.lend.memory = rest(quota.memory, kept.memory);
    draft.spec.lend.gpu.total = rest(quota.gpu.total, kept.gpu.total);
    draft.spec.quota = quota;
}

fn larger<T: Ord>(one: Option<Amount<T>>, other: Option<Amount<T>>) -> Option<Amount<T>> {
    one.max(other)
}

fn rest<T: Sub<Output = T>>(
    quota: Option<Amount<T>>,
    kept: Option<Amount<T>>,
) -> Option<Amount<T>> {
    match (quota, kept) {
        (Some(Amount::Of(quota)), Some(Amount::Of(kept))) => Some(Amount::Of(quota - kept)),
        _ => None,
    }
}
