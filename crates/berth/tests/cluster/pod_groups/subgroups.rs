//! Gangs in parts, each of which has to be somewhere.

use super::kinds::define;
use super::{all_bound, pods};
use crate::support::{berth, cluster, node, node_of, nodes_of, pod, until, why};
use berth_testbed::kube::Cluster;
use serde_json::Value;

/// Two blocks of two racks each. The second rack has two nodes, the others have one.
fn add_racks(cluster: &Cluster) {
    for (name, block, rack) in
        [("n0", 0, 0), ("n1", 0, 1), ("n2", 0, 1), ("n3", 1, 2), ("n4", 1, 3)]
    {
        let labels = format!(
            "{{topology.kubernetes.io/block: b{block}, topology.kubernetes.io/rack: r{rack}}}"
        );
        cluster.apply(&node(name, &labels, "[]"));
        until("the node is ready and free of taints", || {
            cluster.get(&["node", name])["spec"]["taints"] == Value::Null
        });
    }
}

#[test]
fn parts_of_parts_are_where_each_of_them_has_to_be() {
    let cluster = cluster();
    define(
        &cluster,
        &[
            "scheduling.run.ai/v2alpha2 PodGroup podgroups",
            "scheduling.volcano.sh/v1beta1 PodGroup podgroups",
        ],
    );
    add_racks(&cluster);
    let _berth = berth(&cluster);
    // One of another scheduler, where a part has to be.
    cluster.apply(&pod("taken", 1, "", "  nodeName: n0").replace("berth\n", "elder\n"));
    until("it runs", || cluster.get(&["pod", "taken"])["status"]["phase"] == "Running");
    cluster.apply(
        "apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: tree}
spec:
  minSubGroup: 2
  subGroups:
  - {name: ab, topologyConstraint: {requiredTopologyLevel: topology.kubernetes.io/block}}
  - {name: a, parent: ab, minMember: 1}
  - name: b
    parent: ab
    minMember: 2
    topologyConstraint: {requiredTopologyLevel: topology.kubernetes.io/rack}
  - {name: c, minMember: 1}
",
    );
    let of = |part: &str| {
        format!(
            "  labels: {{kai.scheduler/subgroup-name: {part}}}\n  \
             annotations: {{pod-group-name: tree, testbed.berth.dev/runs: 1h}}"
        )
    };
    cluster.apply(&(pods("b", 2, 8, &of("b"), "") + &pods("c", 2, 8, &of("c"), "")));
    until("they say that one part is missing", || {
        why(&cluster, "b-0").contains("waits for more pods of its part a")
    });
    cluster.apply(&pods("a", 1, 8, &of("a"), ""));
    cluster.apply(&pod("other", 1, "", "  nodeSelector: {topology.kubernetes.io/rack: r0}"));
    until("another pod is bound", || node_of(&cluster, "other").is_some());
    let found = [nodes_of(&cluster, "a", 1), nodes_of(&cluster, "b", 2)].concat();
    assert_eq!(found, [None, None, None], "no block has room for both");
    cluster.delete(&["pod", "taken", "other", "--force", "--grace-period=0"]);
    for (part, count) in [("a", 1), ("b", 2), ("c", 2)] {
        until(&format!("part {part} is bound"), || all_bound(&cluster, part, count));
    }
    assert_eq!(nodes_of(&cluster, "a", 1), [Some("n0".to_owned())], "beside the other part");
    let mut both = nodes_of(&cluster, "b", 2);
    both.sort();
    assert_eq!(both, [Some("n1".to_owned()), Some("n2".to_owned())], "the rack of two");
    cluster.delete(&["pod", "--all", "--force", "--grace-period=0"]);

    // Workers of one shard are in one rack, wherever the master is.
    cluster.apply(
        "apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: shards}
spec:
  minMember: 5
  subGroupPolicy:
  - name: shard
    subGroupSize: 2
    labelSelector: {matchLabels: {role: worker}}
    matchLabelKeys: [shard]
    networkTopology: {mode: hard, highestTierName: topology.kubernetes.io/rack}
",
    );
    let of = |labels: &str| {
        format!(
            "  labels: {{{labels}}}\n  annotations: {{scheduling.k8s.io/group-name: shards, \
             testbed.berth.dev/runs: 1h}}"
        )
    };
    cluster.apply(&pods("master", 1, 4, &of("role: master"), ""));
    for shard in ["0", "1"] {
        let marks = of(&format!("role: worker, shard: '{shard}'"));
        cluster.apply(&pods(&format!("shard{shard}"), 2, 4, &marks, ""));
    }
    until("the master is bound", || all_bound(&cluster, "master", 1));
    let rack = |node: &Option<String>| match node.as_deref() {
        Some("n1" | "n2") => "r1".to_owned(),
        node => node.unwrap_or_default().to_owned(),
    };
    for shard in ["shard0", "shard1"] {
        until(&format!("{shard} is bound"), || all_bound(&cluster, shard, 2));
        let found = nodes_of(&cluster, shard, 2);
        assert_eq!(rack(&found[0]), rack(&found[1]), "{shard}: {found:?}");
    }
}
