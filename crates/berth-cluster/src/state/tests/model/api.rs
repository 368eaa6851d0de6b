//! An API server in miniature: objects, the changes of each kind in their order, and what a
//! controller, a kubelet and a user do.

use super::world::{Maker, PodSpec, Rule, World};
use crate::compat::Compat;
use crate::observe::names::Names;
use crate::observe::reader::{ReadContext, Reader};
use crate::view::{NodeView, PodView};
use berth_kube::Change;
use berth_kube::gang::PodContext;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug, Clone)]
pub struct PodObject {
    pub uid: String,
    pub name: String,
    /// Which pod of the world it is.
    pub slot: usize,
    pub spec: PodSpec,
    /// Its kind, by its labels now.
    pub app: char,
    pub node: Option<usize>,
    /// It was asked to end.
    pub leaves: bool,
    made: usize,
}

pub struct Api {
    pub world: World,
    pub nodes: BTreeSet<usize>,
    pub pods: BTreeMap<String, PodObject>,
    /// What the watches have not brought yet.
    pub node_changes: VecDeque<Change<NodeView>>,
    pub pod_changes: VecDeque<Change<PodView>>,
    reader: Reader,
    /// Pods made so far.
    made: usize,
    /// Something has gone, so that rules about what has to be there may not hold any more.
    pub has_lost: bool,
}

impl Api {
    pub fn new(world: World) -> Api {
        let reader = Reader::new(&["berth".to_owned()], &Compat::default(), "reservations");
        Api {
            world,
            nodes: BTreeSet::new(),
            pods: BTreeMap::new(),
            node_changes: VecDeque::new(),
            pod_changes: VecDeque::new(),
            reader,
            made: 0,
            has_lost: false,
        }
    }

    pub fn node_view(&self, at: usize) -> NodeView {
        let spec = self.world.nodes[at];
        let name = format!("n{at}");
        let has = json!({
            "cpu": "64", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": spec.gpus.to_string(),
        });
        let labels = json!({
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": spec.zone.to_string(),
        });
        let object = json!({
            "metadata": { "name": name, "labels": labels },
            "status": {
                "allocatable": has, "capacity": has,
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        });
        self.reader.node(&serde_json::from_value(object).unwrap())
    }

    pub fn pod_view(&self, pod: &PodObject) -> PodView {
        let names = Names::default();
        let context = ReadContext { around: PodContext::default(), missing: None, names: &names };
        self.reader.pod(&serde_json::from_value(manifest(pod)).unwrap(), &context)
    }

    pub fn make_node(&mut self, at: usize) {
        if self.nodes.insert(at) {
            self.node_changes.push_back(Change::Applied(self.node_view(at)));
        }
    }

    pub fn drop_node(&mut self, at: usize) {
        if self.nodes.remove(&at) {
            self.has_lost = true;
            self.node_changes.push_back(Change::Deleted(self.node_view(at)));
        }
    }

    /// The pod of a slot that was made last.
    pub fn last(&self, slot: usize) -> Option<&PodObject> {
        self.pods.values().filter(|pod| pod.slot == slot).max_by_key(|pod| pod.made)
    }

    pub fn make_pod(&mut self, slot: usize) {
        let Some(spec) = self.world.pods.get(slot).copied() else { return };
        self.made += 1;
        let made = self.made;
        let name = match spec.maker {
            Maker::AtOnce => format!("p{slot}-{made}"),
            Maker::NoController | Maker::Afterwards => format!("p{slot}"),
        };
        let uid = format!("p{slot}.{made}");
        let pod =
            PodObject { uid, name, slot, spec, app: spec.app, node: None, leaves: false, made };
        self.changed(pod);
    }

    fn changed(&mut self, pod: PodObject) {
        self.pod_changes.push_back(Change::Applied(self.pod_view(&pod)));
        self.pods.insert(pod.uid.clone(), pod);
    }

    /// What a controller does when a pod of its goes.
    pub fn replace(&mut self, slot: usize, was_there: bool) -> bool {
        let Some(spec) = self.world.pods.get(slot) else { return false };
        let may = match (spec.maker, self.last(slot)) {
            (Maker::NoController, _) => false,
            (_, None) => was_there,
            (Maker::AtOnce, Some(last)) => last.leaves,
            (Maker::Afterwards, Some(_)) => false,
        };
        if may {
            self.make_pod(slot);
        }
        may
    }

    /// A pod is asked to end. One without a node is gone at once.
    pub fn delete(&mut self, uid: &str) {
        let Some(mut pod) = self.pods.get(uid).cloned() else { return };
        self.has_lost = true;
        if pod.node.is_none() {
            return self.gone(uid);
        }
        if !pod.leaves {
            pod.leaves = true;
            self.changed(pod);
        }
    }

    pub fn gone(&mut self, uid: &str) {
        if let Some(pod) = self.pods.remove(uid) {
            self.has_lost = true;
            self.pod_changes.push_back(Change::Deleted(self.pod_view(&pod)));
        }
    }

    pub fn relabel(&mut self, uid: &str, app: char) {
        if let Some(mut pod) = self.pods.get(uid).cloned() {
            pod.app = app;
            self.changed(pod);
        }
    }

    /// Returns where the pod is then; nothing where it is gone.
    pub fn bind(&mut self, uid: &str, node: usize) -> Option<usize> {
        let mut pod =
            self.pods.get(uid).cloned().filter(|pod| !pod.leaves || pod.node.is_some())?;
        if pod.node.is_none() {
            pod.node = Some(node);
            self.changed(pod.clone());
        }
        pod.node
    }
}

fn manifest(pod: &PodObject) -> Value {
    let PodObject { spec, .. } = pod;
    let mut labels = json!({ "app": pod.app.to_string() });
    let mut annotations = json!({});
    let owner = match spec.gang {
        Some((gang, size)) => {
            annotations = json!({
                "berth.dev/gang": format!("g{gang}"), "berth.dev/gang-size": size.to_string(),
            });
            format!("job-{gang}")
        }
        None => format!("set-{}", pod.slot),
    };
    if spec.is_ranked {
        labels["batch.kubernetes.io/controller-uid"] = json!(owner);
        labels["batch.kubernetes.io/job-completion-index"] = json!(pod.slot.to_string());
    }
    let mut meta = json!({
        "name": pod.name, "namespace": "ml", "uid": pod.uid, "resourceVersion": "1",
        "labels": labels, "annotations": annotations,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    });
    if spec.maker != Maker::NoController {
        meta["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "Any", "name": owner, "uid": owner,
            "controller": true,
        }]);
    }
    if pod.leaves {
        meta["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    let mut limits = json!({});
    if spec.gpus > 0 {
        limits["nvidia.com/gpu"] = json!(spec.gpus.to_string());
    }
    let mut container = json!({ "name": "main", "resources": { "limits": limits } });
    if let Some(port) = spec.port {
        container["ports"] = json!([{ "containerPort": port, "hostPort": port }]);
    }
    let mut written = json!({ "schedulerName": "berth", "containers": [container] });
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let meant = |app: char| json!({ "matchLabels": { "app": app.to_string() } });
    match spec.rule {
        None => {}
        Some(Rule::Away(app, key)) => {
            let term = json!({ "topologyKey": key.label(), "labelSelector": meant(app) });
            written["affinity"] = json!({ "podAntiAffinity": { required: [term] } });
        }
        Some(Rule::Near(app, key)) => {
            let term = json!({ "topologyKey": key.label(), "labelSelector": meant(app) });
            written["affinity"] = json!({ "podAffinity": { required: [term] } });
        }
        Some(Rule::Spread(key)) => {
            written["topologySpreadConstraints"] = json!([{
                "maxSkew": 1, "topologyKey": key.label(), "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": meant(spec.app),
            }]);
        }
    }
    if let Some(node) = pod.node {
        written["nodeName"] = json!(format!("n{node}"));
    }
    let phase = if pod.node.is_some() { "Running" } else { "Pending" };
    json!({ "metadata": meta, "spec": written, "status": { "phase": phase } })
}
