use super::*;
use proptest::prelude::*;

fn constraint(spec: &str) -> NodeConstraint {
    NodeConstraint::of(&serde_json::from_str(spec).unwrap()).unwrap()
}

fn refusal(spec: &str) -> String {
    NodeConstraint::of(&serde_json::from_str(spec).unwrap()).unwrap_err().to_string()
}

/// A node such as `n1 zone=a gpu=8 | spot=yes:NoSchedule`.
fn node(text: &str) -> Node {
    let (labels, taints) = text.split_once('|').unwrap_or((text, ""));
    let mut words = labels.split_whitespace();
    let mut node = Node::default();
    node.metadata.name = words.next().unwrap().into();
    node.metadata.labels =
        words.map(|word| word.split_once('=').unwrap()).map(|(k, v)| (k, v.into())).collect();
    let taint = |word: &str| {
        let (rest, effect) = word.split_once(':').unwrap();
        let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
        Taint { key: key.into(), value: value.into(), effect: effect.into() }
    };
    node.spec.taints = taints.split_whitespace().map(taint).collect();
    node
}

#[track_caller]
fn check(spec: &str, allowed: &[&str], refused: &[&str]) {
    let constraint = constraint(spec);
    for (nodes, expected) in [(allowed, true), (refused, false)] {
        for text in nodes {
            let node = node(text);
            assert_eq!(constraint.allows(&(&node).into()), expected, "{text}: {constraint:?}");
        }
    }
}

/// A spec with those terms of required node affinity.
fn required(terms: &str) -> String {
    format!(
        r#"{{"affinity": {{"nodeAffinity": {{"requiredDuringSchedulingIgnoredDuringExecution":
            {{"nodeSelectorTerms": [{terms}]}}}}}}}}"#
    )
}

fn expression(key: &str, operator: &str, values: &str) -> String {
    required(&format!(
        r#"{{"matchExpressions": [{{"key": "{key}", "operator": "{operator}", "values": {values}}}]}}"#
    ))
}

#[test]
fn a_pod_without_wishes_accepts_any_node_without_taints() {
    let trivial = constraint("{}");
    assert!(trivial.is_trivial());
    assert_eq!(trivial.text(), "any node");
    check(
        "{}",
        &["n1", "n1 | later:PreferNoSchedule"],
        &["n1 | gpu:NoSchedule", "n | x:NoExecute"],
    );
}

#[test]
fn a_selector_needs_every_label() {
    check(
        r#"{"nodeSelector": {"zone": "a", "gpu": "h100"}}"#,
        &["n1 zone=a gpu=h100", "n1 x=y gpu=h100 zone=a"],
        &["n1 zone=a", "n1 zone=b gpu=h100", "n1"],
    );
}

#[test]
fn every_operator_of_a_node_term_does_what_kubernetes_does() {
    check(
        &expression("zone", "In", r#"["b", "a"]"#),
        &["n zone=a", "n zone=b"],
        &["n", "n zone=c"],
    );
    check(&expression("zone", "NotIn", r#"["a"]"#), &["n", "n zone=b"], &["n zone=a"]);
    check(&expression("zone", "Exists", "[]"), &["n zone=a"], &["n"]);
    check(&expression("zone", "DoesNotExist", "null"), &["n"], &["n zone=a"]);
    check(&expression("gpus", "Gt", r#"["4"]"#), &["n gpus=8"], &["n gpus=4", "n", "n gpus=many"]);
    check(&expression("gpus", "Lt", r#"["4"]"#), &["n gpus=-1"], &["n gpus=4", "n", "n gpus=few"]);
}

#[test]
fn one_of_several_terms_is_enough_and_within_a_term_all_must_hold() {
    let spec = required(
        r#"{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]},
                                 {"key": "gpu", "operator": "Exists"}]},
           {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]}"#,
    );
    check(&spec, &["n1 zone=a gpu=x", "n7"], &["n1 zone=a", "n1 gpu=x", "n8"]);
}

#[test]
fn the_selector_holds_beside_every_term() {
    let spec = r#"{"nodeSelector": {"gpu": "h100"}, "affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]},
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]}}}}"#;
    check(spec, &["n zone=a gpu=h100", "n zone=b gpu=h100"], &["n zone=a", "n gpu=h100"]);
}

#[test]
fn an_empty_term_and_an_empty_list_of_terms_accept_nothing() {
    check(&required("{}"), &[], &["n", "n zone=a"]);
    check(&required(""), &[], &["n"]);
    assert_eq!(constraint(&required("{}")).text(), "no node");
    check(
        &required(r#"{}, {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}"#),
        &["n zone=a"],
        &["n"],
    );
}

#[test]
fn a_node_can_be_named_or_excluded() {
    let field = |operator: &str| {
        required(&format!(
            r#"{{"matchFields": [{{"key": "metadata.name", "operator": "{operator}", "values": ["n1"]}}]}}"#
        ))
    };
    check(&field("In"), &["n1"], &["n2"]);
    check(&field("NotIn"), &["n2"], &["n1"]);
    assert_eq!(constraint(&field("NotIn")).text(), "not node n1");
}

#[test]
fn what_is_not_understood_is_said_and_not_passed_over() {
    assert!(refusal(&expression("zone", "Near", r#"["a"]"#)).contains("`Near`"));
    assert!(refusal(&expression("gpus", "Gt", r#"["four"]"#)).contains("`Gt`"));
    assert!(refusal(&expression("zone", "In", "[]")).contains("`In`"));
    let field =
        required(r#"{"matchFields": [{"key": "spec.x", "operator": "In", "values": ["n1"]}]}"#);
    assert!(refusal(&field).contains("spec.x"));
    let compared = r#"{"tolerations": [{"key": "sla", "operator": "Lt", "value": "900"}]}"#;
    assert_eq!(
        refusal(compared),
        "toleration of sla: the operator `Lt` is not one we know; use Equal or Exists"
    );
}

#[test]
fn tolerations_cover_taints_by_key_value_and_effect() {
    let tolerating = |toleration: &str| format!(r#"{{"tolerations": [{toleration}]}}"#);
    check(
        &tolerating(
            r#"{"key": "gpu", "operator": "Equal", "value": "h100", "effect": "NoSchedule"}"#,
        ),
        &["n | gpu=h100:NoSchedule", "n"],
        &["n | gpu=a100:NoSchedule", "n | gpu=h100:NoExecute", "n | spot=h100:NoSchedule"],
    );
    check(
        &tolerating(r#"{"key": "gpu", "operator": "Exists"}"#),
        &["n | gpu=h100:NoSchedule", "n | gpu:NoExecute"],
        &["n | spot:NoSchedule", "n | gpu:NoSchedule spot:NoSchedule"],
    );
    check(&tolerating(r#"{"operator": "Exists"}"#), &["n | a:NoSchedule b=c:NoExecute"], &[]);
    check(&tolerating(r#"{"key": "gpu"}"#), &["n | gpu:NoSchedule"], &["n | gpu=x:NoSchedule"]);
    check("{}", &[], &["n | gpu:NoParking"]);
}

#[test]
fn preferences_add_up_and_taints_to_avoid_count_against_a_node() {
    let spec = r#"{"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 80, "preference": {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["h100"]}]}},
        {"weight": 20, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}},
        {"weight": 7, "preference": {}}]}}}"#;
    let constraint = constraint(spec);
    let score = |text: &str| constraint.score(&(&node(text)).into());
    assert_eq!(score("n gpu=h100 zone=a"), 100);
    assert_eq!(score("n zone=a"), 20);
    assert_eq!(score("n gpu=h100 | spot:PreferNoSchedule"), -20);
    assert_eq!(constraint.text(), "any node; prefers zone=a by 20, gpu=h100 by 80");
    assert!(!constraint.is_trivial() && constraint.selection.has_preferences());
}

#[test]
fn the_tolerations_every_pod_gets_make_no_difference() {
    let default = r#"{"tolerations": [
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]}"#;
    assert!(constraint(default).is_trivial());
}

#[test]
fn a_constraint_has_a_short_sentence_for_its_name() {
    let spec = r#"{"nodeSelector": {"gpu": "h100"},
        "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"},
                        {"key": "team", "value": "vision"}]}"#;
    assert_eq!(constraint(spec).text(), "gpu=h100; tolerates spot:NoSchedule, team=vision");
    let or = expression("zone", "In", r#"["b", "a", "b"]"#);
    assert_eq!(constraint(&or).text(), "zone in (a, b)");
    assert_eq!(constraint(&expression("x", "In", r#"["a or b"]"#)).text(), r#"x="a or b""#);
}

#[test]
fn a_label_of_the_selector_and_the_same_in_a_term_are_one_constraint() {
    let selector = constraint(r#"{"nodeSelector": {"zone": "a"}}"#);
    let term = constraint(&expression("zone", "In", r#"["a"]"#));
    assert_eq!(selector, term);
}

/// Terms as lists of (key, operator, values).
type Terms = Vec<Vec<(String, &'static str, Vec<String>)>>;

fn terms() -> impl Strategy<Value = Terms> {
    let operator = prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist"]);
    let requirement = ("[abc]", operator, prop::collection::vec("[xyz]", 1..3));
    prop::collection::vec(prop::collection::vec(requirement, 1..4), 1..4)
}

fn written(terms: &Terms) -> String {
    let term = |requirements: &Vec<(String, &str, Vec<String>)>| {
        let each = requirements.iter().map(|(key, operator, values)| {
            let values: &[String] = if operator.ends_with("In") { values } else { &[] };
            format!(r#"{{"key": "{key}", "operator": "{operator}", "values": {values:?}}}"#)
        });
        format!(r#"{{"matchExpressions": [{}]}}"#, each.collect::<Vec<_>>().join(", "))
    };
    required(&terms.iter().map(term).collect::<Vec<_>>().join(", "))
}

proptest! {
    #[test]
    fn order_changes_neither_the_name_nor_the_meaning(
        terms in terms(),
        labels in prop::collection::btree_map("[abc]", "[xyz]", 0..3),
    ) {
        let mut turned = terms.clone();
        turned.reverse();
        turned.iter_mut().for_each(|term| term.reverse());
        let (one, other) = (constraint(&written(&terms)), constraint(&written(&turned)));
        prop_assert_eq!(one.text(), other.text());
        let mut node = Node::default();
        node.metadata.labels = labels.iter().map(|(k, v)| (k.as_str(), v.as_str().into())).collect();
        // By the letter of the rule, without our normal form.
        let holds = |(key, operator, values): &(String, &str, Vec<String>)| {
            let value = labels.get(key);
            let within = value.is_some_and(|value| values.contains(value));
            match *operator {
                "In" => within,
                "NotIn" => !within,
                "Exists" => value.is_some(),
                _ => value.is_none(),
            }
        };
        let expected = terms.iter().any(|term| term.iter().all(holds));
        prop_assert_eq!(one.allows(&(&node).into()), expected);
    }

    #[test]
    fn constraints_with_the_same_name_are_the_same(one in terms(), other in terms()) {
        let (one, other) = (constraint(&written(&one)), constraint(&written(&other)));
        prop_assert_eq!(one.text() == other.text(), one == other);
    }
}
