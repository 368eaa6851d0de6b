use super::*;
use crate::fleet::Pool;
use crate::metrics::{Report, Setting};
use crate::peers::{self, Job};
use crate::random::Rng;
use berth_model::{Name, Time};

/// `submit duration estimate gpus [team]` in minutes, one job a line.
fn workload(text: &str) -> Workload {
    let mut workload = Workload::default();
    for (place, line) in text.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let mut numbers = line.split_whitespace().map(|number| number.parse::<i64>().unwrap());
        let mut next = || numbers.next();
        workload.rows.push(place as u32);
        workload.jobs.push(Job {
            submit: Time(0) + Span::mins(next().unwrap()),
            duration: Span::mins(next().unwrap()),
            estimate: Span::mins(next().unwrap()),
            gpus: next().unwrap() as u32,
            team: next().unwrap_or(0) as u32,
            models: crate::fleet::ANY,
        });
    }
    let teams = workload.jobs.iter().map(|job| job.team).max().unwrap_or(0) + 1;
    workload.teams = (0..teams).map(|team| Name::from(format!("t{team}"))).collect();
    workload
}

fn random(jobs: u64, seed: u64) -> Workload {
    let mut rng = Rng::new(seed);
    let mut at = 0;
    let mut text = String::new();
    for _ in 0..jobs {
        at += rng.below(30);
        let longest = if rng.below(5) == 0 { 2_000 } else { 60 };
        let duration = 1 + rng.below(longest);
        let estimate = 1 + duration * (1 + rng.below(30)) / 10;
        let gpus = [1, 1, 2, 4, 8, 12, 16][rng.pick(&[4, 4, 2, 2, 2, 1, 1])];
        text += &format!("{at} {duration} {estimate} {gpus} {}\n", rng.below(2));
    }
    workload(&text)
}

const SMALL: Pool = Pool { nodes: 2, gpus_per_node: 8 };

fn replay(preset: Preset, site: impl Into<Site>, workload: &Workload) -> Replayed {
    run(&preset.rules(), site, workload, &mut |_| ()).unwrap()
}

/// First start, end and number of stretches of each job, in minutes.
fn described(replayed: &Replayed) -> String {
    let minutes = |time: Time| (time - Time(0)).0 / 60_000;
    let one = |outcome: &Outcome| match (outcome.first_start(), outcome.end) {
        (Some(start), Some(end)) => {
            format!("{}-{} in {}", minutes(start), minutes(end), outcome.segments.len())
        }
        _ => "never".to_owned(),
    };
    replayed.outcomes.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_replay_gives_every_job_its_true_duration() {
    for (preset, seed) in [(Preset::Berth, 1), (Preset::BerthSharing, 2), (Preset::BerthSharing, 3)]
    {
        let workload = random(300, seed);
        let replayed = replay(preset, SMALL, &workload);
        assert_eq!(replayed.counts.findings, 0);
        for (job, outcome) in workload.jobs.iter().zip(&replayed.outcomes) {
            assert_eq!(outcome.ran() - outcome.wasted(), job.duration, "{preset:?} {outcome:?}");
            assert!(outcome.first_start() >= Some(job.submit));
            assert_eq!(outcome.segments.len() as u32, outcome.preemptions + 1);
        }
    }
}

#[test]
fn under_time_sharing_no_job_is_left_behind() {
    for seed in 1..=12 {
        let pool = Pool { nodes: 4, gpus_per_node: 8 };
        let replayed = replay(Preset::BerthSharing, pool, &random(500, seed));
        assert_eq!(replayed.counts.findings, 0, "seed {seed}");
        assert!(replayed.outcomes.iter().all(|outcome| outcome.end.is_some()), "seed {seed}");
    }
}

#[test]
fn no_more_gpus_are_held_than_there_are() {
    for preset in Preset::ALL {
        let replayed = replay(preset, SMALL, &random(300, 4));
        let mut changes = Vec::new();
        for outcome in &replayed.outcomes {
            for segment in &outcome.segments {
                changes.push((segment.to, -outcome.gpus.0));
                changes.push((segment.from, outcome.gpus.0));
            }
        }
        changes.sort_unstable();
        let mut held = 0;
        for (at, change) in changes {
            held += change;
            assert!(held <= 16_000, "{held} at {at}");
        }
    }
}

#[test]
fn the_same_workload_gives_the_same_outcomes() {
    let workload = random(200, 5);
    for preset in Preset::ALL {
        assert_eq!(replay(preset, SMALL, &workload), replay(preset, SMALL, &workload));
    }
}

#[test]
fn a_job_that_outlives_its_estimate_goes_on_and_has_its_limit_raised() {
    let replayed = replay(Preset::Berth, SMALL, &workload("0 100 10 8\n0 5 50 8"));
    assert_eq!(described(&replayed), "0-100 in 1, 0-5 in 1");
    // To 20, 40, 80 and 160 minutes.
    assert_eq!(replayed.counts.raised, 4);
}

#[test]
fn a_trace_may_begin_before_its_own_time_zero() {
    let replayed = replay(Preset::Berth, SMALL, &workload("-90 10 10 16\n-85 10 10 16"));
    assert_eq!(described(&replayed), "-90--80 in 1, -80--70 in 1");
}

#[test]
fn a_gang_takes_whole_nodes_and_a_part_of_one() {
    let replayed = replay(Preset::Berth, SMALL, &workload("0 10 10 12\n1 10 10 4\n1 10 10 5"));
    assert_eq!(described(&replayed), "0-10 in 1, 1-11 in 1, 10-20 in 1");
}

#[test]
fn a_job_larger_than_the_pool_never_runs_and_stops_nobody() {
    let replayed = replay(Preset::Berth, SMALL, &workload("0 10 10 17\n1 10 10 16"));
    assert_eq!(described(&replayed), "never, 1-11 in 1");
}

#[test]
fn with_time_sharing_a_long_job_pauses_for_a_short_one_and_pays_its_restart() {
    let long_then_short = workload("0 3000 3000 16\n60 10 10 16");
    assert_eq!(
        described(&replay(Preset::Berth, SMALL, &long_then_short)),
        "0-3000 in 1, 3000-3010 in 1"
    );
    let shared = replay(Preset::BerthSharing, SMALL, &long_then_short);
    assert_eq!(described(&shared), "0-3015 in 2, 60-70 in 1");
    let report = Report::new(&shared.outcomes, &Setting { gpus: 16, ..Setting::default() });
    assert_eq!(report.preemptions, 1);
    assert!((report.lost_gpu_hours - 16.0 / 12.0).abs() < 1e-9);
}

#[test]
fn with_quotas_teams_are_queues_that_lend_and_take_back() {
    let rules = Preset::Berth.rules().with_quotas(vec![1, 1]);
    let replayed = run(&rules, SMALL, &workload("0 10 10 16 0\n3 10 10 8 1"), &mut |_| ()).unwrap();
    // Ten minutes of work, of which three are done, after a restart of five.
    assert_eq!(described(&replayed), "0-25 in 2, 3-13 in 1");
}

#[test]
fn where_nobody_waits_the_core_and_a_peer_agree_to_the_moment() {
    let workload = random(200, 6);
    let roomy = Pool { nodes: 400, gpus_per_node: 8 };
    let peer = peers::run(peers::Policy::Fifo, roomy, &workload.jobs, &[]);
    let core = replay(Preset::Berth, roomy, &workload).outcomes;
    // But for where each job runs.
    let described = |outcomes: Vec<Outcome>| -> Vec<_> {
        let times = |outcome: Outcome| (outcome.first_start(), outcome.end, outcome.segments.len());
        outcomes.into_iter().map(times).collect()
    };
    assert_eq!(described(core), described(peer));
}
