//! A server that was away, and a machine that cannot start what was decided.

use super::*;
use berth_model::{Ended, JobState};

fn lease(attempt: u32) -> LeaseId {
    LeaseId { job: JobId::new(1), task: 0, attempt }
}

/// A loop with one job that runs since then, for 16 dollars an hour.
async fn with_a_job(folder: &TempDir, since: Time) -> Loop<Nowhere> {
    let mut turning = with_a_team(folder, since, None).await;
    turning.site.knows = None;
    at(&mut turning, since, |turn| {
        submit_one(turn, "node-a", Micros::dollars(16));
        turn.plan();
        turn.observe(Observed::Started { lease: lease(0), at: since });
    })
    .await;
    turning.billed = since;
    turning
}

async fn job(turning: &Loop<Nowhere>) -> berth_store::JobRow {
    turning.writer.store().job(JobId::new(1)).await.unwrap().unwrap()
}

fn ended(at: Time, change: impl FnOnce(&mut Ended)) -> Observed {
    let mut ended = Ended { started_at: Some(at), ..Ended::unknown(lease(0), at) };
    change(&mut ended);
    Observed::Ended(Box::new(ended))
}

#[tokio::test]
async fn a_job_that_ended_while_the_server_was_away_is_billed_up_to_its_end() {
    let folder = TempDir::new().unwrap();
    let began = clock::now() - Span::hours(15);
    let mut turning = with_a_job(&folder, began).await;
    let end = began + Span::hours(1);
    turning.site.meanwhile = vec![ended(end, |ended| ended.code = Some(0))];
    turning.catch_up().await.unwrap();
    turning.sync().await.unwrap();
    turning.turn(Vec::new(), Vec::new()).await.unwrap();
    let job = job(&turning).await;
    assert_eq!(job.state, JobState::Done);
    // The two clocks of the machine are not read in the same moment.
    let off = (job.ended.unwrap() - end).0.abs();
    assert!(off < 1_000, "{off} ms off");
    let over = (job.cost - Micros::dollars(16)).0.abs();
    assert!(over < 16_000_000 / 3_600, "{}", job.cost);
}

#[tokio::test]
async fn what_happened_while_the_server_was_away_is_taken_in_the_order_of_its_times() {
    let folder = TempDir::new().unwrap();
    let began = clock::now() - Span::hours(5);
    let mut turning = with_a_team(&folder, began, None).await;
    turning.site.knows = None;
    at(&mut turning, began, |turn| {
        submit_one(turn, "node-a", Micros::dollars(16));
        submit_one(turn, "node-b", Micros::dollars(16));
        turn.plan();
    })
    .await;
    let second = LeaseId { job: JobId::new(2), task: 0, attempt: 0 };
    let done = |lease, hours: i64| {
        let at = began + Span::hours(hours);
        let ended = Ended { code: Some(0), started_at: Some(at), ..Ended::unknown(lease, at) };
        Observed::Ended(Box::new(ended))
    };
    turning.site.meanwhile = vec![done(lease(0), 3), done(second, 1)];
    turning.catch_up().await.unwrap();
    let store = turning.writer.store();
    for (number, hours) in [(1, 3), (2, 1)] {
        let job = store.job(JobId::new(number)).await.unwrap().unwrap();
        let off = (job.ended.unwrap() - (began + Span::hours(hours))).0.abs();
        assert!(off < 1_000, "job {number} is {off} ms off");
    }
    let events = store.events(0, 100).await.unwrap();
    assert!(events.is_sorted_by_key(|stamped| stamped.at), "time in the log goes back");
}

#[tokio::test]
async fn an_end_in_the_future_or_before_the_log_counts_as_now_or_as_its_last_event() {
    for (off, expected) in [(Span::days(2), None), (Span::days(-2), Some(()))] {
        let folder = TempDir::new().unwrap();
        let began = clock::now() - Span::hours(1);
        let mut turning = with_a_job(&folder, began).await;
        turning.site.meanwhile = vec![ended(clock::now() + off, |ended| ended.code = Some(0))];
        turning.catch_up().await.unwrap();
        let ended = job(&turning).await.ended.unwrap();
        match expected {
            Some(()) => assert_eq!(ended, began),
            None => assert!(ended <= clock::now() && ended > began),
        }
    }
}

#[tokio::test]
async fn a_job_that_its_supervisor_ended_at_its_limit_has_failed_and_is_not_run_again() {
    let folder = TempDir::new().unwrap();
    let began = clock::now() - Span::hours(1);
    let mut turning = with_a_job(&folder, began).await;
    let end = began + Span::mins(10);
    turning.site.meanwhile = vec![ended(end, |ended| ended.asked = Some(Cause::TimeLimit))];
    turning.catch_up().await.unwrap();
    turning.turn(Vec::new(), Vec::new()).await.unwrap();
    let job = job(&turning).await;
    assert_eq!((job.state, &*job.reason), (JobState::Failed, "reached its time limit"));
}

#[tokio::test]
async fn trouble_of_the_machine_is_no_try_of_the_job_and_its_pauses_grow() {
    let folder = TempDir::new().unwrap();
    let now = clock::now();
    let mut turning = with_a_team(&folder, now, None).await;
    at(&mut turning, now, |turn| {
        let request = request(&turn.core.state, "run: sleep 1\ngpus: 1\nretry: {infra: 0}\n");
        turn.apply_observed(Event::NodeAdded { node: Box::new(node("a", Micros::dollars(16))) });
        turn.submit(request).unwrap();
        turn.plan();
    })
    .await;
    let mut time = now;
    let mut pauses = Vec::new();
    for attempt in 0..9 {
        at(&mut turning, time, |turn| turn.trouble(lease(attempt), "the disk is full".to_owned()))
            .await;
        let again = turning.core.lock().unwrap().jobs[&JobId::new(1)].detail.again_at.unwrap();
        pauses.push((again - time).0 / 1_000);
        time = again;
        at(&mut turning, time, |turn| {
            turn.release_retries();
            turn.plan();
        })
        .await;
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(job(&turning).await.cost, Micros::ZERO, "it never held its GPU for a moment");
    let tries = turning.core.lock().unwrap().jobs[&JobId::new(1)].detail.tries;
    assert_eq!((tries.infra, tries.error, tries.oom), (0, 0, 0));
    // Once it could be started, the next trouble begins with a short pause.
    at(&mut turning, time, |turn| {
        turn.observe(Observed::Started { lease: lease(9), at: time });
    })
    .await;
    assert_eq!(turning.core.lock().unwrap().jobs[&JobId::new(1)].detail.tries.trouble, 0);
}

#[tokio::test]
async fn a_clock_that_was_set_is_in_the_audit_log() {
    let folder = TempDir::new().unwrap();
    let mut turning = with_a_team(&folder, clock::now(), None).await;
    let now = clock::now();
    let batch = at(&mut turning, now, |turn| {
        turn.note_jump(clock::Jump { at: now, by: Span::days(-2) });
    })
    .await;
    let told: Vec<(&str, &str)> =
        batch.audit.iter().map(|row| (row.what.as_str(), row.target.as_str())).collect();
    assert_eq!(told, [("clock_set", "2d back")]);
}
