//! What is measured.

use crate::drive::{Driver, Kind, plan_and_check};
use crate::measure::{Memory, median, milliseconds, percentile};
use crate::report::{Row, Target};
use crate::world::{self, Ask, GPUS};
use anyhow::{Result, ensure};
use berth_core::{Plan, State};
use berth_model::{Decision, Snapshot};
use std::collections::BTreeMap;
use std::time::Duration;

const RUNS: usize = 5;
/// Plans in which what the first one stopped ends, before single events are timed.
const SETTLING: usize = 20;
const MIB: f64 = 1_048_576.0;

/// How much of a case is run: everything, or a part that shows whether it works.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    pub events: usize,
    pub seed: u64,
    /// Time on the CPU instead of time by the clock.
    pub on_cpu: bool,
}

/// Cases by name; each runs in a process of its own.
pub const CASES: &[&str] = &[
    "fill-singles",
    "fill-gangs",
    "gang-512-nodes",
    "reclaim",
    "refuse-64x8",
    "refuse-512x1",
    "busy-1000",
    "busy-2500",
    "busy-5000",
    "busy-12500",
    "same-plans",
];

pub fn run(case: &str, effort: Effort) -> Result<Vec<Row>> {
    match case {
        "fill-singles" => fill(case, effort, (500, 4_000, Ask::new(1, 1)), 200.0),
        "fill-gangs" => fill(case, effort, (500, 500, Ask::new(8, 1)), 200.0),
        "gang-512-nodes" => fill(case, effort, (1_000, 1, Ask::new(512, GPUS)), 50.0),
        "reclaim" => reclaim(effort),
        "refuse-64x8" => refuse(case, effort, Ask::new(64, GPUS)),
        "refuse-512x1" => refuse(case, effort, Ask::new(512, 1)),
        "same-plans" => same_plans(effort),
        _ => match case.strip_prefix("busy-").and_then(|nodes| nodes.parse().ok()) {
            Some(nodes) => busy(nodes, effort),
            None => anyhow::bail!("there is no case {case}; there are {}", CASES.join(", ")),
        },
    }
}

/// The median time of five plans, each on a copy of its own, and the last plan.
fn timed(world: &Snapshot, effort: Effort) -> Result<(Plan, Duration)> {
    let state = State::load(world)?;
    let mut times = Vec::new();
    let mut last = None;
    for _ in 0..RUNS {
        let mut copy = state.clone();
        let (plan, time) = plan_and_check(&mut copy, effort.on_cpu)?;
        times.push(time);
        last = Some(plan);
    }
    Ok((last.expect("there was a run"), median(times)))
}

fn starts(plan: &Plan) -> usize {
    plan.decisions().filter(|decision| matches!(decision, Decision::Start { .. })).count()
}

fn stops(plan: &Plan) -> usize {
    plan.decisions().filter(|decision| matches!(decision, Decision::Stop { .. })).count()
}

fn fill(
    case: &str,
    effort: Effort,
    (nodes, jobs, ask): (u32, u64, Ask),
    most_ms: f64,
) -> Result<Vec<Row>> {
    let (plan, time) = timed(&world::fill(nodes, jobs, ask), effort)?;
    let tasks = jobs as f64 * f64::from(ask.tasks);
    Ok(vec![
        Row::new(format!("{case}: plan"), milliseconds(time), "ms", Target::Below(most_ms)),
        Row::new(
            format!("{case}: tasks started"),
            starts(&plan) as f64,
            "tasks",
            Target::Exactly(tasks),
        ),
    ])
}

fn reclaim(effort: Effort) -> Result<Vec<Row>> {
    let (plan, time) = timed(&world::reclaim(500), effort)?;
    let peak = Memory::read().peak as f64 / 1e6;
    Ok(vec![
        Row::new("reclaim: plan", milliseconds(time), "ms", Target::Below(1_000.0)),
        Row::new("reclaim: peak resident", peak, "MB", Target::Below(200.0)),
        Row::new("reclaim: tasks stopped", stops(&plan) as f64, "tasks", Target::Exactly(4_000.0)),
    ])
}

/// The gang is refused while 600 GPUs are free, and started once one rack holds it: the refusal is
/// exact on both sides.
fn refuse(case: &str, effort: Effort, gang: Ask) -> Result<Vec<Row>> {
    let (plan, time) = timed(&world::refuse(600, 0, gang), effort)?;
    let refused = starts(&plan);
    let short = 512 - gang.gpus;
    let (nearly, _) = timed(&world::refuse(600 + short, short, gang), effort)?;
    let (enough, _) = timed(&world::refuse(1_112, 512, gang), effort)?;
    let name = |what: &str| format!("{case}: {what}");
    Ok(vec![
        Row::new(name("plan"), milliseconds(time), "ms", Target::Below(10.0)),
        Row::new(name("started, 600 GPUs free"), refused as f64, "tasks", Target::Exactly(0.0)),
        Row::new(
            name("started, one task too few in a rack"),
            starts(&nearly) as f64,
            "tasks",
            Target::Exactly(0.0),
        ),
        Row::new(
            name("started, 512 GPUs free in a rack"),
            starts(&enough) as f64,
            "tasks",
            Target::Exactly(f64::from(gang.tasks)),
        ),
    ])
}

fn busy(nodes: u32, effort: Effort) -> Result<Vec<Row>> {
    let name = |what: &str| format!("busy-{nodes}: {what}");
    let large = nodes >= 12_500;
    let when = |target: Target| if large { target } else { Target::None };
    let (world, load) = world::busy(nodes, effort.seed);
    let mut driver = Driver::new(&world, Some(load), effort.seed)?;
    let (waiting, leased) = (nodes as usize * 8, driver.running());
    drop(world);
    eprintln!("  {nodes} nodes: {leased} leases, {waiting} jobs waiting");
    // A plan leaves the state as it found it, so it can be asked five times.
    let mut times = Vec::new();
    let mut first = None;
    for _ in 0..RUNS {
        let (plan, time) = plan_and_check(&mut driver.state, effort.on_cpu)?;
        times.push(time);
        first = Some(plan);
    }
    let first = first.expect("there was a run");
    let time = median(times);
    eprintln!(
        "  first plan: {:.0} ms, {} starts, {} stops",
        milliseconds(time),
        starts(&first),
        stops(&first)
    );
    driver.carry_out(&first)?;
    let mut rows =
        vec![Row::new(name("first plan"), milliseconds(time), "ms", when(Target::Below(2_000.0)))];
    drop(first);
    let settled = driver.settle(SETTLING)?;
    eprintln!("  settled by {settled} plans: {} starts, {} stops", driver.starts, driver.stops);
    let figures = [
        ("plan after an event, P50", 500, Target::None),
        ("plan after an event, P99", 990, Target::Below(10.0)),
        ("plan after an event, longest", 1_000, Target::None),
    ];
    let mut runs: Vec<Vec<Duration>> = Vec::new();
    for run in 1..=RUNS {
        let times = after_events(driver.clone(), effort)?;
        let value = |thousandths| milliseconds(percentile(&times, thousandths));
        eprintln!("  run {run}: P50 {:.3} ms, P99 {:.3} ms", value(500), value(990));
        runs.push(times);
    }
    for (what, thousandths, target) in figures {
        let of_runs = runs.iter().map(|times| percentile(times, thousandths)).collect();
        let value = milliseconds(median(of_runs));
        rows.push(Row::new(name(what), value, "ms", when(target)));
    }
    let memory = Memory::read();
    let mib = |bytes: u64| bytes as f64 / MIB;
    rows.push(Row::new(name("resident"), mib(memory.now), "MiB", when(Target::Below(1_024.0))));
    rows.push(Row::new(
        name("peak resident, loading included"),
        mib(memory.peak),
        "MiB",
        Target::None,
    ));
    Ok(rows)
}

/// How long each plan took after one event, shortest first.
fn after_events(mut driver: Driver, effort: Effort) -> Result<Vec<Duration>> {
    let mut by_kind: BTreeMap<Kind, Vec<Duration>> = BTreeMap::new();
    for _ in 0..effort.events {
        let (at, kind, event) = driver.next_event();
        driver.apply(at, event)?;
        let (plan, time) = plan_and_check(&mut driver.state, effort.on_cpu)?;
        by_kind.entry(kind).or_default().push(time);
        driver.carry_out(&plan)?;
    }
    eprintln!("  {} events, {} starts, {} stops", effort.events, driver.starts, driver.stops);
    for (kind, times) in &mut by_kind {
        times.sort_unstable();
        eprintln!(
            "  {:6} × {:<29} P50 {:8.3} ms, P99 {:8.3} ms, longest {:8.3} ms",
            times.len(),
            kind.name(),
            milliseconds(percentile(times, 500)),
            milliseconds(percentile(times, 990)),
            milliseconds(percentile(times, 1_000)),
        );
    }
    let mut all: Vec<Duration> = by_kind.into_values().flatten().collect();
    ensure!(!all.is_empty(), "no event was applied");
    all.sort_unstable();
    Ok(all)
}

/// To which power of the number of nodes a figure grows, from the smallest busy cluster measured to
/// the largest: 1 is linear.
pub fn curve(rows: &[Row]) -> Vec<Row> {
    let busy = |row: &Row, what: &str| -> Option<(f64, f64)> {
        let (nodes, of) = row.name.strip_prefix("busy-")?.split_once(": ")?;
        let value = row.value;
        (of == what).then_some((nodes.parse().ok()?, value))
    };
    let power = |what: &str| {
        let points: Vec<(f64, f64)> = rows.iter().filter_map(|row| busy(row, what)).collect();
        let (first, last) = (points.first()?, points.last()?);
        if last.0 <= first.0 {
            return None;
        }
        let power = (last.1 / first.1).ln() / (last.0 / first.0).ln();
        let name = format!("curve from {} to {} nodes: {what}", first.0, last.0);
        // A tenth beyond linear is the logarithm of searching among more.
        let mut row = Row::new(name, power, "power of nodes", Target::Below(1.1));
        row.command = "make evidence-core".to_owned();
        Some(row)
    };
    ["first plan", "plan after an event, P50", "plan after an event, P99"]
        .into_iter()
        .filter_map(power)
        .collect()
}

/// Every hundredth plan is compared with that of a state loaded from the snapshot.
fn same_plans(effort: Effort) -> Result<Vec<Row>> {
    let nodes = 12_500;
    let (world, load) = world::busy(nodes, effort.seed);
    let mut driver = Driver::new(&world, Some(load), effort.seed)?;
    drop(world);
    let first = driver.state.plan();
    driver.carry_out(&first)?;
    driver.settle(SETTLING)?;
    let (mut compared, mut differ) = (0, 0);
    for n in 0..=effort.events {
        if n > 0 {
            let (at, _, event) = driver.next_event();
            driver.apply(at, event)?;
        }
        let plan = driver.state.plan();
        if n % 100 == 0 {
            compared += 1;
            let mut fresh = State::load(&driver.state.snapshot())?;
            let other = fresh.plan();
            if other != plan {
                differ += 1;
                eprintln!("  after {n} events the plans differ: {}", difference(&plan, &other));
            }
            if n % 1_000 == 0 {
                eprintln!("  {n} events, {compared} plans compared, {differ} differ");
            }
        }
        driver.carry_out(&plan)?;
    }
    Ok(vec![
        Row::new(
            "same-plans: compared with a loaded state",
            f64::from(compared),
            "plans",
            Target::None,
        ),
        Row::new("same-plans: different", f64::from(differ), "plans", Target::Exactly(0.0)),
    ])
}

/// Where two plans part.
fn difference(live: &Plan, loaded: &Plan) -> String {
    let pairs = live.transactions.iter().zip(&loaded.transactions);
    if let Some((a, b)) = pairs.into_iter().find(|(a, b)| a != b) {
        return format!("\n    kept:   {a:?}\n    loaded: {b:?}");
    }
    let (a, b) = (live.transactions.len(), loaded.transactions.len());
    if a != b {
        let more = if a > b { &live.transactions[b] } else { &loaded.transactions[a] };
        return format!("{a} transactions kept, {b} loaded; the first that is missing: {more:?}");
    }
    if live.blocked != loaded.blocked {
        return format!("\n    kept:   {:?}\n    loaded: {:?}", live.blocked, loaded.blocked);
    }
    format!("next {:?} and {:?}", live.next, loaded.next)
}
