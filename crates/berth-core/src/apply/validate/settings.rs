//! Events that set the policy, the GPU models and the topologies.

use crate::apply::validate::groups::all_levels;
use crate::apply::validate::limits::{MAX_SPAN, too_large};
use crate::state::State;
use berth_model::{Micros, Milli, Name, Policy, Rejected, Span};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn policy(policy: &Policy) -> Result<(), Rejected> {
    let spans = [
        ("grace", policy.grace),
        ("stale", policy.stale),
        ("aging_max", policy.aging_max),
        ("min_runtime", policy.min_runtime),
        ("preempt_after", policy.preempt_after),
        ("restart_cost", policy.restart_cost),
        ("quantum", policy.quantum),
        ("idle_after", policy.idle_after),
        ("pod_time_limit", policy.pod_time_limit),
        ("service_pod_time_limit", policy.service_pod_time_limit),
    ];
    if let Some((name, _)) = spans.into_iter().find(|(_, span)| *span < Span::ZERO) {
        return Err(Rejected::BadPolicy { why: format!("{name} is negative") });
    }
    let more = [
        ("default_time_limit", policy.default_time_limit),
        ("half_life", policy.half_life),
        ("credit_cap", policy.credit_cap),
        ("forecast_horizon", policy.forecast_horizon),
    ];
    if let Some((name, _)) = spans.into_iter().chain(more).find(|(_, span)| *span > MAX_SPAN) {
        return Err(Rejected::BadPolicy {
            why: format!("{name} is over a hundred years; check its unit"),
        });
    }
    if !(Milli(0)..=Milli::ONE).contains(&policy.gpu_reserve) {
        return Err(Rejected::BadPolicy { why: "gpu_reserve is a part: 0 to 1".to_owned() });
    }
    if policy.default_time_limit <= Span::ZERO || policy.half_life <= Span::ZERO {
        return Err(Rejected::BadPolicy {
            why: "default_time_limit and half_life must be longer than nothing".to_owned(),
        });
    }
    Ok(())
}

pub(super) fn models(
    prices: &BTreeMap<Name, Micros>,
    speeds: &BTreeMap<Name, Milli>,
    watts: &BTreeMap<Name, i64>,
) -> Result<(), Rejected> {
    let negative = prices.iter().find(|(_, price)| price.0 < 0).map(|(model, _)| model);
    let dear = prices.iter().find(|(_, price)| too_large(price.0)).map(|(model, _)| model);
    let fine = 1..=1_000_000_000;
    let still = speeds.iter().find(|(_, speed)| !fine.contains(&speed.0));
    let still = still.map(|(model, _)| model);
    let dark = watts.iter().find(|(_, watts)| !fine.contains(*watts));
    let dark = dark.map(|(model, _)| model);
    match negative.or(dear).or(still).or(dark) {
        Some(model) => Err(Rejected::BadPolicy {
            why: format!(
                "{model} needs a price of 0 or more, and a speed and watts above 0, none of them beyond reason"
            ),
        }),
        None => Ok(()),
    }
}

pub(super) fn topologies(
    state: &State,
    topologies: &BTreeMap<Name, Vec<Name>>,
) -> Result<(), Rejected> {
    for (name, keys) in topologies {
        let distinct: BTreeSet<&Name> = keys.iter().collect();
        let reserved = keys.iter().find(|key| matches!(key.as_str(), "node" | "nvlink"));
        let why = if distinct.len() != keys.len() {
            "a level is named twice".to_owned()
        } else if let Some(key) = reserved {
            format!("{key} is always there below the last level; leave it out")
        } else {
            continue;
        };
        return Err(Rejected::BadTopology { name: name.clone(), why });
    }
    let known = |within: &Name, level: &Name| {
        topologies.get(within).is_some_and(|keys| keys.contains(level))
    };
    // What a job relies on cannot go away under it.
    for (_, job) in state.jobs.iter() {
        let mut named = Vec::new();
        job.spec.groups.iter().for_each(|group| all_levels(group, &mut named));
        for (within, level) in named {
            let within = within.cloned().unwrap_or(Name::new("default"));
            if !matches!(level.as_str(), "node" | "nvlink") && !known(&within, level) {
                let why = format!("job {} asks for level {level}: keep it until then", job.id);
                return Err(Rejected::BadTopology { name: within, why });
            }
        }
    }
    Ok(())
}
