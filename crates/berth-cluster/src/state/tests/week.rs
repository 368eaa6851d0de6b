//! A week in the life of a cluster, in virtual time: a Deployment, a StatefulSet, a DaemonSet, a
//! CronJob and a training gang go through rollouts, drains, lost nodes and losses of spot nodes.
//!
//! The controllers and the kubelets are stand-ins that do to pods what the real ones do. All that
//! ends a pod in this week is theirs: whatever Berth ends should have lived.

mod cluster;
mod controllers;

use berth_model::{Span, Time};
use cluster::{Cluster, Due};

/// 2026-01-01, as milliseconds since 1970.
const START: Time = Time(1_767_225_600_000);

/// So long after a disturbance everything is as it should be again.
const CALM_AFTER: Span = Span::mins(20);

/// Looks at the cluster while nothing happens.
const LOOK_EVERY: Span = Span::mins(5);

fn at(day: i64, hour: i64) -> Time {
    START + Span::hours(24 * day + hour)
}

/// What a week brings, apart from the hourly job.
fn disturbances() -> Vec<(Time, Due)> {
    let node = |name: &str| name.to_owned();
    let mut all = Vec::new();
    // Each night one node is drained for maintenance, and each day there is a rollout.
    for (day, name) in (0..).zip(["g0", "g1", "c0", "g2", "g3", "c1", "g0"]) {
        all.push((at(day, 2), Due::Drain(node(name))));
        all.push((at(day, 3), Due::Uncordon(node(name))));
        all.push((at(day, 10), Due::RolloutOfDeployment));
    }
    for day in [1, 3, 5] {
        all.push((at(day, 14), Due::RolloutOfStatefulSet));
        all.push((at(day, 18), Due::SpotLoss));
    }
    all.push((at(2, 6), Due::NodeLost(node("g1"))));
    all.push((at(4, 6), Due::NodeLost(node("c0"))));
    all.push((at(6, 6), Due::NodeLost(node("g3"))));
    all.push((at(4, 20), Due::SpotLoss));
    all
}

#[test]
fn nothing_that_should_live_is_killed_in_a_week_of_rollouts_drains_and_lost_nodes() {
    let mut cluster = Cluster::new(START);
    let disturbances = disturbances();
    let mut moments: Vec<Time> = disturbances.iter().map(|(at, _)| *at).collect();
    moments.push(START);
    for (at, due) in disturbances {
        cluster.schedule(at, due);
    }
    for hour in 0..7 * 24 {
        cluster.schedule(at(0, hour) + Span::mins(30), Due::HourlyJob(hour));
    }
    let end = at(7, 0);
    let mut looks = START + LOOK_EVERY;
    while cluster.now() < end {
        cluster.run_until(looks);
        looks = looks + LOOK_EVERY;
        assert_eq!(cluster.killed, Vec::<String>::new(), "Berth ended pods that should live");
        let now = cluster.now();
        let is_calm = moments.iter().all(|moment| now < *moment || *moment + CALM_AFTER <= now);
        if is_calm {
            cluster.assert_complete();
        }
    }
    assert_eq!(cluster.hourly_jobs_done(), 7 * 24);
}

#[test]
fn a_gang_gets_its_pod_back_after_each_loss_without_losing_another_one() {
    let mut cluster = Cluster::new(START);
    cluster.run_until(START + Span::mins(10));
    for round in 1..=4 {
        let lost = cluster.node_of_gang(round % 4);
        let now = cluster.now();
        cluster.schedule(now + Span::mins(1), Due::Drain(lost.clone()));
        cluster.schedule(now + Span::mins(20), Due::Uncordon(lost));
        cluster.run_until(now + Span::mins(15));
        cluster.assert_complete();
        cluster.run_until(now + Span::mins(30));
    }
    assert_eq!(cluster.killed, Vec::<String>::new());
}
