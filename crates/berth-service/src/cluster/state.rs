//! How the scheduler behaves, the live state as a file, and the settings of the server.

use crate::fault::Fault;
use crate::service::Service;
use berth_api::wire;
use berth_model::{Pass, Policy};
use serde_json::Value;
use std::collections::BTreeMap;

pub async fn policy(service: &Service) -> Result<wire::Policy, Fault> {
    let policy = service.engine.core().state.policy().clone();
    let (knobs, usual) = (knobs(&policy), knobs(&Policy::default()));
    let changed = knobs.iter().filter(|(knob, value)| usual.get(*knob) != Some(*value));
    let changed = changed.map(|(knob, _)| knob.clone()).collect();
    Ok(wire::Policy { version: policy.version, knobs, changed })
}

/// Every knob but the version, in the words of docs/policy.md.
pub fn knobs(policy: &Policy) -> BTreeMap<String, String> {
    let Ok(Value::Object(fields)) = serde_json::to_value(policy) else {
        unreachable!("a policy is a struct of plain data")
    };
    let all = policy.passes.len() == Pass::ALL.len();
    let knobs = fields.into_iter().filter(|(knob, _)| knob != "version");
    knobs
        .map(|(knob, value)| {
            let text = if knob == "passes" && all { "all".to_owned() } else { text(&value) };
            (knob, text)
        })
        .collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

pub async fn world(service: &Service) -> Result<wire::WorldText, Fault> {
    let snapshot = service.engine.core().state.snapshot();
    let (at, seq) = (snapshot.now.into(), snapshot.seq);
    // A large cluster is a large text.
    let text = tokio::task::spawn_blocking(move || berth_file::world::write(&snapshot)).await;
    Ok(wire::WorldText { at, seq, text: text.expect("writing a world does not panic") })
}

pub async fn config(service: &Service) -> Result<wire::Items<wire::ConfigEntry>, Fault> {
    Ok(wire::Items { items: service.config.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{QueueOrder, Span};

    #[test]
    fn knobs_are_written_as_the_page_about_the_policy_writes_them() {
        let policy = Policy {
            order: QueueOrder::ResponseRatio,
            grace: Span::mins(5),
            passes: [Pass::Place, Pass::Backfill].into(),
            ..Policy::default()
        };
        let knobs = knobs(&policy);
        let knob = |name: &str| knobs[name].as_str();
        assert_eq!((knob("order"), knob("grace")), ("response-ratio", "5m"));
        assert_eq!((knob("passes"), knob("energy")), ("[place, backfill]", "0.1"));
        assert_eq!((knob("time_sharing"), knob("outcomes")), ("false", "10000"));
        assert!(!knobs.contains_key("version"));
    }
}
