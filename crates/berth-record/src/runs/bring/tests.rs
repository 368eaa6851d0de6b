//! Updates runs in a real store from facts of jobs.

use super::*;
use crate::runs::facts::Mounted;
use crate::runs::measure::{self, Used};
use berth_model::{JobId, Time};
use berth_tracker::{Metric, Point, value};
use berth_tracker_store::{Options, TrackingStore};
use tempfile::TempDir;

struct Place {
    store: TrackingStore,
    _folder: TempDir,
}

async fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tracking.db");
    let url = format!("sqlite://{}", file.display());
    let options = Options::default();
    let store = TrackingStore::open(&url, "a test", Some(&file), &options).await.unwrap();
    Place { store, _folder: folder }
}

/// A job in its first attempt.
fn facts() -> Facts {
    Facts {
        job: Some(JobId::new(17)),
        run: "0123456789abcdef0123456789abcdef".to_owned(),
        name: "train".to_owned(),
        user: "kim".to_owned(),
        team: "nlp".to_owned(),
        project: "chat".to_owned(),
        experiment: Some("chat".to_owned()),
        runs: true,
        started: Some(Time(1_000)),
        attempts: 1,
        leases: 1,
        nodes: vec!["n1".to_owned()],
        gpus: Some("8xH100".to_owned()),
        command: "python train.py".to_owned(),
        params: vec![("lr".to_owned(), "1e-4".to_owned())],
        data: vec![Mounted {
            path: "/data".to_owned(),
            version: "c4@v3".to_owned(),
            hash: format!("{}.dir", "0a".repeat(16)),
        }],
        ..Facts::default()
    }
}

fn ended(state: JobState) -> Facts {
    let end = End { state, at: Time(9_000), reason: "it is over".to_owned() };
    Facts { end: Some(end), runs: false, gpus: None, ..facts() }
}

async fn now_is(store: &TrackingStore, facts: &Facts) -> Run {
    let head = brought(store, facts, 5_000).await.unwrap().head;
    read(store, &head).await.unwrap()
}

fn tag<'a>(run: &'a Run, key: &str) -> Option<&'a str> {
    told::tag(run, key)
}

async fn logged(store: &TrackingStore, head: &RunHead, key: &str) {
    let point = Point { step: 1, timestamp: 1, value: value::encode(0.5) };
    let metrics = vec![Metric { key: key.to_owned(), point, model: None }];
    let (run, params, tags) = (head.clone(), Vec::new(), Vec::new());
    store.write(RunChange::Log { run, metrics, params, tags }).await.unwrap();
}

#[tokio::test]
async fn a_job_that_starts_has_a_run_with_what_it_runs_with() {
    let Place { store, _folder } = place().await;
    let run = now_is(&store, &facts()).await;
    let experiment = store.experiment(run.experiment).unwrap();
    assert_eq!((&*experiment.team, &*experiment.name), ("nlp", "chat"));
    assert_eq!((&*run.name, &*run.user, &*run.status), ("train", "kim", "RUNNING"));
    assert_eq!((run.start, run.end), (Some(1_000), None));
    assert_eq!(run.params, facts().params);
    for (key, value) in [
        ("berth.job", "17"),
        ("berth.attempts", "1"),
        ("berth.gpus", "8xH100"),
        ("berth.nodes", "n1"),
        ("mlflow.source.name", "python train.py"),
        ("mlflow.user", "kim"),
    ] {
        assert_eq!(tag(&run, key), Some(value), "{key}");
    }
    let input = &run.datasets[0];
    assert_eq!((&*input.dataset.name, &*input.dataset.source_type), ("c4@v3", "berth"));
    assert_eq!((input.dataset.digest.len(), input.context()), (36, Some("data")));
    assert_eq!(now_is(&store, &facts()).await, run, "once more changes nothing");
    store.close().await;
}

#[tokio::test]
async fn a_job_without_a_project_has_its_run_in_the_default_experiment_of_its_team() {
    let Place { store, _folder } = place().await;
    let run = now_is(&store, &Facts { experiment: None, ..facts() }).await;
    let experiment = store.experiment(run.experiment).unwrap();
    assert_eq!((&*experiment.team, &*experiment.name), ("nlp", "Default"));
    store.close().await;
}

#[tokio::test]
async fn a_job_that_names_an_experiment_by_its_number_has_its_run_there_if_its_team_does() {
    let Place { store, _folder } = place().await;
    let chat = now_is(&store, &facts()).await.experiment;
    let numbered = |team: &str, run: &str| Facts {
        team: team.to_owned(),
        run: run.to_owned(),
        experiment: None,
        experiment_no: Some(chat),
        ..facts()
    };
    assert_eq!(now_is(&store, &numbered("nlp", "1a")).await.experiment, chat);
    let other = now_is(&store, &numbered("audio", "2b")).await.experiment;
    assert_eq!(store.experiment(other).unwrap().team, "audio");
    store.close().await;
}

#[tokio::test]
async fn the_run_goes_on_over_attempts_and_ends_as_its_job_does() {
    for (state, status) in [
        (JobState::Done, "FINISHED"),
        (JobState::Failed, "FAILED"),
        (JobState::Cancelled, "KILLED"),
    ] {
        let Place { store, _folder } = place().await;
        let run = now_is(&store, &facts()).await;
        let waits = now_is(&store, &Facts { runs: false, ..facts() }).await;
        assert_eq!(waits.status, "SCHEDULED");
        let again = now_is(&store, &Facts { attempts: 2, ..facts() }).await;
        assert_eq!((&*again.status, tag(&again, "berth.attempts")), ("RUNNING", Some("2")));
        let over = now_is(&store, &ended(state)).await;
        assert_eq!((&*over.status, over.end, over.no), (status, Some(9_000), run.no));
        assert_eq!(tag(&over, "berth.end"), Some(state.as_str()));
        assert_eq!(tag(&over, "berth.gpus"), Some("8xH100"), "it is known what it ran on");
        store.close().await;
    }
}

#[tokio::test]
async fn a_job_that_ended_while_no_server_ran_has_its_end_at_once() {
    let Place { store, _folder } = place().await;
    let first = brought(&store, &ended(JobState::Failed), 20_000).await.unwrap();
    let run = read(&store, &first.head).await.unwrap();
    assert_eq!((&*run.status, run.start, run.end), ("FAILED", Some(1_000), Some(9_000)));
    store.close().await;
}

#[tokio::test]
async fn what_a_script_says_of_its_run_stays_until_its_job_ends() {
    let Place { store, _folder } = place().await;
    let head = brought(&store, &facts(), 5_000).await.unwrap().head;
    let finished = |status| RunChange::Update {
        run: head.clone(),
        status: Some(status),
        end: Some(6_000),
        name: Some("mine".to_owned()),
    };
    store.write(finished(Status::Finished)).await.unwrap();
    let run = now_is(&store, &facts()).await;
    assert_eq!((&*run.status, &*run.name), ("FINISHED", "mine"));
    let over = now_is(&store, &ended(JobState::Failed)).await;
    assert_eq!((&*over.status, over.end, &*over.name), ("FAILED", Some(9_000), "mine"));
    // Berth does not overwrite what a script adds later.
    store.write(finished(Status::Running)).await.unwrap();
    assert_eq!(now_is(&store, &ended(JobState::Failed)).await.status, "RUNNING");
    store.close().await;
}

#[tokio::test]
async fn a_run_that_a_user_has_deleted_is_left_alone() {
    let Place { store, _folder } = place().await;
    let head = brought(&store, &facts(), 5_000).await.unwrap().head;
    let delete = RunChange::Stage { run: head.clone(), deleted: true, at: 6_000 };
    store.write(delete).await.unwrap();
    let over = brought(&store, &ended(JobState::Done), 10_000).await.unwrap();
    assert!(over.run.deleted);
    assert_eq!(read(&store, &head).await.unwrap().status, "RUNNING");
    store.close().await;
}

#[tokio::test]
async fn a_script_chooses_an_experiment_until_it_has_logged() {
    let Place { store, _folder } = place().await;
    let head = brought(&store, &facts(), 5_000).await.unwrap().head;
    let digits = Facts { experiment: Some("digits".to_owned()), ..facts() };
    let digits = place::experiment(&store, &digits, 1).await.unwrap().no;
    let other = Facts { team: "audio".to_owned(), ..facts() };
    let other = place::experiment(&store, &other, 1).await.unwrap().no;
    assert_eq!(moved(&store, &facts(), other).await.unwrap(), None, "it stays in its team");
    assert_eq!(moved(&store, &facts(), digits).await.unwrap(), Some(head.experiment));
    let there = store.run_head(&head.id).await.unwrap().unwrap();
    assert_eq!(there.experiment, digits);
    let run = now_is(&store, &facts()).await;
    assert_eq!((run.experiment, run.datasets.len()), (digits, 1), "the follower leaves it there");
    logged(&store, &there, "loss").await;
    assert_eq!(moved(&store, &facts(), head.experiment).await.unwrap(), None);
    store.close().await;
}

#[tokio::test]
async fn figures_are_points_that_are_written_when_they_change() {
    let Place { store, _folder } = place().await;
    let head = brought(&store, &facts(), 5_000).await.unwrap().head;
    let write = async |cost: f64, at: i64| {
        let run = read(&store, &head).await.unwrap();
        let used = Used { cost, gpu_hours: 1.5, energy_kwh: None, gpu_use: None };
        measure::write(&store, &head, &run, &used, at).await.unwrap();
        let run = read(&store, &head).await.unwrap();
        let latest = run.metrics.iter().find(|latest| &*latest.key == "berth.cost").unwrap();
        (value::decode(latest.point.value), run.metrics.len())
    };
    assert_eq!(write(2.0, 10).await, (2.0, 2));
    assert_eq!(write(2.0, 20).await, (2.0, 2));
    // A lower value at the same time still becomes the newest.
    assert_eq!(write(1.0, 10).await, (1.0, 2));
    let query = berth_tracker::HistoryQuery { run: &head, key: "berth.cost", offset: 0, limit: 10 };
    assert_eq!(store.history(query).await.unwrap().len(), 2);
    store.close().await;
}

#[tokio::test]
async fn a_script_that_writes_the_tag_of_an_end_does_not_keep_its_run_running() {
    let Place { store, _folder } = place().await;
    let run = brought(&store, &facts(), 5_000).await.unwrap().head;
    let tags = vec![(told::END.to_owned(), "early".to_owned())];
    let log = RunChange::Log { run, metrics: Vec::new(), params: Vec::new(), tags };
    store.write(log).await.unwrap();
    let over = now_is(&store, &ended(JobState::Failed)).await;
    assert_eq!((&*over.status, tag(&over, told::END)), ("FAILED", Some("failed")));
    store.close().await;
}

#[tokio::test]
async fn figures_are_written_beside_a_point_of_the_end_of_time() {
    let Place { store, _folder } = place().await;
    let head = brought(&store, &facts(), 5_000).await.unwrap().head;
    let point = Point { step: 0, timestamp: i64::MAX, value: value::encode(9.0) };
    let metrics = vec![Metric { key: "berth.cost".to_owned(), point, model: None }];
    let (run, params, tags) = (head.clone(), Vec::new(), Vec::new());
    store.write(RunChange::Log { run, metrics, params, tags }).await.unwrap();
    let run = read(&store, &head).await.unwrap();
    let used = Used { cost: 2.0, gpu_hours: 1.5, energy_kwh: None, gpu_use: None };
    measure::write(&store, &head, &run, &used, 10).await.unwrap();
    let run = read(&store, &head).await.unwrap();
    let hours = run.metrics.iter().find(|latest| &*latest.key == "berth.gpu_hours").unwrap();
    assert_eq!(hours.point.timestamp, 10);
    store.close().await;
}
