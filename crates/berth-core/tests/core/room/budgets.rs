//! Disruption budgets: a set of victims that keeps them all comes first, and where there is none
//! the reason says which are exceeded.

use super::{carry_out, node_with, runs, stopped, task, tell, world};
use crate::check::world::name;
use berth_core::State;
use berth_model::*;

/// Two nodes with a job each, the first one under a budget; a third job needs one of them.
fn set_up(allowed: u32, second: bool) -> State {
    let mut protected = runs(task(1, 10, 0, 8), "n1", 0..0);
    protected.budgets = vec![name("ml/web")];
    let mut made = world([node_with("n1", 0, 8), node_with("n2", 0, 8)])
        .running(protected)
        .jobs([task(3, 100, 0, 8)])
        .with(|world| world.disruptions = [(name("ml/web"), allowed)].into());
    // The other one is of a higher class: without the budget it would be spared.
    let mut other = runs(task(2, 20, 0, 8), "n2", 0..0);
    if second {
        other.budgets = vec![name("ml/web")];
    }
    made = made.running(other);
    State::load(&made.0).expect("the world makes sense")
}

#[test]
fn a_victim_within_its_budget_goes_before_a_lower_one_beyond_it() {
    assert_eq!(stopped(&set_up(1, false).plan()), [1].into());
    assert_eq!(stopped(&set_up(0, false).plan()), [2].into());
}

#[test]
fn where_every_victim_exceeds_a_budget_the_lowest_goes_and_the_reason_says_so() {
    let mut state = set_up(0, true);
    let plan = state.plan();
    assert_eq!(stopped(&plan), [1].into());
    carry_out(&mut state, &plan);
    let reasons = state.reasons(JobId::new(3));
    let exceeded = Reason::BudgetsExceeded { budgets: vec![name("ml/web")] };
    assert!(reasons.contains(&exceeded), "{reasons:?}");
    assert!(exceeded.to_string().ends_with("those being stopped exceed ml/web"));
}

#[test]
fn what_was_stopped_counts_until_the_budget_is_told_anew() {
    let mut state = set_up(1, true);
    let plan = state.plan();
    assert_eq!(stopped(&plan), [1].into());
    carry_out(&mut state, &plan);
    assert_eq!(state.disruptions_allowed(&name("ml/web")), Some(0));
    let snapshot = state.snapshot();
    let loaded = State::load(&snapshot).expect("its own snapshot");
    assert_eq!(loaded.disruptions_allowed(&name("ml/web")), Some(0));
    let told = Event::DisruptionsSet { budget: name("ml/web"), allowed: Some(1) };
    tell(&mut state, told);
    assert_eq!(state.disruptions_allowed(&name("ml/web")), Some(1));
    tell(&mut state, Event::DisruptionsSet { budget: name("ml/web"), allowed: None });
    assert_eq!(state.disruptions_allowed(&name("ml/web")), None);
}

#[test]
fn the_budgets_of_a_job_can_change() {
    let mut state = set_up(0, false);
    let change = JobChange::Budgets(Vec::new());
    tell(&mut state, Event::JobChanged { job: JobId::new(1), change });
    assert_eq!(state.budgets_of(JobId::new(1)), &[] as &[Name]);
    assert_eq!(stopped(&state.plan()), [1].into());
}
