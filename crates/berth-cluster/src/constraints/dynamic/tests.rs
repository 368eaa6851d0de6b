//! Where pods may be because of the volumes that nodes can attach.

use super::*;
use crate::compat::Compat;
use crate::observe::names::Names;
use crate::observe::reader::{ReadContext, Reader};
use crate::state::nodes::Nodes;
use berth_kube::gang::PodContext;
use berth_kube::{Change, WatchUpdate as KindUpdate};
use berth_model::Name;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const ZONE: &str = "topology.kubernetes.io/zone";

/// Two nodes, what is stored, and pods.
struct World {
    reader: Reader,
    nodes: Nodes,
    index: Index,
    volumes: Volumes,
}

fn read<T: DeserializeOwned>(written: Value) -> T {
    serde_json::from_value(written).unwrap()
}

fn all<T: DeserializeOwned>(written: &[Value]) -> KindUpdate<T> {
    KindUpdate::Snapshot(written.iter().cloned().map(read).collect())
}

/// A node that attaches so many volumes of the driver.
fn csi_node(name: &str, count: u32) -> Value {
    let driver = json!({ "name": "d", "nodeID": name, "allocatable": { "count": count } });
    json!({ "metadata": { "name": name }, "spec": { "drivers": [driver] } })
}

fn claim(name: &str, volume: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "ml" },
        "spec": { "storageClassName": "made", "volumeName": volume },
        "status": { "phase": if volume.is_empty() { "Pending" } else { "Bound" } },
    })
}

fn volume(name: &str, of: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "csi": { "driver": "d", "volumeHandle": name },
            "claimRef": { "namespace": "ml", "name": of },
        },
    })
}

impl World {
    fn new() -> World {
        let reader = Reader::new(&["berth".to_owned()], &Compat::default(), "held");
        let mut nodes = Nodes::default();
        for name in ["a", "b"] {
            let has = json!({ "cpu": "8", "memory": "8Gi", "nvidia.com/gpu": "8" });
            let meta = json!({ "name": name, "labels": { ZONE: name } });
            let node = json!({ "metadata": meta, "status": { "allocatable": has } });
            nodes.put(reader.node(&read(node)));
        }
        let mut volumes = Volumes::default();
        let mode = "WaitForFirstConsumer";
        let class = json!({
            "metadata": { "name": "made" }, "provisioner": "d", "volumeBindingMode": mode,
        });
        volumes.apply(StorageUpdate::Classes(all(&[class])));
        World { reader, nodes, index: Index::default(), volumes }
    }

    /// A pod of one GPU with these claims, and where it must be.
    fn pod(&self, name: &str, claims: &[&str], zone: Option<&str>) -> PodView {
        let volume = |claim: &&str| match *claim {
            "ephemeral" => json!({ "name": claim, "ephemeral": {} }),
            _ => json!({ "name": claim, "persistentVolumeClaim": { "claimName": claim } }),
        };
        let volumes: Vec<Value> = claims.iter().map(volume).collect();
        let limits = json!({ "limits": { "nvidia.com/gpu": "1" } });
        let mut spec = json!({
            "schedulerName": "berth", "volumes": volumes,
            "containers": [{ "name": "main", "resources": limits }],
        });
        if let Some(zone) = zone {
            spec["nodeSelector"] = json!({ ZONE: zone });
        }
        let meta = json!({ "name": name, "namespace": "ml", "uid": name });
        let names = Names::default();
        let context = ReadContext { around: PodContext::default(), missing: None, names: &names };
        self.reader.pod(&read(json!({ "metadata": meta, "spec": spec })), &context)
    }

    fn place(&mut self, pod: &PodView, node: Option<&str>) {
        let (constraints, node) =
            (pod.constraints.as_deref().expect("it has claims"), node.map(Name::new));
        self.volumes.place_pod(&pod.at.uid, constraints, node.as_ref());
    }

    /// The nodes that each of these pods of one job may be on.
    fn feasible_nodes(&self, pods: &[&PodView]) -> Result<Vec<String>, Infeasible> {
        let (nodes, index, volumes) = (&self.nodes, &self.index, &self.volumes);
        let context = PlacementContext { nodes, index, volumes, free: &|_| 8 };
        let pods = pods.iter().map(|pod| PodGroup { views: vec![*pod], at_most: None });
        let reached = feasible_nodes(&context, &pods.collect::<Vec<_>>())?;
        let admits =
            |ask: &Option<NodeAsk>, name: &&str| ask.as_ref().is_none_or(|ask| ask.admits(name));
        let each = reached.asks.iter();
        Ok(each
            .map(|ask| ["a", "b"].into_iter().filter(|name| admits(ask, name)).collect())
            .collect())
    }
}

#[test]
fn a_claim_counts_by_its_class_until_it_has_a_volume_and_then_by_that() {
    let mut world = World::new();
    world.volumes.apply(StorageUpdate::Nodes(all(&[csi_node("a", 2), csi_node("b", 0)])));
    let claims = ["one", "two", "three", "new-ephemeral"].map(|name| claim(name, ""));
    world.volumes.apply(StorageUpdate::Claims(all(&claims)));
    let (one, two) = (world.pod("p1", &["one"], None), world.pod("p2", &["two"], None));
    assert_eq!(world.feasible_nodes(&[&one]), Ok(vec!["a".to_owned()]));
    world.place(&one, Some("a"));
    world.place(&two, Some("a"));
    let new = world.pod("new", &["ephemeral"], None);
    let why = world.feasible_nodes(&[&new]).unwrap_err().to_string();
    assert!(why.contains("2 cannot attach that many more volumes of d"), "{why}");
    let same = world.pod("same", &["two"], None);
    assert_eq!(world.feasible_nodes(&[&same]), Ok(vec!["a".to_owned()]), "its volume is there");
    // Both turn out to be one volume; the claims are seen before it is.
    let bound = ["one", "two"].map(|name| Change::Applied(read(claim(name, "v"))));
    world.volumes.apply(StorageUpdate::Claims(KindUpdate::Changes(bound.into())));
    let seen = Change::Applied(read(volume("v", "one")));
    world.volumes.apply(StorageUpdate::Volumes(KindUpdate::Changes(vec![seen])));
    let seen = Change::Applied(read(volume("v", "two")));
    world.volumes.apply(StorageUpdate::Volumes(KindUpdate::Changes(vec![seen])));
    assert_eq!(world.feasible_nodes(&[&new]), Ok(vec!["a".to_owned()]));
    let both = world.pod("both", &["one", "three"], None);
    assert_eq!(
        world.feasible_nodes(&[&both]),
        Ok(vec!["a".to_owned()]),
        "only one of them is new there"
    );
    world.place(&new, Some("a"));
    assert!(world.feasible_nodes(&[&both]).is_err());
    world.place(&new, None);
    assert!(world.feasible_nodes(&[&both]).is_ok());
}

#[test]
fn a_pod_reports_attach_limits_where_the_nodes_it_may_be_on_are_full() {
    let mut world = World::new();
    world.volumes.apply(StorageUpdate::Claims(all(&[claim("one", "")])));
    world.volumes.apply(StorageUpdate::Nodes(all(&[csi_node("a", 0)])));
    let free = world.pod("p", &["one"], None);
    assert_eq!(world.feasible_nodes(&[&free]), Ok(vec!["b".to_owned()]), "that node has no limit");
    let bound_to_a = world.pod("p", &["one"], Some("a"));
    let why = world.feasible_nodes(&[&bound_to_a]).unwrap_err().to_string();
    assert_eq!(
        why,
        "no node will do for it now: 1 without what its node selector or affinity asks for \
         (topology.kubernetes.io/zone=a), 1 cannot attach that many more volumes of d"
    );
    world.volumes.apply(StorageUpdate::Nodes(KindUpdate::Changes(vec![Change::Deleted(read(
        csi_node("a", 0),
    ))])));
    assert!(world.feasible_nodes(&[&bound_to_a]).is_ok());
}

#[test]
fn pods_of_a_gang_do_not_come_to_a_node_that_could_not_attach_for_all_of_them() {
    let mut world = World::new();
    let names = ["one", "two", "three"];
    world.volumes.apply(StorageUpdate::Claims(all(&names.map(|name| claim(name, "")))));
    world.volumes.apply(StorageUpdate::Nodes(all(&[csi_node("a", 2), csi_node("b", 1)])));
    let pods = names.map(|name| world.pod(name, &[name], None));
    let gang: Vec<&PodView> = pods.iter().collect();
    let nodes = |names: &[&str]| Ok(names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(world.feasible_nodes(&gang), nodes(&["a", "a", "b"]));
    world.volumes.apply(StorageUpdate::Nodes(all(&[csi_node("a", 2), csi_node("b", 3)])));
    assert_eq!(world.feasible_nodes(&gang), nodes(&["ab", "ab", "b"]));
    world.volumes.apply(StorageUpdate::Nodes(all(&[csi_node("a", 1), csi_node("b", 1)])));
    assert!(world.feasible_nodes(&gang).is_err());
}

#[test]
fn a_driver_may_say_that_its_volumes_are_for_nodes_alone_that_have_it() {
    let mut world = World::new();
    world.volumes.apply(StorageUpdate::Claims(all(&[claim("one", "")])));
    let pod = world.pod("p", &["one"], None);
    assert_eq!(world.feasible_nodes(&[&pod]), Ok(vec!["ab".to_owned()]));
    let spec = json!({ "preventPodSchedulingIfMissing": true });
    let driver = json!({ "metadata": { "name": "d" }, "spec": spec });
    world.volumes.apply(StorageUpdate::Drivers(all(&[driver])));
    let why = world.feasible_nodes(&[&pod]).unwrap_err().to_string();
    assert!(why.contains("2 without the driver d"), "{why}");
    world.volumes.apply(StorageUpdate::Nodes(all(&[csi_node("b", 5)])));
    assert_eq!(world.feasible_nodes(&[&pod]), Ok(vec!["b".to_owned()]));
}
