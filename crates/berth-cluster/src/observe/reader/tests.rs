//! How urgent a pod is, and whether it waits rather than displaces others.

use super::*;
use serde_json::{Value, json};

fn names() -> Names {
    let class = |value, waits| Class { value, waits };
    let classes = [("urgent", class(900, false)), ("patient", class(800, true))];
    let classes = classes.into_iter().map(|(name, class)| (Name::new(name), class));
    Names { classes: classes.collect(), usual: class(7, false), ..Names::default() }
}

/// Priority and delay of a pod with this spec and these labels.
fn urgency(spec: Value, labels: Value) -> Result<(i32, Option<Span>), Unschedulable> {
    let meta = json!({ "name": "p", "namespace": "ml", "uid": "u", "labels": labels });
    let pod: Pod = serde_json::from_value(json!({ "metadata": meta, "spec": spec })).unwrap();
    let names = names();
    let context = ReadContext { around: PodContext::default(), missing: None, names: &names };
    let reader = Reader::new(&["berth".to_owned()], &Compat::default(), "held");
    reader.request(&pod, &context).map(|request| (request.priority, request.preempt_after))
}

#[test]
fn a_class_is_looked_up_where_the_api_server_has_not() {
    let of = |spec: Value| urgency(spec, json!({}));
    assert_eq!(of(json!({ "priorityClassName": "urgent", "priority": 950 })), Ok((950, None)));
    assert_eq!(of(json!({ "priorityClassName": "urgent" })), Ok((900, None)));
    assert_eq!(of(json!({ "priorityClassName": "patient" })), Ok((800, Some(NO_PREEMPTION))));
    let class = Name::new("none");
    let unknown = Unschedulable::UnknownPriorityClass { class };
    assert_eq!(of(json!({ "priorityClassName": "none" })), Err(unknown));
    assert_eq!(of(json!({})), Ok((7, None)));
    assert_eq!(of(json!({ "priority": 0 })), Ok((0, None)));
}

#[test]
fn a_pod_whose_policy_is_never_waits_whatever_else_is_said() {
    let spec = json!({ "priorityClassName": "a", "priority": 5, "preemptionPolicy": "Never" });
    assert_eq!(urgency(spec, json!({})), Ok((5, Some(NO_PREEMPTION))));
    let marked =
        |class: &str| urgency(json!({ "priority": 0 }), json!({ "priorityClassName": class }));
    assert_eq!(marked("urgent"), Ok((900, None)));
    assert_eq!(marked("patient"), Ok((800, Some(NO_PREEMPTION))));
    let spec = json!({ "priority": 0, "preemptionPolicy": "Never" });
    let delay = json!({ "kai.scheduler/preemption-delay": "5m" });
    assert_eq!(urgency(spec, delay), Ok((0, Some(NO_PREEMPTION))));
}

#[test]
fn a_pod_that_has_its_node_is_read_though_what_it_names_is_gone() {
    let gone = json!({ "priorityClassName": "none", "nodeName": "n0" });
    assert_eq!(urgency(gone, json!({})), Ok((0, None)), "what runs stays in the books");
}
