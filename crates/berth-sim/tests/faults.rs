//! Fault mode: seeds that must be clean, and bugs that must be found.

use berth_core::Plan;
use berth_model::{Decision, Event, Name, Slice, Stamped};
use berth_sim::faults::{self, Case, Class, Record, Seam, Size};

#[test]
fn two_hundred_seeds_are_clean() {
    let mut bad = Vec::new();
    let (mut starts, mut crashes, mut upsets) = (0, 0, 0);
    for seed in 1..=200 {
        let verdict = faults::run(seed, Size::Small);
        starts += verdict.starts;
        crashes += verdict.crashes;
        upsets += verdict.faults;
        if let Some(broken) = &verdict.broken {
            bad.push(format!("{}: {broken:?}", verdict.command()));
        }
    }
    assert!(bad.is_empty(), "{} of 200:\n{}", bad.len(), bad.join("\n"));
    // A run in which nothing happens proves nothing.
    assert!(starts > 1_000 && crashes > 200 && upsets > 1_000, "{starts} {crashes} {upsets}");
}

/// One bug between core and world: what it does to the `n`th thing it can be done to.
#[derive(Clone, Copy, PartialEq)]
enum Bug {
    DoubleLease,
    HalfGang,
    LostJob,
    MoneyLeak,
    NonDeterminism,
    /// The core does not hear what a job comes after, where it must lie, what a queue may spend,
    /// how large a pool may be.
    NoOrder,
    NoTopology,
    NoBudget,
    LargerPool,
}

struct Planted {
    bug: Bug,
    /// Which run of the program this is: what should not matter, and with one bug does.
    run: u32,
    held: Vec<(Name, Slice)>,
}

impl Planted {
    /// Puts a start on a slice that was given to another one before.
    fn double(&mut self, decisions: &mut [Decision]) {
        for decision in decisions {
            let Decision::Start { node, slices, .. } = decision else { continue };
            for slice in slices {
                let taken = self.held.iter().find(|(on, _)| on == node).map(|(_, s)| s.clone());
                match taken.filter(|taken| taken.share == slice.share) {
                    Some(taken) => *slice = taken,
                    None => self.held.push((node.clone(), slice.clone())),
                }
            }
        }
    }
}

impl Seam for Planted {
    fn to_core(&mut self, mut stamped: Stamped) -> Stamped {
        match (self.bug, &mut stamped.event) {
            (Bug::LostJob, Event::JobSubmitted { spec }) if spec.id.number % 3 == 0 => {
                stamped.event = Event::Tick;
            }
            (Bug::NoOrder, Event::JobSubmitted { spec }) => spec.after.clear(),
            (Bug::NoTopology, Event::JobSubmitted { spec }) => {
                spec.groups.iter_mut().for_each(|group| group.topology = None);
            }
            (Bug::NoBudget, Event::QueueSet { queue }) => queue.budget = None,
            (Bug::LargerPool, Event::PoolSet { pool }) => pool.max += 5,
            _ => {}
        }
        stamped
    }

    fn to_world(&mut self, mut record: Record) -> Record {
        match (self.bug, &mut record.stamped.event) {
            (Bug::DoubleLease, Event::Decided { decisions, .. }) => self.double(decisions),
            (Bug::HalfGang, Event::Decided { decisions, .. }) if decisions.len() > 1 => {
                let start = |d: &Decision| matches!(d, Decision::Start { .. });
                if decisions.iter().all(start) {
                    decisions.pop();
                }
            }
            (Bug::MoneyLeak, _) => {
                if let Some(row) = record.rows.iter_mut().find(|row| row.amount.0 > 1_000) {
                    row.amount.0 -= 1;
                }
            }
            _ => {}
        }
        record
    }

    fn planned(&mut self, mut plan: Plan) -> Plan {
        if self.bug == Bug::NonDeterminism && self.run.is_multiple_of(2) {
            plan.transactions.iter_mut().for_each(|gang| gang.decisions.reverse());
        }
        plan
    }
}

/// The bug is found under its name within a few seeds, and its story is made short.
fn is_found(bug: Bug, class: Class) {
    let mut runs = 0;
    let mut seam = || {
        runs += 1;
        Planted { bug, run: runs, held: Vec::new() }
    };
    let found = (1..=SEEDS).find_map(|seed| {
        let case = Case::new(seed, Size::Small);
        let verdict = faults::judge(&case, &mut seam);
        verdict.broken.filter(|broken| broken.class == class).map(|_| case)
    });
    let case = found.expect("the planted bug is found");
    let (small, verdict) = faults::shrink(&case, &mut seam, class);
    let broken = verdict.broken.expect("it still fails");
    assert_eq!(broken.class, class);
    assert!(small.jobs.len() <= 3 && small.nodes.len() <= 2, "{small:?}");
    assert!(verdict.log.len() <= 30, "{}", verdict.log.join("\n"));
}

/// Seeds among which a planted bug is to be found: not every world has what it takes.
const SEEDS: u64 = 60;

#[test]
fn a_gpu_that_is_leased_twice_is_found() {
    is_found(Bug::DoubleLease, Class::DoubleLease);
}

#[test]
fn a_gang_of_which_a_task_is_forgotten_is_found() {
    is_found(Bug::HalfGang, Class::HalfGang);
}

#[test]
fn a_job_that_is_accepted_and_then_forgotten_is_found() {
    is_found(Bug::LostJob, Class::LostJob);
}

#[test]
fn a_millionth_of_a_dollar_that_leaks_is_found() {
    is_found(Bug::MoneyLeak, Class::Money);
}

#[test]
fn a_scheduler_that_decides_otherwise_the_second_time_is_found() {
    is_found(Bug::NonDeterminism, Class::NonDeterminism);
}

#[test]
fn a_job_that_does_not_wait_for_what_it_comes_after_is_found() {
    is_found(Bug::NoOrder, Class::Order);
}

#[test]
fn a_gang_that_is_torn_from_its_rack_is_found() {
    is_found(Bug::NoTopology, Class::Place);
}

#[test]
fn a_queue_that_goes_on_after_its_budget_is_spent_is_found() {
    is_found(Bug::NoBudget, Class::Bound);
}

#[test]
fn a_machine_too_many_is_found() {
    is_found(Bug::LargerPool, Class::Claims);
}
