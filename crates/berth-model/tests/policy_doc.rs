//! The page about the policy names every knob with its default, so that no knob is added or changed
//! without it.

use berth_model::Policy;
use serde_json::Value;

const POLICY: &str = include_str!("../../../docs/policy.md");

#[test]
fn every_knob_has_a_heading_with_its_default() {
    let policy = serde_json::to_value(Policy::default()).unwrap();
    let knobs = policy.as_object().unwrap();
    for (knob, default) in knobs {
        let start = format!("### `{knob}`: ");
        let heading = POLICY.lines().find_map(|line| line.strip_prefix(&start));
        let expected = match default {
            Value::String(text) => format!("`{text}`"),
            Value::Array(_) => "all".to_owned(),
            other => format!("`{other}`"),
        };
        assert_eq!(heading, Some(expected.as_str()), "docs/policy.md on {knob}");
    }
    let headings = POLICY.lines().filter(|line| line.starts_with("### ")).count();
    assert_eq!(headings, knobs.len(), "docs/policy.md has a heading for a knob that is gone");
}

#[test]
fn a_policy_stored_before_a_knob_existed_reads_as_its_default() {
    let old: Policy = serde_json::from_str(r#"{"version": 3, "mix": 5}"#).unwrap();
    assert_eq!(old, Policy { version: 3, mix: 5, ..Policy::default() });
}
