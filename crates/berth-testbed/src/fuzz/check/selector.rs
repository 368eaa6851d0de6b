//! Selectors of labels and of nodes.

use serde_json::Value;
use std::collections::BTreeMap;

pub type Labels = BTreeMap<String, String>;

pub fn labels(value: &Value) -> Labels {
    let entries = value.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn expression(one: &Value, value: Option<&str>) -> bool {
    let listed = || {
        let values = one["values"].as_array().into_iter().flatten();
        value.is_some_and(|value| values.into_iter().any(|one| one == value))
    };
    let number = |text: &str| text.parse::<i64>().ok();
    let bound = || number(one["values"][0].as_str().unwrap_or_default());
    match one["operator"].as_str().unwrap_or_default() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => value.and_then(number).zip(bound()).is_some_and(|(has, than)| has > than),
        "Lt" => value.and_then(number).zip(bound()).is_some_and(|(has, than)| has < than),
        other => panic!("no operator {other}"),
    }
}

fn expressions(list: &Value, labels: &Labels) -> bool {
    let mut all = list.as_array().into_iter().flatten();
    all.all(|one| {
        let key = one["key"].as_str().unwrap_or_default();
        expression(one, labels.get(key).map(String::as_str))
    })
}

/// A missing selector selects nothing, an empty one everything.
pub fn matches(selector: &Value, labels: &Labels) -> bool {
    if selector.is_null() {
        return false;
    }
    let mut exact = selector["matchLabels"].as_object().into_iter().flatten();
    exact.all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str())
        && expressions(&selector["matchExpressions"], labels)
}

/// Whether one of these terms selects a node. A term without any expression selects none.
pub fn node_terms(terms: &Value, name: &str, labels: &Labels) -> bool {
    let mut terms = terms.as_array().into_iter().flatten();
    terms.any(|term| {
        let (by_label, by_field) = (&term["matchExpressions"], &term["matchFields"]);
        let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
        let mut fields = by_field.as_array().into_iter().flatten();
        !(is_empty(by_label) && is_empty(by_field))
            && expressions(by_label, labels)
            && fields.all(|field| expression(field, Some(name)))
    })
}

/// Whether one of these tolerations tolerates a taint.
pub fn tolerates(tolerations: &Value, key: &str, value: &str, effect: &str) -> bool {
    let mut tolerations = tolerations.as_array().into_iter().flatten();
    tolerations.any(|one| {
        let text = |field: &str| one[field].as_str().unwrap_or_default();
        let has_effect = text("effect").is_empty() || text("effect") == effect;
        let has_key = text("key").is_empty() || text("key") == key;
        has_effect && has_key && (text("operator") == "Exists" || text("value") == value)
    })
}

#[cfg(test)]
mod tests {
    use super::{Labels, matches, node_terms, tolerates};
    use serde_json::{Value, json};

    #[test]
    fn a_missing_selector_selects_nothing_and_an_empty_one_everything() {
        let labels = Labels::from([("app".to_owned(), "a".to_owned())]);
        assert!(!matches(&Value::Null, &labels));
        assert!(matches(&json!({}), &labels));
        let not =
            json!({ "matchExpressions": [{ "key": "x", "operator": "NotIn", "values": ["y"] }] });
        assert!(matches(&not, &labels), "a missing label is not in the list");
    }

    #[test]
    fn terms_are_alternatives_and_their_expressions_are_not() {
        let labels = Labels::from([("gen".to_owned(), "5".to_owned())]);
        let than = |operator: &str, value: &str| json!({ "key": "gen", "operator": operator, "values": [value] });
        let both = json!([{ "matchExpressions": [than("Gt", "4"), than("Lt", "5")] }]);
        let either = json!([
            { "matchExpressions": [than("Lt", "5")] },
            { "matchExpressions": [than("Gt", "4")] },
        ]);
        assert!(!node_terms(&both, "n", &labels));
        assert!(node_terms(&either, "n", &labels));
        assert!(!node_terms(&json!([{}]), "n", &labels), "an empty term selects none");
    }

    #[test]
    fn a_toleration_without_a_key_tolerates_every_taint() {
        assert!(tolerates(&json!([{ "operator": "Exists" }]), "a", "b", "NoExecute"));
        assert!(!tolerates(&json!([{ "key": "a", "value": "c" }]), "a", "b", "NoSchedule"));
    }
}
