//! Quotas that exceed those of the parent queue. The scheduler reduces each of them in proportion, so Berth
//! warns and does not refuse.

use berth_model::{Amount, Milli, Name, QueueSpec};
use std::collections::BTreeMap;

type Queues = BTreeMap<Name, QueueSpec>;

/// The maximum number of queues in one warning.
const MOST_NAMED: usize = 5;
/// The maximum depth of a tree of queues. Documents may describe a cycle.
const MOST_DEEP: usize = 32;

/// Warnings about the queues that `is_touched`, and their ancestors and descendants.
pub fn warnings(queues: &Queues, is_touched: impl Fn(&Name) -> bool) -> Vec<String> {
    let mut below: BTreeMap<&Name, Vec<&QueueSpec>> = BTreeMap::new();
    for queue in queues.values() {
        if let Some(parent) = &queue.parent {
            below.entry(parent).or_default().push(queue);
        }
    }
    let mut warnings = Vec::new();
    for (parent, children) in below {
        let touched = is_touched(parent) || children.iter().any(|child| is_touched(&child.name));
        let Some(above) = queues.get(parent).filter(|_| touched) else { continue };
        let models = above.quota.gpu.models.keys().map(Some);
        for model in std::iter::once(None).chain(models) {
            warnings.extend(warning(queues, above, &children, model));
        }
    }
    warnings
}

/// The quota of a queue for all GPUs or for one model, if it is a number.
fn quota(queues: &Queues, queue: &QueueSpec, model: Option<&Name>, depth: usize) -> Option<i64> {
    let gpu = &queue.quota.gpu;
    let amount = match model {
        None => gpu.total,
        Some(model) => gpu.models.get(model).copied(),
    };
    match amount? {
        Amount::Of(Milli(gpus)) => Some(gpus),
        Amount::Share(Milli(share)) if depth < MOST_DEEP => {
            let above = queues.get(queue.parent.as_ref()?)?;
            let whole = i128::from(quota(queues, above, model, depth + 1)?);
            i64::try_from(whole * i128::from(share) / 1_000).ok()
        }
        Amount::Share(_) | Amount::Unlimited => None,
    }
}

fn warning(
    queues: &Queues,
    above: &QueueSpec,
    children: &[&QueueSpec],
    model: Option<&Name>,
) -> Option<String> {
    let has = quota(queues, above, model, 0)?;
    let promised: Vec<(&Name, i64)> = children
        .iter()
        .filter_map(|child| Some((&child.name, quota(queues, child, model, 0)?)))
        .filter(|(_, gpus)| *gpus > 0)
        .collect();
    let sum: i64 = promised.iter().fold(0, |sum, (_, gpus)| sum.saturating_add(*gpus));
    if sum <= has {
        return None;
    }
    let what = model.map_or_else(|| "GPUs".to_owned(), |model| format!("{model} GPUs"));
    let name = &above.name;
    let next = format!("raise the quota of {name}, or lower what is below it");
    if let [(child, gpus)] = promised.as_slice() {
        let gpus = Milli(*gpus);
        return Some(format!(
            "{child} has a quota of {gpus} {what}, and {name} above it has {}: {child} cannot have \
             all of it; {next}",
            Milli(has)
        ));
    }
    let mut names: Vec<&str> = promised.iter().map(|(name, _)| name.as_str()).collect();
    let more = names.len().saturating_sub(MOST_NAMED);
    names.truncate(MOST_NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Some(format!(
        "the quotas of {}{more} add up to {} {what}, and {name} above them has {}: they cannot all \
         have theirs at once; {next}",
        names.join(", "),
        Milli(sum),
        Milli(has)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, parent: Option<&str>, gpus: Option<Amount<Milli>>) -> QueueSpec {
        let mut queue = QueueSpec::new(name);
        queue.parent = parent.map(Name::new);
        queue.quota.gpu.total = gpus;
        queue
    }

    fn gpus(count: i64) -> Option<Amount<Milli>> {
        Some(Amount::Of(Milli(count * 1_000)))
    }

    fn told(queues: &[QueueSpec]) -> Vec<String> {
        let queues = queues.iter().map(|queue| (queue.name.clone(), queue.clone())).collect();
        warnings(&queues, |_| true)
    }

    #[test]
    fn quotas_that_add_up_to_more_than_the_queue_above_has_are_told() {
        let lab = || queue("lab", None, gpus(16));
        let found =
            told(&[lab(), queue("a", Some("lab"), gpus(12)), queue("b", Some("lab"), gpus(8))]);
        assert_eq!(
            found,
            [
                "the quotas of a, b add up to 20 GPUs, and lab above them has 16: they cannot all have \
              theirs at once; raise the quota of lab, or lower what is below it"
            ]
        );
        let found = told(&[lab(), queue("a", Some("lab"), gpus(24))]);
        assert!(
            found[0].starts_with("a has a quota of 24 GPUs, and lab above it has 16"),
            "{found:?}"
        );
        let half = Some(Amount::Share(Milli(500)));
        assert_eq!(
            told(&[lab(), queue("a", Some("lab"), half), queue("b", Some("lab"), half)]),
            [""; 0]
        );
    }

    #[test]
    fn a_queue_without_a_quota_promises_nothing_and_what_is_not_touched_is_not_told() {
        let open = [queue("lab", None, None), queue("a", Some("lab"), gpus(24))];
        assert_eq!(told(&open), [""; 0]);
        let queues: Queues = [queue("lab", None, gpus(1)), queue("a", Some("lab"), gpus(24))]
            .map(|queue| (queue.name.clone(), queue))
            .into();
        assert!(warnings(&queues, |name| name.as_str() == "other").is_empty());
        assert_eq!(warnings(&queues, |name| name.as_str() == "a").len(), 1);
    }
}
