use crate::place::{Place, audit, cost, job, lease, lease_id, on_both, tick, ticks};
use berth_model::JobState;
use berth_model::{JobId, Micros, Time};
use berth_store::{
    Batch, CostQuery, DueNotices, Error, IdempotencyRow, JobFilter, LeaseRow, NoticeRow, Retry,
    SettingRow, Spent,
};
use std::collections::BTreeSet;

on_both!(
    a_batch_is_written_whole,
    a_batch_that_fails_leaves_nothing_behind,
    of_two_rows_with_one_key_the_last_counts,
    what_was_spent_is_written_and_nothing_else_of_the_row,
    a_large_batch_is_one_transaction,
    an_empty_batch_is_nothing,
    text_that_one_database_could_not_keep_is_refused_by_both,
    a_request_is_answered_once,
    notices_wait_for_their_turn,
    a_commit_that_was_abandoned_is_found_out_about,
);

fn full() -> Batch {
    let mut batch = Batch {
        events: vec![tick(1)],
        jobs: vec![job(1)],
        leases: vec![lease(JobId::new(1), 1, Time(0))],
        costs: vec![cost(JobId::new(1), (Time(0), Time(60_000)), 266_667)],
        audit: vec![audit("submit")],
        idempotency: vec![answer("k1")],
        notices: vec![notice("n1", 0)],
        ..Batch::default()
    };
    batch.put(&SettingRow { name: "motd".into(), value: "hello".into() });
    batch
}

fn answer(key: &str) -> IdempotencyRow {
    IdempotencyRow {
        user: "ada".into(),
        key: key.into(),
        at: Time(0),
        fingerprint: "f".into(),
        status: 201,
        body: "{}".into(),
    }
}

fn notice(id: &str, next_at: i64) -> NoticeRow {
    NoticeRow {
        id: id.into(),
        at: Time(0),
        target: "https://hooks.example/x".into(),
        body: "{}".into(),
        attempts: 0,
        next_at: Time(next_at),
        sent: None,
    }
}

async fn a_batch_is_written_whole(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let batch = full();
    writer.commit(&batch).await.unwrap();
    assert_eq!(writer.last_seq(), 1);
    assert_eq!(store.events(0, 10).await.unwrap(), batch.events);
    assert_eq!(store.job(JobId::new(1)).await.unwrap().as_ref(), batch.jobs.first());
    assert_eq!(store.leases_of(JobId::new(1)).await.unwrap(), batch.leases);
    let mut costs = store.costs_of(lease_id(JobId::new(1), 1)).await.unwrap();
    assert_eq!(costs.iter().map(|cost| cost.id).collect::<Vec<_>>(), [1]);
    costs[0].id = 0;
    assert_eq!(costs, batch.costs);
    assert_eq!(store.audit(&Default::default(), None, 10).await.unwrap().len(), 1);
    assert_eq!(store.get(("ada", "k1")).await.unwrap(), Some(answer("k1")));
    let motd: Option<SettingRow> = store.get("motd").await.unwrap();
    assert_eq!(motd.unwrap().value, "hello");
}

async fn a_batch_that_fails_leaves_nothing_behind(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    writer.commit(&Batch { idempotency: vec![answer("k1")], ..Batch::default() }).await.unwrap();
    // The last part of it contradicts what is there.
    let error = writer.commit(&full()).await.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    assert_eq!(error.retry(), Retry::Never);
    assert_eq!(store.events(0, 10).await.unwrap(), []);
    assert_eq!(store.jobs(&JobFilter::default(), None, 10).await.unwrap(), []);
    assert_eq!(store.costs(&CostQuery::default()).await.unwrap(), []);
    assert_eq!(writer.last_seq(), 0);
    // And the writer goes on.
    writer.commit(&Batch { idempotency: vec![answer("k2")], ..full() }).await.unwrap();
    assert_eq!(store.last_seq().await.unwrap(), 1);
}

async fn of_two_rows_with_one_key_the_last_counts(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let mut running = job(1);
    running.state = JobState::Running;
    let batch = Batch { jobs: vec![job(1), job(2), running.clone()], ..Batch::default() };
    writer.commit(&batch).await.unwrap();
    assert_eq!(store.job(JobId::new(1)).await.unwrap(), Some(running));
    assert_eq!(store.job(JobId::new(2)).await.unwrap(), Some(job(2)));
}

async fn what_was_spent_is_written_and_nothing_else_of_the_row(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let jobs: Vec<_> = (1..=75).map(job).collect();
    let leases: Vec<_> =
        jobs.iter().map(|job| LeaseRow { closed: None, ..lease(job.id, 1, Time(0)) }).collect();
    let batch = Batch { jobs: jobs.clone(), leases: leases.clone(), ..Batch::default() };
    writer.commit(&batch).await.unwrap();

    let cost = |id: JobId| Micros(id.number as i64 * 1_000);
    let spent = Spent {
        jobs: jobs[..71].iter().map(|job| (job.id, cost(job.id))).collect(),
        leases: leases[..71].iter().map(|lease| (lease.id, cost(lease.id.job))).collect(),
    };
    writer.commit(&Batch { spent, ..Batch::default() }).await.unwrap();
    let found = store.open_leases().await.unwrap();
    assert_eq!(found.len(), leases.len());
    for (at, (job, lease)) in jobs.into_iter().zip(leases).enumerate() {
        let (mut job, mut lease) = (job, lease);
        if at < 71 {
            (job.cost, lease.cost) = (cost(job.id), cost(job.id));
        }
        assert!(found.contains(&lease), "{lease:?}");
        assert_eq!(store.job(job.id).await.unwrap(), Some(job));
    }
}

async fn a_large_batch_is_one_transaction(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let mut batch = ticks(1..=1_000);
    batch.jobs = (1..=1_000).map(job).collect();
    writer.commit(&batch).await.unwrap();
    assert_eq!(store.last_seq().await.unwrap(), 1_000);
    assert_eq!(store.last_job().await.unwrap(), 1_000);
    assert_eq!(store.events(0, 2_000).await.unwrap(), batch.events);
    batch.jobs.reverse();
    assert_eq!(store.jobs(&JobFilter::default(), None, 2_000).await.unwrap(), batch.jobs);
}

async fn an_empty_batch_is_nothing(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    writer.commit(&Batch::default()).await.unwrap();
    assert_eq!(writer.last_seq(), 0);
}

async fn text_that_one_database_could_not_keep_is_refused_by_both(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let mut odd = job(1);
    odd.reason = "nul \0 inside".into();
    let error = writer.commit(&Batch { jobs: vec![odd], ..Batch::default() }).await.unwrap_err();
    assert!(error.to_string().contains("`reason` holds a NUL"), "{error}");
    writer.commit(&Batch { jobs: vec![job(1)], ..Batch::default() }).await.unwrap();
}

async fn a_request_is_answered_once(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let batch = Batch { idempotency: vec![answer("k1")], ..Batch::default() };
    writer.commit(&batch).await.unwrap();
    let mut other = answer("k1");
    other.body = "other".into();
    let batch = Batch { idempotency: vec![other], ..Batch::default() };
    assert!(matches!(writer.commit(&batch).await, Err(Error::Conflict { .. })));
    let kept: IdempotencyRow = store.get(("ada", "k1")).await.unwrap().unwrap();
    assert_eq!(kept.body, "{}");
}

async fn notices_wait_for_their_turn(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let notices = vec![notice("late", 900), notice("b", 200), notice("a", 200), notice("sent", 1)];
    writer.commit(&Batch { notices, ..Batch::default() }).await.unwrap();
    let mut sent = notice("sent", 1);
    sent.sent = Some(Time(2));
    writer.commit(&Batch { notices: vec![sent], ..Batch::default() }).await.unwrap();
    let none = BTreeSet::new();
    let all = DueNotices { named: false, skip: &none, skip_targets: &none, limit: 10 };
    let due = async |due| {
        let found = store.due_notices(Time(500), due).await.unwrap();
        found.into_iter().map(|notice| notice.id).collect::<Vec<_>>()
    };
    assert_eq!(due(all).await, ["a", "b"]);
    assert_eq!(due(DueNotices { limit: 1, ..all }).await, ["a"]);
    let (first, target) = (["a".to_owned()].into(), [notice("a", 0).target].into());
    assert_eq!(due(DueNotices { skip: &first, ..all }).await, ["b"]);
    assert_eq!(due(DueNotices { skip_targets: &target, ..all }).await, [""; 0]);
    assert_eq!(due(DueNotices { named: true, ..all }).await, [""; 0]);
}

/// Whoever drops the future of a commit does not know how far it got. The writer finds out, and
/// nothing is written twice.
async fn a_commit_that_was_abandoned_is_found_out_about(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let mut next = 1;
    for polls in 0..60 {
        let finished = {
            let batch = ticks(next..=next);
            let mut commit = Box::pin(writer.commit(&batch));
            poll_up_to(polls, &mut commit).await
        };
        let last = match finished {
            Some(result) => {
                result.unwrap();
                next
            }
            None => writer.recover().await.unwrap().last_seq,
        };
        assert!(last == next || last == next - 1, "{last} after {next}");
        assert_eq!(store.last_seq().await.unwrap(), last);
        next = last + 1;
    }
    assert!(next > 1, "some of the commits took place");
}

/// Polls a future so many times, whenever it asks to be polled; none if it is not ready by then.
async fn poll_up_to<F: Future + Unpin>(polls: u32, future: &mut F) -> Option<F::Output> {
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 {
            return std::task::Poll::Ready(None);
        }
        left -= 1;
        std::pin::Pin::new(&mut *future).poll(context).map(Some)
    })
    .await
}
