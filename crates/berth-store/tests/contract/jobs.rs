use crate::place::{Place, job, lease, on_both};
use berth_model::{JobId, Time};
use berth_model::{JobKind, JobState};
use berth_store::{Batch, JobFilter, JobRow, Store};

on_both!(
    jobs_are_filtered_by_each_field,
    pages_go_on_where_the_last_one_ended,
    jobs_are_counted_by_state,
    the_newest_job_of_a_name_is_found,
    leases_of_an_array_are_found_together_and_apart,
    a_number_that_no_job_can_have_finds_nothing,
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
