//! Queues of Kueue: `kueue.x-k8s.io/v1beta2`.
//!
//! A cohort is a queue above its ClusterQueues, and jobs wait in the latter; a LocalQueue is
//! another name of one, within a namespace. Flavors are models of GPUs where their labels say so.

use super::amounts::{Which, more_gpus, sum};
use super::{Draft, ImportedQueue};
use crate::node;
use crate::object::{Labels, List, Meta, Raw, Text};
use berth_model::{Amount, Bytes, Cpu, Milli, Name, QueueOrder, Quota};
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct ClusterQueue {
    pub metadata: Meta,
    pub spec: ClusterQueueSpec,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterQueueSpec {
    /// Called `cohort` before `v1beta2`.
    #[serde(alias = "cohort")]
    pub cohort_name: Option<Text>,
    pub resource_groups: List<ResourceGroup>,
    pub queueing_strategy: Option<Text>,
    pub stop_policy: Option<Text>,
    pub fair_sharing: Option<FairSharing>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Cohort {
    pub metadata: Meta,
    pub spec: CohortSpec,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CohortSpec {
    /// Called `parent` before `v1beta2`.
    #[serde(alias = "parent")]
    pub parent_name: Option<Text>,
    pub resource_groups: List<ResourceGroup>,
    pub fair_sharing: Option<FairSharing>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct FairSharing {
    pub weight: Option<Raw>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct ResourceGroup {
    pub flavors: List<FlavorQuotas>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct FlavorQuotas {
    pub name: Text,
    pub resources: List<ResourceQuota>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceQuota {
    pub name: Text,
    pub nominal_quota: Raw,
    pub borrowing_limit: Option<Raw>,
    pub lending_limit: Option<Raw>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct LocalQueue {
    pub metadata: Meta,
    pub spec: LocalQueueSpec,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LocalQueueSpec {
    pub cluster_queue: Text,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct ResourceFlavor {
    pub metadata: Meta,
    pub spec: ResourceFlavorSpec,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceFlavorSpec {
    pub node_labels: Labels,
}

impl ResourceFlavor {
    /// The GPU model its nodes have, if its labels tell.
    pub fn model(&self) -> Option<Name> {
        let product = self.spec.node_labels.get("nvidia.com/gpu.product")?;
        Some(node::model(product, None))
    }
}

/// A LocalQueue: in that namespace, `name` stands for `queue`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Alias {
    pub namespace: Name,
    pub name: Name,
    pub queue: Name,
}

pub fn alias(local: &LocalQueue) -> Alias {
    Alias {
        namespace: Name::new(&local.metadata.namespace),
        name: Name::new(&local.metadata.name),
        queue: Name::new(&local.spec.cluster_queue),
    }
}

pub fn cluster_queue(queue: &ClusterQueue, flavors: &[ResourceFlavor]) -> ImportedQueue {
    let mut draft = Draft::new("ClusterQueue", &queue.metadata.name);
    let spec = &queue.spec;
    draft.parent(spec.cohort_name.as_deref());
    quotas(&mut draft, &spec.resource_groups, flavors);
    weight(&mut draft, &spec.fair_sharing);
    if draft.spec.parent.is_none() {
        // Outside a cohort nothing is borrowed or lent.
        draft.spec.borrow = nothing(&draft.spec.quota);
        draft.spec.lend = nothing(&draft.spec.quota);
    }
    draft.spec.order = match spec.queueing_strategy.as_deref() {
        None | Some("BestEffortFIFO") => Some(QueueOrder::Fifo),
        Some("StrictFIFO") => Some(QueueOrder::Strict),
        Some(other) => {
            draft.unmappable("queueingStrategy", other, "write StrictFIFO or BestEffortFIFO");
            None
        }
    };
    stop(&mut draft, spec.stop_policy.as_deref());
    draft.finish()
}

pub fn cohort(cohort: &Cohort) -> ImportedQueue {
    let mut draft = Draft::new("Cohort", &cohort.metadata.name);
    draft.parent(cohort.spec.parent_name.as_deref());
    quotas(&mut draft, &cohort.spec.resource_groups, &[]);
    weight(&mut draft, &cohort.spec.fair_sharing);
    // Left out, a quota is the sum of those below, which is all a cohort of Kueue has by itself.
    let own = std::mem::take(&mut draft.spec.quota);
    if own != Quota::default() && own != nothing(&own) {
        let what = "the quota of a queue is shared out to those below; give this to one of them";
        draft.unmappable("resourceGroups", "nominalQuota", what);
    }
    draft.finish()
}

fn quotas(draft: &mut Draft, groups: &[ResourceGroup], flavors: &[ResourceFlavor]) {
    let all = || groups.iter().flat_map(|group| &group.flavors);
    for flavor in all() {
        for resource in &flavor.resources {
            let field = format!("flavor {}", flavor.name);
            let Some(nominal) = draft.quantity(&field, &resource.nominal_quota) else {
                continue;
            };
            draft.add(Which::Quota, &field, &resource.name, nominal);
            let model = flavors.iter().find(|known| known.metadata.name == flavor.name);
            if let Some(model) = model.and_then(ResourceFlavor::model)
                && &*resource.name == "nvidia.com/gpu"
                && let Ok(milli) = nominal.milli()
            {
                let mut quota = draft.spec.quota.gpu.models.remove(&model);
                sum(&mut quota, Milli(milli), more_gpus);
                draft.spec.quota.gpu.models.extend(quota.map(|quota| (model, quota)));
            }
        }
    }
    bound(draft, Which::Borrow, all(), |quota| &quota.borrowing_limit);
    bound(draft, Which::Lend, all(), |quota| &quota.lending_limit);
}

/// A bound over all flavors holds only where each of them has one.
fn bound<'a>(
    draft: &mut Draft,
    which: Which,
    flavors: impl Iterator<Item = &'a FlavorQuotas> + Clone,
    limit: fn(&ResourceQuota) -> &Option<Raw>,
) {
    for resource in ["cpu", "memory", "nvidia.com/gpu", "amd.com/gpu"] {
        let meant = flavors.clone().flat_map(|flavor| &flavor.resources);
        let bounds: Vec<Option<&Raw>> = meant
            .filter(|quota| *quota.name == *resource)
            .map(|quota| limit(quota).as_ref())
            .collect();
        if let Some(bounds) = bounds.into_iter().collect::<Option<Vec<&Raw>>>() {
            for raw in bounds {
                if let Some(amount) = draft.quantity(resource, raw) {
                    draft.add(which, resource, resource, amount);
                }
            }
        }
    }
}

/// Zero of each resource that has a quota.
fn nothing(quota: &Quota) -> Quota {
    let mut none = Quota::default();
    none.gpu.total = quota.gpu.total.map(|_| Amount::Of(Milli(0)));
    none.cpu = quota.cpu.map(|_| Amount::Of(Cpu(0)));
    none.memory = quota.memory.map(|_| Amount::Of(Bytes(0)));
    none
}

fn weight(draft: &mut Draft, sharing: &Option<FairSharing>) {
    let Some(raw) = sharing.as_ref().and_then(|sharing| sharing.weight.as_ref()) else {
        return;
    };
    if let Some(Ok(milli)) = draft.quantity("fairSharing.weight", raw).map(|w| w.milli()) {
        draft.spec.weight = Milli(milli);
    }
}

/// A stopped queue starts nothing: it has a limit of nothing.
fn stop(draft: &mut Draft, policy: Option<&str>) {
    match policy {
        None | Some("None") => return,
        Some("Hold") => {}
        Some("HoldAndDrain") => {
            let what = "nothing new starts; stop what runs yourself";
            draft.unmappable("stopPolicy", "HoldAndDrain", what);
        }
        Some(other) => {
            return draft.unmappable("stopPolicy", other, "write None, Hold or HoldAndDrain");
        }
    }
    draft.spec.limit.gpu.total = Some(Amount::Of(Milli(0)));
    draft.spec.limit.cpu = Some(Amount::Of(Cpu(0)));
    draft.spec.limit.memory = Some(Amount::Of(Bytes(0)));
}
