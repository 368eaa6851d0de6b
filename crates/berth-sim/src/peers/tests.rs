use super::*;
use crate::fleet::Pool;

/// `submit duration gpus [estimate] [team]`, in seconds, a job a line.
fn jobs(text: &str) -> Vec<Job> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let fields: Vec<i64> =
                line.split_whitespace().map(|field| field.parse().unwrap()).collect();
            Job {
                submit: Time(fields[0] * 1_000),
                duration: Span::secs(fields[1]),
                gpus: fields[2] as u32,
                estimate: Span::secs(*fields.get(3).unwrap_or(&fields[1])),
                team: *fields.get(4).unwrap_or(&0) as u32,
                models: crate::fleet::ANY,
            }
        })
        .collect()
}

/// First starts in seconds; `-` for a job that never runs.
fn starts(policy: Policy, nodes: u32, text: &str) -> String {
    let pool = Pool { nodes, gpus_per_node: 8 };
    let outcomes = run(policy, pool, &jobs(text), &[]);
    let start = |outcome: &Outcome| match outcome.first_start() {
        Some(time) => (time.0 / 1_000).to_string(),
        None => "-".to_owned(),
    };
    outcomes.iter().map(start).collect::<Vec<_>>().join(" ")
}

/// A node is half busy until 100; a job for a whole one waits, a short and a long small one come
/// after it.
const BLOCKED: &str = "0 100 4
                       1 50 8
                       2 50 4
                       3 300 4";

#[test]
fn strict_fifo_lets_nobody_pass() {
    assert_eq!(starts(Policy::Fifo, 1, BLOCKED), "0 100 150 150");
}

#[test]
fn fifo_that_skips_starts_whatever_fits_and_the_large_job_waits() {
    assert_eq!(starts(Policy::FifoSkip, 1, BLOCKED), "0 352 2 52");
}

#[test]
fn easy_lets_pass_who_is_done_before_the_reservation() {
    assert_eq!(starts(Policy::Easy, 1, BLOCKED), "0 100 2 150");
}

#[test]
fn easy_lets_long_jobs_pass_on_gpus_that_the_reservation_does_not_need() {
    // Two nodes: the first is full until 100, the second has five GPUs free. The job of eight gets
    // the first; a long job of four may run on the second, and must not on the first.
    let text = "0 100 8
                0 900 3
                1 50 8
                2 900 4
                3 900 1
                4 900 1";
    assert_eq!(starts(Policy::Easy, 2, text), "0 0 100 2 3 150");
}

#[test]
fn easy_counts_nodes_and_not_gpus() {
    // At 200 eight GPUs are free, four on each node; a whole node is free only at 300. So a job
    // of 150 s may pass at 102, and a long one only where the whole node is not.
    let text = "0 100 4
                0 500 4
                0 200 4
                0 300 4
                1 50 8
                102 150 4
                103 400 4";
    assert_eq!(starts(Policy::Easy, 2, text), "0 0 0 0 300 102 252");
}

#[test]
fn easy_that_counts_gpus_takes_scattered_ones_for_room() {
    // As above: counting says that the whole node is there at 200, so the job of 150 s may not
    // pass at 102. At 200 the first job waits on, and now the next end is taken for its time.
    let text = "0 100 4
                0 500 4
                0 200 4
                0 300 4
                1 50 8
                102 150 4";
    assert_eq!(starts(Policy::EasyCounting, 2, text), "0 0 0 0 300 200");
    assert_eq!(starts(Policy::Easy, 2, text), "0 0 0 0 300 102");
}

#[test]
fn a_job_that_outlives_its_estimate_does_not_end_backfilling() {
    // The first said 10 s and takes 100; the last would be done in 20 s.
    let text = "0 100 4 10
                1 50 8
                41 20 4";
    assert_eq!(starts(Policy::Easy, 1, text), "0 100 41");
}

#[test]
fn shortest_first_goes_by_the_estimate_and_not_by_the_truth() {
    let text = "0 100 8
                1 10 8 90
                2 80 8 20";
    assert_eq!(starts(Policy::Sjf, 1, text), "0 180 100");
}

#[test]
fn strict_shortest_first_keeps_room_for_a_short_large_job() {
    // Four GPUs are free; the shortest job needs eight.
    let text = "0 100 4
                1 10 8
                2 500 4";
    assert_eq!(starts(Policy::Sjf, 1, text), "0 502 2");
    assert_eq!(starts(Policy::SjfStrict, 1, text), "0 100 110");
}

#[test]
fn strict_shortest_remaining_first_pauses_everybody_behind_the_first_that_does_not_fit() {
    // The first two have 100 and 900 s to go when a job of 200 s and eight GPUs comes: it does
    // not fit beside the first, and the second may only go on where it is passed over.
    let text = "0 100 4
                0 900 4
                0 200 8";
    let pool = Pool { nodes: 1, gpus_per_node: 8 };
    let ends = |policy| -> Vec<i64> {
        let outcomes = run(policy, pool, &jobs(text), &[]);
        outcomes.iter().map(|o| o.end.unwrap().0 / 1_000).collect()
    };
    assert_eq!(ends(Policy::Srtf), [100, 1_100, 300]);
    assert_eq!(ends(Policy::SrtfStrict), [100, 1_200, 300]);
}

#[test]
fn shortest_remaining_first_pauses_for_shorter_jobs_and_goes_on_after_them() {
    let pool = Pool { nodes: 1, gpus_per_node: 8 };
    let outcomes = run(Policy::Srtf, pool, &jobs("0 100 8\n10 20 8\n70 40 8"), &[]);
    let seconds = |time: Time| time.0 / 1_000;
    let segments: Vec<Vec<(i64, i64)>> = outcomes
        .iter()
        .map(|o| o.segments.iter().map(|s| (seconds(s.from), seconds(s.to))).collect())
        .collect();
    // At 70 the first has 50 s left, and the third needs 40.
    let expected = [vec![(0, 10), (30, 70), (110, 160)], vec![(10, 30)], vec![(70, 110)]];
    assert_eq!(segments, expected);
    assert_eq!(outcomes[0].preemptions, 2);
}

#[test]
fn smallest_service_first_weighs_time_by_gpus() {
    let text = "0 100 1
                0 90 8
                0 50 8";
    assert_eq!(starts(Policy::Srtf, 1, text), "140 50 0");
    assert_eq!(starts(Policy::Srsf, 1, text), "0 150 100");
}

#[test]
fn fair_share_serves_who_holds_least_for_its_quota_and_stops_at_its_first_job() {
    let pool = Pool { nodes: 1, gpus_per_node: 8 };
    let text = "0 100 4 100 0
                0 100 2 100 0
                0 100 2 100 1
                0 100 4 100 1
                0 100 1 100 0";
    let starts = |quotas: &[u64]| -> Vec<i64> {
        let outcomes = run(Policy::FairShare, pool, &jobs(text), quotas);
        outcomes.iter().map(|o| o.first_start().unwrap().0 / 1_000).collect()
    };
    // Equal quotas: 4 to the first, 2 to the second, then the second's job of 4 stops the rest.
    assert_eq!(starts(&[1, 1]), [0, 100, 0, 100, 100]);
    // With three times the quota the first team gets its second job before.
    assert_eq!(starts(&[3, 1]), [0, 0, 0, 100, 100]);
}

#[test]
fn a_job_larger_than_the_pool_never_runs_and_stops_nobody() {
    for policy in Policy::ALL {
        assert_eq!(starts(policy, 1, "0 10 9\n1 10 8"), "- 1", "{}", policy.word());
    }
}

#[test]
fn no_policy_gives_a_gpu_twice_or_loses_a_job() {
    use crate::random::Rng;
    let mut rng = Rng::new(11);
    let mut list = Vec::new();
    for _ in 0..600 {
        let submit = list.last().map_or(0, |job: &Job| job.submit.0) + rng.below(9) as i64 * 500;
        let duration = 1_000 * (1 + rng.below(200) as i64);
        list.push(Job {
            submit: Time(submit),
            duration: Span(duration),
            estimate: Span(duration * (1 + rng.below(20) as i64) / 10),
            gpus: [1, 1, 2, 4, 8, 12, 16][rng.below(7) as usize],
            team: rng.below(3) as u32,
            models: crate::fleet::ANY,
        });
    }
    let pool = Pool { nodes: 4, gpus_per_node: 8 };
    for policy in Policy::ALL {
        let outcomes = run(policy, pool, &list, &[1, 2, 3]);
        assert_eq!(outcomes, run(policy, pool, &list, &[1, 2, 3]), "{}", policy.word());
        let mut changes = Vec::new();
        for (outcome, job) in outcomes.iter().zip(&list) {
            assert_eq!(outcome.ran(), job.duration, "{}", policy.word());
            assert!(outcome.first_start().unwrap() >= job.submit);
            for segment in &outcome.segments {
                changes.push((segment.from, 1, i64::from(job.gpus)));
                changes.push((segment.to, 0, -i64::from(job.gpus)));
            }
        }
        changes.sort_unstable();
        let mut held = 0;
        for (time, _, change) in changes {
            held += change;
            assert!((0..=32).contains(&held), "{} holds {held} at {time}", policy.word());
        }
    }
}
