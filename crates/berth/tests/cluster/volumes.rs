//! Volumes: pods go where theirs are, or can be.

use super::constraints::ZONE;
use super::support::{self, berth, cluster, node_of, pod, until, why};
use berth_testbed::kube::Cluster;

/// A volume on one node.
fn volume(name: &str, class: &str, node: &str) -> String {
    let spec = format!(
        "  persistentVolumeReclaimPolicy: Retain
  storageClassName: {class}
  local: {{path: /data}}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [{node}]}}]"
    );
    support::volume(name, &spec)
}

pub fn claim(name: &str, class: &str, mode: &str) -> String {
    format!(
        "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}}}
spec:
  accessModes: [{mode}]
  storageClassName: {class}
  resources: {{requests: {{storage: 5Gi}}}}
---
"
    )
}

pub fn class(name: &str, provisioner: &str, mode: &str) -> String {
    format!(
        "apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: {name}}}
provisioner: {provisioner}
volumeBindingMode: {mode}
---
"
    )
}

pub fn user(name: &str, claim: &str) -> String {
    pod(
        name,
        1,
        "",
        &format!("  volumes: [{{name: data, persistentVolumeClaim: {{claimName: {claim}}}}}]"),
    )
}

fn phase(cluster: &Cluster, claim: &str) -> String {
    let claim = cluster.get(&["pvc", claim]);
    claim["status"]["phase"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn pods_go_where_their_volumes_are_or_can_be() {
    let cluster = cluster();
    for name in ["a", "b", "c"] {
        let labels = format!("{{kubernetes.io/hostname: {name}}}");
        cluster.apply(&super::support::node(name, &labels, "[]"));
    }
    let none = "kubernetes.io/no-provisioner";
    cluster
        .apply(&(class("late", none, "WaitForFirstConsumer") + &class("early", none, "Immediate")));
    cluster.apply(&class("made", "example.com/disks", "WaitForFirstConsumer"));
    let _berth = berth(&cluster);

    // The claim is bound when its first pod has a place, where a volume is to be had.
    cluster.apply(&user("first", "scratch"));
    until("it waits for its claim", || why(&cluster, "first").contains("scratch"));
    cluster.apply(&volume("on-b", "late", "b"));
    cluster.apply(&claim("scratch", "late", "ReadWriteOnce"));
    until("the pod is bound", || node_of(&cluster, "first").is_some());
    assert_eq!(node_of(&cluster, "first").as_deref(), Some("b"));
    assert_eq!(phase(&cluster, "scratch"), "Bound");
    // Whoever comes later goes where it is; a second claim finds no volume.
    cluster.apply(&user("second", "scratch"));
    cluster.apply(&(claim("other", "late", "ReadWriteOnce") + &user("third", "other")));
    until("the second one follows", || node_of(&cluster, "second").is_some());
    assert_eq!(node_of(&cluster, "second").as_deref(), Some("b"));
    until("the third says why", || !why(&cluster, "third").is_empty());
    assert_eq!(node_of(&cluster, "third"), None);
    cluster.apply(&volume("on-a", "late", "a"));
    until("there is one for the third", || node_of(&cluster, "third").is_some());
    assert_eq!(node_of(&cluster, "third").as_deref(), Some("a"));

    // Others are bound without us.
    cluster.apply(&(claim("shared", "early", "ReadWriteOnce") + &user("fourth", "shared")));
    until("it is not bound yet", || why(&cluster, "fourth").contains("not bound"));
    cluster.apply(&volume("on-c", "early", "c"));
    until("it goes where the volume is", || node_of(&cluster, "fourth").is_some());
    assert_eq!(node_of(&cluster, "fourth").as_deref(), Some("c"));

    // A volume that has to be made is made for the node that was chosen.
    cluster.apply(&(claim("new", "made", "ReadWriteOncePod") + &user("fifth", "new")));
    until("a node is chosen", || {
        let claim = cluster.get(&["pvc", "new"]);
        claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"].is_string()
    });
    assert_eq!(node_of(&cluster, "fifth"), None, "there is no volume yet");
    cluster.apply(&user("sixth", "new"));
    until("only one pod may use it", || why(&cluster, "sixth").contains("for one alone"));
}

/// A volume that is in zones by its own labels, or by a rule about nodes.
fn zoned(name: &str, labels: &str, affinity: &str) -> String {
    format!(
        "apiVersion: v1
kind: PersistentVolume
metadata: {{name: {name}, labels: {{{labels}}}}}
spec:
  capacity: {{storage: 10Gi}}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: {name}
  csi: {{driver: example.com, volumeHandle: {name}}}
{affinity}
---
"
    )
}

#[test]
fn volumes_of_a_zone_keep_their_pods_there() {
    let cluster = cluster();
    for (name, zone) in [("a", "z1"), ("b", "z1"), ("c", "z2")] {
        let labels = format!("{{kubernetes.io/hostname: {name}, {ZONE}: {zone}}}");
        cluster.apply(&super::support::node(name, &labels, "[]"));
    }
    let _berth = berth(&cluster);
    // The fullest node is taken where nothing else counts.
    let first = format!("  nodeSelector: {{{ZONE}: z1, kubernetes.io/hostname: a}}");
    cluster.apply(&pod("filler", 4, "", &first));
    until("one node is fuller than the others", || node_of(&cluster, "filler").is_some());

    // By its rule about nodes, by its own label, and by the old name of that label.
    let rule = format!(
        "  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{{key: {ZONE}, operator: In, values: [z2]}}]"
    );
    let none = "kubernetes.io/no-provisioner";
    let volumes = [
        zoned("ruled", "", &rule),
        zoned("labelled", &format!("{ZONE}: z2"), ""),
        zoned("old", "failure-domain.beta.kubernetes.io/zone: z2", ""),
        zoned("several", &format!("{ZONE}: z1__z2"), ""),
        zoned("nowhere", &format!("{ZONE}: z3"), ""),
    ];
    cluster.apply(&volumes.concat());
    for name in ["ruled", "labelled", "old", "several", "nowhere"] {
        let claimed = claim(name, name, "ReadWriteOnce");
        cluster.apply(&(class(name, none, "Immediate") + &claimed + &user(name, name)));
    }
    let bound = |name: &str| node_of(&cluster, name).is_some();
    until("those that can be are bound", || {
        ["ruled", "labelled", "old", "several"].iter().all(|name| bound(name))
    });
    for name in ["ruled", "labelled", "old"] {
        assert_eq!(node_of(&cluster, name).as_deref(), Some("c"), "{name}");
    }
    assert_eq!(node_of(&cluster, "several").as_deref(), Some("a"));
    until("the last one says why", || why(&cluster, "nowhere").contains("volumes"));
    assert!(!bound("nowhere"));
    cluster.label(&["pv", "nowhere", "--overwrite", &format!("{ZONE}=z2")]);
    until("its volume is somewhere now", || bound("nowhere"));
    assert_eq!(node_of(&cluster, "nowhere").as_deref(), Some("c"));

    // A volume that has to be made is made in a zone that its class allows.
    let zones = format!(
        "allowedTopologies: [{{matchLabelExpressions: [{{key: {ZONE}, values: [z2, z9]}}]}}]\n---"
    );
    let made = class("made", "example.com/disks", "WaitForFirstConsumer").replace("---", &zones);
    cluster.apply(&(made + &claim("new", "made", "ReadWriteOnce") + &user("maker", "new")));
    let chosen = || {
        let claim = cluster.get(&["pvc", "new"]);
        let annotations = &claim["metadata"]["annotations"];
        annotations["volume.kubernetes.io/selected-node"].as_str().map(str::to_owned)
    };
    until("a node is chosen", || chosen().is_some());
    assert_eq!(chosen().as_deref(), Some("c"));
}
