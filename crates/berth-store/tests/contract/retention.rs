use crate::place::{Place, cost, job, lease, on_both, tick, ticks};
use berth_model::CostKind;
use berth_model::JobState;
use berth_model::{JobId, Snapshot, Time};
use berth_store::{AuditCheck, Batch, CostKey, CostQuery, CostSum, Retained, Store, Writer};

on_both!(
    events_go_only_when_every_snapshot_covers_them,
    sums_over_whole_days_are_what_they_were,
    what_runs_or_is_young_stays,
    retention_works_in_steps,
    the_audit_log_and_the_jobs_stay,
);

const DAY: i64 = 24 * 3_600_000;

async fn retain(writer: &mut Writer, before: Time, limit: u32) -> Retained {
    let mut total = Retained::default();
    loop {
        let step = writer.retain(before, limit).await.unwrap();
        total.events += step.events;
        total.leases += step.leases;
        total.costs += step.costs;
        if !step.more {
            return total;
        }
    }
}

async fn events_go_only_when_every_snapshot_covers_them(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let mut batch = ticks(1..=10);
    for event in &mut batch.events {
        event.at = Time(event.seq as i64 * DAY);
    }
    writer.commit(&batch).await.unwrap();
    assert_eq!(retain(&mut writer, Time(9 * DAY), 100).await.events, 0, "no snapshot");
    for seq in [4, 8] {
        writer.snapshot(&Snapshot { seq, ..Snapshot::default() }, |_| Vec::new()).await.unwrap();
    }
    assert_eq!(retain(&mut writer, Time(3 * DAY), 100).await.events, 2, "older than that");
    assert_eq!(retain(&mut writer, Time(9 * DAY), 100).await.events, 2, "up to the snapshot");
    assert_eq!(store.events(0, 100).await.unwrap(), batch.events[4..]);
    let mut loading = store.load().await.unwrap();
    assert_eq!(loading.next_page().await.unwrap(), batch.events[8..]);
    assert_eq!(loading.next_page().await.unwrap(), []);
    // And the log goes on.
    writer.commit(&Batch { events: vec![tick(11)], ..Batch::default() }).await.unwrap();
}

/// Forty days of thirty jobs, with amounts that no rounding would survive.
fn month() -> Batch {
    let mut batch = Batch::default();
    for number in 1..=30u64 {
        let mut row = job(number);
        row.id = if number % 5 == 0 { row.id.element(number as u32) } else { row.id };
        row.state = JobState::Done;
        row.ended = Some(Time((number as i64 + 2) * DAY));
        batch.leases.push(lease(row.id, 1, Time(number as i64 * DAY)));
        for part in 0..10i64 {
            let from = Time(number as i64 * DAY + part * 7_000_001);
            let mut spent =
                cost(row.id, (from, Time(from.0 + 7_000_001)), 1_000_003 * part + number as i64);
            spent.team = ["vision", "speech"][number as usize % 2].into();
            spent.user = ["ada", "grace", "edsger"][number as usize % 3].into();
            spent.kind = [CostKind::Held, CostKind::Used][part.min(1) as usize];
            if number == 7 {
                spent.lease = None;
                spent.kind = CostKind::Shared;
                spent.amount.0 = -spent.amount.0;
            }
            batch.costs.push(spent);
        }
        batch.jobs.push(row);
    }
    batch
}

async fn sums(store: &Store) -> Vec<Vec<CostSum>> {
    let mut sums = Vec::new();
    let keys = [
        CostKey::Team,
        CostKey::Project,
        CostKey::Experiment,
        CostKey::User,
        CostKey::Job,
        CostKey::Kind,
        CostKey::Day,
    ];
    let mut groups: Vec<Vec<CostKey>> = keys.iter().map(|key| vec![*key]).collect();
    groups.push(vec![]);
    groups.push(keys.to_vec());
    for by in groups {
        for (since, until) in [(0, 100), (5, 11), (8, 9), (20, 40)] {
            let (since, until) = (Some(Time(since * DAY)), Some(Time(until * DAY)));
            let query = CostQuery { by: by.clone(), since, until, ..CostQuery::default() };
            sums.push(store.costs(&query).await.unwrap());
        }
    }
    sums
}

async fn sums_over_whole_days_are_what_they_were(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    writer.commit(&month()).await.unwrap();
    let before = sums(&store).await;
    for (day, limit) in [(8, 1_000), (9, 3), (15, 7), (60, 100)] {
        // In the middle of a day, which is then left alone.
        retain(&mut writer, Time(day * DAY + 12_345_678), limit).await;
        assert_eq!(sums(&store).await, before, "after day {day}");
    }
    let left = retain(&mut writer, Time(90 * DAY), 100).await;
    assert_eq!((left.costs, left.leases), (0, 0));
}

async fn what_runs_or_is_young_stays(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let mut batch = Batch::default();
    for (number, ended) in [(1, Some(2)), (2, None), (3, Some(9))] {
        let mut row = job(number);
        row.ended = ended.map(|day: i64| Time(day * DAY));
        batch.leases.push(lease(row.id, 1, Time(DAY)));
        batch.costs.push(cost(row.id, (Time(DAY), Time(DAY + 5)), 1));
        batch.jobs.push(row);
    }
    writer.commit(&batch).await.unwrap();
    let done = retain(&mut writer, Time(5 * DAY), 100).await;
    assert_eq!((done.leases, done.costs), (1, 1));
    for (number, left) in [(1, 0), (2, 1), (3, 1)] {
        let job = JobId::new(number);
        assert_eq!(store.leases_of(job).await.unwrap().len(), left);
        let rows = store.costs_of(batch.leases[number as usize - 1].id).await.unwrap();
        assert_eq!(rows.len(), left);
    }
}

async fn retention_works_in_steps(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    writer.commit(&month()).await.unwrap();
    let first = writer.retain(Time(60 * DAY), 40).await.unwrap();
    assert_eq!((first.costs, first.leases, first.more), (40, 30, true));
    assert_eq!(retain(&mut writer, Time(60 * DAY), 40).await.costs, 260);
}

async fn the_audit_log_and_the_jobs_stay(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let batch = Batch { audit: vec![crate::place::audit("submit")], ..month() };
    writer.commit(&batch).await.unwrap();
    retain(&mut writer, Time(90 * DAY), 1_000).await;
    let check = store.verify_audit().await.unwrap();
    assert!(matches!(check, AuditCheck::Whole(verified) if verified.rows == 1));
    assert_eq!(store.jobs(&Default::default(), None, 100).await.unwrap().len(), 30);
}
