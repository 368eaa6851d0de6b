//! What holds after every event and for every plan.

use crate::properties::{fail, play};
use crate::support::cases;
use crate::support::drive::Did;
use crate::support::facts;
use crate::support::world::tales;
use berth_core::State;
use berth_model::*;
use proptest::prelude::proptest;

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn a_plan_leaves_the_state_as_it_found_it(tale in tales(10, 25)) {
        play(&tale, |run, steps| {
            for step in steps {
                let before = run.state.hash();
                let plan = run.state.plan();
                if run.state.hash() != before {
                    return fail("plan changed the state");
                }
                if run.state.plan() != plan {
                    return fail("a second plan differs from the first");
                }
                run.step(step);
            }
            Ok(())
        })?;
    }

    #[test]
    fn the_same_log_gives_the_same_state_and_the_same_plan(tale in tales(10, 40)) {
        play(&tale, |run, steps| {
            for step in steps {
                run.step(step);
            }
            run.finish();
            let mut again = State::new();
            for stamped in &run.log {
                if let Err(why) = again.apply(stamped) {
                    return fail(format!("a replay refused an event: {why}"));
                }
            }
            if again.hash() != run.state.hash() || again.plan() != run.state.plan() {
                return fail("a replay ended up elsewhere");
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_state_loaded_from_its_snapshot_plans_like_the_one_kept(tale in tales(10, 40)) {
        play(&tale, |run, steps| {
            for step in steps {
                run.step(step);
                let snapshot = run.state.snapshot();
                let mut fresh = match State::load(&snapshot) {
                    Ok(fresh) => fresh,
                    Err(why) => return fail(format!("its own snapshot was refused: {why}")),
                };
                if fresh.snapshot() != snapshot {
                    let what = facts::difference(&fresh.snapshot(), &snapshot);
                    return fail(format!("the loaded state differs: {what}"));
                }
                let (fresh, kept) = (fresh.plan(), run.state.plan());
                if fresh != kept {
                    return fail(format!("plans differ: {}", facts::difference(&fresh, &kept)));
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn no_gpu_is_leased_beyond_its_capacity_and_no_job_is_lost(tale in tales(12, 40)) {
        play(&tale, |run, steps| {
            for step in steps {
                run.step(step);
                let snapshot = run.state.snapshot();
                if let Some(what) = facts::overcommitted(&snapshot) {
                    return fail(what);
                }
                let there = |id: &JobId| snapshot.jobs.iter().any(|job| job.id() == *id);
                let lost = run.submitted.iter().find(|id| !there(id) && !run.ended.contains_key(*id));
                if let Some(id) = lost {
                    return fail(format!("job {id} is gone"));
                }
                let twice = run.submitted.iter().find(|id| there(id) && run.ended.contains_key(*id));
                if let Some(id) = twice {
                    return fail(format!("job {id} has ended and is there"));
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn no_plan_puts_shares_of_two_queues_on_one_gpu_unless_the_policy_allows_it(
        tale in tales(14, 40)
    ) {
        play(&tale, |run, steps| {
            let mut known = facts::mixes(&run.state.snapshot());
            for step in steps {
                let policy = run.state.policy().share_gpus;
                run.step(step);
                let now = facts::mixes(&run.state.snapshot());
                // What lies together when the policy changes may stay so.
                let same = run.state.policy().share_gpus == policy;
                if let Some(mix) = now.difference(&known).next().filter(|_| same) {
                    return fail(format!("these share a GPU: {mix:?}"));
                }
                known = now;
            }
            Ok(())
        })?;
    }

    #[test]
    fn every_plan_passes_the_check(tale in tales(12, 40)) {
        play(&tale, |run, steps| {
            run.checks = true;
            for step in steps {
                run.step(step);
            }
            run.finish();
            Ok(())
        })?;
    }

    #[test]
    fn no_plan_starts_a_gang_below_its_minimum(tale in tales(12, 30)) {
        play(&tale, |run, steps| {
            for step in steps {
                let Did::Planned(plan) = run.step(step) else { continue };
                // As the plan left it, before anything else happened: replayed up to its last decision.
                let Some(upto) = run.log.iter().rposition(|s| matches!(s.event, Event::Decided { .. }))
                else {
                    continue;
                };
                let mut then = State::new();
                for stamped in &run.log[..=upto] {
                    let _ = then.apply(stamped).expect("it was applied before");
                }
                let snapshot = then.snapshot();
                for decision in plan.decisions() {
                    let Decision::Start { lease, .. } = decision else { continue };
                    let job = snapshot.jobs.iter().find(|job| job.id() == lease.job);
                    if !job.is_some_and(facts::has_minimum) {
                        return fail(format!("job {} runs below its minimum", lease.job));
                    }
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn cost_rows_sum_to_price_times_time_of_every_node_and_lease(tale in tales(10, 40)) {
        play(&tale, |run, steps| {
            for (at, step) in steps.iter().enumerate() {
                run.step(step);
                if at % 7 == 3 {
                    // A restart in between loses nothing.
                    run.state = State::load(&run.state.snapshot()).expect("it loads");
                }
            }
            run.must(Event::Tick);
            let now = run.now;
            let (rows, due) = (run.books.rows_by_node(), run.books.node_totals(now));
            for (node, due) in due {
                let paid = rows.get(&node).copied().unwrap_or(0);
                if paid != due {
                    return fail(format!("{node} cost {due}, its rows say {paid}"));
                }
            }
            let (rows, due) = (run.books.rows_by_lease(), run.books.lease_totals(now));
            for (lease, due) in due {
                let paid = rows.get(&lease).copied().unwrap_or(0);
                if paid != due {
                    return fail(format!("lease {lease} cost {due}, its rows say {paid}"));
                }
            }
            Ok(())
        })?;
    }
}
