//! CPU and memory beside GPUs: who gives way for them, who may start beside a promise, what free
//! GPUs are left, and which budgets are kept.

mod backfill;
mod budgets;
mod gpu_reserve;
mod rejoin;
mod turns;
mod victims;

use crate::check::world::{NOW, World, group, job_with, lease, name, node};
use berth_core::{Plan, State};
use berth_model::*;
use std::collections::BTreeSet;

/// A node with so many GPUs and cores.
pub(crate) fn node_with(name: &str, gpus: u32, cores: i64) -> NodeSpec {
    NodeSpec { cpu: Some(Cpu::cores(cores)), ..node(name, gpus, "r1") }
}

/// One task of so many cores and GPUs, of a priority.
pub(crate) fn task(id: u64, priority: i32, gpus: u32, cores: i64) -> JobSpec {
    let ask = if gpus == 0 { GpuAsk::None } else { GpuAsk::Whole { count: gpus } };
    let of = GroupSpec { cpu: Cpu::cores(cores), ..group(ask, 1) };
    JobSpec { priority, ..job_with(id, "q", vec![of]) }
}

/// Work without an end.
pub(crate) fn endless(spec: JobSpec) -> JobSpec {
    JobSpec { time_limit: Some(Span::UNLIMITED), ..spec }
}

/// The job runs on a node, on these GPUs of it.
pub(crate) fn runs(spec: JobSpec, on: &str, gpus: std::ops::Range<u32>) -> JobSnapshot {
    crate::check::world::running(spec, &[(on, gpus)])
}

/// One queue without a quota.
pub(crate) fn world(nodes: impl IntoIterator<Item = NodeSpec>) -> World {
    World::default().nodes(nodes).queues([QueueSpec::new("q")])
}

/// The jobs that a plan stops.
pub(crate) fn stopped(plan: &Plan) -> BTreeSet<u64> {
    let stops = plan.decisions().filter_map(|decision| match decision {
        Decision::Stop { lease, .. } => Some(lease.job.number),
        _ => None,
    });
    stops.collect()
}

/// The jobs that a plan starts, and where.
pub(crate) fn started(plan: &Plan) -> BTreeSet<(u64, Name)> {
    let starts = plan.decisions().filter_map(|decision| match decision {
        Decision::Start { lease, node, .. } => Some((lease.job.number, node.clone())),
        _ => None,
    });
    starts.collect()
}

/// When a plan promises a job places.
pub(crate) fn promised(plan: &Plan, of: u64) -> Option<Time> {
    plan.decisions().find_map(|decision| match decision {
        Decision::Reserve { job, at, .. } if job.number == of => Some(*at),
        _ => None,
    })
}

/// Applies an event a moment later.
pub(crate) fn tell(state: &mut State, event: Event) {
    let (seq, at) = (state.seq() + 1, state.now() + Span::secs(1));
    drop(state.apply(&Stamped { seq, at, event }).expect("it makes sense"));
}

/// Applies what a plan decides.
pub(crate) fn carry_out(state: &mut State, plan: &Plan) {
    for transaction in &plan.transactions {
        let (seq, at) = (state.seq() + 1, state.now());
        let (job, decisions) = (transaction.job, transaction.decisions.clone());
        let event = Event::Decided { job, decisions };
        drop(state.apply(&Stamped { seq, at, event }).expect("a plan can be carried out"));
    }
}

#[test]
fn a_task_of_the_helpers_holds_its_cores() {
    let held = runs(task(1, 50, 0, 3), "n1", 0..0);
    assert_eq!(held.leases, [lease(0, "n1", Vec::new())]);
    let (mut state, _) = world([node_with("n1", 0, 4)]).running(held).plan();
    tell(&mut state, Event::JobSubmitted { spec: Box::new(task(2, 50, 0, 2)) });
    let plan = state.plan();
    assert_eq!(started(&plan), BTreeSet::new());
    tell(&mut state, Event::JobSubmitted { spec: Box::new(task(3, 50, 0, 1)) });
    assert_eq!(started(&state.plan()), [(3, name("n1"))].into());
    assert!(state.now() > NOW);
}
