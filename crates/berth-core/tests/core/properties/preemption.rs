//! Who is preempted for whom, and that it comes to rest.

use crate::properties::{Verdict, fail, play};
use crate::support::cases;
use crate::support::contest;
use crate::support::draw::Bytes as Raw;
use crate::support::drive::{Run, leaves};
use crate::support::parts::Parts;
use crate::support::small;
use crate::support::small::{CLAIMANT, Kind, Small, Victims};
use crate::support::world::tales;
use berth_core::State;
use berth_model::*;
use proptest::collection::vec;
use proptest::prelude::{TestCaseError, any, prop_assert, prop_assert_eq, proptest};
use std::collections::{BTreeMap, BTreeSet};

/// Plans and carries out until nothing changes, no time passing: that ends, and no job is stopped
/// twice.
fn settles(run: &mut Run) -> Verdict {
    run.catch_up();
    let mut whole: BTreeMap<JobId, usize> = BTreeMap::new();
    let mut tasks: BTreeMap<TaskId, usize> = BTreeMap::new();
    for round in 0.. {
        let plan = run.plan_and_carry_out(0);
        let acts = |decision: &Decision| {
            matches!(decision, Decision::Start { .. } | Decision::Stop { .. })
        };
        if plan.is_empty() {
            break;
        }
        if round == 40 {
            return fail(format!("it does not settle: {plan:?}"));
        }
        if round == 20 && plan.decisions().any(acts) {
            return fail(format!("it goes on starting and stopping: {plan:?}"));
        }
        let mut once: BTreeSet<JobId> = BTreeSet::new();
        for decision in plan.decisions() {
            let Decision::Stop { lease, cause, .. } = decision else { continue };
            *tasks.entry(lease.task_id()).or_default() += 1;
            if *cause != Cause::Shrink && once.insert(lease.job) {
                *whole.entry(lease.job).or_default() += 1;
            }
        }
        if let Some((job, _)) = whole.iter().find(|(_, times)| **times > 1) {
            return fail(format!("job {job} was stopped twice"));
        }
        if let Some((task, _)) = tasks.iter().find(|(_, times)| **times > 1) {
            return fail(format!("task {task:?} was stopped twice"));
        }
    }
    Ok(())
}

/// One job waits in a small world of like GPUs: whatever victims it may take, taken in whatever
/// order, the plan finds some if there are any, and takes no more than it needs.
fn judge(bytes: &[Raw], kind: Kind) -> Result<(), TestCaseError> {
    let snapshot = small::snapshot(bytes, kind);
    let world = Small::of(&snapshot);
    prop_assert_eq!(world.overcommitted(), None);
    let mut state = State::load(&snapshot).expect("it makes sense");
    let plan = state.plan();
    let served = plan.decisions().any(|decision| match decision {
        Decision::Start { lease, .. } => lease.job == CLAIMANT,
        Decision::Reserve { job, firm, .. } => *job == CLAIMANT && *firm,
        _ => false,
    });
    let could = world.within_quota() && world.could_start(Victims::All);
    prop_assert!(served || !could, "not served: {plan:?}\n{snapshot:?}");
    let stops: Vec<(LeaseId, Cause)> = plan
        .decisions()
        .filter_map(|decision| match decision {
            Decision::Stop { lease, cause, .. } => Some((*lease, *cause)),
            _ => None,
        })
        .collect();
    let stopped = world.stopped(&stops);
    if !stopped.is_empty() {
        // A claimant that cannot be stopped may need room in its quota, not only on a node.
        let by_place = snapshot.jobs.iter().any(|j| j.id() == CLAIMANT && j.spec.preemptible);
        let needless = if by_place { world.needless(&stopped) } else { None };
        prop_assert_eq!(needless, None, "stopped for nothing: {:?}\n{:?}", plan, snapshot);
        let spared = by_place && world.could_start(Victims::SurplusOnly);
        let whole = stopped.iter().any(|(_, surplus)| !surplus);
        prop_assert!(!(spared && whole), "surplus would do: {plan:?}\n{snapshot:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_job_within_its_quota_is_served_in_this_very_plan(bytes in vec(any::<Raw>(), 3..10)) {
        judge(&bytes, Kind { classes: false, elastic: false })?;
    }

    #[test]
    fn a_job_of_a_higher_class_within_its_quota_is_served_in_this_very_plan(
        bytes in vec(any::<Raw>(), 3..10)
    ) {
        judge(&bytes, Kind { classes: true, elastic: false })?;
    }

    #[test]
    fn elastic_surplus_is_given_back_before_whole_jobs(bytes in vec(any::<Raw>(), 3..10)) {
        judge(&bytes, Kind { classes: false, elastic: true })?;
    }

    #[test]
    fn an_owner_gets_a_part_of_a_gpu_back_in_this_very_plan(bytes in vec(any::<Raw>(), 2..12)) {
        let parts = Parts::new(&bytes);
        let snapshot = parts.snapshot();
        let mut state = State::load(&snapshot).expect("it makes sense");
        let plan = state.plan();
        let served = plan.decisions().any(|decision| match decision {
            Decision::Start { lease, .. } => lease.job == CLAIMANT,
            Decision::Reserve { job, firm, .. } => *job == CLAIMANT && *firm,
            _ => false,
        });
        let could = parts.is_within_quota() && parts.could_start();
        prop_assert!(served || !could, "not served: {plan:?}\n{snapshot:?}");
        let stops = plan.decisions().filter_map(|decision| match decision {
            Decision::Stop { lease, .. } => Some(lease.job),
            _ => None,
        });
        let needless = parts.needless(&stops.collect());
        prop_assert_eq!(needless, None, "stopped for nothing: {:?}\n{:?}", plan, snapshot);
    }

    #[test]
    fn settling_without_time_passing_ends_and_stops_no_job_twice(tale in tales(14, 20)) {
        play(&tale, |run, steps| {
            for step in steps {
                run.step(step);
            }
            settles(run)
        })?;
    }

    #[test]
    fn queues_that_take_from_each_other_come_to_rest(bytes in vec(any::<Raw>(), 3..16)) {
        let mut run = contest::set_up(&bytes[0]);
        let leaves = leaves(&run.state.snapshot());
        for (at, bytes) in bytes[1..].iter().enumerate() {
            let job = contest::job(at as u64 + 1, bytes, &leaves, run.now);
            run.must(Event::JobSubmitted { spec: Box::new(job) });
            if at % 3 < 2 {
                let verdict = settles(&mut run);
                prop_assert!(verdict.is_ok(), "{}\n{}", verdict.unwrap_err(), run.story());
                run.now = run.now + Span::mins(1);
            }
        }
        // Nor does it go on when time passes and nothing else happens.
        let known = run.log.len();
        for _ in 0..20 {
            run.now = run.now + Span::secs(1);
            run.must(Event::Tick);
            let verdict = settles(&mut run);
            prop_assert!(verdict.is_ok(), "{}\n{}", verdict.unwrap_err(), run.story());
        }
        let mut stopped: BTreeMap<TaskId, u32> = BTreeMap::new();
        for stamped in &run.log[known..] {
            if let Event::LeaseEnded { lease, .. } = &stamped.event {
                *stopped.entry(lease.task_id()).or_default() += 1;
            }
        }
        let again = stopped.iter().find(|(_, times)| **times > 1);
        prop_assert!(again.is_none(), "{again:?} times within a moment\n{}", run.story());
    }
}
