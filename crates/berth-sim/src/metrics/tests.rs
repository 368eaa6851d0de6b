use super::*;
use crate::outcome::Segment;
use berth_model::Time;

/// A job of `gpus` GPUs that ran as told, all times in seconds.
fn outcome(team: u32, gpus: i64, submit: i64, runs: &[(i64, i64)]) -> Outcome {
    let segments: Vec<Segment> =
        runs.iter().map(|(from, to)| Segment::new(Time(from * 1_000), Time(to * 1_000))).collect();
    Outcome {
        job: 0,
        submit: Time(submit * 1_000),
        duration: segments.iter().map(Segment::length).sum(),
        gpus: Milli::whole(gpus),
        team,
        end: segments.last().map(|segment| segment.to),
        preemptions: segments.len().saturating_sub(1) as u32,
        interruptions: 0,
        segments,
    }
}

fn setting(gpus: u64) -> Setting {
    Setting { gpus, teams: vec!["a".into(), "b".into()], ..Setting::default() }
}

fn near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() < 1e-9
}

#[test]
fn quantiles_are_values_that_occurred() {
    let outcomes: Vec<Outcome> = (1..=100).map(|wait| outcome(0, 1, 0, &[(wait, 200)])).collect();
    let wait = Report::new(&outcomes, &setting(100)).all.wait;
    let quantiles = [(wait.p50, 50.0), (wait.p95, 95.0), (wait.p99, 99.0), (wait.max, 100.0)];
    assert!(quantiles.into_iter().all(|(found, wanted)| near(found, wanted)), "{wait:?}");
    assert!(near(wait.mean, 50.5));
}

#[test]
fn jobs_shorter_than_ten_seconds_do_not_make_the_slowdown() {
    let report = Report::new(&[outcome(0, 1, 0, &[(99, 100)])], &setting(1));
    assert!(near(report.all.slowdown.mean, 10.0));
    let report = Report::new(&[outcome(0, 1, 0, &[(50, 100)])], &setting(1));
    assert!(near(report.all.slowdown.mean, 2.0));
}

#[test]
fn usage_is_measured_between_the_first_and_the_last_submission() {
    let outcomes = [outcome(0, 2, 0, &[(0, 1_000)]), outcome(0, 1, 100, &[(100, 150)])];
    let usage = Report::new(&outcomes, &setting(4)).usage;
    assert!(near(usage.allocation, 0.5), "{usage:?}");
    assert!(near(usage.makespan, 1_000.0));
}

#[test]
fn restarts_and_lost_work_are_held_but_not_used() {
    let mut paused = outcome(0, 2, 0, &[(0, 50), (60, 100)]);
    paused.segments[0].lost = Span::secs(10);
    paused.segments[1].restart = Span::secs(5);
    let report = Report::new(&[paused, outcome(0, 1, 100, &[(100, 100)])], &setting(2));
    assert!(near(report.usage.allocation, 0.9), "{:?}", report.usage);
    assert!(near(report.usage.utilization, 0.75), "{:?}", report.usage);
    assert!(near(report.lost_gpu_hours, 30.0 / 3_600.0));
    assert_eq!(report.preemptions, 1);
}

#[test]
fn jobs_are_told_by_size_and_by_team_and_the_unfinished_apart() {
    let outcomes =
        [outcome(0, 1, 0, &[(1, 10)]), outcome(1, 16, 0, &[(5, 10)]), outcome(1, 16, 1, &[])];
    let report = Report::new(&outcomes, &setting(16));
    let sizes: Vec<_> =
        report.by_size.iter().map(|(size, group)| (size.word(), group.jobs)).collect();
    assert_eq!(sizes, [("1", 1), (">8", 1)]);
    assert_eq!(report.by_team[1].0.as_str(), "b");
    assert!(near(report.by_team[1].1.wait.mean, 5.0));
    assert_eq!((report.all.jobs, report.unfinished), (2, 1));
    assert_eq!(report.largest().map(|(size, _)| *size), Some(SizeClass::AboveEight));
}

#[test]
fn the_first_and_the_last_jobs_can_be_left_out() {
    let outcomes: Vec<Outcome> =
        (0..20).map(|job| outcome(0, 1, job, &[(job + 5, job + 6)])).collect();
    let trimmed = Setting { trim: Milli(50), ..setting(1) };
    assert_eq!(Report::new(&outcomes, &trimmed).all.jobs, 18);
    assert_eq!(Report::new(&outcomes, &setting(1)).all.jobs, 20);
}

const DAY: i64 = 86_400;

#[test]
fn equal_parts_of_the_quotas_are_perfectly_fair() {
    let outcomes = [
        outcome(0, 3, 0, &[(0, 2 * DAY)]),
        outcome(1, 1, 0, &[(0, 2 * DAY)]),
        outcome(0, 1, 2 * DAY, &[]),
    ];
    let fair = Setting { quotas: vec![3, 1], ..setting(4) };
    let daily = Report::new(&outcomes, &fair).fairness.unwrap().daily;
    assert_eq!((daily.windows, daily.contested), (2, 2));
    assert!(near(daily.jain, 1.0) && near(daily.worst_gap, 0.0), "{daily:?}");
}

#[test]
fn a_team_that_waits_while_another_has_everything_is_seen() {
    let outcomes = [
        outcome(0, 4, 0, &[(0, DAY)]),
        outcome(1, 4, 0, &[(DAY, 2 * DAY)]),
        outcome(0, 4, 2 * DAY, &[]),
    ];
    let equal = Setting { quotas: vec![1, 1], ..setting(4) };
    let daily = Report::new(&outcomes, &equal).fairness.unwrap().daily;
    // On the second day the first team asks for nothing.
    assert_eq!((daily.windows, daily.contested), (1, 1));
    assert!(near(daily.worst_jain, 0.5) && near(daily.worst_gap, 0.5), "{daily:?}");
}

#[test]
fn who_asks_for_less_than_the_quota_is_not_treated_unfairly() {
    let outcomes =
        [outcome(0, 3, 0, &[(0, DAY)]), outcome(1, 1, 0, &[(0, DAY)]), outcome(0, 1, DAY, &[])];
    let equal = Setting { quotas: vec![1, 1], ..setting(4) };
    let daily = Report::new(&outcomes, &equal).fairness.unwrap().daily;
    assert_eq!((daily.windows, daily.contested), (0, 0));
}

#[test]
fn a_week_counts_only_if_all_have_demand_in_each_of_its_hours() {
    // Both ask for much more than their half on the first day, and one for nothing after it.
    let outcomes = [
        outcome(0, 4, 0, &[(0, 8 * DAY)]),
        outcome(1, 400, 0, &[(0, DAY)]),
        outcome(0, 1, 8 * DAY, &[]),
    ];
    let equal = Setting { quotas: vec![1, 1], ..setting(8) };
    let fairness = Report::new(&outcomes, &equal).fairness.unwrap();
    assert_eq!((fairness.weekly.windows, fairness.weekly.contested), (1, 0));
    assert_eq!(fairness.daily.contested, 1);
}
