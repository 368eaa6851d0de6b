//! What a page costs, told by SQLite itself: its plan, and how many steps of its machine it takes.

use super::*;
use crate::{Options, Store, sqlite_url};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Row as _, query, query_with, raw_sql};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const FEW: u64 = 4_000;
const MANY: u64 = 40_000;

/// A database of so many waiting jobs of two teams, and a tenth as many elements of one array.
async fn database(folder: &Path, jobs: u64) -> Store {
    let path = folder.join(format!("{jobs}.db"));
    let store = Store::open(&sqlite_url(&path), Options::default()).await.unwrap();
    let insert = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {jobs})
         INSERT INTO jobs SELECT
             CASE WHEN i > {jobs} * 9 / 10 THEN {jobs} ELSE i END,
             CASE WHEN i > {jobs} * 9 / 10 THEN i ELSE -1 END,
             'job-' || (i % 100), 'job', 'user-' || (i % 3), 'team-' || (i % 2), 'p', '',
             'pending', 0, i, NULL, NULL, 0, 1000, 0, 'run: x', '{{}}', ''
         FROM n"
    );
    raw_sql(AssertSqlSafe(insert)).execute(&mut connection(&path).await).await.unwrap();
    store
}

async fn connection(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::from_str(&sqlite_url(path)).unwrap().connect().await.unwrap()
}

fn path_of(folder: &Path, jobs: u64) -> PathBuf {
    folder.join(format!("{jobs}.db"))
}

/// Every kind of question that people ask, and pages in the middle.
fn questions(jobs: u64) -> Vec<(&'static str, JobFilter, Option<JobId>)> {
    let any = JobFilter::default;
    let states = vec![JobState::Pending, JobState::Running];
    let middle = Some(JobId::new(jobs / 2));
    let in_array = Some(JobId::new(jobs).element(u32::try_from(jobs * 95 / 100).unwrap()));
    let team = || vec!["team-1".to_owned()];
    vec![
        ("all", any(), None),
        ("all, from the middle", any(), middle),
        ("all, from within an array", any(), in_array),
        ("some states", JobFilter { states: states.clone(), ..any() }, middle),
        ("a team", JobFilter { teams: team(), ..any() }, middle),
        ("states of a team", JobFilter { teams: team(), states: states.clone(), ..any() }, None),
        ("a user", JobFilter { user: Some("user-1".into()), ..any() }, in_array),
        ("states of a user", JobFilter { user: Some("user-1".into()), states, ..any() }, middle),
        ("a name", JobFilter { name: Some("job-7".into()), ..any() }, middle),
        ("a text that is nowhere", JobFilter { text: Some("nothing".into()), ..any() }, None),
        ("a project that is nowhere", JobFilter { project: Some("q".into()), ..any() }, middle),
    ]
}

#[tokio::test]
async fn every_page_of_jobs_is_read_from_an_index_in_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let store = database(folder.path(), 100).await;
    for (what, filter, after) in questions(100) {
        let Sql { from, binds } = PageRead::new(&filter, after, 50).page();
        let sql = AssertSqlSafe(format!("EXPLAIN QUERY PLAN SELECT jobs.id FROM {from}"));
        let rows = query_with(sql, binds.into_arguments()).fetch_all(store.readers()).await;
        let plan: Vec<String> =
            rows.unwrap().iter().map(|row| row.try_get("detail").unwrap()).collect();
        let of_jobs: Vec<&String> = plan.iter().filter(|step| step.contains(" jobs ")).collect();
        assert!(!of_jobs.is_empty(), "{what}: {plan:#?}");
        for step in of_jobs {
            assert!(step.starts_with("SEARCH jobs USING"), "{what}: {plan:#?}");
        }
        // Parts come sorted: only what they add up to is merged.
        let sorts = plan.iter().filter(|step| step.contains("LAST TERM OF ORDER BY")).count();
        assert_eq!(sorts, 0, "{what}: {plan:#?}");
    }
}

/// How many hundreds of steps a page takes.
async fn cost(path: &Path, filter: &JobFilter, after: Option<JobId>) -> u64 {
    let Sql { from, binds } = PageRead::new(filter, after, 50).page();
    // The counter belongs to a connection of SQLite's own kind, which takes no such placeholders.
    let sql = literal(format!("SELECT jobs.id FROM {from}"), binds.values());
    let steps = Arc::new(AtomicU64::new(0));
    let counted = steps.clone();
    let mut connection = connection(path).await;
    connection.lock_handle().await.unwrap().set_progress_handler(100, move || {
        counted.fetch_add(1, Ordering::Relaxed);
        true
    });
    query(AssertSqlSafe(sql)).fetch_all(&mut connection).await.unwrap();
    steps.load(Ordering::Relaxed)
}

fn literal(mut sql: String, values: &[Value]) -> String {
    for (at, value) in values.iter().enumerate().rev() {
        let text = match value {
            Value::Int(number) => number.unwrap().to_string(),
            Value::Text(text) => format!("'{}'", text.as_deref().unwrap()),
        };
        sql = sql.replace(&format!("${}", at + 1), &text);
    }
    sql
}

#[tokio::test]
async fn a_page_of_jobs_costs_the_same_however_many_wait() {
    let folder = tempfile::tempdir().unwrap();
    for jobs in [FEW, MANY] {
        database(folder.path(), jobs).await;
    }
    for (few, many) in questions(FEW).into_iter().zip(questions(MANY)) {
        let what = few.0;
        let few = cost(&path_of(folder.path(), FEW), &few.1, few.2).await;
        let many = cost(&path_of(folder.path(), MANY), &many.1, many.2).await;
        assert!(many <= few + few / 2 + 20, "{what}: {few} and {many} hundred steps");
    }
}

#[tokio::test]
async fn a_search_goes_on_over_pages_that_hold_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = database(folder.path(), FEW * 2).await;
    let filter = JobFilter { project: Some("nowhere".into()), ..JobFilter::default() };
    let mut pages = 0;
    let mut after = None;
    loop {
        let page = store.job_page(&filter, after, 50).await.unwrap();
        assert_eq!(page.jobs, []);
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(pages, 1 + FEW * 2 / u64::from(LOOKED_AT));
    let since = JobFilter { since: Some(berth_model::Time(3)), ..JobFilter::default() };
    let all = store.jobs(&since, None, u32::MAX).await.unwrap();
    assert_eq!(all.len() as u64, FEW * 2 - 2, "all pages together miss nothing");
    assert!(all.is_sorted_by_key(|job| (std::cmp::Reverse(job.id.number), job.id.element)));
}
