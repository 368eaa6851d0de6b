use super::*;
use serde_json::json;

fn claim(name: &str) -> Use {
    Use::Claim(("ml".into(), name.into()))
}

/// A claim comes to the volume of its name, and so does a volume.
fn find(one: &Use) -> Option<Attachable> {
    let (Use::Claim((_, name)) | Use::Volume(name)) = one;
    (!name.starts_with("none")).then(|| Attachable { driver: "d".into(), handle: name.clone() })
}

fn node(name: &str, count: Option<i64>) -> CsiNode {
    let driver = json!({ "name": "d", "nodeID": name, "allocatable": { "count": count } });
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": { "drivers": [driver] } }))
        .unwrap()
}

fn put(attached: &mut Attached, user: &str, at: &str, claims: &[&str]) {
    let at = Name::new(at);
    attached.put(user, Some((&at, claims.iter().map(|name| claim(name)).collect())), find);
}

#[test]
fn a_volume_counts_once_on_a_node_however_many_pods_use_it() {
    let mut attached = Attached::default();
    attached.apply_node(&node("n", Some(3)));
    put(&mut attached, "a", "n", &["x", "y"]);
    put(&mut attached, "b", "n", &["x"]);
    put(&mut attached, "c", "m", &["z"]);
    assert_eq!(attached.room("n", "d"), Some(1));
    assert_eq!(attached.room("m", "d"), None, "its CSINode has no limit");
    assert_eq!(attached.room("n", "other"), None);
    attached.put("a", None, find);
    assert_eq!(attached.room("n", "d"), Some(2), "the other pod still has x");
    attached.put("b", None, find);
    assert_eq!(attached.room("n", "d"), Some(3));
}

#[test]
fn what_is_still_attached_counts_and_not_twice_with_a_pod_that_uses_it() {
    let mut attached = Attached::default();
    attached.apply_node(&node("n", Some(2)));
    let at = Name::new("n");
    attached.put("attachment", Some((&at, vec![Use::Volume("x".into())])), find);
    assert_eq!(attached.room("n", "d"), Some(1));
    put(&mut attached, "pod", "n", &["x"]);
    assert_eq!(attached.room("n", "d"), Some(1));
    assert_eq!(attached.attachments(), ["attachment"]);
    attached.put("attachment", None, find);
    assert_eq!(attached.room("n", "d"), Some(1));
}

#[test]
fn a_claim_that_comes_to_something_else_is_counted_anew() {
    let mut attached = Attached::default();
    attached.apply_node(&node("n", Some(2)));
    put(&mut attached, "a", "n", &["none-yet"]);
    assert_eq!(attached.room("n", "d"), Some(2));
    let other = |_: &Use| Some(Attachable { driver: "d".into(), handle: "v".into() });
    attached.refresh(&claim("none-yet"), other);
    assert_eq!(attached.room("n", "d"), Some(1));
    attached.refresh_all(find);
    assert_eq!(attached.room("n", "d"), Some(2));
}

#[test]
fn rooms_are_known_as_limits_and_volumes_come_and_go() {
    let mut attached = Attached::default();
    put(&mut attached, "a", "n", &["x"]);
    assert!(!attached.is_limited("d"));
    assert!(attached.take_changed().is_empty(), "without a limit nothing is to be looked at");
    attached.apply_node(&node("n", Some(3)));
    assert!(attached.is_limited("d") && attached.has_driver("n", "d"));
    assert!(!attached.is_tight("d", 2) && attached.is_tight("d", 3));
    attached.take_changed();
    put(&mut attached, "b", "n", &["y"]);
    assert_eq!(attached.take_changed()["d"], 1);
    attached.apply_node(&node("n", Some(2)));
    assert!(!attached.is_tight("d", 9), "no job can use a full node");
    attached.apply_node(&node("n", None));
    assert!(!attached.is_limited("d") && attached.has_driver("n", "d"));
    attached.forget_node("n");
    assert!(!attached.has_driver("n", "d") && attached.known().is_empty());
}
