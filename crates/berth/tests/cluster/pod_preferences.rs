//! What pods would like of each other leads to the node that kube-scheduler would take.

use super::constraints::{HOST, ZONE, is_bound, labels, rule, three};
use super::support::{berth, cluster, node_of, pod, until};
use berth_testbed::kube::Cluster;

/// A wish about pods with a label, by a key.
fn wish(kind: &str, weight: u32, app: &str, key: &str) -> String {
    format!(
        "  affinity:
    {kind}:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: {weight}
        podAffinityTerm:
          labelSelector: {{matchLabels: {{app: {app}}}}}
          topologyKey: {key}"
    )
}

fn on(node: &str) -> String {
    format!("  nodeSelector: {{{HOST}: {node}}}")
}

/// A pod of another scheduler that runs there.
fn foreign(name: &str, node: &str, spec: &str) -> String {
    let spec = format!("{spec}\n  nodeName: {node}");
    pod(name, 0, "", &spec).replace("Name: berth", "Name: another")
}

/// Where a pod goes once it is given.
fn goes(cluster: &Cluster, name: &str, metadata: &str, spec: &str) -> String {
    cluster.apply(&pod(name, 1, metadata, spec));
    until("it is bound", || is_bound(cluster, name));
    node_of(cluster, name).unwrap()
}

/// Where nothing else counts the fullest node is taken, and that is `a`.
fn fill(cluster: &Cluster) {
    cluster.apply(&pod("noise", 2, &labels("noise"), &on("a")));
    until("one node is fuller than the others", || is_bound(cluster, "noise"));
    assert_eq!(goes(cluster, "plain", "", ""), "a");
}

#[test]
fn pods_go_where_they_would_like_to_be() {
    let cluster = cluster();
    three(&cluster);
    let _berth = berth(&cluster);
    fill(&cluster);
    cluster.apply(&pod("db", 0, &labels("db"), &on("c")));
    until("it is there", || is_bound(&cluster, "db"));
    assert_eq!(goes(&cluster, "near", "", &wish("podAffinity", 5, "db", ZONE)), "c");
    assert_eq!(goes(&cluster, "away", "", &wish("podAntiAffinity", 5, "noise", ZONE)), "c");
    // What nobody can have is no reason to wait.
    let lonely = wish("podAntiAffinity", 5, "noise", ZONE) + "\n" + &on("a");
    assert_eq!(goes(&cluster, "lonely", "", &lonely), "a");
    let spread = format!(
        "  topologySpreadConstraints:
  - {{maxSkew: 1, topologyKey: {ZONE}, whenUnsatisfiable: ScheduleAnyway, \
         labelSelector: {{matchLabels: {{app: noise}}}}}}"
    );
    assert_eq!(goes(&cluster, "spread", &labels("noise"), &spread), "c");
    let confined = spread + "\n" + &on("a");
    assert_eq!(goes(&cluster, "confined", &labels("noise"), &confined), "a");
}

#[test]
fn pods_that_run_draw_others_near_and_keep_them_off() {
    let cluster = cluster();
    three(&cluster);
    let likes_web = foreign("likes-web", "c", &wish("podAffinity", 1, "web", ZONE));
    cluster.apply(&likes_web);
    let _berth = berth(&cluster);
    fill(&cluster);
    cluster.apply(&foreign("needs-cache", "b", &rule("podAffinity", "cache", HOST)));
    cluster.apply(&foreign("hates-batch", "a", &wish("podAntiAffinity", 1, "batch", ZONE)));
    // Given in order and seen in order, as all of them are pods.
    assert_eq!(goes(&cluster, "web", &labels("web"), ""), "c");
    assert_eq!(goes(&cluster, "cache", &labels("cache"), ""), "b");
    assert_eq!(goes(&cluster, "batch", &labels("batch"), ""), "c");
    assert_eq!(goes(&cluster, "other", &labels("other"), ""), "a");
    // The same of a pod of ours, which outweighs the first.
    cluster.apply(&pod(
        "hates-web",
        0,
        "",
        &(wish("podAntiAffinity", 9, "web", HOST) + "\n" + &on("c")),
    ));
    until("it is there", || is_bound(&cluster, "hates-web"));
    assert_eq!(goes(&cluster, "second", &labels("web"), ""), "a");
    // Nobody minds what has ended.
    cluster.delete(&["pod", "hates-web", "hates-batch", "--force", "--grace-period=0"]);
    assert_eq!(goes(&cluster, "third", &labels("web"), ""), "c");
    assert_eq!(goes(&cluster, "more", &labels("batch"), ""), "a");
}

#[test]
fn a_pod_that_waits_heeds_those_that_come_to_run_meanwhile() {
    let cluster = cluster();
    three(&cluster);
    let berth = berth(&cluster);
    fill(&cluster);
    let file = berth.home.path().join("queue.yaml");
    std::fs::write(&file, "kind: queue\nname: narrow\nlimit: {gpu: 1}\n").unwrap();
    berth.run_ok(&["apply", "-f", file.to_str().unwrap()]);
    let queued = |app: &str| format!("{}\n  annotations: {{berth.dev/queue: narrow}}", labels(app));
    assert_eq!(goes(&cluster, "first", &queued("first"), &on("b")), "b");
    cluster.apply(&pod("late", 1, &queued("late"), ""));
    until("it waits", || !super::support::why(&cluster, "late").is_empty());
    cluster.apply(&foreign("likes-late", "c", &wish("podAffinity", 1, "late", ZONE)));
    // A pod that comes later is bound, so the one before it was seen; waiting jobs look at it by
    // the clock, every second.
    assert_eq!(goes(&cluster, "seen", &labels("late"), ""), "c");
    std::thread::sleep(std::time::Duration::from_secs(3));
    cluster.delete(&["pod", "first", "--force", "--grace-period=0"]);
    until("it is bound", || is_bound(&cluster, "late"));
    assert_eq!(node_of(&cluster, "late").as_deref(), Some("c"));
}
