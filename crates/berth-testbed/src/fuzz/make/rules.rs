//! Rules of a pod about other pods, and spreads.

use super::nodes::{HOST, RACK, ZONE};
use super::pods::APPS;
use crate::fuzz::random::Random;
use serde_json::{Value, json};

fn key(random: &mut Random) -> &'static str {
    random.pick(&[HOST, HOST, ZONE, ZONE, RACK])
}

fn selector(random: &mut Random) -> Value {
    let app = random.pick(&APPS);
    match random.between(0, 5) {
        0..=2 => json!({ "matchLabels": { "app": app } }),
        3 => json!({ "matchLabels": { "app": app, "tier": "x" } }),
        4 => json!({ "matchExpressions": [
            { "key": "app", "operator": "In", "values": [app, random.pick(&APPS)] },
            { "key": "tier", "operator": "NotIn", "values": ["y"] },
        ] }),
        _ => json!({ "matchExpressions": [{ "key": "app", "operator": "Exists" }] }),
    }
}

/// A selector of pods with the label of this one.
fn own_selector(pod: &Value) -> Value {
    json!({ "matchLabels": { "app": pod["metadata"]["labels"]["app"] } })
}

fn term(random: &mut Random, selector: &Value) -> Value {
    let mut term = json!({ "topologyKey": key(random), "labelSelector": selector });
    match random.between(0, 9) {
        0 => term["namespaces"] = json!(["fuzz-a", "fuzz-b"]),
        1 => term["namespaceSelector"] = json!({ "matchLabels": { "team": "blue" } }),
        2 => term["namespaceSelector"] = json!({}),
        _ => {}
    }
    term
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Beside others, often such as itself.
pub fn affinity(random: &mut Random, pod: &mut Value) {
    let selector = if random.percent(70) { own_selector(pod) } else { selector(random) };
    let term = term(random, &selector);
    pod["spec"]["affinity"]["podAffinity"][REQUIRED] = json!([term]);
}

/// Away from others, often such as itself.
pub fn anti_affinity(random: &mut Random, pod: &mut Value) {
    let selector = if random.percent(50) { own_selector(pod) } else { selector(random) };
    let mut terms = vec![term(random, &selector)];
    if random.percent(20) {
        let other = self::selector(random);
        terms.push(term(random, &other));
    }
    pod["spec"]["affinity"]["podAntiAffinity"][REQUIRED] = json!(terms);
}

/// One of those with its label on each node.
pub fn apart(pod: &mut Value) {
    let term = json!({ "topologyKey": HOST, "labelSelector": own_selector(pod) });
    pod["spec"]["affinity"]["podAntiAffinity"][REQUIRED] = json!([term]);
}

pub fn spread(random: &mut Random, pod: &mut Value) {
    let must = random.percent(80);
    let selector = if random.percent(80) { own_selector(pod) } else { selector(random) };
    let mut spread = json!({
        "maxSkew": random.between(1, 2),
        "topologyKey": random.pick(&[HOST, ZONE]),
        "whenUnsatisfiable": if must { "DoNotSchedule" } else { "ScheduleAnyway" },
        "labelSelector": selector,
    });
    if must && random.percent(25) {
        spread["minDomains"] = random.between(1, 4).into();
    }
    if random.percent(25) {
        spread["nodeAffinityPolicy"] = random.pick(&["Ignore", "Honor"]).into();
    }
    if random.percent(25) {
        spread["nodeTaintsPolicy"] = random.pick(&["Ignore", "Honor"]).into();
    }
    pod["spec"]["topologySpreadConstraints"] = json!([spread]);
}
