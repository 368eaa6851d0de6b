//! Values as documents write them, field by field, to be compared.

use berth_model::{Amount, Budget, BudgetPeriod, Milli, PriorityClass, QueueSpec, Quota};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Fields by their path, as text.
pub type Flat = BTreeMap<String, String>;

/// A scalar as it was written.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn amount_text<T: ToString>(amount: &Amount<T>) -> String {
    match amount {
        Amount::Of(value) => value.to_string(),
        Amount::Share(share) => format!("{}%", Milli(share.0.saturating_mul(100))),
        Amount::Unlimited => "unlimited".to_owned(),
    }
}

fn put_quota(flat: &mut Flat, path: &str, Quota { gpu, cpu, memory }: &Quota) {
    let amounts = [
        ("gpu", gpu.total.as_ref().map(amount_text)),
        ("cpu", cpu.as_ref().map(amount_text)),
        ("memory", memory.as_ref().map(amount_text)),
    ];
    for (resource, text) in amounts {
        flat.extend(text.map(|text| (format!("{path}.{resource}"), text)));
    }
    for (model, of) in &gpu.models {
        flat.insert(format!("{path}.gpu.{model}"), amount_text(of));
    }
}

/// A value of one of our own words, such as `response-ratio`.
fn word(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().as_ref().and_then(scalar).unwrap_or_default()
}

/// All fields of a queue but its name, its parent and its budget.
pub fn queue(spec: &QueueSpec) -> Flat {
    // Naming every field makes a new one without a comparison an error of the compiler.
    let QueueSpec {
        name: _,
        parent: _,
        quota,
        weight,
        priority,
        limit,
        borrow,
        lend,
        user_limit,
        order,
        min_runtime,
        preempt_after,
        time_sharing,
        budget: _,
        class_limit,
    } = spec;
    let mut flat = Flat::new();
    let quotas = [
        ("quota", quota),
        ("limit", limit),
        ("borrow", borrow),
        ("lend", lend),
        ("user_limit", user_limit),
    ];
    for (path, quota) in quotas {
        put_quota(&mut flat, path, quota);
    }
    let fields = [
        ("weight", Some(weight.to_string())),
        ("priority", Some(priority.to_string())),
        ("order", order.map(word)),
        ("min_runtime", min_runtime.map(|span| span.to_string())),
        ("preempt_after", preempt_after.map(|span| span.to_string())),
        ("time_sharing", time_sharing.map(|on| on.to_string())),
        ("class_limit.researcher", class_limit.researcher.as_ref().map(ToString::to_string)),
        ("class_limit.team_lead", class_limit.team_lead.as_ref().map(ToString::to_string)),
    ];
    flat.extend(fields.into_iter().filter_map(|(path, text)| Some((path.to_owned(), text?))));
    flat
}

pub fn budget(Budget { limit, per, action, thresholds }: &Budget) -> Flat {
    let mut flat: Flat = [
        ("limit".to_owned(), limit.to_string()),
        ("per".to_owned(), word(per)),
        ("action".to_owned(), word(action)),
    ]
    .into();
    if !thresholds.is_empty() {
        let all: Vec<String> =
            thresholds.iter().map(|one| amount_text::<Milli>(&Amount::Share(*one))).collect();
        flat.insert("thresholds".to_owned(), format!("[{}]", all.join(", ")));
    }
    flat
}

/// A budget in one line: `5000 per month, block`.
pub fn budget_line(Budget { limit, per, action, .. }: &Budget) -> String {
    let per = match per {
        BudgetPeriod::Once => "once".to_owned(),
        BudgetPeriod::Day | BudgetPeriod::Week | BudgetPeriod::Month => {
            format!("per {}", word(per))
        }
    };
    format!("{limit} {per}, {}", word(action))
}

pub fn class(PriorityClass { value, across }: &PriorityClass) -> String {
    if *across { format!("{{value: {value}, across: true}}") } else { value.to_string() }
}

/// As much of an address as may be shown: who has the rest can send in our name.
pub fn address(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // A name and a password may stand before the host.
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}/…")
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{Cpu, GpuQuota};

    #[test]
    fn quotas_are_compared_in_the_words_of_a_world_file() {
        let models = [("H100-80GB".into(), Amount::Share(Milli(400)))].into();
        let gpu = GpuQuota { total: Some(Amount::Of(Milli::whole(8))), models };
        let cpu = Some(Amount::Of(Cpu(12_500)));
        let mut flat = Flat::new();
        put_quota(&mut flat, "quota", &Quota { gpu, cpu, memory: Some(Amount::Unlimited) });
        let shown: Vec<(&str, &str)> =
            flat.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let expect = [
            ("quota.cpu", "12.5"),
            ("quota.gpu", "8"),
            ("quota.gpu.H100-80GB", "40%"),
            ("quota.memory", "unlimited"),
        ];
        assert_eq!(shown, expect);
    }

    #[test]
    fn of_an_address_only_the_host_is_shown() {
        assert_eq!(address("https://hooks.example/T0/hush"), "https://hooks.example/…");
        assert_eq!(address("http://ada:hush@box:8080?key=hush"), "http://box:8080/…");
    }
}
