//! Values as documents write them: read from a document, and written for a comparison.

use berth_model::{
    Amount, Budget, GpuQuota, Milli, Name, ParseUnit, PriorityClass, QueueSpec, Quota,
};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::str::FromStr;

/// Fields by their path, as text.
pub type Flat = BTreeMap<String, String>;

/// A scalar as it was written.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A number of something that is not negative.
pub fn unit<T: FromStr<Err = ParseUnit> + PartialOrd + Default>(
    value: &Value,
) -> Result<T, String> {
    let text = scalar(value).ok_or("expected one value")?;
    let found: T = text.parse().map_err(|why: ParseUnit| why.to_string())?;
    if found < T::default() { Err(format!("`{text}` is negative")) } else { Ok(found) }
}

/// `80%`, in thousandths.
pub fn percent(value: &Value) -> Result<Milli, String> {
    let text = scalar(value).unwrap_or_default();
    let number = text.strip_suffix('%').and_then(|number| number.parse::<Milli>().ok());
    let share = number.filter(|number| number.0 >= 0).map(|number| Milli(number.0 / 100));
    share.ok_or_else(|| format!("`{text}` is not a percentage such as 80%"))
}

fn amount<T>(value: &Value) -> Result<Amount<T>, String>
where
    T: FromStr<Err = ParseUnit> + PartialOrd + Default,
{
    match scalar(value).as_deref() {
        Some("unlimited") => Ok(Amount::Unlimited),
        Some(text) if text.ends_with('%') => percent(value).map(Amount::Share),
        _ => unit(value).map(Amount::Of),
    }
}

/// `{gpu: 4, cpu: 50%}`, `{gpu: {total: 8, H100-80GB: 4}}` or `unlimited`.
pub fn quota(value: &Value) -> Result<Quota, String> {
    if scalar(value).as_deref() == Some("unlimited") {
        let gpu = GpuQuota { total: Some(Amount::Unlimited), models: BTreeMap::new() };
        return Ok(Quota { gpu, cpu: Some(Amount::Unlimited), memory: Some(Amount::Unlimited) });
    }
    let Value::Object(fields) = value else {
        return Err("expected a map such as {gpu: 4}, or unlimited".to_owned());
    };
    let mut quota = Quota::default();
    for (key, value) in fields {
        let within = |why: String| format!("{key}: {why}");
        match key.as_str() {
            "gpu" => quota.gpu = gpu_quota(value).map_err(within)?,
            "cpu" => quota.cpu = Some(amount(value).map_err(within)?),
            "memory" => quota.memory = Some(amount(value).map_err(within)?),
            _ => return Err(format!("unknown key `{key}`; expected gpu, cpu or memory")),
        }
    }
    Ok(quota)
}

fn gpu_quota(value: &Value) -> Result<GpuQuota, String> {
    let Value::Object(models) = value else {
        return Ok(GpuQuota { total: Some(amount(value)?), models: BTreeMap::new() });
    };
    let mut quota = GpuQuota::default();
    for (model, value) in models {
        let found = amount(value).map_err(|why| format!("{model}: {why}"))?;
        match model.as_str() {
            "total" => quota.total = Some(found),
            model => drop(quota.models.insert(Name::new(model), found)),
        }
    }
    Ok(quota)
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

pub fn class(PriorityClass { value, across }: &PriorityClass) -> String {
    if *across { format!("{{value: {value}, across: true}}") } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quotas_are_read_and_compared_in_the_words_of_a_world_file() {
        let read =
            quota(&json!({ "gpu": { "total": 8, "H100-80GB": "40%" }, "cpu": 12.5 })).unwrap();
        let mut flat = Flat::new();
        put_quota(&mut flat, "quota", &read);
        let shown: Vec<(&str, &str)> =
            flat.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let expect = [("quota.cpu", "12.5"), ("quota.gpu", "8"), ("quota.gpu.H100-80GB", "40%")];
        assert_eq!(shown, expect);
    }

    #[test]
    fn unlimited_stands_for_every_resource() {
        let read = quota(&json!("unlimited")).unwrap();
        assert_eq!(read.gpu.total, Some(Amount::Unlimited));
        assert!(read.cpu.is_some() && read.memory.is_some());
    }

    #[test]
    fn an_odd_quota_says_what_was_expected() {
        for (value, says) in [
            (json!(4), "expected a map"),
            (json!({ "gpus": 4 }), "unknown key `gpus`"),
            (json!({ "gpu": "many" }), "gpu: `many`"),
            (json!({ "gpu": -1 }), "gpu: `-1` is negative"),
            (json!({ "cpu": "x%" }), "cpu: `x%` is not a percentage"),
        ] {
            let why = quota(&value).unwrap_err();
            assert!(why.starts_with(says), "{why}");
        }
    }
}
