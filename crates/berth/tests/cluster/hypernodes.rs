//! Gangs of Volcano that have to lie within a HyperNode.

use super::other_schedulers::{add_namespaces, events, placed, sample, why};
use super::pod_groups::kinds::define;
use super::support::{add_nodes, berth_with, cluster, pod, until};
use berth_testbed::kube::Cluster;
use std::collections::BTreeSet;

/// The samples are over at once where nothing says otherwise.
fn ring(name: &str) -> String {
    let runs = format!("group-name: {name}\n    testbed.berth.dev/runs: 1h");
    sample("volcano/ring.yaml").replace("group-name: ring", &runs).replace("ring", name)
}

fn take(cluster: &Cluster, node: &str) {
    let taken = pod(&format!("taken-{node}"), 8, "", &format!("  nodeName: {node}"));
    cluster.apply(&taken.replace("berth", "another"));
}

fn nodes_of(cluster: &Cluster, name: &str) -> Vec<String> {
    let placed = placed(cluster, "ml").into_iter();
    let nodes = placed.filter(|(pod, _)| pod.starts_with(name)).map(|(_, node)| node);
    nodes.collect::<BTreeSet<String>>().into_iter().collect()
}

#[test]
fn a_gang_with_a_highest_tier_waits_until_one_hypernode_has_room_for_it() {
    let cluster = cluster();
    define(
        &cluster,
        &[
            "scheduling.volcano.sh/v1beta1 PodGroup podgroups",
            "topology.volcano.sh/v1alpha1 HyperNode hypernodes!",
        ],
    );
    add_namespaces(&cluster, &["ml"]);
    add_nodes(&cluster, &["n0", "n1", "n2", "n3", "n4"]);
    take(&cluster, "n0");
    take(&cluster, "n2");
    let mut berth = berth_with(&cluster, &["--stand-in", "volcano"]);
    cluster.apply(&ring("ring"));
    until("it says that there are no HyperNodes", || {
        why(&cluster, "ml", "ring-0").contains("within a HyperNode of tier 1 at most")
    });
    let odd = "
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: odd}
spec: {tier: 1, members: [{type: HyperNode, selector: {exactMatch: {name: spine}}}]}
";
    cluster.apply(&(sample("volcano/hypernodes.yaml") + odd));
    until("a circle is told", || events(&cluster).contains("its member spine is of tier 2"));
    until("no HyperNode has two free nodes", || {
        why(&cluster, "ml", "ring-0").contains("volcano.sh/tier-1")
    });
    assert!(nodes_of(&cluster, "ring").is_empty(), "n1, n3 and n4 are free, and far apart");
    cluster.delete(&["pod", "taken-n2", "--force", "--grace-period=0"]);
    until("it lies within one HyperNode", || nodes_of(&cluster, "ring") == ["n2", "n3"]);

    // One that may lie in the tier called leaf waits until the leaf has another node, also if Berth
    // is started again meanwhile.
    let by_name = ring("pair").replace("highestTierAllowed: 1", "highestTierName: leaf");
    cluster.apply(&by_name);
    until("n1 alone is free in its HyperNode", || {
        why(&cluster, "ml", "pair-0").contains("volcano.sh/tier-1")
    });
    berth.kill();
    berth.start_again();
    assert!(nodes_of(&cluster, "pair").is_empty(), "n4 is in none");
    let more = r#"[{"op": "add", "path": "/spec/members/-", "value":
        {"type": "Node", "selector": {"exactMatch": {"name": "n4"}}}}]"#;
    cluster.patch(&["hypernode", "leaf-a", "--type=json", "--patch", more]);
    until("a node that has come to it is used", || nodes_of(&cluster, "pair") == ["n1", "n4"]);
}
