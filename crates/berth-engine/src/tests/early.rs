//! Early ends of jobs by their own rules.

use super::*;
use berth_model::{Ended, JobState};

const WHY: &str = "stopped by its rule: loss is nan";

fn lease() -> LeaseId {
    LeaseId { job: JobId::new(1), task: 0, attempt: 0 }
}

async fn running(folder: &TempDir) -> Loop<Nowhere> {
    let now = clock::now();
    let mut turning = with_a_team(folder, now, None).await;
    at(&mut turning, now, |turn| {
        submit_one(turn, "node-a", Micros::dollars(16));
        let next = request(&turn.core.state, "run: echo\nafter: [1]\n");
        turn.submit(next).unwrap();
        turn.plan();
        turn.observe(Observed::Started { lease: lease(), at: now });
    })
    .await;
    turning
}

fn end_early(turn: &mut Turn<'_>) -> Result<Written, Refused> {
    let act = Act::EndEarly { job: JobId::new(1), why: WHY.to_owned() };
    turn.write(Write { act, ..nothing() })
}

async fn job(turning: &Loop<Nowhere>, number: u64) -> berth_store::JobRow {
    turning.writer.store().job(JobId::new(number)).await.unwrap().unwrap()
}

fn ended(change: impl FnOnce(&mut Ended)) -> Observed {
    let now = clock::now();
    let mut ended = Ended { started_at: Some(now), ..Ended::unknown(lease(), now) };
    change(&mut ended);
    Observed::Ended(Box::new(ended))
}

#[tokio::test]
async fn a_job_that_its_rule_ends_is_done_with_the_reason_and_what_waits_for_it_may_start() {
    let folder = TempDir::new().unwrap();
    let mut turning = running(&folder).await;
    at(&mut turning, clock::now(), |turn| {
        end_early(turn).unwrap();
        turn.plan();
    })
    .await;
    assert_eq!(job(&turning, 1).await.state, JobState::Stopping);
    assert_eq!(job(&turning, 1).await.reason, WHY);
    at(&mut turning, clock::now(), |turn| {
        // Frameworks that save on SIGTERM exit with 143.
        turn.observe(ended(|ended| {
            (ended.code, ended.asked) = (Some(143), Some(Cause::Cancelled));
        }));
        let waits = turn.core.state.reasons(JobId::new(2));
        assert!(waits.iter().all(|reason| reason.code() != "dependency-never"), "{waits:?}");
        assert!(waits.iter().all(|reason| reason.code() != "dependency"), "{waits:?}");
    })
    .await;
    let ended = job(&turning, 1).await;
    assert_eq!((ended.state, &*ended.reason), (JobState::Done, WHY));
}

#[tokio::test]
async fn a_job_that_fails_before_the_stop_reaches_it_has_not_succeeded() {
    let folder = TempDir::new().unwrap();
    let mut turning = running(&folder).await;
    at(&mut turning, clock::now(), |turn| {
        end_early(turn).unwrap();
        turn.plan();
        turn.observe(ended(|ended| ended.code = Some(3)));
    })
    .await;
    let ended = job(&turning, 1).await;
    assert_eq!(ended.state, JobState::Cancelled);
    assert_eq!(ended.reason, "failed with exit code 3");
}

#[tokio::test]
async fn only_a_job_that_runs_is_ended_by_a_rule_and_only_once() {
    let folder = TempDir::new().unwrap();
    let mut turning = running(&folder).await;
    at(&mut turning, clock::now(), |turn| {
        let waiting = Act::EndEarly { job: JobId::new(2), why: WHY.to_owned() };
        let refused = turn.write(Write { act: waiting, ..nothing() });
        assert!(matches!(refused, Err(Refused::Unmet(_))), "{refused:?}");
        end_early(turn).unwrap();
        assert!(matches!(end_early(turn), Err(Refused::Unmet(_))));
    })
    .await;
    let folder = TempDir::new().unwrap();
    let mut turning = running(&folder).await;
    at(&mut turning, clock::now(), |turn| {
        let act = Act::Cancel { job: JobId::new(1), now: false };
        turn.write(Write { act, ..nothing() }).unwrap();
        turn.plan();
        assert!(matches!(end_early(turn), Err(Refused::Unmet(_))), "a user has stopped it");
    })
    .await;
}
