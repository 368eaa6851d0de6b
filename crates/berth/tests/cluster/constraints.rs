//! Constraints of pods, as kube-scheduler honours them.

use super::support::{berth, cluster, gang, node_of, nodes_of, pod, until, why};
use berth_testbed::kube::{Cluster, Kwok};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes with the labels every node has, in zones, with more of whatever is said.
fn add_machines(cluster: &Cluster, nodes: &[(&str, &str, &str)]) {
    for (name, zone, more) in nodes {
        cluster.apply(&format!(
            "apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels: {{kubernetes.io/hostname: {name}, topology.kubernetes.io/zone: {zone}}}
status:
  capacity: &amounts {{cpu: 64, memory: 512Gi, nvidia.com/gpu: 8, {more}}}
  allocatable: *amounts
  conditions: [{{type: Ready, status: 'True'}}]
"
        ));
    }
    for (name, _, _) in nodes {
        until("the node is ready and free of taints", || {
            cluster.get(&["node", name])["spec"]["taints"] == Value::Null
        });
    }
}

pub fn three(cluster: &Cluster) {
    let plain = "pods: 110";
    add_machines(cluster, &[("a", "z1", plain), ("b", "z1", plain), ("c", "z2", plain)]);
}

pub fn labels(app: &str) -> String {
    format!("  labels: {{app: {app}}}")
}

/// A rule about pods with a label, by a key.
pub fn rule(kind: &str, app: &str, key: &str) -> String {
    format!(
        "  affinity:
    {kind}:
      requiredDuringSchedulingIgnoredDuringExecution:
      - labelSelector: {{matchLabels: {{app: {app}}}}}
        topologyKey: {key}"
    )
}

pub const HOST: &str = "kubernetes.io/hostname";
pub const ZONE: &str = "topology.kubernetes.io/zone";

pub fn is_bound(cluster: &Cluster, pod: &str) -> bool {
    node_of(cluster, pod).is_some()
}

#[test]
fn resources_ports_and_the_number_of_pods_are_counted() {
    let cluster = cluster();
    let plain = "pods: 110";
    let nodes = [("a", "z1", "pods: 110, rdma/hca: 2"), ("b", "z1", plain), ("c", "z1", "pods: 2")];
    add_machines(&cluster, &nodes);
    let _berth = berth(&cluster);
    let on_c = format!("  nodeSelector: {{{HOST}: c}}");
    cluster.apply(&(pod("first", 0, "", &on_c) + &pod("second", 0, "", &on_c)));
    until("two are bound", || is_bound(&cluster, "first") && is_bound(&cluster, "second"));
    cluster.apply(&pod("third", 0, "", &on_c));
    until("it says that there are enough", || why(&cluster, "third").contains("as many tasks"));
    cluster.delete(&["pod", "first", "--force", "--grace-period=0"]);
    until("the third takes its place", || is_bound(&cluster, "third"));
    let rdma = |name: &str| pod(name, 1, "", "").replace("gpu: 1}", "gpu: 1, rdma/hca: 1}");
    for name in ["r0", "r1", "r2"] {
        cluster.apply(&rdma(name));
    }
    until("two have adapters", || {
        ["r0", "r1", "r2"].iter().filter(|pod| is_bound(&cluster, pod)).count() == 2
    });
    // The third node has no room for another pod, which would be a reason as well.
    let not_c = format!(
        "  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{{key: {HOST}, operator: NotIn, values: [c]}}]"
    );
    let port = |name: &str| {
        let ports = "ports: [{containerPort: 80, hostPort: 8080}], resources";
        pod(name, 1, "", &not_c).replace("resources", ports)
    };
    for name in ["p0", "p1", "p2"] {
        cluster.apply(&port(name));
    }
    until("each node has one of those with a port", || {
        let found = ["p0", "p1", "p2"].iter().filter_map(|pod| node_of(&cluster, pod));
        found.collect::<BTreeSet<_>>() == BTreeSet::from(["a".to_owned(), "b".to_owned()])
    });
    let waits =
        |pods: [&'static str; 3]| pods.into_iter().find(|pod| !is_bound(&cluster, pod)).unwrap();
    let (adapter, port) =
        (waits(["r0", "r1", "r2"]).to_owned(), waits(["p0", "p1", "p2"]).to_owned());
    until("adapters are short", || why(&cluster, &adapter).contains("rdma/hca"));
    until("the port is taken", || why(&cluster, &port).contains("host port 8080/TCP"));
}

#[test]
fn preferences_of_nodes_are_weighed() {
    let cluster = cluster();
    three(&cluster);
    cluster.kubectl_stdout(&["taint", "node", "a", "noisy=yes:PreferNoSchedule"]);
    cluster.label(&["node", "b", "disk=fast"]);
    cluster.label(&["node", "c", "disk=fast", "net=fast"]);
    let _berth = berth(&cluster);
    let wish = |weight: i32, key: &str, value: &str| {
        format!(
            "      - weight: {weight}
        preference:
          matchExpressions: [{{key: {key}, operator: In, values: [{value}]}}]\n"
        )
    };
    let prefers = |wishes: String| {
        format!(
            "  tolerations: [{{operator: Exists}}]
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:\n{wishes}"
        )
    };
    let both = wish(10, "disk", "fast") + &wish(50, "net", "fast");
    cluster.apply(&pod("both", 1, "", &prefers(both)));
    cluster.apply(&pod("first", 1, "", &prefers(wish(1, HOST, "a"))));
    for name in ["x0", "x1", "x2", "x3"] {
        cluster.apply(&pod(name, 1, "", ""));
    }
    let all = ["both", "first", "x0", "x1", "x2", "x3"];
    until("all are bound", || all.iter().all(|pod| is_bound(&cluster, pod)));
    assert_eq!(node_of(&cluster, "both").as_deref(), Some("c"));
    assert_eq!(node_of(&cluster, "first").as_deref(), Some("a"));
    for pod in ["x0", "x1", "x2", "x3"] {
        assert_ne!(node_of(&cluster, pod).as_deref(), Some("a"), "the taint is avoided");
    }
}

#[test]
fn pods_stay_away_from_each_other_and_from_those_that_want_it() {
    let cluster = cluster();
    three(&cluster);
    let foreign = pod("foreign", 1, &labels("web"), "  nodeName: a").replace("berth", "another");
    cluster.apply(&foreign);
    let _berth = berth(&cluster);
    let away = rule("podAntiAffinity", "web", HOST);
    let web = ["w0", "w1", "w2", "w3"];
    let all: String = web.iter().map(|name| pod(name, 1, &labels("web"), &away)).collect();
    cluster.apply(&all);
    let placed = |names: &[&str]| -> Vec<String> {
        let mut found: Vec<String> =
            names.iter().filter_map(|pod| node_of(&cluster, pod)).collect();
        found.sort();
        found
    };
    until("two have found a node of their own", || placed(&web).len() == 2);
    assert_eq!(placed(&web), ["b", "c"], "on a there is one already");
    // One that has no rules itself is kept away by those of the others.
    cluster.apply(&pod("meant", 1, &labels("web"), ""));
    cluster.apply(&pod("not-meant", 6, &labels("db"), ""));
    until("both are bound", || is_bound(&cluster, "meant") && is_bound(&cluster, "not-meant"));
    assert_eq!(node_of(&cluster, "meant").as_deref(), Some("a"));
    assert_eq!(placed(&web).len(), 2);
    let waits = web.iter().find(|pod| !is_bound(&cluster, pod)).unwrap();
    until("it says why", || !why(&cluster, waits).is_empty());

    let goes = web.iter().find(|pod| node_of(&cluster, pod).as_deref() == Some("b")).unwrap();
    cluster.delete(&["pod", goes, "--force", "--grace-period=0"]);
    let left: Vec<&str> = web.iter().copied().filter(|pod| pod != goes).collect();
    until("another one takes its place", || placed(&left) == ["b", "c"]);

    // A gang whose pods must be away from each other.
    let apart: String = gang("apart", 2, 1)
        .replace("spec:\n", &format!("spec:\n{}\n", rule("podAntiAffinity", "apart", HOST)));
    cluster.apply(&apart.replace("metadata:\n", "metadata:\n  labels: {app: apart}\n"));
    until("the gang is bound", || nodes_of(&cluster, "apart", 2).iter().all(Option::is_some));
    let apart = nodes_of(&cluster, "apart", 2);
    assert_ne!(apart[0], apart[1]);
}

#[test]
fn pods_go_where_others_are() {
    let cluster = cluster();
    three(&cluster);
    let _berth = berth(&cluster);
    let near = |app: &str, key: &str| rule("podAffinity", app, key);
    cluster.apply(&pod("client", 1, "", &near("db", ZONE)));
    until("there is nobody yet", || why(&cluster, "client").contains("near to"));
    cluster.apply(&pod("db", 1, &labels("db"), &format!("  nodeSelector: {{{HOST}: c}}")));
    until("it follows", || is_bound(&cluster, "client"));
    assert_eq!(node_of(&cluster, "client").as_deref(), Some("c"));
    // Of those that must be near each other the first may be anywhere.
    let pack: String =
        (0..4).map(|at| pod(&format!("k{at}"), 4, &labels("k"), &near("k", ZONE))).collect();
    cluster.apply(&pack);
    let pack = || -> Vec<String> {
        (0..4).filter_map(|at| node_of(&cluster, &format!("k{at}"))).collect()
    };
    until("as many as one zone takes are bound", || !pack().is_empty());
    until("all are bound in the larger zone", || pack().len() == 4 || pack().contains(&"c".into()));
    let zones: BTreeSet<bool> = pack().iter().map(|node| node == "c").collect();
    assert_eq!(zones.len(), 1, "all in one zone: {:?}", pack());
}

/// How many pods of a kind are in each zone.
fn by_zone(cluster: &Cluster, app: &str) -> BTreeMap<String, usize> {
    let pods = cluster.get(&["pods", "-l", &format!("app={app}")]);
    let mut zones = BTreeMap::new();
    for pod in pods["items"].as_array().cloned().unwrap_or_default() {
        let zone = match pod["spec"]["nodeName"].as_str() {
            Some("c") => "z2",
            Some(_) => "z1",
            None => continue,
        };
        *zones.entry(zone.to_owned()).or_default() += 1;
    }
    zones
}

#[test]
fn pods_are_spread_over_zones_as_by_kube_scheduler() {
    let builder = Cluster::builder().controller_manager().scheduler().kwok(Kwok::all_nodes());
    let cluster = builder.start();
    three(&cluster);
    let _berth = berth(&cluster);
    let spread = |app: &str, skew: u32, more: &str| {
        format!(
            "  topologySpreadConstraints:
  - {{maxSkew: {skew}, topologyKey: {ZONE}, whenUnsatisfiable: DoNotSchedule, \
             labelSelector: {{matchLabels: {{app: {app}}}}}{more}}}"
        )
    };
    // One zone has a head start of two, and two GPUs are free in the other.
    let kinds = |scheduler: &str, app: &str| -> String {
        let on = |node: &str| format!("  nodeSelector: {{{HOST}: {node}}}");
        let first = pod(&format!("{app}-first"), 0, &labels(app), &on("a"));
        let rest =
            (0..5).map(|at| pod(&format!("{app}-{at}"), 0, &labels(app), &spread(app, 1, "")));
        (first + &rest.collect::<String>()).replace("Name: berth", &format!("Name: {scheduler}"))
    };
    cluster.apply(&kinds("berth", "ours"));
    cluster.apply(&kinds("default-scheduler", "theirs"));
    let all = |zones: &BTreeMap<String, usize>| zones.values().sum::<usize>() == 6;
    until("all are bound", || all(&by_zone(&cluster, "ours")) && all(&by_zone(&cluster, "theirs")));
    assert_eq!(by_zone(&cluster, "ours"), by_zone(&cluster, "theirs"));
    // With too few zones the emptiest counts as empty.
    let few = |at: u32| {
        pod(&format!("few-{at}"), 0, &labels("few"), &spread("few", 1, ", minDomains: 3"))
    };
    cluster.apply(&(0..3).map(few).collect::<String>());
    until("one is in each zone", || by_zone(&cluster, "few").values().eq(&[1, 1]));
    until("the third waits", || (0..3).any(|at| !why(&cluster, &format!("few-{at}")).is_empty()));
    assert_eq!(by_zone(&cluster, "few").values().sum::<usize>(), 2);
}

#[test]
fn a_gate_of_somebody_else_keeps_a_pod_waiting_until_it_is_lifted() {
    let cluster = cluster();
    three(&cluster);
    let _berth = berth(&cluster);
    let gates = "  schedulingGates: [{name: example.com/first}, {name: example.com/second}]";
    cluster.apply(&pod("gated", 1, "", gates));
    let lift = || {
        let patch = r#"[{"op": "remove", "path": "/spec/schedulingGates/0"}]"#;
        cluster.patch(&["pod", "gated", "--type=json", "-p", patch]);
    };
    // Whoever comes later and is bound shows that the one before it was seen and left alone.
    let passed_by = |later: &str| {
        cluster.apply(&pod(later, 1, "", ""));
        until("another one is bound", || is_bound(&cluster, later));
        assert!(!is_bound(&cluster, "gated"));
    };
    passed_by("p0");
    lift();
    passed_by("p1");
    lift();
    until("it is bound with its last gate gone", || is_bound(&cluster, "gated"));
}

#[test]
fn whoever_writes_on_a_disk_has_it_for_itself_on_its_node() {
    let cluster = cluster();
    let plain = "pods: 110";
    add_machines(&cluster, &[("a", "z1", plain), ("b", "z1", plain)]);
    let disk =
        |more: &str| format!("  volumes: [{{name: v, gcePersistentDisk: {{pdName: pd-1{more}}}}}]");
    let on_a = format!("{}\n  nodeName: a", disk(""));
    cluster.apply(&pod("foreign", 1, "", &on_a).replace("Name: berth", "Name: another"));
    let _berth = berth(&cluster);
    cluster.apply(&pod("reads", 1, "", &disk(", readOnly: true")));
    until("it is bound where nobody writes", || is_bound(&cluster, "reads"));
    assert_eq!(node_of(&cluster, "reads").as_deref(), Some("b"));
    cluster.apply(&pod("reads-too", 1, "", &disk(", readOnly: true")));
    until("readers share a disk", || is_bound(&cluster, "reads-too"));
    assert_eq!(node_of(&cluster, "reads-too").as_deref(), Some("b"));
    cluster.apply(&pod("writes", 1, "", &disk("")));
    until("it says which disk", || why(&cluster, "writes").contains("gcePersistentDisk/pd-1"));
    assert!(!is_bound(&cluster, "writes"));
    cluster.delete(&["pod", "foreign", "--force", "--grace-period=0"]);
    until("it writes where the other one did", || is_bound(&cluster, "writes"));
    assert_eq!(node_of(&cluster, "writes").as_deref(), Some("a"));
}

#[test]
fn pods_that_were_there_before_the_nodes_keep_away_from_each_other() {
    let cluster = cluster();
    let _berth = berth(&cluster);
    // A rule about the first pod is there before the pod that must be away from it.
    cluster.apply(&pod("web", 1, &labels("web"), ""));
    cluster.apply(&pod("beside", 1, "", &rule("podAffinity", "web", ZONE)));
    until("it waits for the pod that it must be near to", || {
        why(&cluster, "beside").contains("no pod that it must be near to")
            || why(&cluster, "beside").contains("takes its turn")
    });
    cluster.apply(&pod("away", 1, "", &rule("podAntiAffinity", "web", HOST)));
    until("all of them have been looked at", || {
        ["web", "beside", "away"].iter().all(|pod| !why(&cluster, pod).is_empty())
    });
    add_machines(&cluster, &[("a", "z1", "pods: 110")]);
    until("one of them has its place", || is_bound(&cluster, "web") || is_bound(&cluster, "away"));
    add_machines(&cluster, &[("b", "z1", "pods: 110")]);
    let all = ["web", "beside", "away"];
    until("all are bound", || all.iter().all(|pod| is_bound(&cluster, pod)));
    assert_ne!(node_of(&cluster, "web"), node_of(&cluster, "away"), "they are not together");
}
