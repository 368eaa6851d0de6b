use crate::place::{Place, on_both, tick, ticks};
use berth_model::{Event, JobId, JobSnapshot, JobSpec, Snapshot, Stamped, Time};
use berth_store::{Batch, Error, Store};
use std::collections::BTreeSet;

on_both!(
    a_new_log_is_empty,
    events_come_back_as_they_were,
    an_event_that_does_not_follow_the_last_is_refused,
    loading_begins_after_the_newest_snapshot,
    a_snapshot_of_the_future_is_refused,
    a_log_with_a_hole_is_found,
    a_log_without_its_last_events_is_found,
    an_event_that_cannot_be_read_is_named,
    two_snapshots_are_kept,
    the_jobs_of_a_snapshot_are_kept_in_parts_and_come_back_in_their_order,
    a_snapshot_that_lacks_a_part_is_not_taken_for_whole,
    a_snapshot_of_the_first_version_has_its_jobs_in_it,
    a_long_log_is_loaded_in_pages,
);

async fn load(store: &Store) -> (Option<Snapshot>, Vec<Stamped>) {
    let mut loading = store.load().await.unwrap();
    let mut events = Vec::new();
    loop {
        let page = loading.next_page().await.unwrap();
        if page.is_empty() {
            return (loading.snapshot.take(), events);
        }
        events.extend(page);
    }
}

async fn first_error(store: &Store) -> Error {
    let mut loading = store.load().await.unwrap();
    loop {
        match loading.next_page().await {
            Ok(page) => assert!(!page.is_empty(), "the log was read to its end"),
            Err(error) => return error,
        }
    }
}

async fn a_new_log_is_empty(place: Place) {
    let store = place.open().await;
    assert_eq!(load(&store).await, (None, Vec::new()));
    assert_eq!(store.last_seq().await.unwrap(), 0);
    assert_eq!(store.last_job().await.unwrap(), 0);
    assert_eq!(store.writer("a").await.unwrap().last_seq(), 0);
}

async fn events_come_back_as_they_were(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let failed = Event::ClaimFailed { claim: "gpu-ü'\"".into(), retry_at: Time::MAX };
    let events = vec![tick(1), Stamped { seq: 2, at: Time(-1), event: failed }];
    writer.commit(&Batch { events: events.clone(), ..Batch::default() }).await.unwrap();
    writer.close().await.unwrap();
    assert_eq!(load(&place.open().await).await, (None, events));
}

async fn an_event_that_does_not_follow_the_last_is_refused(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    writer.commit(&ticks(1..=2)).await.unwrap();
    for wrong in [ticks(2..=2), ticks(4..=4)] {
        let error = writer.commit(&wrong).await.unwrap_err();
        assert!(matches!(error, Error::Sequence { expected: 3, .. }), "{error}");
    }
    let mut with_hole = ticks(3..=4);
    with_hole.events.push(tick(6));
    writer.commit(&with_hole).await.unwrap_err();
    writer.commit(&ticks(3..=3)).await.unwrap();
    assert_eq!(load(&store).await.1.len(), 3);
}

async fn loading_begins_after_the_newest_snapshot(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    writer.commit(&ticks(1..=5)).await.unwrap();
    let snapshot =
        Snapshot { seq: 3, now: Time(3_000), moves: vec![Time::MAX], ..Snapshot::default() };
    writer.snapshot(&snapshot, |_| Vec::new()).await.unwrap();
    assert_eq!(load(&store).await, (Some(snapshot), vec![tick(4), tick(5)]));
}

async fn a_snapshot_of_the_future_is_refused(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let snapshot = Snapshot { seq: 1, ..Snapshot::default() };
    assert!(matches!(
        writer.snapshot(&snapshot, |_| Vec::new()).await,
        Err(Error::Sequence { .. })
    ));
}

async fn a_log_with_a_hole_is_found(place: Place) {
    let store = place.open().await;
    store.writer("a").await.unwrap().commit(&ticks(1..=5)).await.unwrap();
    place.sql("DELETE FROM events WHERE seq = 3").await;
    assert!(matches!(first_error(&store).await, Error::Gap { expected: 3, found: 4, .. }));
}

async fn a_log_without_its_last_events_is_found(place: Place) {
    let store = place.open().await;
    store.writer("a").await.unwrap().commit(&ticks(1..=5)).await.unwrap();
    place.sql("DELETE FROM events WHERE seq > 3").await;
    assert!(matches!(first_error(&store).await, Error::Gap { expected: 4, found: 5, .. }));
}

async fn an_event_that_cannot_be_read_is_named(place: Place) {
    let store = place.open().await;
    store.writer("a").await.unwrap().commit(&ticks(1..=2)).await.unwrap();
    place.sql("UPDATE events SET body = '{\"unheard_of\":1}' WHERE seq = 2").await;
    let error = first_error(&store).await;
    assert!(error.to_string().starts_with("event 2 of"), "{error}");
}

async fn two_snapshots_are_kept(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    writer.commit(&ticks(1..=9)).await.unwrap();
    for seq in [2, 5, 9] {
        writer.snapshot(&Snapshot { seq, ..Snapshot::default() }, |_| Vec::new()).await.unwrap();
    }
    assert_eq!(load(&store).await.0.unwrap().seq, 9);
    // Without the newest, the one before it serves.
    place.sql("DELETE FROM snapshots WHERE seq = 9").await;
    let (snapshot, events) = load(&store).await;
    assert_eq!((snapshot.unwrap().seq, events.len()), (5, 4));
}

fn job(number: u64) -> JobSnapshot {
    JobSnapshot::new(JobSpec {
        id: JobId { number, element: None },
        name: "train-ü'\"".into(),
        queue: "q".into(),
        user: "ann".into(),
        project: "p".into(),
        experiment: "e".into(),
        labels: [].into(),
        priority: 0,
        preemptible: true,
        lifecycle: None,
        submitted: Time(1),
        time_limit: None,
        deadline: None,
        restart_cost: None,
        grace: None,
        min_runtime: None,
        preempt_after: None,
        array: None,
        after: Vec::new(),
        singleton: false,
        begin: None,
        hold: false,
        groups: Vec::new(),
        data: BTreeSet::new(),
    })
}

/// Those after one, two at a time.
fn two_of(jobs: &[JobSnapshot], after: Option<JobId>) -> Vec<JobSnapshot> {
    jobs.iter().filter(|job| Some(job.id()) > after).take(2).cloned().collect()
}

async fn the_jobs_of_a_snapshot_are_kept_in_parts_and_come_back_in_their_order(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    writer.commit(&ticks(1..=9)).await.unwrap();
    let jobs: Vec<JobSnapshot> = (1..=5).map(job).collect();
    for seq in [2, 5, 9] {
        let outline = Snapshot { seq, ..Snapshot::default() };
        writer.snapshot(&outline, |after| two_of(&jobs, after)).await.unwrap();
    }
    assert_eq!(load(&store).await.0.unwrap(), Snapshot { seq: 9, jobs, ..Snapshot::default() });
    // The parts have gone with the snapshot: otherwise their keys would be taken.
    for part in 0..3 {
        place.sql(&format!("INSERT INTO snapshot_parts VALUES (2, {part}, '[]')")).await;
    }
}

async fn a_snapshot_that_lacks_a_part_is_not_taken_for_whole(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    writer.commit(&ticks(1..=3)).await.unwrap();
    let jobs: Vec<JobSnapshot> = (1..=5).map(job).collect();
    let outline = Snapshot { seq: 3, ..Snapshot::default() };
    writer.snapshot(&outline, |after| two_of(&jobs, after)).await.unwrap();
    place.sql("DELETE FROM snapshot_parts WHERE part = 1").await;
    let error = store.load().await.unwrap_err();
    assert!(error.to_string().starts_with("part 1 of the snapshot at 3"), "{error}");
}

async fn a_snapshot_of_the_first_version_has_its_jobs_in_it(place: Place) {
    let snapshot = Snapshot { seq: 3, jobs: vec![job(1), job(2)], ..Snapshot::default() };
    {
        let store = place.open().await;
        let mut writer = store.writer("a").await.unwrap();
        writer.commit(&ticks(1..=3)).await.unwrap();
        writer.snapshot(&snapshot, |_| Vec::new()).await.unwrap();
        writer.close().await.unwrap();
    }
    place.sql("ALTER TABLE snapshots DROP COLUMN parts").await;
    place.sql("DROP TABLE snapshot_parts").await;
    place.sql("DROP TABLE figures").await;
    place.sql("DROP TABLE energy").await;
    place.sql("DROP TABLE sessions").await;
    place.sql("DROP TABLE identities").await;
    for table in ["blob_quotas", "data_versions", "blob_names", "blobs"] {
        place.sql(&format!("DROP TABLE {table}")).await;
    }
    for index in ["name_order", "priority", "gpus", "cost"] {
        place.sql(&format!("DROP INDEX jobs_by_{index}")).await;
    }
    for index in ["parent", "session"] {
        place.sql(&format!("DROP INDEX tokens_by_{index}")).await;
    }
    for (table, column) in [
        ("tokens", "parent"),
        ("tokens", "session"),
        ("schedules", "reason"),
        ("audit", "\"key\""),
        ("audit", "seals"),
        ("leases", "stop_at"),
        ("leases", "stop"),
    ] {
        place.sql(&format!("ALTER TABLE {table} DROP COLUMN {column}")).await;
    }
    place.sql("DELETE FROM schema_steps WHERE version >= 2").await;
    assert_eq!(load(&place.open().await).await, (Some(snapshot), Vec::new()));
}

async fn a_long_log_is_loaded_in_pages(place: Place) {
    let store = place.open().await;
    store.writer("a").await.unwrap().commit(&ticks(1..=4_500)).await.unwrap();
    let mut loading = store.load().await.unwrap();
    let mut sizes = Vec::new();
    while let Some(size) = Some(loading.next_page().await.unwrap().len()).filter(|n| *n > 0) {
        sizes.push(size);
    }
    assert_eq!(sizes, [2_000, 2_000, 500]);
}
