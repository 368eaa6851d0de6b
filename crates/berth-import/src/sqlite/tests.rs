//! Small databases with MLflow's schema.

use super::Database;
use crate::model::Point;
use crate::source::Source;
use futures_util::TryStreamExt;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection, raw_sql};
use std::path::Path;

const TABLES: &str = include_str!("tables.sql");
const ROWS: &str = include_str!("rows.sql");

async fn made(path: &Path, sql: &'static str) {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

async fn opened(folder: &Path) -> Database {
    Database::open(&folder.join("mlflow.db"), None).await.unwrap()
}

#[tokio::test]
async fn everything_is_read_from_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mlflow.db");
    made(&path, TABLES).await;
    made(&path, ROWS).await;
    let files = folder.path().join("mlartifacts/1/r1/artifacts/model");
    std::fs::create_dir_all(&files).unwrap();
    std::fs::write(files.join("a.bin"), "abc").unwrap();
    let database = opened(folder.path()).await;
    let experiments = database.experiments().await.unwrap();
    let names: Vec<_> = experiments.iter().map(|one| (one.name.as_str(), one.deleted)).collect();
    assert_eq!(names, [("Default", false), ("digits", false), ("old", true)]);
    assert_eq!(experiments[1].tags, [("task".to_owned(), "vision".to_owned())]);
    let runs = database.runs(&experiments[1]).try_concat().await.unwrap();
    assert_eq!(runs.len(), 2);
    let run = &runs[0];
    assert_eq!((run.name.as_str(), run.status.as_str(), run.start), ("first", "FINISHED", Some(5)));
    assert_eq!(run.params, [("lr".to_owned(), "0.1".to_owned())]);
    assert_eq!(run.datasets[0].tags[0].1, "training");
    assert_eq!(run.makes, [("m-1".to_owned(), 7)]);
    assert!(runs[1].deleted && runs[1].name == "named by its tag");
    assert_eq!(runs[1].reads, ["m-1"]);
    let points = database.points(run, "loss").try_concat().await.unwrap();
    let expect = [Point::new(0, 1, 0.5), Point::new(1, 2, f64::NAN), Point::new(1, 3, f64::MAX)];
    assert_eq!(points, expect);
    let found = database.files(&run.place).await.unwrap();
    assert_eq!((found[0].path.as_str(), found[0].bytes), ("model/a.bin", 3));
    let logged = database.logged_models(&experiments[1]).try_concat().await.unwrap();
    assert_eq!((logged.len(), logged[0].status.as_str()), (1, "READY"));
    assert_eq!(logged[0].metrics[0].dataset_name, "set");
    let models = database.registered_models().try_concat().await.unwrap();
    assert_eq!(models[0].aliases, [("champion".to_owned(), 3)]);
    let versions = database.versions("chat").await.unwrap();
    let numbers: Vec<u64> = versions.iter().map(|one| one.version).collect();
    assert_eq!(numbers, [1, 3]);
    assert_eq!(versions[1].tags, [("t".to_owned(), "3".to_owned())]);
}

#[tokio::test]
async fn points_come_page_by_page_and_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mlflow.db");
    made(&path, TABLES).await;
    made(&path, ROWS).await;
    // Many points of one step, across a page boundary.
    let many = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 25000) \
                INSERT INTO metrics SELECT 'many', i * 0.5, i, 'r1', i / 9000, 0 FROM n";
    made(&path, many).await;
    let database = opened(folder.path()).await;
    let experiments = database.experiments().await.unwrap();
    let runs = database.runs(&experiments[1]).try_concat().await.unwrap();
    let pages: Vec<Vec<Point>> = database.points(&runs[0], "many").try_collect().await.unwrap();
    assert!(pages.len() > 2 && pages.iter().all(|page| page.len() <= 10_000));
    let mut points = pages.concat();
    points.sort_unstable();
    points.dedup();
    assert_eq!(points.len(), 25_001);
}

#[tokio::test]
async fn an_old_database_without_the_newer_tables_is_read_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mlflow.db");
    made(&path, TABLES).await;
    made(&path, ROWS).await;
    let old = "DROP TABLE inputs; DROP TABLE datasets; DROP TABLE logged_models; \
               DROP TABLE registered_models; DROP TABLE experiment_tags; DROP TABLE latest_metrics;";
    made(&path, old).await;
    let database = opened(folder.path()).await;
    let experiments = database.experiments().await.unwrap();
    let runs = database.runs(&experiments[1]).try_concat().await.unwrap();
    assert!(runs[0].metrics.contains(&"loss".to_owned()) && runs[0].datasets.is_empty());
    assert!(database.logged_models(&experiments[1]).try_concat().await.unwrap().is_empty());
    assert!(database.registered_models().try_concat().await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_no_database_of_mlflow_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mlflow.db");
    let open = async || Database::open(&path, None).await.err().expect("it is none").whole();
    assert!(open().await.contains("there is no such file"));
    std::fs::write(&path, "no database at all, but longer than a header of one would be").unwrap();
    assert!(open().await.contains("mlflow.db"));
    std::fs::remove_file(&path).unwrap();
    made(&path, "CREATE TABLE experiments (a)").await;
    assert!(open().await.contains("has no column"), "{}", open().await);
    std::fs::remove_file(&path).unwrap();
    made(&path, "CREATE TABLE other (a)").await;
    assert!(open().await.contains("it has no table `experiments`"), "{}", open().await);
}
