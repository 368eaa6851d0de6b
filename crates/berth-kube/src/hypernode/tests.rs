use super::*;

fn tree(objects: &[(&str, &str)]) -> (HyperNodeTree, Vec<String>) {
    let objects: BTreeMap<Name, HyperNode> = objects
        .iter()
        .map(|(name, spec)| (Name::new(name), serde_json::from_str(spec).unwrap()))
        .collect();
    let (tree, wrong) =
        HyperNodeTree::new(&objects.iter().map(|(name, one)| (name.clone(), one)).collect());
    (tree, wrong.into_iter().map(|(name, why)| format!("{name}: {why}")).collect())
}

fn of(kind: &str, selector: &str) -> String {
    format!(r#"{{"type": "{kind}", "selector": {{{selector}}}}}"#)
}

fn exact(kind: &str, name: &str) -> String {
    of(kind, &format!(r#""exactMatch": {{"name": "{name}"}}"#))
}

fn spec(tier: i64, members: &[String]) -> String {
    format!(r#"{{"tier": {tier}, "members": [{}]}}"#, members.join(", "))
}

/// `1=a 2=b` for the HyperNodes around a node.
fn around(tree: &HyperNodeTree, node: &str, labels: &str) -> String {
    let (found, _) = tree.around(node, &serde_json::from_str(labels).unwrap());
    let found: Vec<String> = found.iter().map(|(tier, name)| format!("{tier}={name}")).collect();
    found.join(" ")
}

#[test]
fn a_node_is_found_by_its_name_by_a_pattern_and_by_labels_with_all_that_is_above() {
    let (tree, wrong) = tree(&[
        ("leaf-a", &spec(1, &[exact("Node", "n0"), exact("Node", "n1")])),
        ("leaf-b", &spec(1, &[of("Node", r#""regexMatch": {"pattern": "^m-[0-9]+$"}"#)])),
        ("leaf-c", &spec(1, &[of("Node", r#""labelMatch": {"matchLabels": {"rack": "c"}}"#)])),
        ("spine", &spec(2, &[exact("HyperNode", "leaf-a"), exact("HyperNode", "leaf-b")])),
        ("core", &spec(4, &[of("HyperNode", r#""regexMatch": {"pattern": "^(spine|leaf-c)$"}"#)])),
    ]);
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(around(&tree, "n1", "{}"), "1=leaf-a 2=spine 4=core");
    assert_eq!(around(&tree, "m-12", "{}"), "1=leaf-b 2=spine 4=core");
    assert_eq!(around(&tree, "x", r#"{"rack": "c"}"#), "1=leaf-c 4=core");
    assert_eq!(around(&tree, "x", "{}"), "");
}

#[test]
fn circles_strangers_and_what_is_in_two_places_are_told_and_the_rest_is_used() {
    let (tree, wrong) = tree(&[
        ("a", &spec(1, &[exact("Node", "n0"), exact("HyperNode", "b")])),
        ("b", &spec(2, &[exact("HyperNode", "a"), exact("HyperNode", "lost")])),
        ("c", &spec(2, &[exact("HyperNode", "a"), exact("Node", "n1")])),
        ("d", &spec(64, &[])),
        ("e", &spec(1, &[of("Node", r#""regexMatch": {"pattern": "("}"#), of("Rack", "")])),
    ]);
    assert_eq!(
        wrong.join("\n"),
        "d: tier 64: write one from 0 to 63\n\
         a: its member b is of tier 2 and it itself of tier 1; members have to be of a lower one\n\
         b: its member lost is not there; make it, or take it out\n\
         c: its member a is one of b as well, which counts\n\
         e: `(` is no regular expression\n\
         e: a member of type Rack is not understood; write Node or HyperNode with exactMatch or \
         regexMatch, or Node with labelMatch"
    );
    assert_eq!(around(&tree, "n0", "{}"), "1=a 2=b");
    assert_eq!(around(&tree, "n1", "{}"), "2=c");
}

#[test]
fn of_two_in_one_tier_the_first_by_name_counts_and_that_can_be_told() {
    let (tree, _) = tree(&[
        ("b", &spec(1, &[exact("Node", "n0")])),
        ("a", &spec(1, &[of("Node", r#""regexMatch": {"pattern": "n0"}"#)])),
    ]);
    let (found, twice) = tree.around("n0", &Labels::default());
    assert_eq!((found[&1].as_str(), twice), ("a", Some(1)));
}

#[test]
fn tiers_have_names_and_are_levels() {
    let (tree, wrong) = tree(&[
        ("a", r#"{"tier": 1, "tierName": "rack"}"#),
        ("b", r#"{"tier": 2, "tierName": "rack"}"#),
        ("c", r#"{"tier": 2, "tierName": "block"}"#),
    ]);
    assert_eq!(tree.names, BTreeMap::from([("rack".into(), 1), ("block".into(), 2)]));
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert_eq!((tier(&level(7)), tier("topology.kubernetes.io/rack")), (Some(7), None));
}
