//! The cluster of the week: nodes, pods and kubelets, and Berth's loop in virtual time.

use super::super::World;
use super::controllers::Controllers;
use crate::observe::names::Names;
use crate::observe::reader::ReadContext;
use crate::state::ClusterState;
use crate::state::observation::Observation;
use crate::state::orders::{ApiOrder, OrderOutcome};
use crate::view::PodView;
use berth_engine::Turn;
use berth_engine::testing::LeaseOrder;
use berth_kube::gang::PodContext;
use berth_kube::{Change, WatchUpdate};
use berth_model::{Span, Time};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How long a pod takes from its binding to its start.
const STARTS_AFTER: Span = Span::secs(3);
const GRACE: Span = Span::secs(30);
/// How long pods tolerate that their node does not answer, as they are made by default.
const TOLERATED_FOR: Span = Span::mins(5);
const TOLERATED_BY_GANG: Span = Span::secs(10);
/// The machine is gone by then, and its provider says so.
const NODE_GONE_AFTER: Span = Span::mins(1);
const SPOT_NOTICE: Span = Span::mins(2);
const NEW_NODE_AFTER: Span = Span::mins(10);
/// Pods that wait for each other are released again so often.
const TICK_EVERY: Span = Span::secs(20);

/// What happens at a moment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    RolloutOfDeployment,
    RolloutOfStatefulSet,
    HourlyJob(i64),
    Drain(String),
    Uncordon(String),
    /// It does not answer any more; minutes later its pods are deleted, and then it is.
    NodeLost(String),
    /// What its pods tolerate is over: those of the gang say that they tolerate little.
    GangOfLostNode(String),
    PodsOfLostNode(String),
    NodeGone(String),
    SpotLoss,
    NewNode(String),
    PodRuns(String),
    PodEnds(String),
    PodGone(String),
}

pub struct Cluster {
    world: World,
    controllers: Controllers,
    nodes: BTreeMap<String, Value>,
    pub(super) pods: BTreeMap<String, Value>,
    agenda: BTreeMap<(Time, u64), Due>,
    /// Observations that Berth has not taken in yet.
    news: Vec<Observation>,
    count: u64,
    spots: u32,
    /// Pods that Berth ended, when, and why.
    pub killed: Vec<String>,
}

impl Cluster {
    /// Four nodes with GPUs, two more of them on the spot market, and two without GPUs.
    pub fn new(start: Time) -> Cluster {
        let mut world = World::new(&[]);
        world.now = start;
        let mut cluster = Cluster {
            world,
            controllers: Controllers::default(),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            agenda: BTreeMap::new(),
            news: Vec::new(),
            count: 0,
            spots: 2,
            killed: Vec::new(),
        };
        for name in ["g0", "g1", "g2", "g3", "s0", "s1"] {
            cluster.add_node(name, 4);
        }
        for name in ["c0", "c1"] {
            cluster.add_node(name, 0);
        }
        cluster.settle();
        cluster
    }

    pub fn now(&self) -> Time {
        self.world.now
    }

    pub fn schedule(&mut self, at: Time, due: Due) {
        self.count += 1;
        self.agenda.insert((at, self.count), due);
    }

    /// Lets time pass.
    pub fn run_until(&mut self, end: Time) {
        while self.world.now < end {
            let next = self.agenda.first_key_value().map_or(end, |((at, _), _)| *at);
            let tick = match self.world.state.has_waiting() || self.has_unplaced() {
                true => self.world.now + TICK_EVERY,
                false => end,
            };
            self.world.now = next.min(tick).min(end).max(self.world.now);
            while let Some(first) = self.agenda.first_entry() {
                if first.key().0 > self.world.now {
                    break;
                }
                let due = first.remove();
                self.happen(due);
            }
            self.news.push(Observation::Tick);
            self.settle();
        }
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::RolloutOfDeployment => self.controllers.deployment += 1,
            Due::RolloutOfStatefulSet => self.controllers.stateful_set += 1,
            Due::HourlyJob(hour) => self.controllers.hours.push(hour),
            Due::Drain(name) => {
                self.change_node(&name, |node| node["spec"]["unschedulable"] = true.into());
                self.delete_pods_of(&name, |pod| owner(pod) != "agent");
            }
            Due::Uncordon(name) => {
                self.change_node(&name, |node| node["spec"]["unschedulable"] = false.into());
            }
            Due::NodeLost(name) => {
                self.change_node(&name, |node| {
                    node["status"]["conditions"][0]["status"] = "Unknown".into();
                    let key = "node.kubernetes.io/unreachable";
                    node["spec"]["taints"] = json!([
                        { "key": key, "effect": "NoSchedule" },
                        { "key": key, "effect": "NoExecute" },
                    ]);
                });
                let at_once = self.world.now + TOLERATED_BY_GANG;
                self.schedule(at_once, Due::GangOfLostNode(name.clone()));
                let ended = self.world.now + TOLERATED_FOR;
                self.schedule(ended, Due::PodsOfLostNode(name.clone()));
                let gone = ended + NODE_GONE_AFTER;
                self.schedule(gone, Due::NodeGone(name.clone()));
                self.schedule(gone + NEW_NODE_AFTER, Due::NewNode(name));
            }
            // No kubelet is there that would let go of them.
            Due::GangOfLostNode(name) => {
                for uid in self.pods_of(&name, |pod| owner(pod) == "train") {
                    self.mark_leaving(&uid);
                }
            }
            Due::PodsOfLostNode(name) => {
                for uid in self.pods_of(&name, |pod| owner(pod) != "agent") {
                    self.mark_leaving(&uid);
                }
            }
            Due::NodeGone(name) => self.remove_node(&name),
            Due::SpotLoss => {
                let spot = self.nodes.keys().find(|name| name.starts_with('s')).cloned();
                let Some(name) = spot else { return };
                self.change_node(&name, |node| node["spec"]["unschedulable"] = true.into());
                self.delete_pods_of(&name, |_| true);
                let gone = self.world.now + SPOT_NOTICE;
                self.schedule(gone, Due::NodeGone(name));
                let next = format!("s{}", self.spots);
                self.spots += 1;
                self.schedule(gone + NEW_NODE_AFTER, Due::NewNode(next));
            }
            Due::NewNode(name) => {
                let gpus = if name.starts_with('c') { 0 } else { 4 };
                self.add_node(&name, gpus);
            }
            Due::PodRuns(uid) => {
                let is_there = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null();
                if self.pods.get(&uid).is_some_and(is_there) {
                    self.change_pod(&uid, |pod| pod["status"]["phase"] = "Running".into());
                    let runs = self.pods[&uid]["metadata"]["annotations"]["runs"].as_i64();
                    if let Some(runs) = runs {
                        self.schedule(self.world.now + Span::mins(runs), Due::PodEnds(uid));
                    }
                }
            }
            Due::PodEnds(uid) => {
                let runs = |pod: &Value| pod["status"]["phase"] == "Running";
                if self.pods.get(&uid).is_some_and(runs) {
                    self.controllers.note_done(&self.pods[&uid]);
                    self.change_pod(&uid, |pod| pod["status"]["phase"] = "Succeeded".into());
                }
            }
            Due::PodGone(uid) => self.remove_pod(&uid),
        }
    }

    /// Controllers, Berth and kubelets do what follows, until nothing does.
    fn settle(&mut self) {
        for _ in 0..1_000 {
            let mut controllers = std::mem::take(&mut self.controllers);
            controllers.reconcile(self);
            self.controllers = controllers;
            if self.news.is_empty() {
                return;
            }
            for observation in std::mem::take(&mut self.news) {
                self.turn(|state, turn| state.observe(turn, observation));
            }
        }
        panic!("it does not settle: {:?}", self.unplaced());
    }

    /// One turn of Berth's loop, and what follows from it, as the site has it.
    fn turn(&mut self, act: impl FnOnce(&mut ClusterState, &mut Turn<'_>)) {
        let World { state, engine, now, .. } = &mut self.world;
        let decided = engine.turn(*now, |turn| {
            turn.bill();
            turn.release_retries();
            act(state, turn);
        });
        for order in decided {
            match order {
                LeaseOrder::Start(lease) => {
                    let is_done = state.start(&engine.core, lease).expect("pods can be started");
                    assert!(!is_done, "{lease} was done before");
                    if state.has_waiting() && state.takes_turns(lease.job) {
                        self.news.push(Observation::Release);
                    }
                }
                LeaseOrder::Stop { lease, cause, grace } => {
                    if state.stop(lease, cause, grace) {
                        self.news.push(Observation::EndedWithoutPod(lease));
                    }
                }
                LeaseOrder::Limit(_) => {}
                LeaseOrder::Acknowledge(lease) => state.acknowledge(lease),
            }
        }
        let refused = state.take_refused_binds();
        self.news.extend(refused.into_iter().map(Observation::OrderDone));
        let orders = state.take_orders();
        assert!(orders.pods.is_empty(), "there are no managed jobs");
        orders.api.into_iter().for_each(|order| self.carry_out(order));
    }

    fn carry_out(&mut self, order: ApiOrder) {
        match order {
            ApiOrder::Bind(bind) => {
                let pod = bind.pod.clone();
                let is_free = self.pods.get(&pod.uid).is_some_and(|known| {
                    known["spec"]["nodeName"].is_null()
                        && known["metadata"]["deletionTimestamp"].is_null()
                });
                if bind.permit.is_revoked() {
                    return;
                }
                if !is_free {
                    let why = "it is gone".to_owned();
                    let lost = OrderOutcome::Lost { lease: bind.lease, pod, why };
                    return self.news.push(Observation::OrderDone(lost));
                }
                self.news.push(Observation::OrderDone(OrderOutcome::Bound(bind.lease)));
                let node = bind.node.to_string();
                self.change_pod(&pod.uid, |pod| pod["spec"]["nodeName"] = node.into());
                self.schedule(self.world.now + STARTS_AFTER, Due::PodRuns(pod.uid));
            }
            ApiOrder::Evict { pod, why, .. } => {
                if self.is_lost(&pod.uid) {
                    return self.mark_leaving(&pod.uid);
                }
                let since = self.world.now - super::START;
                self.killed.push(format!("{} after {since}: {why}", pod.name));
                self.delete_pod(&pod.uid);
            }
            _ => {}
        }
    }

    /// Whether the node of a pod does not answer any more.
    fn is_lost(&self, uid: &str) -> bool {
        let node = self.pods.get(uid).and_then(|pod| pod["spec"]["nodeName"].as_str());
        let node = node.and_then(|node| self.nodes.get(node));
        node.is_some_and(|node| node["status"]["conditions"][0]["status"] != "True")
    }

    fn add_node(&mut self, name: &str, gpus: u32) {
        let has = json!({
            "cpu": "16", "memory": "64Gi", "pods": "50", "nvidia.com/gpu": gpus.to_string(),
        });
        let node = json!({
            "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
            "spec": {},
            "status": {
                "allocatable": has, "capacity": has,
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        });
        self.nodes.insert(name.to_owned(), node);
        self.tell_of_node(name, false);
    }

    fn change_node(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        if let Some(node) = self.nodes.get_mut(name) {
            change(node);
            self.tell_of_node(name, false);
        }
    }

    /// Its pods go with it, as the garbage collector of pods sees to.
    fn remove_node(&mut self, name: &str) {
        self.pods_of(name, |_| true).iter().for_each(|uid| self.remove_pod(uid));
        self.tell_of_node(name, true);
        self.nodes.remove(name);
    }

    fn tell_of_node(&mut self, name: &str, is_gone: bool) {
        let object = serde_json::from_value(self.nodes[name].clone()).expect("it is a node");
        let view = self.world.reader.node(&object);
        let change = if is_gone { Change::Deleted(view) } else { Change::Applied(view) };
        self.news.push(Observation::Nodes(WatchUpdate::Changes(vec![change])));
    }

    /// Makes a pod: with its name, who owns it, and more of metadata and spec.
    pub(super) fn create_pod(
        &mut self,
        name: &str,
        owner: (&str, &str),
        change: impl FnOnce(&mut Value),
    ) {
        self.count += 1;
        let uid = format!("{name}.{}", self.count);
        let (kind, controller) = owner;
        let mut pod = json!({
            "metadata": {
                "name": name, "namespace": "ml", "uid": uid, "labels": {}, "annotations": {},
                "creationTimestamp": self.now().to_string(),
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": kind, "name": controller, "uid": controller,
                    "controller": true,
                }],
            },
            "spec": {
                "schedulerName": "berth",
                "terminationGracePeriodSeconds": 30,
                "containers": [{ "name": "main", "resources": { "requests": { "cpu": "1" } } }],
            },
            "status": { "phase": "Pending" },
        });
        change(&mut pod);
        self.pods.insert(uid.clone(), pod);
        self.change_pod(&uid, |_| {});
    }

    fn change_pod(&mut self, uid: &str, change: impl FnOnce(&mut Value)) {
        self.count += 1;
        let version = self.count.to_string();
        let Some(pod) = self.pods.get_mut(uid) else { return };
        change(pod);
        pod["metadata"]["resourceVersion"] = version.into();
        let view = self.view(uid);
        let seen = WatchUpdate::Changes(vec![Change::Applied(view)]);
        self.news.push(Observation::Pods(seen));
    }

    fn view(&self, uid: &str) -> PodView {
        let mut pod = self.pods[uid].clone();
        // Only ours.
        pod["metadata"]["annotations"].as_object_mut().expect("a map").remove("runs");
        let names = Names::default();
        let context = ReadContext { around: PodContext::default(), missing: None, names: &names };
        self.world.reader.pod(&serde_json::from_value(pod).expect("it is a pod"), &context)
    }

    /// Asks a pod to end. One that does not run goes at once.
    pub(super) fn delete_pod(&mut self, uid: &str) {
        let Some(pod) = self.pods.get(uid) else { return };
        if pod["metadata"]["deletionTimestamp"].is_string() {
            return;
        }
        if pod["spec"]["nodeName"].is_null() || pod["status"]["phase"] == "Succeeded" {
            return self.remove_pod(uid);
        }
        self.mark_leaving(uid);
        self.schedule(self.world.now + GRACE, Due::PodGone(uid.to_owned()));
    }

    fn mark_leaving(&mut self, uid: &str) {
        let is_leaving = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_string();
        if self.pods.get(uid).is_none_or(is_leaving) {
            return;
        }
        let now = self.now().to_string();
        self.change_pod(uid, |pod| {
            pod["metadata"]["deletionTimestamp"] = now.into();
            pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
        });
    }

    fn pods_of(&self, node: &str, which: impl Fn(&Value) -> bool) -> Vec<String> {
        let chosen = self.pods.values().filter(|pod| pod["spec"]["nodeName"] == node && which(pod));
        chosen.map(uid).collect()
    }

    fn delete_pods_of(&mut self, node: &str, which: impl Fn(&Value) -> bool) {
        self.pods_of(node, which).iter().for_each(|uid| self.delete_pod(uid));
    }

    fn remove_pod(&mut self, uid: &str) {
        if self.pods.contains_key(uid) {
            let view = self.view(uid);
            self.pods.remove(uid);
            let seen = WatchUpdate::Changes(vec![Change::Deleted(view)]);
            self.news.push(Observation::Pods(seen));
        }
    }

    pub(super) fn node_names(&self) -> Vec<String> {
        self.nodes.keys().cloned().collect()
    }

    /// Pods without a node.
    fn unplaced(&self) -> Vec<&str> {
        let waits = |pod: &&Value| {
            pod["spec"]["nodeName"].is_null() && pod["metadata"]["deletionTimestamp"].is_null()
        };
        let names = self.pods.values().filter(waits).map(|pod| pod["metadata"]["name"].as_str());
        names.flatten().collect()
    }

    fn has_unplaced(&self) -> bool {
        !self.unplaced().is_empty()
    }

    /// Every controller has the pods that it wants, and they run.
    pub fn assert_complete(&self) {
        let since = self.now() - super::START;
        assert!(!self.has_unplaced(), "after {since} these wait: {:?}", self.unplaced());
        let missing = self.controllers.missing(self);
        assert!(missing.is_empty(), "after {since} there is not all of {missing:?}");
    }

    /// The node of a pod of the gang, by its number.
    pub fn node_of_gang(&self, index: usize) -> String {
        let pod = self.controllers.member(self, index).expect("the gang is complete");
        pod["spec"]["nodeName"].as_str().expect("it runs").to_owned()
    }

    pub fn hourly_jobs_done(&self) -> usize {
        self.controllers.done.len()
    }
}

pub(super) fn uid(pod: &Value) -> String {
    pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// Who made a pod.
pub(super) fn owner(pod: &Value) -> &str {
    pod["metadata"]["ownerReferences"][0]["name"].as_str().unwrap_or_default()
}
