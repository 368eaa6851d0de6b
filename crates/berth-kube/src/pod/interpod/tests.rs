use super::*;
use crate::object::Map;

fn constraints(spec: &str) -> Result<InterPodConstraints, UnsupportedConstraint> {
    let pod: Pod = serde_json::from_str(&format!(
        r#"{{"metadata": {{"name": "p", "namespace": "vision",
                          "labels": {{"app": "train", "hash": "7"}}}}, "spec": {spec}}}"#
    ))
    .unwrap();
    InterPodConstraints::of(&pod)
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| (*key, (*value).into())).collect()
}

fn selector(json: &str) -> LabelMatcher {
    LabelMatcher::of("x", serde_json::from_str::<Option<_>>(json).unwrap().as_ref()).unwrap()
}

#[test]
fn a_selector_without_tests_matches_all_and_no_selector_nothing() {
    assert!(selector("{}").matches(&Map::default()));
    assert!(!selector("null").matches(&labels(&[("app", "train")])));
}

#[test]
fn a_selector_needs_every_label_and_every_expression() {
    let selector = selector(
        r#"{"matchLabels": {"app": "train"}, "matchExpressions": [
            {"key": "tier", "operator": "NotIn", "values": ["test"]},
            {"key": "owner", "operator": "Exists"},
            {"key": "frozen", "operator": "DoesNotExist"}]}"#,
    );
    assert!(selector.matches(&labels(&[("app", "train"), ("owner", "me")])));
    assert!(!selector.matches(&labels(&[("app", "train"), ("owner", "me"), ("tier", "test")])));
    assert!(!selector.matches(&labels(&[("app", "train"), ("owner", "me"), ("frozen", "")])));
    assert!(!selector.matches(&labels(&[("app", "train")])));
    assert!(
        LabelMatcher::of(
            "x",
            Some(
                &serde_json::from_str(
                    r#"{"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["1"]}]}"#
                )
                .unwrap()
            )
        )
        .is_err()
    );
}

#[test]
fn a_selector_tells_a_label_that_all_it_matches_have() {
    let told = |json: &str| {
        let selector = selector(json);
        selector.label().map(|(key, value)| (key.to_string(), value.to_string()))
    };
    let one = r#"{"key": "app", "operator": "In", "values": ["db"]}"#;
    let several = r#"{"key": "app", "operator": "In", "values": ["db", "web"]}"#;
    let other = r#"{"key": "app", "operator": "NotIn", "values": ["db"]}"#;
    let found = Some(("app".to_owned(), "db".to_owned()));
    assert_eq!(told(r#"{"matchLabels": {"app": "db"}}"#), found);
    assert_eq!(told(&format!(r#"{{"matchExpressions": [{one}]}}"#)), found);
    assert_eq!(told(&format!(r#"{{"matchExpressions": [{several}, {other}]}}"#)), None);
    assert_eq!(told("{}"), None);
    assert_eq!(told("null"), None);
}

#[test]
fn affinity_to_pods_means_their_own_namespace_unless_it_says_otherwise() {
    let constraints = constraints(
        r#"{"affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "rack"},
                {"labelSelector": {}, "topologyKey": "zone", "namespaceSelector": {}}]},
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {"matchLabels": {"app": "train"}},
                     "topologyKey": "kubernetes.io/hostname", "namespaces": ["speech"]}],
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 30, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}]}}}"#,
    )
    .unwrap();
    let [near, anywhere] = &constraints.affinity[..] else { panic!("{:?}", constraints.affinity) };
    let (near, anywhere) =
        if &*near.topology_key == "rack" { (near, anywhere) } else { (anywhere, near) };
    assert!(near.namespaces.contains("vision", &Map::default()));
    assert!(!near.namespaces.contains("speech", &Map::default()));
    assert!(anywhere.namespaces.contains("speech", &Map::default()));
    assert!(constraints.anti_affinity[0].namespaces.contains("speech", &Map::default()));
    assert!(!constraints.anti_affinity[0].namespaces.contains("vision", &Map::default()));
    assert_eq!(constraints.preferred[0].0, -30);
}

#[test]
fn keys_to_match_and_mismatch_take_their_values_from_the_pod() {
    let constraints = constraints(
        r#"{"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "train"}}, "topologyKey": "rack",
             "matchLabelKeys": ["hash", "absent"], "mismatchLabelKeys": ["app2"]}]}}}"#,
    )
    .unwrap();
    let pods = &constraints.affinity[0].pods;
    assert!(pods.matches(&labels(&[("app", "train"), ("hash", "7")])));
    assert!(!pods.matches(&labels(&[("app", "train"), ("hash", "8")])));
}

#[test]
fn spread_has_the_defaults_of_kubernetes() {
    let constraints = constraints(
        r#"{"topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": {"app": "train"}}, "matchLabelKeys": ["hash"]}]}"#,
    )
    .unwrap();
    let spread = &constraints.spread[0];
    assert!(spread.required && spread.honors_node_affinity && !spread.honors_node_taints);
    assert_eq!((spread.max_skew, spread.min_domains), (1, 1));
    assert!(!spread.pods.matches(&labels(&[("app", "train"), ("hash", "8")])));
}

#[test]
fn a_spread_that_makes_no_sense_is_refused() {
    for (spread, word) in [
        (r#"{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}"#, "maxSkew"),
        (r#"{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "Panic"}"#, "Panic"),
        (r#"{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}"#, "topologyKey"),
    ] {
        let refusal = constraints(&format!(r#"{{"topologySpreadConstraints": [{spread}]}}"#));
        assert!(refusal.unwrap_err().to_string().contains(word), "{word}");
    }
}

#[test]
fn host_ports_clash_on_the_same_address_and_on_every_address() {
    let constraints = constraints(
        r#"{"containers": [{"ports": [{"containerPort": 80},
                {"containerPort": 1, "hostPort": 9000, "protocol": "UDP", "hostIP": "10.0.0.1"}]}],
            "initContainers": [
                {"restartPolicy": "Always", "ports": [{"containerPort": 2, "hostPort": 22}]},
                {"ports": [{"containerPort": 3, "hostPort": 33}]}]}"#,
    )
    .unwrap();
    let ports: Vec<u16> = constraints.ports.iter().map(|port| port.port).collect();
    assert_eq!(ports, [22, 9000]);
    let port = |ip: &str, protocol: &str| HostPort {
        port: 9000,
        protocol: protocol.into(),
        ip: ip.into(),
    };
    let taken = port("10.0.0.1", "UDP");
    assert!(taken.clashes(&port("0.0.0.0", "UDP")) && taken.clashes(&taken));
    assert!(!taken.clashes(&port("10.0.0.2", "UDP")) && !taken.clashes(&port("0.0.0.0", "TCP")));
}

#[test]
fn claims_are_named_also_where_the_pod_makes_them() {
    let constraints = constraints(
        r#"{"volumes": [{"name": "scratch", "ephemeral": {}}, {"name": "c", "configMap": {}},
                        {"name": "data", "persistentVolumeClaim": {"claimName": "imagenet"}}]}"#,
    )
    .unwrap();
    assert_eq!(constraints.claims, ["imagenet".into(), "p-scratch".into()]);
    assert!(!constraints.is_empty());
}

#[test]
fn a_plain_pod_has_no_such_constraints() {
    assert!(constraints(r#"{"containers": [{"name": "a"}]}"#).unwrap().is_empty());
}
