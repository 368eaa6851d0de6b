use crate::place::{Place, cost, job, on_both};
use berth_model::CostKind;
use berth_model::{JobId, LeaseId, Micros, Milli, Name, Time};
use berth_store::{Batch, CostKey, CostQuery, CostRecord, EnergyRow, Store};

on_both!(
    sums_are_exact_by_every_key,
    sums_can_be_narrowed,
    a_range_has_of_each_row_the_part_that_lies_in_it,
    rows_that_are_not_written_yet_join_the_sums_as_if_they_were,
    energy_is_summed_by_what_costs_are_summed_by,
);

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// Two jobs of two teams over two days, and an idle machine.
fn rows() -> Vec<CostRecord> {
    let at = |hour: i64| Time(20 * DAY + hour * HOUR);
    let mut other = cost(JobId::new(2).element(3), (at(1), at(2)), 9_007_199_254_740_993);
    other.team = "speech".into();
    other.user = "grace".into();
    let mut idle = cost(JobId::new(1), (at(0), at(1)), 7);
    idle.lease = None;
    for key in [&mut idle.team, &mut idle.project, &mut idle.experiment, &mut idle.user] {
        *key = Name::default();
    }
    (idle.kind, idle.gpus) = (CostKind::Unallocated, Milli::ZERO);
    vec![
        cost(JobId::new(1), (at(0), at(1)), 100),
        cost(JobId::new(1), (at(23), at(24)), 11),
        cost(JobId::new(1), (at(25), at(26)), 1),
        other,
        idle,
    ]
}

async fn filled(place: &Place) -> Store {
    let store = place.open().await;
    let batch = Batch { costs: rows(), ..Batch::default() };
    store.writer("a").await.unwrap().commit(&batch).await.unwrap();
    store
}

async fn check(store: &Store, query: CostQuery, expected: &[&str]) {
    let sums = store.costs(&query).await.unwrap();
    let found: Vec<String> =
        sums.iter().map(|sum| format!("{} {}", sum.keys.join("/"), sum.amount.0)).collect();
    assert_eq!(found, expected, "{query:?}");
}

fn by(keys: &[CostKey]) -> CostQuery {
    CostQuery { by: keys.to_vec(), ..CostQuery::default() }
}

async fn sums_are_exact_by_every_key(place: Place) {
    let store = &filled(&place).await;
    check(store, by(&[]), &[" 9007199254741112"]).await;
    check(store, by(&[CostKey::Team]), &[" 7", "speech 9007199254740993", "vision 112"]).await;
    check(store, by(&[CostKey::Job]), &[" 7", "1 112", "2_3 9007199254740993"]).await;
    check(store, by(&[CostKey::Kind]), &["unallocated 7", "used 9007199254741105"]).await;
    check(
        store,
        by(&[CostKey::User, CostKey::Project, CostKey::Experiment]),
        &["// 7", "ada/segmentation/baseline 112", "grace/segmentation/baseline 9007199254740993"],
    )
    .await;
    check(
        store,
        by(&[CostKey::Team, CostKey::Day]),
        &[
            "/1970-01-21 7",
            "speech/1970-01-21 9007199254740993",
            "vision/1970-01-21 111",
            "vision/1970-01-22 1",
        ],
    )
    .await;
    let total = store.costs(&by(&[])).await.unwrap().remove(0);
    assert_eq!(total.gpu_us, 2_500 * 4 * HOUR);
    assert_eq!(total.amount, rows().iter().map(|row| row.amount).sum::<Micros>());
}

async fn sums_can_be_narrowed(place: Place) {
    let store = &filled(&place).await;
    let team = CostQuery { teams: vec!["vision".into()], ..by(&[CostKey::Job]) };
    check(store, team, &["1 112"]).await;
    let user = CostQuery { user: Some("grace".into()), ..by(&[]) };
    check(store, user, &[" 9007199254740993"]).await;
    let array = CostQuery { job: Some(JobId::new(2)), ..by(&[CostKey::Job]) };
    check(store, array, &["2_3 9007199254740993"]).await;
    let element = CostQuery { job: Some(JobId::new(2).element(1)), ..by(&[CostKey::Job]) };
    check(store, element, &[]).await;
    let nobody = CostQuery { project: Some("none".into()), ..by(&[]) };
    check(store, nobody, &[]).await;
}

async fn a_range_has_of_each_row_the_part_that_lies_in_it(place: Place) {
    let store = &filled(&place).await;
    let second_day = CostQuery { since: Some(Time(21 * DAY)), ..by(&[CostKey::Team]) };
    check(store, second_day, &["vision 1"]).await;
    let within = |from: i64, to: i64| CostQuery {
        since: Some(Time(20 * DAY + from)),
        until: Some(Time(20 * DAY + to)),
        ..by(&[CostKey::Team])
    };
    check(store, within(0, HOUR), &[" 7", "vision 100"]).await;
    check(store, within(HOUR / 4, HOUR / 2), &[" 2", "vision 25"]).await;
    check(store, within(HOUR, HOUR + 1), &["speech 2501999792"]).await;
    // Wherever a time is cut, the ranges sum to the whole: no millionth is lost or found.
    let whole = store.costs(&within(0, 2 * HOUR)).await.unwrap();
    for cut in [1, 17, HOUR / 3, HOUR - 1, HOUR, HOUR + 7, 2 * HOUR - 1] {
        let mut sum = (Micros::ZERO, 0);
        for part in [within(0, cut), within(cut, 2 * HOUR)] {
            for found in store.costs(&part).await.unwrap() {
                sum = (sum.0 + found.amount, sum.1 + found.gpu_us);
            }
        }
        let all = whole.iter().map(|sum| sum.amount).sum::<Micros>();
        assert_eq!(sum, (all, whole.iter().map(|sum| sum.gpu_us).sum::<i64>()), "{cut}");
    }
}

async fn rows_that_are_not_written_yet_join_the_sums_as_if_they_were(place: Place) {
    let store = &filled(&place).await;
    let queries = [
        by(&[]),
        by(&[CostKey::Team, CostKey::Kind, CostKey::Job]),
        by(&[CostKey::Hour, CostKey::User]),
        CostQuery { teams: vec!["vision".into()], ..by(&[CostKey::Day, CostKey::Project]) },
        CostQuery { job: Some(JobId::new(2)), ..by(&[CostKey::Experiment]) },
        CostQuery {
            since: Some(Time(20 * DAY + HOUR / 3)),
            until: Some(Time(21 * DAY - 7)),
            ..by(&[CostKey::Job])
        },
    ];
    for query in queries {
        let expected = query.add_rows(store.costs(&query).await.unwrap(), &[]);
        for upto in 0..=rows().len() {
            let written = CostQuery { upto: Some(upto as u64), ..query.clone() };
            let written = store.costs(&written).await.unwrap();
            assert_eq!(query.add_rows(written, &rows()[upto..]), expected, "{query:?} {upto}");
        }
    }
}

fn energy(number: u64, hour: i64, energy_mj: i64) -> EnergyRow {
    let lease = LeaseId { job: JobId::new(number), task: 0, attempt: 1 };
    let (start, end) = (Time(20 * DAY + hour * HOUR), Time(20 * DAY + (hour + 1) * HOUR));
    EnergyRow { lease, start, end, energy_mj, counters: format!("{hour}") }
}

async fn energy_is_summed_by_what_costs_are_summed_by(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let mut batch = Batch { jobs: vec![job(1), job(2)], ..Batch::default() };
    batch.jobs[1].team = "speech".into();
    let rows = [energy(1, 1, 10), energy(1, 2, 20), energy(1, 30, 5), energy(2, 1, 300)];
    rows.iter().for_each(|row| batch.put(row));
    writer.commit(&batch).await.unwrap();
    let shown = async |query: CostQuery| -> Vec<String> {
        let sums = store.energy(&query).await.unwrap();
        sums.iter().map(|sum| format!("{} {}", sum.keys.join("/"), sum.energy_mj)).collect()
    };
    assert_eq!(shown(by(&[])).await, [" 335"]);
    assert_eq!(shown(by(&[CostKey::Team, CostKey::Job])).await, ["speech/2 300", "vision/1 35"]);
    let narrowed = CostQuery { teams: vec!["vision".into()], ..by(&[CostKey::Day]) };
    assert_eq!(shown(narrowed).await, ["1970-01-21 30", "1970-01-22 5"]);
    let since = CostQuery { since: Some(Time(20 * DAY + 2 * HOUR)), ..by(&[CostKey::Job]) };
    assert_eq!(shown(since).await, ["1 25"]);
    let newest = store.newest_energy(rows[0].lease).await.unwrap();
    assert_eq!(newest, Some(rows[2].clone()));

    // Old rows become one of each day, and no sum over whole days changes.
    let mut steps = 0;
    while writer.retain(Time(21 * DAY), 1_000).await.unwrap().more {
        steps += 1;
    }
    assert_eq!(steps, 1);
    assert_eq!(store.every::<EnergyRow>().await.unwrap().len(), 3);
    assert_eq!(shown(by(&[CostKey::Team, CostKey::Job])).await, ["speech/2 300", "vision/1 35"]);
}
