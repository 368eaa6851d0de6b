//! The state without a cluster: observations go in, and orders come out.

mod budgets;
mod model;
mod reasons;
mod restart;
mod turns;
mod week;

use super::observation::Observation;
use super::orders::{ApiOrder, OrderOutcome};
use super::{ClusterState, Uid};
use crate::compat::Compat;
use crate::observe::names::Names;
use crate::observe::reader::{ReadContext, Reader};
use crate::state::device_claims::Claims;
use crate::tenancy::ownership::QueueOwnership;
use crate::view::{NodeView, PodView};
use berth_engine::testing::{LeaseOrder, TestLoop};
use berth_engine::{Turn, first_events};
use berth_kube::gang::PodContext;
use berth_kube::{Change, WatchUpdate};
use berth_model::{Name, Time};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A cluster with a loop that keeps no log.
struct World {
    reader: Reader,
    state: ClusterState,
    engine: TestLoop,
    now: Time,
}

impl World {
    /// Nodes with these names, with two GPUs each.
    fn new(nodes: &[&str]) -> World {
        let queue = Name::new(berth_engine::DEFAULT_TEAM);
        let mut world = World {
            reader: Reader::new(&["berth".to_owned()], &Compat::default(), "reservations"),
            state: ClusterState::new(queue, Claims::default(), QueueOwnership::default()),
            engine: TestLoop::default(),
            now: Time(1_000_000),
        };
        let now = world.now;
        world.engine.turn(now, |turn| {
            let outline = turn.core.state.outline();
            turn.all(first_events(&outline, &BTreeMap::new())).unwrap();
        });
        let nodes = nodes.iter().map(|name| world.node(name)).collect();
        world.observe(Observation::Nodes(WatchUpdate::Snapshot(nodes)));
        world
    }

    fn node(&self, name: &str) -> NodeView {
        let has = json!({ "cpu": "8", "memory": "8Gi", "nvidia.com/gpu": "2", "pods": "10" });
        let object = json!({
            "metadata": { "name": name },
            "status": {
                "allocatable": has,
                "capacity": has,
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        });
        self.reader.node(&serde_json::from_value(object).unwrap())
    }

    fn pod(
        &self,
        name: &str,
        scheduler: &str,
        gpus: u32,
        change: impl FnOnce(&mut Value),
    ) -> PodView {
        let limits = json!({ "limits": { "nvidia.com/gpu": gpus.to_string() } });
        let mut pod = json!({
            "metadata": { "name": name, "namespace": "ml", "uid": name, "resourceVersion": "1" },
            "spec": {
                "schedulerName": scheduler,
                "containers": [{ "name": "main", "resources": limits }],
            },
            "status": { "phase": "Pending" },
        });
        change(&mut pod);
        let names = Names::default();
        let context = ReadContext { around: PodContext::default(), missing: None, names: &names };
        self.reader.pod(&serde_json::from_value(pod).unwrap(), &context)
    }

    fn plain(&self, name: &str, gpus: u32) -> PodView {
        self.pod(name, "berth", gpus, |_| {})
    }

    /// Takes in an observation as the site would, and returns what was ordered.
    fn observe(&mut self, observation: Observation) -> Vec<ApiOrder> {
        self.turn(|state, turn| state.observe(turn, observation))
    }

    fn put(&mut self, pods: impl IntoIterator<Item = PodView>) -> Vec<ApiOrder> {
        let changes = pods.into_iter().map(Change::Applied).collect();
        self.observe(Observation::Pods(WatchUpdate::Changes(changes)))
    }

    fn turn(&mut self, act: impl FnOnce(&mut ClusterState, &mut Turn<'_>)) -> Vec<ApiOrder> {
        self.now = Time(self.now.0 + 1_000);
        let World { state, engine, now, .. } = self;
        let decided = engine.turn(*now, |turn| act(state, turn));
        for order in decided {
            match order {
                LeaseOrder::Start(lease) => drop(state.start(&engine.core, lease)),
                LeaseOrder::Stop { lease, cause, grace } => drop(state.stop(lease, cause, grace)),
                LeaseOrder::Limit(_) => {}
                LeaseOrder::Acknowledge(lease) => state.acknowledge(lease),
            }
        }
        let orders = state.take_orders();
        assert!(orders.pods.is_empty(), "there are no managed jobs");
        orders.api
    }
}

/// The pods that are bound by these orders, and where.
fn binds(orders: &[ApiOrder]) -> Vec<(String, String)> {
    let binds = orders.iter().filter_map(|order| match order {
        ApiOrder::Bind(bind) => Some((bind.pod.name.clone(), bind.node.to_string())),
        _ => None,
    });
    binds.collect()
}

fn evicted(orders: &[ApiOrder]) -> Vec<&Uid> {
    let evictions = orders.iter().filter_map(|order| match order {
        ApiOrder::Evict { pod, .. } => Some(&pod.uid),
        _ => None,
    });
    evictions.collect()
}

fn on(pod: &str, node: &str) -> (String, String) {
    (pod.to_owned(), node.to_owned())
}

#[test]
fn a_pod_that_fits_is_bound() {
    let mut world = World::new(&["a"]);
    let pod = world.plain("p", 1);
    assert_eq!(binds(&world.put([pod])), [on("p", "a")]);
    let too_large = world.plain("large", 3);
    assert_eq!(binds(&world.put([too_large])), []);
    assert!(world.state.take_orders().api.is_empty(), "an order is given once");
}

#[test]
fn a_gang_is_bound_when_all_of_its_pods_are_there() {
    let mut world = World::new(&["a", "b"]);
    let member = |world: &World, name: &str| {
        world.pod(name, "berth", 2, |pod| {
            pod["metadata"]["labels"] = json!({ "berth.dev/gang": "train" });
            pod["metadata"]["annotations"] = json!({ "berth.dev/gang-size": "2" });
        })
    };
    let first = member(&world, "w-0");
    let gang = &first.request.as_ref().unwrap().as_ref().unwrap();
    assert_eq!(gang.members, 2, "it is a gang of two");
    assert_eq!(binds(&world.put([first])), []);
    let second = member(&world, "w-1");
    let mut bound = binds(&world.put([second]));
    bound.sort();
    let names: Vec<&str> = bound.iter().map(|(pod, _)| pod.as_str()).collect();
    assert_eq!(names, ["w-0", "w-1"]);
    assert_ne!(bound[0].1, bound[1].1, "each fills a node");
}

#[test]
fn a_pod_that_is_preempted_is_evicted() {
    let mut world = World::new(&["a"]);
    let low = world.plain("low", 2);
    let orders = world.put([low]);
    let Some(ApiOrder::Bind(bind)) = orders.first() else { panic!("it is bound: {orders:?}") };
    let lease = bind.lease;
    world.observe(Observation::OrderDone(OrderOutcome::Bound(lease)));
    let low = world.pod("low", "berth", 2, |pod| {
        pod["spec"]["nodeName"] = json!("a");
        pod["status"]["phase"] = json!("Running");
    });
    world.put([low]);
    let high = world.pod("high", "berth", 2, |pod| pod["spec"]["priority"] = json!(1_000));
    let mut orders = world.put([high]);
    for _ in 0..10 {
        // Preemption may wait until the victim has run for a while.
        world.now = Time(world.now.0 + 600_000);
        orders.extend(world.observe(Observation::Tick));
    }
    assert_eq!(evicted(&orders), ["low"]);
    assert_eq!(binds(&orders), [], "its node is not free yet");
}

#[test]
fn a_pod_that_another_scheduler_bound_takes_room() {
    let mut world = World::new(&["a", "b"]);
    let other = world.pod("other", "default-scheduler", 2, |pod| {
        pod["spec"]["nodeName"] = json!("a");
        pod["status"]["phase"] = json!("Running");
    });
    assert!(world.put([other]).is_empty(), "nothing is ordered about it");
    let ours = world.plain("ours", 1);
    assert_eq!(binds(&world.put([ours])), [on("ours", "b")]);
    let more = world.plain("more", 2);
    assert_eq!(binds(&world.put([more])), [], "a is full, and b has one GPU left");
}

/// Pods of an indexed Job that is a gang of three.
fn of_job(world: &World, index: u32, made: u32, change: impl FnOnce(&mut Value)) -> PodView {
    world.pod(&format!("w-{index}-{made}"), "berth", 1, |pod| {
        pod["metadata"]["labels"] = json!({
            "batch.kubernetes.io/controller-uid": "job",
            "batch.kubernetes.io/job-completion-index": index.to_string(),
        });
        pod["metadata"]["annotations"] =
            json!({ "berth.dev/gang": "train", "berth.dev/gang-size": "3" });
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "batch/v1", "kind": "Job", "name": "w", "uid": "job", "controller": true,
        }]);
        change(pod);
    })
}

fn runs_on(node: &str) -> impl FnOnce(&mut Value) {
    let node = node.to_owned();
    move |pod| {
        pod["spec"]["nodeName"] = json!(node);
        pod["status"]["phase"] = json!("Running");
    }
}

/// A gang of three that runs, and where.
fn running_gang(world: &mut World) -> BTreeMap<String, String> {
    let pods: Vec<PodView> = (0..3).map(|index| of_job(world, index, 0, |_| {})).collect();
    let orders = world.put(pods);
    let places: BTreeMap<String, String> = binds(&orders).into_iter().collect();
    for order in &orders {
        if let ApiOrder::Bind(bind) = order {
            world.observe(Observation::OrderDone(OrderOutcome::Bound(bind.lease)));
        }
    }
    let running = (0..3).map(|index| {
        let node = &places[&format!("w-{index}-0")];
        of_job(world, index, 0, runs_on(node))
    });
    let running: Vec<PodView> = running.collect();
    world.put(running);
    places
}

fn leaving(node: &str) -> impl FnOnce(&mut Value) {
    let run = runs_on(node);
    move |pod| {
        run(pod);
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
}

#[test]
fn the_pod_that_comes_in_the_place_of_a_gangs_takes_it_at_once() {
    let mut world = World::new(&["a", "b"]);
    let places = running_gang(&mut world);
    let node = places["w-1-0"].clone();
    // The Job makes the next one as soon as the first is asked to end.
    let dying = of_job(&world, 1, 0, leaving(&node));
    let next = of_job(&world, 1, 1, |_| {});
    assert_eq!(binds(&world.put([dying.clone(), next])), [], "its place is not free yet");
    let gone = Observation::Pods(WatchUpdate::Changes(vec![Change::Deleted(dying)]));
    let orders = world.observe(gone);
    let bound = binds(&orders);
    assert_eq!(bound.len(), 1, "{orders:?}");
    assert_eq!(bound[0].0, "w-1-1");
    let mut late = Vec::new();
    for _ in 0..5 {
        world.now = Time(world.now.0 + 30_000);
        late.extend(world.observe(Observation::Tick));
    }
    assert!(evicted(&late).is_empty(), "the others go on");
}

#[test]
fn the_place_of_a_lost_member_is_kept_until_the_next_pod_comes() {
    let mut world = World::new(&["a", "b"]);
    let places = running_gang(&mut world);
    let dying = of_job(&world, 1, 0, leaving(&places["w-1-0"]));
    world.observe(Observation::Pods(WatchUpdate::Changes(vec![Change::Deleted(dying)])));
    let others = ["first", "second"].map(|name| world.plain(name, 1));
    assert_eq!(binds(&world.put(others)).len(), 1, "one GPU is free, and one is kept");
    let next = of_job(&world, 1, 1, |_| {});
    assert_eq!(binds(&world.put([next])).len(), 1, "the kept place is its own");
}

#[test]
fn a_gang_whose_lost_member_does_not_come_back_restarts_whole() {
    let mut world = World::new(&["a", "b"]);
    let places = running_gang(&mut world);
    let dying = of_job(&world, 1, 0, leaving(&places["w-1-0"]));
    world.observe(Observation::Pods(WatchUpdate::Changes(vec![Change::Deleted(dying)])));
    let mut late = Vec::new();
    for _ in 0..5 {
        world.now = Time(world.now.0 + 40_000);
        late.extend(world.observe(Observation::Tick));
    }
    assert_eq!(evicted(&late), ["w-0-0", "w-2-0"]);
}
