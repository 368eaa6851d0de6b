//! Queues of KAI: `scheduling.run.ai/v2`.

use super::{Draft, ImportedQueue};
use crate::object::{Meta, Raw, Text};
use berth_model::{Amount, Bytes, Cpu, Milli, Quota, Span};
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Queue {
    pub metadata: Meta,
    pub spec: Spec,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    pub parent_queue: Option<Text>,
    pub resources: Option<Resources>,
    pub priority: Option<i64>,
    pub preempt_min_runtime: Option<Text>,
    pub reclaim_min_runtime: Option<Text>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// In GPUs, also parts of one.
    pub gpu: Resource,
    /// In thousandths of a core.
    pub cpu: Resource,
    /// In megabytes.
    pub memory: Resource,
}

/// `-1` is without bound.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resource {
    pub quota: Option<Raw>,
    pub over_quota_weight: Option<Raw>,
    pub limit: Option<Raw>,
    pub lending_limit: Option<Raw>,
}

/// KAI's priority of a queue that names none.
const PRIORITY: i64 = 100;

pub fn read(queue: &Queue) -> ImportedQueue {
    let mut draft = Draft::new("Queue", &queue.metadata.name);
    let spec = &queue.spec;
    draft.parent(spec.parent_queue.as_deref());
    draft.priority(Some(spec.priority.unwrap_or(PRIORITY)));
    if let Some(resources) = &spec.resources {
        weight(&mut draft, resources);
        let gpu = amounts(&mut draft, "gpu", &resources.gpu);
        let cpu = amounts(&mut draft, "cpu", &resources.cpu);
        let memory = amounts(&mut draft, "memory", &resources.memory);
        let fill = |quota: &mut Quota, of: fn(&Amounts) -> Option<Amount<i64>>| {
            quota.gpu.total = of(&gpu).map(|amount| unit(amount, Milli));
            // Here a thousandth of a thousandth of a core counts as nothing.
            quota.cpu = of(&cpu).map(|amount| unit(amount, |n| Cpu(n / 1_000)));
            let bytes = |n: i64| Bytes(n.saturating_mul(1_000));
            quota.memory = of(&memory).map(|amount| unit(amount, bytes));
        };
        fill(&mut draft.spec.quota, |amounts| Some(amounts.quota));
        fill(&mut draft.spec.limit, |amounts| amounts.limit);
        fill(&mut draft.spec.lend, |amounts| amounts.lend);
    }
    min_runtime(&mut draft, spec);
    draft.finish()
}

/// Thousandths of KAI's own unit.
struct Amounts {
    quota: Amount<i64>,
    limit: Option<Amount<i64>>,
    lend: Option<Amount<i64>>,
}

fn amounts(draft: &mut Draft, name: &str, written: &Resource) -> Amounts {
    let mut read = |field: &str, raw: &Option<Raw>| {
        let raw = raw.as_ref()?;
        if raw.as_str() == "-1" {
            return Some(Amount::Unlimited);
        }
        let field = format!("resources.{name}.{field}");
        let amount = draft.quantity(&field, raw)?;
        match amount.milli() {
            Ok(milli) => Some(Amount::Of(milli)),
            Err(error) => {
                draft.unmappable(&field, raw.as_str(), &error.to_string());
                None
            }
        }
    };
    // To KAI, a quota that is left out is zero, and a limit that is left out is the quota.
    let quota = read("quota", &written.quota).unwrap_or(Amount::Of(0));
    let limit = read("limit", &written.limit).unwrap_or(quota);
    let lend = read("lendingLimit", &written.lending_limit);
    let limit = match (limit, quota) {
        (Amount::Of(limit), Amount::Of(quota)) => Some(Amount::Of(limit.max(quota))),
        (Amount::Of(limit), Amount::Unlimited | Amount::Share(_)) => Some(Amount::Of(limit)),
        (Amount::Unlimited | Amount::Share(_), _) => None,
    };
    Amounts { quota, limit, lend }
}

fn unit<T>(amount: Amount<i64>, of: impl Fn(i64) -> T) -> Amount<T> {
    match amount {
        Amount::Of(n) => Amount::Of(of(n)),
        Amount::Share(share) => Amount::Share(share),
        Amount::Unlimited => Amount::Unlimited,
    }
}

/// A queue has one weight here; that of its GPUs.
fn weight(draft: &mut Draft, resources: &Resources) {
    let Resources { gpu, cpu, memory } = resources;
    let field = "resources.gpu.overQuotaWeight";
    if let Some(raw) = &gpu.over_quota_weight
        && let Some(Ok(milli)) = draft.quantity(field, raw).map(|weight| weight.milli())
    {
        draft.spec.weight = Milli(milli);
    }
    for (name, other) in [("cpu", cpu), ("memory", memory)] {
        if let Some(raw) = &other.over_quota_weight
            && other.over_quota_weight != gpu.over_quota_weight
        {
            let what = "a queue has one weight for all resources; write that of gpu here too";
            draft.unmappable(&format!("resources.{name}.overQuotaWeight"), raw.as_str(), what);
        }
    }
}

/// Preempting and reclaiming have one least runtime here.
fn min_runtime(draft: &mut Draft, spec: &Spec) {
    let mut read = |field: &str, text: &Option<Text>| {
        let text = text.as_deref()?;
        let span = text.parse::<Span>().ok().filter(|span| span.0 >= 0);
        if span.is_none() {
            draft.unmappable(field, text, "write a length of time such as 90s, 5m or 1h30m");
        }
        span
    };
    let preempt = read("preemptMinRuntime", &spec.preempt_min_runtime);
    let reclaim = read("reclaimMinRuntime", &spec.reclaim_min_runtime);
    draft.spec.min_runtime = preempt.max(reclaim);
    if let (Some(preempt), Some(reclaim)) = (preempt, reclaim)
        && preempt != reclaim
    {
        let what = "there is one least runtime for both, and the longer one is used";
        draft.unmappable("preemptMinRuntime and reclaimMinRuntime", "different", what);
    }
}
