//! When waiting jobs are likely to start.

use berth_core::{Arrived, Ask, Eta, Forecast, State, forecast, forecast_with};
use berth_model::{JobId, JobSpec, Span, Time};
use berth_sim::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The state of a world and its jobs by name.
fn world(text: &str) -> (State, BTreeMap<String, JobId>) {
    let loaded = World::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let state = State::load(&loaded.snapshot).unwrap_or_else(|error| panic!("{error}"));
    let jobs = loaded.snapshot.jobs.iter();
    (state, jobs.map(|job| (job.spec.name.to_string(), job.id())).collect())
}

/// The forecast of each waiting job, as `name p50 p90 runs`.
fn told(text: &str, runs: u32) -> Vec<String> {
    let (state, jobs) = world(text);
    let forecast = forecast(&state, runs, 1);
    let show = |time: Option<Time>| time.map_or("never".to_owned(), |time| time.to_string());
    let line = |(name, id): (&String, &JobId)| {
        let eta = forecast.jobs.get(id)?;
        Some(format!("{name} {} {} {}", show(eta.p50), show(eta.p90), eta.runs_started))
    };
    jobs.iter().filter_map(line).collect()
}

#[test]
fn jobs_one_after_another_start_when_the_one_before_ends() {
    let text = "
now: 2026-11-15T09:00:00Z
policy: {order: fifo}
nodes: [{name: a, gpus: 1, model: H100-80GB}]
history: [{user: ada, name: a, runs: 8, ratio: 1}, {user: ada, name: b, runs: 8, ratio: 1}, {user: ada, name: run, runs: 8, ratio: 1}]
jobs:
  - {name: run, user: ada, started: 2026-11-15T08:30:00Z, time_limit: 1h, groups: [{gpus: 1, tasks: [{node: a}]}]}
  - {name: a, user: ada, time_limit: 2h, groups: [{gpus: 1}]}
  - {name: b, user: ada, time_limit: 3h, groups: [{gpus: 1}]}
  - {name: c, user: ada, time_limit: 3h, groups: [{gpus: 1}]}
";
    assert_eq!(
        told(text, 8),
        [
            "a 2026-11-15T09:30:00Z 2026-11-15T09:30:00Z 8",
            "b 2026-11-15T11:30:00Z 2026-11-15T11:30:00Z 8",
            "c 2026-11-15T14:30:00Z 2026-11-15T14:30:00Z 8",
        ]
    );
}

#[test]
fn a_job_that_can_start_starts_now() {
    let text = "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 8, model: H100-80GB}]
jobs: [{name: j, groups: [{gpus: 8}]}]
";
    assert_eq!(told(text, 4), ["j 2026-11-15T09:00:00Z 2026-11-15T09:00:00Z 4"]);
}

const UNCERTAIN: &str = "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, count: 2, gpus: 8, model: H100-80GB}]
history: [{user: ada, name: one, runs: 30, ratio: 0.5}]
queues: [{name: p, quota: {gpu: 8}}, {name: q, quota: {gpu: 8}}]
jobs:
  - {name: one, user: ada, queue: p, started: 2026-11-15T08:00:00Z, time_limit: 4h, groups: [{gpus: 8, tasks: [{node: a-0}]}]}
  - {name: two, queue: q, started: 2026-11-15T06:00:00Z, time_limit: 8h, groups: [{gpus: 4, tasks: [{node: a-1}]}]}
  - {name: j, queue: p, time_limit: 6h, groups: [{gpus: 4}]}
  - {name: k, queue: q, time_limit: 2h, groups: [{gpus: 8}]}
  - {name: l, queue: q, time_limit: 12h, groups: [{count: 2, gpus: 8}]}
";

#[test]
fn half_of_the_runs_are_never_later_than_nine_tenths() {
    let (state, _) = world(UNCERTAIN);
    let made = forecast(&state, 32, 5);
    assert_eq!((made.runs, made.cut_off, made.jobs.len()), (32, 0, 3));
    for (job, eta) in &made.jobs {
        let Eta { p50: Some(p50), p90: Some(p90), runs_started: 32 } = *eta else {
            panic!("{job}: {eta:?}");
        };
        assert!(state.now() <= p50 && p50 <= p90, "{job}: {p50} {p90}");
    }
}

#[test]
fn the_same_seed_gives_the_same_forecast_and_the_state_stays_as_it_is() {
    let (state, _) = world(UNCERTAIN);
    let before = state.hash();
    let first: Forecast = forecast(&state, 16, 42);
    assert_eq!(first, forecast(&state, 16, 42));
    assert_ne!(first, forecast(&state, 16, 43));
    assert_eq!(before, state.hash());
}

#[test]
fn a_job_that_has_run_for_long_ends_within_what_is_left_of_its_limit() {
    let (state, jobs) = world(
        "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 1, model: H100-80GB}]
jobs:
  - {name: run, started: 2026-11-15T08:20:00Z, time_limit: 1h, groups: [{gpus: 1, tasks: [{node: a}]}]}
  - {name: j, groups: [{gpus: 1}]}
",
    );
    let eta = forecast(&state, 32, 9).jobs[&jobs["j"]];
    let (p50, p90) = (eta.p50.expect("it starts"), eta.p90.expect("it starts"));
    let limit: Time = "2026-11-15T09:20:00Z".parse().expect("a time");
    assert!(state.now() < p50 && p50 < p90 && p90 <= limit, "{p50} {p90}");
}

#[test]
fn a_job_that_only_starts_beyond_the_horizon_has_no_time() {
    let text = "
now: 2026-11-15T09:00:00Z
policy: {forecast_horizon: 20m}
nodes: [{name: a, gpus: 1, model: H100-80GB}]
history: [{user: ada, name: run, runs: 8, ratio: 1}]
jobs:
  - {name: run, user: ada, started: 2026-11-15T08:30:00Z, time_limit: 1h, groups: [{gpus: 1, tasks: [{node: a}]}]}
  - {name: held, hold: true, groups: [{gpus: 1}]}
  - {name: j, groups: [{gpus: 1}]}
";
    assert_eq!(told(text, 4), ["held never never 0", "j never never 0"]);
}

#[test]
fn a_job_starts_when_the_machine_bought_for_it_has_booted() {
    let text = "
now: 2026-11-15T09:00:00Z
pools:
  - name: cloud
    max: 2
    offerings: [{type: p5, gpus: 8, model: H100-80GB, zone: z1, price: 28, boot: 3m}]
jobs: [{name: j, groups: [{gpus: 8}]}]
";
    assert_eq!(told(text, 2), ["j 2026-11-15T09:03:00Z 2026-11-15T09:03:00Z 2"]);
}

#[test]
fn an_owner_starts_when_the_grace_of_its_victims_is_over() {
    let text = "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 8, model: H100-80GB}]
queues: [{name: p}, {name: q, quota: {gpu: 8}}]
history: [{user: ada, name: one, runs: 8, ratio: 1}]
jobs:
  - {name: one, user: ada, queue: p, grace: 2m, time_limit: 8h, groups: [{gpus: 8, tasks: [{node: a}]}]}
  - {name: j, queue: q, groups: [{gpus: 8}]}
";
    assert_eq!(told(text, 2), ["j 2026-11-15T09:02:00Z 2026-11-15T09:02:00Z 2"]);
}

#[test]
fn a_job_after_another_starts_when_that_one_has_ended() {
    let text = "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 8, model: H100-80GB}]
history: [{user: ada, name: prepare, runs: 8, ratio: 1}]
jobs:
  - {name: prepare, user: ada, time_limit: 1h, groups: [{gpus: 1}]}
  - {name: train, user: ada, after: {ok: [prepare]}, begin: 2026-11-15T09:30:00Z, groups: [{gpus: 8}]}
";
    assert_eq!(
        told(text, 2),
        [
            "prepare 2026-11-15T09:00:00Z 2026-11-15T09:00:00Z 2",
            "train 2026-11-15T10:00:00Z 2026-11-15T10:00:00Z 2",
        ]
    );
}

/// A short job comes at a quarter past every hour, and has done so for two days.
const RUSH: &str = "
now: 2026-11-15T09:00:00Z
policy: {order: shortest, reservations: 0}
nodes: [{name: a, gpus: 1, model: H100-80GB}]
history: [{user: ada, name: run, runs: 8, ratio: 1}, {user: ada, name: short, runs: 8, ratio: 1}]
jobs:
  - {name: run, user: ada, started: 2026-11-15T08:30:00Z, time_limit: 1h, groups: [{gpus: 1, tasks: [{node: a}]}]}
  - {name: long, user: ada, time_limit: 10h, groups: [{gpus: 1}]}
  - {name: short, user: ada, hold: true, time_limit: 30m, groups: [{gpus: 1}]}
";

fn rush(state: &State, hours: i64) -> Vec<Arrived> {
    let snapshot = state.snapshot();
    let short = snapshot.jobs.iter().find(|job| job.spec.name.as_str() == "short");
    let spec = JobSpec { hold: false, ..short.expect("it is there").spec.clone() };
    let at = |hour: i64| state.now() - Span::hours(hour) + Span::mins(15);
    let arrived = |hour| Arrived { at: at(hour), spec: Arc::new(spec.clone()) };
    (1..=hours).rev().map(arrived).collect()
}

#[test]
fn those_who_come_as_they_came_before_go_ahead_of_a_longer_job() {
    let (state, jobs) = world(RUSH);
    let long = jobs["long"];
    let alone = forecast(&state, 8, 1).jobs[&long];
    assert_eq!(alone.p90.map(|at| at.to_string()).as_deref(), Some("2026-11-15T09:30:00Z"));
    let arrivals = rush(&state, 48);
    let ask = Ask { runs: 8, seed: 1, arrivals: &arrivals, jobs: None };
    let told = forecast_with(&state, &ask);
    assert_eq!(
        told.jobs[&long].p90.map(|at| at.to_string()).as_deref(),
        Some("2026-11-15T10:00:00Z")
    );
    assert_eq!(told, forecast_with(&state, &ask), "the same seed gives the same");
    // Whoever came in the runs is nobody's business.
    assert!(told.jobs.keys().all(|job| jobs.values().any(|known| known == job)));
}

#[test]
fn less_than_a_day_of_arrivals_is_not_lived_through_again() {
    let (state, jobs) = world(RUSH);
    let arrivals = rush(&state, 20);
    let ask = Ask { runs: 8, seed: 1, arrivals: &arrivals, jobs: None };
    assert_eq!(
        forecast_with(&state, &ask).jobs[&jobs["long"]],
        forecast(&state, 8, 1).jobs[&jobs["long"]]
    );
}

#[test]
fn only_those_who_are_asked_for_are_told() {
    let (state, jobs) = world(UNCERTAIN);
    let wanted = BTreeSet::from([jobs["k"]]);
    let ask = Ask { runs: 16, seed: 42, arrivals: &[], jobs: Some(wanted) };
    let told = forecast_with(&state, &ask);
    assert_eq!(told.jobs.keys().copied().collect::<Vec<_>>(), [jobs["k"]]);
    assert_eq!(told.jobs[&jobs["k"]], forecast(&state, 16, 42).jobs[&jobs["k"]]);
}
