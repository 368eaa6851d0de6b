//! Pods that their controllers make anew while the server restarts.

use super::{World, binds, evicted, runs_on};
use crate::state::device_claims::Claims;
use crate::state::observation::Observation;
use crate::state::orders::{ApiOrder, OrderOutcome};
use crate::state::{ClusterState, InitialObjects};
use crate::tenancy::ownership::QueueOwnership;
use crate::view::PodView;
use berth_kube::{Change, WatchUpdate};
use berth_model::{JobId, Name, Time};
use serde_json::{Value, json};

/// A pod of a ReplicaSet that fills a node.
fn low(world: &World, made: u32, change: impl FnOnce(&mut Value)) -> PodView {
    world.pod(&format!("low-{made}"), "berth", 2, |pod| {
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "low", "uid": "set",
            "controller": true,
        }]);
        change(pod);
    })
}

fn high(world: &World, change: impl FnOnce(&mut Value)) -> PodView {
    world.pod("high", "berth", 2, |pod| {
        pod["spec"]["priority"] = json!(1_000);
        change(pod);
    })
}

/// Another server goes on with the log, and lists these pods.
fn restart(world: &mut World, pods: Vec<PodView>) -> Vec<ApiOrder> {
    let queue = Name::new(berth_engine::DEFAULT_TEAM);
    world.state = ClusterState::new(queue, Claims::default(), QueueOwnership::default());
    let nodes = vec![world.node("a")];
    let initial = InitialObjects { nodes, pods, ..InitialObjects::default() };
    world.turn(|state, turn| state.sync_all(turn, initial))
}

/// A cluster whose only node is being taken from a low pod for a high one. Also the low one's job.
fn displaced() -> (World, JobId) {
    let mut world = World::new(&["a"]);
    let first = low(&world, 0, |_| {});
    let orders = world.put([first]);
    let Some(ApiOrder::Bind(bind)) = orders.first() else { panic!("it is bound: {orders:?}") };
    let lease = bind.lease;
    world.observe(Observation::OrderDone(OrderOutcome::Bound(lease)));
    let running = low(&world, 0, runs_on("a"));
    world.put([running]);
    let pending = high(&world, |_| {});
    let mut orders = world.put([pending]);
    for _ in 0..10 {
        world.now = Time(world.now.0 + 600_000);
        orders.extend(world.observe(Observation::Tick));
    }
    assert_eq!(evicted(&orders), ["low-0"]);
    (world, lease.job)
}

/// The high pod takes the node and leaves it again; then the next low one is bound, for this job.
fn goes_on(world: &mut World, job: JobId) {
    assert!(world.engine.core.jobs.contains_key(&job), "the job is still there");
    let leaves = high(world, |_| {});
    let gone = Observation::Pods(WatchUpdate::Changes(vec![Change::Deleted(leaves)]));
    let orders = world.observe(gone);
    let bound = orders.iter().find_map(|order| match order {
        ApiOrder::Bind(bind) => Some((bind.pod.name.clone(), bind.lease.job)),
        _ => None,
    });
    assert_eq!(bound, Some(("low-1".to_owned(), job)));
}

#[test]
fn a_single_pod_made_anew_while_the_server_was_away_goes_on_with_the_job() {
    let (mut world, job) = displaced();
    let pods = vec![high(&world, |_| {}), low(&world, 1, |_| {})];
    let orders = restart(&mut world, pods);
    assert_eq!(binds(&orders), [("high".to_owned(), "a".to_owned())]);
    goes_on(&mut world, job);
}

#[test]
fn a_single_pod_made_after_the_server_was_away_goes_on_with_the_job() {
    let (mut world, job) = displaced();
    let gone = low(&world, 0, runs_on("a"));
    world.observe(Observation::Pods(WatchUpdate::Changes(vec![Change::Deleted(gone)])));
    let pods = vec![high(&world, |_| {})];
    restart(&mut world, pods);
    let next = low(&world, 1, |_| {});
    world.put([next]);
    goes_on(&mut world, job);
}

#[test]
fn a_single_pod_that_a_user_deleted_while_the_server_was_away_is_another_job() {
    let mut world = World::new(&["a"]);
    let first = low(&world, 0, |_| {});
    let orders = world.put([first]);
    let Some(ApiOrder::Bind(bind)) = orders.first() else { panic!("it is bound: {orders:?}") };
    let job = bind.lease.job;
    let next = low(&world, 1, |_| {});
    let orders = restart(&mut world, vec![next]);
    assert_eq!(binds(&orders), [("low-1".to_owned(), "a".to_owned())]);
    assert!(!world.engine.core.jobs.contains_key(&job), "the first one was cancelled");
}
