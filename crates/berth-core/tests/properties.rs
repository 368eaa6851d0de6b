//! Properties of the core over small random worlds and random sequences of events.
//!
//! `PROPTEST_CASES` raises the number of cases, `PROPTEST_RNG_SEED` chooses others.

mod support;

use berth_core::State;
use berth_model::*;
use proptest::collection::vec;
use proptest::prelude::{TestCaseError, any, prop_assert, prop_assert_eq, proptest};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use support::cases;
use support::contest;
use support::draw::{Bytes as Raw, Draw};
use support::drive::{Did, Run, leaves};
use support::hours::Hours;
use support::small::{self, CLAIMANT, Kind, Small, Victims};
use support::world::{self, Tale, tales};
use support::{facts, garbage};

type Verdict = Result<(), String>;

fn fail(what: impl Into<String>) -> Verdict {
    Err(what.into())
}

/// Plays a tale; what goes wrong, panics included, is told with everything that led to it.
fn play(tale: &Tale, body: impl FnOnce(&mut Run, &[Raw]) -> Verdict) -> Result<(), TestCaseError> {
    let mut run = Run::set_up(tale);
    let verdict = catch_unwind(AssertUnwindSafe(|| body(&mut run, &tale.steps)));
    let what = match verdict {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(what)) => what,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
            format!("panicked: {}", text.unwrap_or_default())
        }
    };
    Err(TestCaseError::fail(format!("{what}\n{}", run.story())))
}

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

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn what_is_refused_changes_nothing_and_nothing_panics(
        tale in tales(6, 30),
        nonsense in vec(any::<Raw>(), 30),
    ) {
        play(&tale, |run, steps| {
            for (step, nonsense) in steps.iter().zip(&nonsense) {
                run.step(step);
                let event = garbage::event(nonsense, &run.state.snapshot(), run.next_job);
                run.next_job += 1;
                let before = run.state.hash();
                let sent = run.send(event.clone());
                if sent.is_err() && run.state.hash() != before {
                    return fail(format!("{sent:?} changed the state: {event:?}"));
                }
                let mut fresh = match State::load(&run.state.snapshot()) {
                    Ok(fresh) => fresh,
                    Err(why) => return fail(format!("its own snapshot was refused: {why}")),
                };
                let (kept, loaded) = (run.state.plan(), fresh.plan());
                if kept != loaded {
                    return fail(format!("plans differ: {kept:?}\n{loaded:?}"));
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn events_twice_early_or_out_of_order_are_refused(tale in tales(6, 15)) {
        play(&tale, |run, steps| {
            for step in steps {
                run.step(step);
                let last = run.log.last().expect("something happened").clone();
                let before = run.state.hash();
                let twice = run.state.apply(&last).map_err(|why| why.code());
                let early = Stamped { seq: last.seq + 2, ..last.clone() };
                let early = run.state.apply(&early).map_err(|why| why.code());
                let at = run.state.now() - Span::ms(1);
                let back = Stamped { seq: last.seq + 1, at, event: Event::Tick };
                let back = run.state.apply(&back).map_err(|why| why.code());
                if twice != Err("duplicate-event")
                    || early != Err("missing-events")
                    || back != Err("time-went-back")
                {
                    return fail(format!("{twice:?}, {early:?}, {back:?}"));
                }
                if run.state.hash() != before {
                    return fail("a refused event changed the state");
                }
            }
            Ok(())
        })?;
    }
}

/// A cluster with one queue or two, no quotas, and jobs that come over some hours.
fn busy_hours(bytes: &[Raw], ends_early: bool) -> Hours {
    let mut d = Draw::new(&bytes[0]);
    let mut run = Run::new();
    let rack = BTreeMap::from([(Name::new("default"), vec![Name::new("rack")])]);
    run.must(Event::TopologySet { topologies: rack });
    let two = d.one_in(3);
    let mut policy = Policy {
        aging_max: d.pick(&[Span::hours(1), Span::mins(20), Span::hours(3)]),
        grace: d.pick(&[Span::mins(5), Span::secs(30)]),
        reservations: d.pick(&[1, 2]),
        ..Policy::default()
    };
    if two {
        policy.passes.remove(&Pass::Reclaim);
    }
    run.must(Event::PolicySet { policy: Box::new(policy) });
    let gpus = d.pick(&[4, 8, 2]);
    for at in 0..1 + d.below(4) {
        let mut node = world::plain_node(&world::name("n", at), gpus, "H100-80GB");
        node.labels.insert(Name::new("rack"), world::name("r", d.below(2)));
        run.must(Event::NodeAdded { node: Box::new(node) });
    }
    for name in if two { &["a", "b"][..] } else { &["a"] } {
        run.must(Event::QueueSet { queue: Box::new(QueueSpec::new(name)) });
    }
    let start = run.now;
    let mut hours = Hours::new(run);
    for (at, bytes) in bytes[1..].iter().enumerate() {
        let mut d = Draw::new(bytes);
        let when = start + Span::mins(d.below(250) as i64);
        let count = d.pick(&[1, 2, 3, 4, 6]);
        let mut group = world::plain_group(count, GpuAsk::Whole { count: d.pick(&[1, 2, 4, 8]) });
        if d.one_in(4) {
            group.min = 1;
        }
        if d.one_in(4) {
            let required = Some(Name::new(d.pick(&["rack", "node"])));
            group.topology = Some(TopologyAsk { required, ..TopologyAsk::default() });
        }
        let queue = if two { d.pick(&["a", "b"]) } else { "a" };
        let mut spec = world::plain_job(at as u64 + 1, queue, vec![group]);
        let limit = d.pick(&[Span::mins(30), Span::mins(5), Span::hours(1), Span::hours(2)]);
        spec.time_limit = Some(limit);
        let part = d.pick(&[1_000, 100, 500, 950]);
        let takes = ends_early.then_some(Span(limit.0 * part / 1_000));
        hours.arrive(when, takes, spec);
    }
    hours
}

/// Whether the job's minimum fits the cluster when nothing runs.
fn fits_empty(snapshot: &Snapshot, job: &JobSpec) -> bool {
    let group = &job.groups[0];
    let required = group.topology.as_ref().and_then(|topology| topology.required.clone());
    let mut slots: BTreeMap<Name, u32> = BTreeMap::new();
    for node in &snapshot.nodes {
        let domain = match required.as_deref() {
            Some("node") => node.spec.name.clone(),
            Some(key) => node.spec.labels[key].clone(),
            None => Name::default(),
        };
        *slots.entry(domain).or_default() += node.spec.gpus.len() as u32 / group.gpus.count();
    }
    slots.values().any(|slots| *slots >= group.min)
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn every_job_that_fits_starts_within_the_bound(bytes in vec(any::<Raw>(), 2..40)) {
        let mut hours = busy_hours(&bytes, false);
        let policy = hours.run.state.policy().clone();
        let end = hours.run.now + Span::hours(500);
        // When each job had waited its longest and it was its turn to hold a reservation for its
        // queue, which holds a few; and the reservations that stood then.
        let mut standing: BTreeMap<JobId, (Time, i64)> = BTreeMap::new();
        let (mut specs, mut longest) = (BTreeMap::new(), Span::ZERO);
        loop {
            let snapshot = hours.run.state.snapshot();
            let limits = snapshot.jobs.iter().filter_map(|job| job.spec.time_limit);
            longest = limits.fold(longest, Span::max);
            let held: BTreeSet<JobId> = snapshot.promises.iter().map(|held| held.job).collect();
            let mut of_queue: BTreeMap<&Name, u32> = BTreeMap::new();
            for job in snapshot.jobs.iter().filter(|job| held.contains(&job.id())) {
                *of_queue.entry(&job.spec.queue).or_default() += 1;
            }
            for job in snapshot.jobs.iter().filter(|job| job.first_start.is_none()) {
                let (id, spec) = (job.id(), &job.spec);
                specs.insert(id, spec.clone());
                let in_queue = of_queue.get(&spec.queue).copied().unwrap_or(0);
                let is_older = |other: &&JobSnapshot| {
                    other.first_start.is_none()
                        && other.spec.queue == spec.queue
                        && (other.spec.submitted, other.id()) < (spec.submitted, id)
                        && !held.contains(&other.id())
                        && fits_empty(&snapshot, &other.spec)
                };
                let turn = || {
                    in_queue <= policy.reservations && !snapshot.jobs.iter().any(|o| is_older(&o))
                };
                if spec.submitted + policy.aging_max <= snapshot.now
                    && (held.contains(&id) || turn())
                {
                    standing.entry(id).or_insert((snapshot.now, held.len() as i64));
                }
            }
            if hours.next(end).is_none() {
                break;
            }
        }
        let snapshot = hours.run.state.snapshot();
        for (id, spec) in &specs {
            if !fits_empty(&snapshot, spec) {
                continue;
            }
            // One that starts before its queue may hold a reservation for it has waited for its turn.
            let turn = (end, 0);
            let (since, n) = standing.get(id).copied().unwrap_or(turn);
            let bound = since - spec.submitted + Span((n + 1) * (longest + policy.grace).0);
            let waited = hours.started.get(id).map(|at| *at - spec.submitted);
            prop_assert!(
                waited.is_some_and(|waited| waited <= bound),
                "job {id} waited {waited:?}, at most {bound:?} with {n} before it\n{}",
                hours.run.story()
            );
        }
    }

    #[test]
    fn a_reserved_job_starts_no_later_than_it_was_promised(bytes in vec(any::<Raw>(), 2..40)) {
        let mut hours = busy_hours(&bytes, true);
        let end = hours.run.now + Span::hours(500);
        while hours.next(end).is_some() {}
        for (job, (at, since)) in &hours.promised {
            let started = hours.started.get(job);
            prop_assert!(
                started.is_some_and(|started| started <= at),
                "job {job} was promised {at} at {since} and started {started:?}\n{}",
                hours.run.story()
            );
        }
    }
}

/// Two teams with 60 and 40 % that always want more, with gangs of 1 to 16 GPUs.
#[test]
fn long_run_shares_follow_quotas_in_every_day() {
    let mut run = Run::new();
    for at in 0..20 {
        let node = world::plain_node(&world::name("n", at), 8, "H100-80GB");
        run.must(Event::NodeAdded { node: Box::new(node) });
    }
    for (name, percent) in [("a", 600), ("b", 400)] {
        let mut queue = QueueSpec::new(name);
        queue.quota.gpu.total = Some(Amount::Share(Milli(percent)));
        run.must(Event::QueueSet { queue: Box::new(queue) });
    }
    let start = run.now;
    let end = start + Span::days(4);
    let mut hours = Hours::new(run);
    let mut seed: u64 = 0x2545_f491_4f6c_dd1d;
    let mut random = |n: u64| {
        // xorshift64.
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % n
    };
    let mut id = 0;
    for queue in ["a", "b"] {
        // Each could keep the whole cluster busy.
        let mut work = 0;
        let mut when = start;
        while work < 160 * 24 * 4 * 60 {
            id += 1;
            let gpus = 1 + random(16) as u32;
            let mins = 10 + random(170) as i64;
            let group = world::plain_group(gpus, GpuAsk::Whole { count: 1 });
            let mut spec = world::plain_job(id, queue, vec![group]);
            spec.time_limit = Some(Span::hours(4));
            hours.arrive(when, Some(Span::mins(mins)), spec);
            work += i64::from(gpus) * mins;
            when = when + Span::mins(random(6) as i64);
        }
    }
    // GPU-milliseconds of each queue up to each moment.
    let mut used: Vec<(Time, [i64; 2])> = vec![(start, [0, 0])];
    loop {
        let held = hours.held();
        let before = hours.run.now;
        if hours.next(end).is_none() {
            break;
        }
        let span = (hours.run.now - before).0;
        let (_, mut sum) = used[used.len() - 1];
        for (at, queue) in ["a", "b"].into_iter().enumerate() {
            sum[at] += held.get(queue).copied().unwrap_or(0) * span;
        }
        used.push((hours.run.now, sum));
    }
    let upto = |at: Time| used[used.partition_point(|(time, _)| *time <= at) - 1].1;
    let mut worst = 0;
    for hour in 0..=(24 * 3) {
        let from = start + Span::hours(hour);
        let (a, b) = (upto(from), upto(from + Span::days(1)));
        let (first, second) = (b[0] - a[0], b[1] - a[1]);
        let share = first * 1_000 / (first + second);
        worst = worst.max((share - 600).abs());
        assert!((580..=620).contains(&share), "from hour {hour}: {share} of 1000, not 600");
    }
    assert!(worst <= 20);
}
