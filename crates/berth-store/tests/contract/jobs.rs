use crate::place::{Place, job, lease, on_both};
use berth_model::{JobId, Time};
use berth_model::{JobKind, JobState};
use berth_store::{Batch, JobFilter, JobKey, JobOrder, JobRow, LeaseFilter, Store};

on_both!(
    jobs_are_filtered_by_each_field,
    pages_go_on_where_the_last_one_ended,
    jobs_are_counted_by_state,
    the_newest_job_of_a_name_is_found,
    leases_of_an_array_are_found_together_and_apart,
    a_number_that_no_job_can_have_finds_nothing,
    pages_come_in_the_order_of_a_key_and_of_numbers_where_it_is_the_same,
    the_oldest_jobs_come_first_where_that_is_asked_for,
    leases_of_a_time_are_found_with_whose_they_were,
);

/// Six jobs that differ in one thing each, and an array of three elements.
fn some() -> Vec<JobRow> {
    let mut jobs: Vec<JobRow> = (1..=6).map(job).collect();
    jobs[1].user = "grace".into();
    jobs[2].team = "speech".into();
    jobs[3].state = JobState::Running;
    jobs[4].kind = JobKind::Notebook;
    jobs[5].name = "50%_Off".into();
    jobs[5].project = "other".into();
    for element in 0..3 {
        let mut part = job(7);
        part.id = part.id.element(element);
        part.experiment = "sweep".into();
        jobs.push(part);
    }
    jobs
}

async fn filled(place: &Place) -> Store {
    let store = place.open().await;
    let batch = Batch { jobs: some(), ..Batch::default() };
    store.writer("a").await.unwrap().commit(&batch).await.unwrap();
    store
}

async fn check(store: &Store, filter: JobFilter, expected: &str) {
    let jobs = store.jobs(&filter, None, 100).await.unwrap();
    let found: Vec<String> = jobs.iter().map(|job| job.id.to_string()).collect();
    assert_eq!(found.join(" "), expected, "{filter:?}");
    let counted: u64 = store.count_jobs(&filter).await.unwrap().values().sum();
    assert_eq!(counted, jobs.len() as u64, "{filter:?}");
}

async fn jobs_are_filtered_by_each_field(place: Place) {
    let store = &filled(&place).await;
    let any = JobFilter::default;
    check(store, any(), "7_0 7_1 7_2 6 5 4 3 2 1").await;
    check(store, JobFilter { user: Some("grace".into()), ..any() }, "2").await;
    check(store, JobFilter { teams: vec!["speech".into()], ..any() }, "3").await;
    let both = vec!["speech".into(), "vision".into()];
    check(store, JobFilter { teams: both, ..any() }, "7_0 7_1 7_2 6 5 4 3 2 1").await;
    check(store, JobFilter { states: vec![JobState::Running], ..any() }, "4").await;
    let states = vec![JobState::Running, JobState::Pending, JobState::Running, JobState::Done];
    let all = JobFilter { states: states.clone(), ..any() };
    check(store, all, "7_0 7_1 7_2 6 5 4 3 2 1").await;
    check(store, JobFilter { states, user: Some("grace".into()), ..any() }, "2").await;
    check(store, JobFilter { kind: Some(JobKind::Notebook), ..any() }, "5").await;
    check(store, JobFilter { project: Some("other".into()), ..any() }, "6").await;
    check(store, JobFilter { experiment: Some("sweep".into()), ..any() }, "7_0 7_1 7_2").await;
    check(store, JobFilter { name: Some("train-3".into()), ..any() }, "3").await;
    check(store, JobFilter { number: Some(7), ..any() }, "7_0 7_1 7_2").await;
    check(store, JobFilter { text: Some("%_o".into()), ..any() }, "6").await;
    check(store, JobFilter { text: Some("TRAIN-4".into()), ..any() }, "4").await;
    check(store, JobFilter { text: Some("'; DROP TABLE jobs; --".into()), ..any() }, "").await;
    let (since, until) = (Some(Time(2_000)), Some(Time(4_000)));
    check(store, JobFilter { since, until, ..any() }, "3 2").await;
}

async fn pages_go_on_where_the_last_one_ended(place: Place) {
    let store = filled(&place).await;
    let states = vec![JobState::Pending, JobState::Running];
    for filter in [JobFilter::default(), JobFilter { states, ..JobFilter::default() }] {
        let all = store.jobs(&filter, None, 100).await.unwrap();
        for limit in 1..=4 {
            assert_eq!(paged(&store, &filter, limit).await, all, "{limit} at a time, {filter:?}");
        }
    }
}

async fn paged(store: &Store, filter: &JobFilter, limit: u32) -> Vec<JobRow> {
    let (mut paged, mut after) = (Vec::new(), None);
    loop {
        let page = store.jobs(filter, after, limit).await.unwrap();
        let Some(last) = page.last() else { return paged };
        after = Some(last.id);
        paged.extend(page);
    }
}

async fn jobs_are_counted_by_state(place: Place) {
    let store = filled(&place).await;
    let counts = store.count_jobs(&JobFilter::default()).await.unwrap();
    assert_eq!(counts, [(JobState::Pending, 8), (JobState::Running, 1)].into());
}

async fn the_newest_job_of_a_name_is_found(place: Place) {
    let store = place.open().await;
    let mut again = job(9);
    again.name = "train-1".into();
    let batch = Batch { jobs: vec![job(1), job(2), again.clone()], ..Batch::default() };
    store.writer("a").await.unwrap().commit(&batch).await.unwrap();
    assert_eq!(store.job_named("train-1").await.unwrap(), Some(again));
    assert_eq!(store.job_named("train").await.unwrap(), None);
}

async fn leases_of_an_array_are_found_together_and_apart(place: Place) {
    let store = place.open().await;
    let array = JobId::new(7);
    let mut open = lease(array.element(1), 2, Time(9));
    (open.closed, open.outcome, open.exit) = (None, None, None);
    let leases =
        vec![lease(array.element(0), 1, Time(0)), lease(array.element(1), 1, Time(0)), open];
    let batch = Batch { leases: leases.clone(), ..Batch::default() };
    store.writer("a").await.unwrap().commit(&batch).await.unwrap();
    assert_eq!(store.leases_of(array).await.unwrap(), leases);
    assert_eq!(store.leases_of(array.element(1)).await.unwrap(), leases[1..]);
    assert_eq!(store.open_leases().await.unwrap(), leases[2..]);
}

async fn a_number_that_no_job_can_have_finds_nothing(place: Place) {
    let store = filled(&place).await;
    assert_eq!(store.job(JobId::new(u64::MAX)).await.unwrap(), None);
    assert_eq!(store.job(JobId::new(7)).await.unwrap(), None);
    assert!(store.job(JobId::new(7).element(2)).await.unwrap().is_some());
}

/// All pages of an order, and their jobs as numbers.
async fn in_order(store: &Store, filter: &JobFilter, order: JobOrder, limit: u32) -> String {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.ordered_job_page(filter, order, after.as_ref(), limit).await.unwrap();
        assert!(page.jobs.len() <= limit as usize);
        found.extend(page.jobs.iter().map(|job| job.id.to_string()));
        after = page.next;
        if after.is_none() {
            return found.join(" ");
        }
    }
}

async fn pages_come_in_the_order_of_a_key_and_of_numbers_where_it_is_the_same(place: Place) {
    let store = place.open().await;
    let mut jobs = some();
    for (job, priority) in jobs.iter_mut().zip([5, 7, 5, 9, 5, 7, 7, 7, 7]) {
        job.priority = priority;
    }
    let batch = Batch { jobs, ..Batch::default() };
    store.writer("a").await.unwrap().commit(&batch).await.unwrap();
    let any = JobFilter::default;
    for limit in [1, 2, 3, 100] {
        let priority = |descending| JobOrder { key: JobKey::Priority, descending };
        let down = "4 7_2 7_1 7_0 6 2 5 3 1";
        assert_eq!(in_order(&store, &any(), priority(true), limit).await, down);
        let up: Vec<&str> = down.split(' ').rev().collect();
        assert_eq!(in_order(&store, &any(), priority(false), limit).await, up.join(" "));
        let ada = JobFilter { user: Some("grace".into()), ..any() };
        assert_eq!(in_order(&store, &ada, priority(true), limit).await, "2");
        let states = JobFilter { states: vec![JobState::Pending], ..any() };
        let expect = down.strip_prefix("4 ").unwrap();
        assert_eq!(in_order(&store, &states, priority(true), limit).await, expect);
        let other = JobFilter { project: Some("other".into()), ..any() };
        assert_eq!(in_order(&store, &other, priority(true), limit).await, "6");
        let name = JobOrder { key: JobKey::Name, descending: false };
        assert_eq!(in_order(&store, &any(), name, limit).await, "6 1 2 3 4 5 7_0 7_1 7_2");
    }
}

async fn the_oldest_jobs_come_first_where_that_is_asked_for(place: Place) {
    let store = filled(&place).await;
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.oldest_job_page(&JobFilter::default(), after, 2).await.unwrap();
        found.extend(page.jobs.iter().map(|job| job.id.to_string()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found.join(" "), "1 2 3 4 5 6 7_2 7_1 7_0");
}

async fn leases_of_a_time_are_found_with_whose_they_were(place: Place) {
    let store = place.open().await;
    let mut open = lease(JobId::new(3), 1, Time(500_000));
    (open.closed, open.outcome, open.exit) = (None, None, None);
    let leases =
        vec![lease(JobId::new(1), 1, Time(0)), lease(JobId::new(2), 1, Time(90_000)), open];
    let mut jobs: Vec<JobRow> = (1..=3).map(job).collect();
    jobs[1].team = "speech".into();
    let batch = Batch { leases, jobs, ..Batch::default() };
    store.writer("a").await.unwrap().commit(&batch).await.unwrap();
    let within = |from, to| LeaseFilter {
        from: Time(from),
        to: Time(to),
        node: None,
        job: None,
        teams: Vec::new(),
    };
    let found = async |filter: LeaseFilter, limit| {
        let held = store.leases_in(&filter, limit).await.unwrap();
        held.iter().map(|held| format!("{} {}", held.lease.id.job, held.team)).collect::<Vec<_>>()
    };
    assert_eq!(found(within(0, 1_000_000), 9).await, ["3 vision", "2 speech", "1 vision"]);
    assert_eq!(found(within(0, 1_000_000), 2).await, ["3 vision", "2 speech"]);
    assert_eq!(found(within(60_000, 500_000), 9).await, ["2 speech"]);
    let speech = LeaseFilter { teams: vec!["speech".into()], ..within(0, 1_000_000) };
    assert_eq!(found(speech, 9).await, ["2 speech"]);
    let third = LeaseFilter { job: Some(JobId::new(3)), ..within(0, 1_000_000) };
    assert_eq!(found(third, 9).await, ["3 vision"]);
    let nowhere = LeaseFilter { node: Some("node-b".into()), ..within(0, 1_000_000) };
    assert!(found(nowhere, 9).await.is_empty());
}
