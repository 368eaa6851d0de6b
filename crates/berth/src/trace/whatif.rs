//! What-ifs: one other world, run beside the base.

use super::Variant;
use super::input::{Input, Pool, price_list};
use super::refusal::refuse;
use crate::fail::BadValue;
use anyhow::Result;
use berth_model::Policy;
use berth_sim::workload::Workload;
use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;

/// All that are given make one world together.
#[derive(Args)]
pub struct WhatIf {
    /// Add nodes like the first
    #[arg(long, value_name = "N", help_heading = "What if")]
    add_nodes: Option<u32>,
    /// Set the quota of a team, in GPUs; needs --teams
    #[arg(long, value_name = "TEAM=GPUS", value_delimiter = ',', help_heading = "What if")]
    quota: Vec<TeamQuota>,
    /// Machines that the scheduler may also buy, spot if available: at most NxGxMODEL
    #[arg(long, value_name = "NxGxMODEL", help_heading = "What if")]
    spot: Vec<Pool>,
    /// Set a value of the policy, such as reservations=4 or time_sharing=true
    #[arg(long, value_name = "KEY=VALUE", help_heading = "What if")]
    set: Vec<Set>,
    /// Use another price list
    #[arg(long, value_name = "FILE", help_heading = "What if")]
    other_prices: Option<PathBuf>,
}

/// A team's quota in GPUs.
#[derive(Debug, Clone)]
pub struct TeamQuota {
    team: String,
    gpus: u64,
}

impl FromStr for TeamQuota {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<TeamQuota, BadValue> {
        let wrong = || BadValue::new("expected TEAM=GPUS, such as vision=24");
        let (team, gpus) = text.rsplit_once('=').ok_or_else(wrong)?;
        let gpus = gpus.parse().map_err(|_| wrong())?;
        Ok(TeamQuota { team: team.to_owned(), gpus })
    }
}

/// The quotas of all teams that are named; the others divide what is left by what they ask for.
#[derive(Debug, Clone)]
pub struct Quotas(Vec<TeamQuota>);

impl FromStr for Quotas {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Quotas, BadValue> {
        let parts = text.split(',').filter(|part| !part.is_empty());
        parts.map(TeamQuota::from_str).collect::<Result<_, _>>().map(Quotas)
    }
}

/// Quotas are compared in thousandths of a GPU.
const PARTS: u64 = 1_000;

impl Quotas {
    /// One for each team, in thousandths of a GPU.
    pub fn of(&self, workload: &Workload, gpus: u64) -> Result<Vec<u64>> {
        let demand = workload.quotas_by_demand();
        let mut fixed: Vec<Option<u64>> = vec![None; workload.teams.len()];
        for quota in &self.0 {
            fixed[place(workload, &quota.team)?] = Some(quota.gpus * PARTS);
        }
        let taken: u64 = fixed.iter().flatten().sum();
        let left = u128::from((gpus * PARTS).saturating_sub(taken));
        let open = |team: &usize| fixed[*team].is_none();
        let all: u128 = (0..demand.len()).filter(open).map(|team| u128::from(demand[team])).sum();
        let part = |team: usize| (left * u128::from(demand[team]) / all.max(1)) as u64;
        Ok((0..demand.len()).map(|team| fixed[team].unwrap_or_else(|| part(team).max(1))).collect())
    }
}

fn place(workload: &Workload, team: &str) -> Result<usize> {
    workload.teams.iter().position(|name| name.as_str() == team).ok_or_else(|| {
        let some: Vec<&str> = workload.teams.iter().take(8).map(|name| name.as_str()).collect();
        refuse("no-such-team", format!("there is no team `{team}`; there is {}", some.join(", ")))
    })
}

/// One key of the policy with another value.
#[derive(Debug, Clone)]
pub struct Set {
    key: String,
    value: String,
}

impl FromStr for Set {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Set, BadValue> {
        let wrong = || BadValue::new("expected KEY=VALUE, such as reservations=4");
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        let set = Set { key: key.trim().to_owned(), value: value.trim().to_owned() };
        set.on(&Policy::default()).map_err(|error| BadValue(error.to_string()))?;
        Ok(set)
    }
}

impl Set {
    pub fn on(&self, policy: &Policy) -> Result<Policy> {
        let mut fields = serde_json::to_value(policy)?;
        let Some(field) = fields.get_mut(&self.key) else {
            let keys: Vec<String> =
                fields.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
            let message = format!("the policy has no `{}`; it has {}", self.key, keys.join(", "));
            return Err(refuse("no-such-policy-key", message));
        };
        let bare = || serde_json::Value::String(self.value.clone());
        *field = serde_json::from_str(&self.value).unwrap_or_else(|_| bare());
        let first = serde_json::from_value(fields.clone());
        // A number may be meant as text where a unit belongs to it.
        fields[&self.key] = bare();
        first.or_else(|error| serde_json::from_value(fields).map_err(|_| error)).map_err(|error| {
            let message = format!("`{}` is no value for {}: {error}", self.value, self.key);
            refuse("bad-policy-value", message)
        })
    }
}

impl WhatIf {
    pub fn is_asked(&self) -> bool {
        self.add_nodes.is_some()
            || !self.quota.is_empty()
            || !self.spot.is_empty()
            || !self.set.is_empty()
            || self.other_prices.is_some()
    }

    pub fn apply(&self, input: &Input, base: &Variant, workload: &Workload) -> Result<Variant> {
        let prices = match &self.other_prices {
            Some(path) => price_list(path)?,
            None => base.prices.clone(),
        };
        let mut site = input.site(&prices, &self.spot)?;
        if let Some(more) = self.add_nodes {
            if site.fleet.nodes.is_empty() {
                let message = "--add-nodes needs fixed nodes: give --cluster or --nodes";
                return Err(refuse("no-cluster", message));
            }
            site.fleet = site.fleet.with_more(more);
        }
        let mut quotas = base.quotas.clone();
        if !self.quota.is_empty() && quotas.is_empty() {
            let message = "--quota needs teams that are queues: give --teams";
            return Err(refuse("quota-without-teams", message));
        }
        for quota in &self.quota {
            quotas[place(workload, &quota.team)?] = quota.gpus * PARTS;
        }
        Ok(Variant { suffix: ", what if", site, prices, quotas, set: self.set.clone() })
    }

    /// What is different, in words.
    pub fn describe(&self, other: &Variant) -> String {
        let mut parts = Vec::new();
        if let Some(more) = self.add_nodes {
            parts.push(format!("{more} nodes more, {}", other.site.fleet.describe()));
        }
        let quota =
            |quota: &TeamQuota| format!("{} has a quota of {} GPUs", quota.team, quota.gpus);
        parts.extend(self.quota.iter().map(quota));
        let spot = |pool: &Pool| {
            let most = &pool.most;
            format!("up to {} machines of {} {} may be bought", most.nodes, most.gpus, most.model)
        };
        parts.extend(self.spot.iter().map(spot));
        parts.extend(self.set.iter().map(|set| format!("{} is {}", set.key, set.value)));
        parts.extend(self.other_prices.iter().map(|path| format!("prices of {}", path.display())));
        parts.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_value_may_be_a_number_a_word_or_a_time() {
        let on = |text: &str| text.parse::<Set>().map(|set| set.on(&Policy::default()).unwrap());
        assert_eq!(on("reservations=4").unwrap().reservations, 4);
        assert!(on("time_sharing=true").unwrap().time_sharing);
        assert_eq!(on("quantum=45m").unwrap().quantum, berth_model::Span::mins(45));
        let wrong = on("reservatons=4").unwrap_err().to_string();
        assert!(wrong.contains("no-such-policy-key") && wrong.contains("reservations"), "{wrong}");
        assert!(on("quantum=soon").unwrap_err().to_string().contains("bad-policy-value"));
    }
}
