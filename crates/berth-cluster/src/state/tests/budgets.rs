//! PodDisruptionBudgets are told to the core, and kept where that is possible.

use super::{ApiOrder, OrderOutcome, World, binds, evicted, runs_on};
use crate::state::observation::Observation;
use crate::view::PodView;
use berth_kube::object::PodDisruptionBudget;
use berth_kube::{Change, WatchUpdate};
use berth_model::{Name, Time};
use serde_json::{Value, json};

fn budget(app: &str, allowed: u32) -> PodDisruptionBudget {
    let written = json!({
        "metadata": { "name": app, "namespace": "ml" },
        "spec": { "selector": { "matchLabels": { "app": app } } },
        "status": { "disruptionsAllowed": allowed },
    });
    serde_json::from_value(written).unwrap()
}

fn see(world: &mut World, budget: PodDisruptionBudget) -> Vec<ApiOrder> {
    world.observe(Observation::Budgets(WatchUpdate::Changes(vec![Change::Applied(budget)])))
}

fn labelled(world: &World, app: &str, priority: i32, change: impl FnOnce(&mut Value)) -> PodView {
    world.pod(app, "berth", 2, |pod| {
        pod["metadata"]["labels"] = json!({ "app": app });
        pod["spec"]["priority"] = json!(priority);
        change(pod);
    })
}

/// Two nodes, each with a pod on all of its GPUs: `low` of a lower priority than `web`.
fn busy() -> World {
    let mut world = World::new(&["a", "b"]);
    for (app, priority) in [("low", 0), ("web", 5)] {
        let pod = labelled(&world, app, priority, |_| {});
        let orders = world.put([pod]);
        let places = binds(&orders);
        assert_eq!(places.len(), 1, "{app}");
        for order in &orders {
            if let ApiOrder::Bind(bind) = order {
                world.observe(Observation::OrderDone(OrderOutcome::Bound(bind.lease)));
            }
        }
        let pod = labelled(&world, app, priority, runs_on(&places[0].1));
        world.put([pod]);
    }
    world
}

fn preempts(world: &mut World) -> Vec<String> {
    let high = world.pod("high", "berth", 2, |pod| pod["spec"]["priority"] = json!(1_000));
    let mut orders = world.put([high]);
    for _ in 0..3 {
        world.now = Time(world.now.0 + 600_000);
        orders.extend(world.observe(Observation::Tick));
    }
    evicted(&orders).into_iter().cloned().collect()
}

#[test]
fn a_pod_within_its_budget_goes_before_a_lower_one_beyond_it() {
    let mut world = busy();
    assert_eq!(preempts(&mut world), ["low"]);
    let mut world = busy();
    see(&mut world, budget("low", 0));
    assert_eq!(preempts(&mut world), ["web"]);
    // One disruption is allowed again.
    let mut world = busy();
    see(&mut world, budget("low", 0));
    see(&mut world, budget("low", 1));
    assert_eq!(preempts(&mut world), ["low"]);
}

#[test]
fn a_budget_that_comes_later_or_goes_counts_from_then_on() {
    let mut world = busy();
    see(&mut world, budget("low", 0));
    let name = Name::new("ml/low");
    assert_eq!(world.engine.core.state.disruptions_allowed(&name), Some(0));
    let gone = Change::Deleted(budget("low", 0));
    world.observe(Observation::Budgets(WatchUpdate::Changes(vec![gone])));
    assert_eq!(world.engine.core.state.disruptions_allowed(&name), None);
    assert_eq!(preempts(&mut world), ["low"]);
}

#[test]
fn budgets_of_other_pods_are_not_told_to_the_core() {
    let mut world = busy();
    see(&mut world, budget("other", 0));
    assert!(world.engine.core.state.disruption_budgets().is_empty());
    // One that was there first holds for pods that come.
    let pod =
        world.pod("late", "berth", 1, |pod| pod["metadata"]["labels"] = json!({ "app": "other" }));
    world.put([pod]);
    assert_eq!(world.engine.core.state.disruption_budgets(), [Name::new("ml/other")]);
}
