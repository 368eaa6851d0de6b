//! Complete imports, from folder to folder.

use super::*;
use crate::error::Error;
use crate::files::FileStore;
use crate::model::{Dataset, Metric, Point};
use crate::sink::{NewRun, NewVersion, Target, Write};
use crate::tags;
use futures_util::TryStreamExt;
use std::fs;
use std::path::Path;
use std::rc::Rc;

struct Still;

impl Watch for Still {
    fn begin(&self, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64) {}
}

fn options() -> Options {
    Options {
        experiments: Vec::new(),
        models: Vec::new(),
        prefix: String::new(),
        resume: false,
        dry_run: false,
        strict: false,
        at_once: 4,
        checked: Checked::Full,
    }
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

async fn run_in(store: &FileStore, of: &crate::Experiment, id: &str) -> Target {
    let new = NewRun { id, name: id, user: "kim", start: Some(5), tags: Vec::new() };
    let run = store.create_run(of, new).await.unwrap();
    store.write(Write::Params(&run, &[pair("lr", "0.1")])).await.unwrap();
    let points: Vec<Metric> = (0..2_500)
        .map(|step| Metric { key: "val/loss".to_owned(), point: Point::new(step, step, 0.1) })
        .collect();
    store.write(Write::Points(&run, &points)).await.unwrap();
    store.write(Write::EndRun(&run, "FINISHED", Some(9))).await.unwrap();
    run
}

/// An experiment with a parent, a child that comes before it, a deleted run and a model.
async fn filled(folder: &Path) -> FileStore {
    let problems = Rc::new(Problems::default());
    let store = FileStore::create(folder, false, problems).unwrap();
    let digits = store.create_experiment("digits", "7", vec![pair("task", "a")]).await.unwrap();
    let parent = run_in(&store, &digits, "parent").await;
    let child = run_in(&store, &digits, "child").await;
    let tags = [pair(tags::PARENT, "parent"), pair("note", "ü")];
    store.write(Write::Tags(&child, &tags)).await.unwrap();
    let data = Dataset {
        name: "set".to_owned(),
        digest: "1".to_owned(),
        source_type: "local".to_owned(),
        source: "x".to_owned(),
        tags: vec![pair("k", "v")],
        ..Dataset::default()
    };
    store.write(Write::Datasets(&parent, &[data])).await.unwrap();
    let file = folder.join("7/parent/artifacts/model/a.bin");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, "abc").unwrap();
    let gone = run_in(&store, &digits, "gone").await;
    store.write(Write::DeleteRun(&gone)).await.unwrap();
    let model = crate::RegisteredModel {
        name: "chat".to_owned(),
        description: "talks".to_owned(),
        created: Some(5),
        tags: Vec::new(),
        aliases: Vec::new(),
    };
    let made = Write::RegisteredModel("chat", &model, vec![pair("owner", "kim")]);
    store.write(made).await.unwrap();
    for version in [1, 3] {
        let new = NewVersion {
            model: "chat",
            version,
            source: "runs:/parent/model",
            run: Some("parent"),
            run_link: None,
            logged_model: None,
            description: "",
            tags: Vec::new(),
        };
        store.create_version(new).await.unwrap();
    }
    store.write(Write::Alias("chat", "champion", 3)).await.unwrap();
    store.write(Write::Stage("chat", 3, "Production")).await.unwrap();
    store
}

async fn moved(from: &Path, to: &Path, options: &Options) -> Result<Report> {
    let problems = Rc::new(Problems::default());
    let source = FileStore::open(from, problems.clone())?;
    let sink = FileStore::create(to, options.dry_run, problems.clone())?;
    copy(&source, &sink, options, &problems, &Still).await
}

#[tokio::test]
async fn everything_is_moved_and_found_to_be_the_same() {
    let work = tempfile::tempdir().unwrap();
    let (from, to) = (work.path().join("from"), work.path().join("to"));
    filled(&from).await;
    let report = moved(&from, &to, &options()).await.unwrap();
    assert!(report.complete, "{report:#?}");
    let of = &report.experiments[0];
    assert_eq!((of.runs, of.at_target.as_ref().unwrap().points), (3, 7_500));
    assert_eq!(of.at_source, of.at_target);
    assert_eq!((report.registered.versions, report.registered.aliases), (2, 1));
    let there = FileStore::open(&to, Rc::new(Problems::default())).unwrap();
    let digits = there.experiments().await.unwrap().remove(0);
    let runs = there.runs(&digits).try_concat().await.unwrap();
    let child = runs.iter().find(|run| run.name == "child").unwrap();
    assert_eq!(tags::value(&child.tags, tags::PARENT), Some("parent"));
    assert_eq!(tags::value(&child.tags, tags::RUN), Some("child"));
    assert!(runs.iter().any(|run| run.name == "gone" && run.deleted));
    assert_eq!(there.versions("chat").await.unwrap()[1].stage, "Production");
}

#[tokio::test]
async fn what_was_moved_is_moved_again_only_if_that_is_asked_for_and_then_not_twice() {
    let work = tempfile::tempdir().unwrap();
    let (from, to) = (work.path().join("from"), work.path().join("to"));
    let store = filled(&from).await;
    moved(&from, &to, &options()).await.unwrap();
    let refused = moved(&from, &to, &options()).await.unwrap_err();
    assert!(matches!(refused, Error::Begun(_)), "{refused:?}");
    // A new run, and a run whose copy was interrupted.
    let digits = store.experiments().await.unwrap().remove(0);
    run_in(&store, &digits, "later").await;
    fs::remove_file(to.join("7/parent/tags").join(tags::STATE)).unwrap();
    fs::remove_file(to.join("7/parent/artifacts/model/a.bin")).unwrap();
    let again = Options { resume: true, ..options() };
    let report = moved(&from, &to, &again).await.unwrap();
    assert!(report.complete, "{report:#?}");
    assert_eq!((report.experiments[0].runs, report.experiments[0].runs_before), (1, 3));
    assert_eq!(report.experiments[0].at_target.as_ref().unwrap().points, 10_000);
    let beside = Options { prefix: "new-".to_owned(), ..options() };
    let report = moved(&from, &to, &beside).await.unwrap();
    assert!(report.complete, "{report:#?}");
    assert_eq!(report.experiments[0].target, "new-digits");
}

#[tokio::test]
async fn a_difference_is_told_with_its_run_and_part() {
    let work = tempfile::tempdir().unwrap();
    let (from, to) = (work.path().join("from"), work.path().join("to"));
    filled(&from).await;
    moved(&from, &to, &options()).await.unwrap();
    fs::write(to.join("7/child/params/lr"), "0.2").unwrap();
    fs::write(to.join("7/parent/artifacts/model/a.bin"), "abd").unwrap();
    let again = Options { resume: true, ..options() };
    let report = moved(&from, &to, &again).await.unwrap();
    assert!(!report.complete);
    let told: Vec<(&str, &str)> =
        report.differences.iter().map(|one| (one.what.as_str(), one.part.as_str())).collect();
    let expect = [
        ("run child of experiment digits", "params"),
        ("run parent of experiment digits", "files"),
    ];
    assert!(told.len() == 2 && expect.iter().all(|one| told.contains(one)), "{told:?}");
    // The comparison of sizes finds no difference.
    let quick = Options { checked: Checked::Sizes, ..again };
    assert_eq!(moved(&from, &to, &quick).await.unwrap().difference_count, 1);
}

#[tokio::test]
async fn a_dry_run_counts_and_writes_nothing_and_names_that_are_not_there_are_told() {
    let work = tempfile::tempdir().unwrap();
    let (from, to) = (work.path().join("from"), work.path().join("to"));
    filled(&from).await;
    let dry = Options { dry_run: true, ..options() };
    let report = moved(&from, &to, &dry).await.unwrap();
    assert_eq!((report.experiments[0].runs, report.registered.versions), (3, 2));
    assert!(!to.exists());
    let wrong = Options { experiments: vec!["digit".to_owned()], ..options() };
    let said = moved(&from, &to, &wrong).await.unwrap_err().to_string();
    assert!(said.contains("there is no experiment `digit`") && said.contains("digits"), "{said}");
    // With an experiment, the import copies only models that are also given.
    let one = Options { experiments: vec!["digits".to_owned()], ..options() };
    let report = moved(&from, &to, &one).await.unwrap();
    assert!(report.complete && report.registered.versions == 0, "{report:#?}");
}

#[tokio::test]
async fn a_broken_run_is_left_out_and_strict_stops_there() {
    let work = tempfile::tempdir().unwrap();
    let (from, to) = (work.path().join("from"), work.path().join("to"));
    filled(&from).await;
    fs::write(from.join("7/child/meta.yaml"), "status: [").unwrap();
    let strict = Options { strict: true, ..options() };
    let stopped = moved(&from, &to, &strict).await.unwrap_err();
    assert!(matches!(stopped, Error::Strict(_)), "{stopped:?}");
    let report = moved(&from, &to, &Options { resume: true, ..options() }).await.unwrap();
    assert!(!report.complete);
    assert_eq!((report.problem_count, report.difference_count), (1, 0), "{report:#?}");
    assert_eq!(report.problems[0].what, "run child");
}
