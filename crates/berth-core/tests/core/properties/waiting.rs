//! How long jobs wait, and what queues get in the long run.

use crate::support::cases;
use crate::support::draw::{Bytes as Raw, Draw};
use crate::support::drive::Run;
use crate::support::hours::Hours;
use crate::support::world;
use berth_model::*;
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, proptest};
use std::collections::{BTreeMap, BTreeSet};

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
