//! The part of a backup that holds experiments, runs and models.

use crate::place::{Place, experiment, log, metric, on_both, pair, read, run};
use berth_tracker::{Dataset, Input, RunChange, RunModel, Store};
use berth_tracker_store::{BackupError, Restored, TrackingStore};
use std::fmt::Write as _;
use tokio::io::AsyncBufReadExt;

on_both!(
    a_backup_restores_into_either_database,
    tables_with_something_in_them_are_kept,
    a_restore_that_is_not_committed_leaves_nothing,
    a_damaged_backup_is_refused,
    a_backup_has_every_table_and_column,
);

async fn fill(store: &TrackingStore) {
    let experiment = experiment(store, "vision", "one").await;
    let run = run(store, experiment, "r1", 1).await;
    let points = (0..300).map(|step| metric("loss", step, 0.5)).collect();
    let odd = pair("odd", "\u{1F680} \" \\ \n text");
    log(store, &run, points, vec![pair("lr", "0.1")], vec![odd]).await.unwrap();
    let dataset = Dataset { name: "c4".into(), digest: "d1".into(), ..Dataset::default() };
    let datasets = vec![Input { dataset, tags: vec![pair("mlflow.data.context", "train")] }];
    let models = vec![RunModel { id: "m-1".into(), is_output: true, step: 3 }];
    store.write(RunChange::Inputs { run, datasets, models }).await.unwrap();
}

async fn backup(store: &TrackingStore) -> String {
    let mut file = Vec::new();
    store.backup(&mut file).await.unwrap();
    String::from_utf8(file).unwrap()
}

async fn restore(text: &str, into: &Place) -> Result<Restored, BackupError> {
    let mut lines = text.as_bytes().lines();
    berth_tracker_store::restore(&mut lines, into.place(), &Default::default()).await
}

async fn restored(text: &str, into: &Place) -> u64 {
    match restore(text, into).await.unwrap() {
        Restored::Filled(filled) => filled.commit().await.unwrap(),
        Restored::Kept { database } => panic!("{database} was not empty"),
    }
}

async fn a_backup_restores_into_either_database(place: Place) {
    let store = place.open().await;
    fill(&store).await;
    let text = backup(&store).await;
    store.close().await;
    for target in [Place::sqlite(), Place::postgres()] {
        let rows = restored(&text, &target).await;
        assert_eq!(rows, text.lines().count() as u64 - 2);
        let store = target.open().await;
        assert_eq!(backup(&store).await, text);
        let head = store.run_head("r1").await.unwrap().unwrap();
        let found = read(&store, &head).await;
        assert_eq!((found.metrics.len(), found.datasets.len(), found.models.len()), (1, 1, 1));
        // The restored store continues with unused numbers.
        let next = run(&store, head.experiment, "r2", 2).await;
        assert!(next.no > head.no);
        log(&store, &head, vec![metric("acc", 1, 1.0)], vec![], vec![]).await.unwrap();
        assert_eq!(read(&store, &head).await.metrics.len(), 2);
        store.close().await;
    }
}

async fn tables_with_something_in_them_are_kept(place: Place) {
    let store = place.open().await;
    fill(&store).await;
    let text = backup(&store).await;
    run(&store, 1, "later", 2).await;
    let now = backup(&store).await;
    store.close().await;
    assert!(matches!(restore(&text, &place).await.unwrap(), Restored::Kept { .. }));
    let store = place.open().await;
    assert_eq!(backup(&store).await, now);
    store.close().await;
}

async fn a_restore_that_is_not_committed_leaves_nothing(place: Place) {
    let source = Place::sqlite();
    let store = source.open().await;
    fill(&store).await;
    let text = backup(&store).await;
    store.close().await;
    match restore(&text, &place).await.unwrap() {
        Restored::Filled(filled) => drop(filled),
        Restored::Kept { database } => panic!("{database} was not empty"),
    }
    restored(&text, &place).await;
}

async fn a_damaged_backup_is_refused(place: Place) {
    let source = Place::sqlite();
    let store = source.open().await;
    fill(&store).await;
    let text = backup(&store).await;
    store.close().await;
    let lines: Vec<&str> = text.lines().collect();
    let mut short = String::new();
    for line in &lines[..lines.len() - 1] {
        let _ = writeln!(short, "{line}");
    }
    let header = lines[0].replacen("\"docs\"", "\"docs; DROP TABLE docs\"", 1);
    let newer = lines[0].replacen("\"berth_tracking\":1", "\"berth_tracking\":99", 1);
    for (what, damaged) in [
        ("empty", String::new()),
        ("without its end", short),
        ("a row less", text.replacen(&format!("{}\n", lines[9]), "", 1)),
        ("a changed value", text.replacen("vision", "vizion", 1)),
        ("another table", text.replacen(lines[0], &header, 1)),
        ("of a newer version", text.replacen(lines[0], &newer, 1)),
    ] {
        let found = restore(&damaged, &place).await;
        assert!(matches!(found, Err(BackupError::Bad { .. })), "{what}");
    }
    restored(&text, &place).await;
}

/// A table that is missing here would be missing after a restore.
async fn a_backup_has_every_table_and_column(place: Place) {
    let store = place.open().await;
    let text = backup(&store).await;
    store.close().await;
    let header: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let tables = header["tables"].as_array().unwrap().iter().map(|table| {
        let columns = table["columns"].as_array().unwrap();
        let columns: Vec<&str> = columns.iter().map(|column| column[0].as_str().unwrap()).collect();
        (table["name"].as_str().unwrap().to_owned(), columns.join(" "))
    });
    assert_eq!(tables.collect::<Vec<_>>(), declared());
}

/// The tables of the migrations, with their columns.
fn declared() -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut steps: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|one| one.unwrap().path()).collect();
    steps.sort();
    let schema: String = steps.iter().map(|step| std::fs::read_to_string(step).unwrap()).collect();
    let mut tables = Vec::new();
    for table in schema.split("CREATE TABLE ").skip(1) {
        let (name, rest) = table.split_once(" (\n").unwrap();
        let body = rest.split_once("\n)").unwrap().0;
        let words = body.lines().filter_map(|line| line.split_whitespace().next());
        let is_column =
            |word: &&str| !matches!(*word, "PRIMARY" | "--") && !word.starts_with("UNIQUE");
        tables.push((name.to_owned(), words.filter(is_column).collect::<Vec<_>>().join(" ")));
    }
    for change in schema.split("ALTER TABLE ").skip(1) {
        let (name, rest) = change.split_once(" ADD COLUMN ").unwrap();
        let column = rest.split_whitespace().next().unwrap();
        let (_, columns) = tables.iter_mut().find(|(table, _)| table == name).unwrap();
        columns.push_str(&format!(" {column}"));
    }
    tables
}
