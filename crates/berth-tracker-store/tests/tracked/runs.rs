//! Runs and what they log.

use crate::place::{Place, experiment, log, metric, on_both, pair, read, run};
use berth_tracker::{
    BestQuery, Code, Dataset, HistoryQuery, Input, Metric, NewRun, NewerQuery, OfModel, Point,
    ReachedQuery, ReadBy, RunChange, RunHead, RunModel, RunQuery, SampleQuery, Status, Store, View,
    grammar, value,
};
use berth_tracker_store::TrackingStore;
use std::sync::Arc;

on_both!(
    a_point_that_is_sent_twice_is_there_once,
    the_latest_value_is_that_of_the_highest_step_whatever_came_last,
    values_come_back_bit_by_bit_and_nan_as_nan,
    a_param_keeps_its_value,
    a_deleted_run_takes_nothing_until_it_is_restored,
    changes_that_come_together_are_each_answered_for_themselves,
    what_was_acknowledged_is_there_after_a_restart,
    the_best_value_of_a_run_is_told_and_when_it_reached_a_goal,
    only_points_behind_a_step_and_a_time_are_newer,
    a_watched_run_is_told_when_it_has_new_points_and_no_other,
    history_comes_in_pages_and_samples_stand_for_all_of_it,
    data_sets_and_models_are_kept_with_their_run,
    runs_are_found_by_the_data_and_the_models_that_they_have_read,
    metrics_of_logged_models_are_kept_by_data_set,
    a_run_is_updated_and_renamed_by_its_tag,
    a_run_that_is_made_twice_is_there_once_and_harms_no_other_change,
    a_run_that_moves_takes_all_that_was_logged_along,
);

async fn history(store: &TrackingStore, run: &RunHead, key: &str) -> Vec<Point> {
    let query = HistoryQuery { run, key, offset: 0, limit: 1_000_000 };
    store.history(query).await.unwrap()
}

async fn place_with_run(place: &Place) -> (TrackingStore, RunHead) {
    let store = place.open().await;
    let experiment = experiment(&store, "vision", "one").await;
    let run = run(&store, experiment, "r1", 1).await;
    (store, run)
}

fn latest(run: &berth_tracker::Run, key: &str) -> Option<f64> {
    let found = run.metrics.iter().find(|one| &*one.key == key)?;
    Some(value::decode(found.point.value))
}

async fn a_point_that_is_sent_twice_is_there_once(place: Place) {
    let (store, run) = place_with_run(&place).await;
    let points = || (0..300).map(|step| metric("loss", step, 0.5)).collect::<Vec<_>>();
    for _ in 0..2 {
        log(&store, &run, points(), vec![], vec![]).await.unwrap();
    }
    assert_eq!(history(&store, &run, "loss").await.len(), 300);
    // Another value at the same step is another point.
    log(&store, &run, vec![metric("loss", 0, 0.25)], vec![], vec![]).await.unwrap();
    assert_eq!(history(&store, &run, "loss").await.len(), 301);
    assert_eq!(history(&store, &run, "nothing").await, []);
    store.close().await;
}

async fn a_watched_run_is_told_when_it_has_new_points_and_no_other(place: Place) {
    let (store, one) = place_with_run(&place).await;
    let two = run(&store, one.experiment, "r2", 2).await;
    let logged = async |to: &RunHead, step| {
        log(&store, to, vec![metric("loss", step, 0.5)], vec![], vec![]).await.unwrap();
        store.watch().take().into_iter().collect::<Vec<i64>>()
    };
    assert!(logged(&one, 1).await.is_empty(), "nothing is watched");
    store.watch().add(one.no);
    assert_eq!(store.watch().take().len(), 1, "its earlier points are new");
    assert!(logged(&two, 1).await.is_empty());
    assert_eq!(logged(&one, 2).await, [one.no]);
    log(&store, &one, vec![], vec![], vec![pair("a", "b")]).await.unwrap();
    assert!(store.watch().take().is_empty(), "a tag is no point");
    store.close().await;
}

async fn the_best_value_of_a_run_is_told_and_when_it_reached_a_goal(place: Place) {
    let (store, one) = place_with_run(&place).await;
    let two = run(&store, one.experiment, "r2", 2).await;
    let acc = |values: &[f64]| {
        let points = values.iter().enumerate();
        points.map(|(step, value)| metric("acc", step as i64, *value)).collect::<Vec<_>>()
    };
    log(&store, &one, acc(&[0.1, 0.9, f64::NAN, 0.95]), vec![], vec![]).await.unwrap();
    log(&store, &two, acc(&[f64::NAN, 0.5, -1.0]), vec![], vec![]).await.unwrap();
    let runs = [one.no, two.no];
    let best = async |key: &str, higher| {
        let query = BestQuery { experiment: one.experiment, key, runs: &runs, higher };
        let mut found = store.bests(query).await.unwrap();
        found.sort_by_key(|best| best.run);
        found.iter().map(|best| (best.run, value::decode(best.value))).collect::<Vec<_>>()
    };
    assert_eq!(best("acc", true).await, [(one.no, 0.95), (two.no, 0.5)]);
    assert_eq!(best("acc", false).await, [(one.no, 0.1), (two.no, -1.0)]);
    assert_eq!(best("nothing", true).await, []);
    let of = BestQuery { experiment: one.experiment, key: "acc", runs: &runs, higher: true };
    let goal = value::encode(0.9);
    let reached = store.reached(ReachedQuery { of, goal }).await.unwrap();
    assert_eq!(reached, [(one.no, 1_001)]);
    store.close().await;
}

async fn only_points_behind_a_step_and_a_time_are_newer(place: Place) {
    let (store, run) = place_with_run(&place).await;
    let points = (0..5).map(|step| metric("loss", step, 1.0)).collect();
    log(&store, &run, points, vec![], vec![]).await.unwrap();
    // The same step again, at a later time.
    let point = Point { step: 2, timestamp: 9_000, value: value::encode(0.5) };
    let again = Metric { key: "loss".into(), point, model: None };
    log(&store, &run, vec![again], vec![], vec![]).await.unwrap();
    let newer = async |after, limit| {
        let query = NewerQuery { run: &run, key: "loss", after, limit };
        let found = store.newer(query).await.unwrap();
        found.iter().map(|point| (point.step, point.timestamp)).collect::<Vec<_>>()
    };
    assert_eq!(newer(None, 2).await, [(0, 1_000), (1, 1_001)]);
    assert_eq!(newer(Some((2, 1_002)), 9).await, [(2, 9_000), (3, 1_003), (4, 1_004)]);
    assert_eq!(newer(Some((4, 1_004)), 9).await, []);
    store.close().await;
}

async fn the_latest_value_is_that_of_the_highest_step_whatever_came_last(place: Place) {
    let (store, run) = place_with_run(&place).await;
    for (step, value) in [(5, 1.0), (9, 2.0), (3, 3.0)] {
        log(&store, &run, vec![metric("acc", step, value)], vec![], vec![]).await.unwrap();
    }
    assert_eq!(latest(&read(&store, &run).await, "acc"), Some(2.0));
    // For one step and time, the larger value counts.
    let both = vec![metric("acc", 9, 7.0), metric("acc", 9, 4.0)];
    log(&store, &run, both, vec![], vec![]).await.unwrap();
    assert_eq!(latest(&read(&store, &run).await, "acc"), Some(7.0));
    store.close().await;
}

async fn values_come_back_bit_by_bit_and_nan_as_nan(place: Place) {
    let (store, run) = place_with_run(&place).await;
    let values = [0.1, -1e-300, 1.0 / 3.0, f64::MAX, f64::MIN, f64::NAN, f64::INFINITY];
    let points = values.iter().enumerate().map(|(step, value)| metric("v", step as i64, *value));
    log(&store, &run, points.collect(), vec![], vec![]).await.unwrap();
    let found: Vec<f64> =
        history(&store, &run, "v").await.iter().map(|point| value::decode(point.value)).collect();
    for (found, sent) in found.iter().zip(&values[..5]) {
        assert_eq!(found.to_bits(), sent.to_bits());
    }
    assert!(found[5].is_nan());
    assert_eq!(found[6].to_bits(), f64::MAX.to_bits());
    store.close().await;
}

async fn a_param_keeps_its_value(place: Place) {
    let (store, run) = place_with_run(&place).await;
    let lr = |value| vec![pair("lr", value)];
    log(&store, &run, vec![], lr("0.1"), vec![]).await.unwrap();
    log(&store, &run, vec![], lr("0.1"), vec![]).await.unwrap();
    // A refused batch changes nothing.
    let refused = log(&store, &run, vec![metric("a", 1, 1.0)], lr("0.2"), vec![pair("t", "x")]);
    let refused = refused.await.unwrap_err();
    assert_eq!(refused.code, Code::InvalidParameterValue);
    assert!(refused.message.contains("with value='0.1' for run ID='r1'"), "{refused}");
    let there = read(&store, &run).await;
    assert_eq!(there.params, lr("0.1"));
    assert!(there.metrics.is_empty() && there.tags.iter().all(|(key, _)| key != "t"));
    store.close().await;
}

async fn a_deleted_run_takes_nothing_until_it_is_restored(place: Place) {
    let (store, run) = place_with_run(&place).await;
    let stage = async |deleted| {
        store.write(RunChange::Stage { run: run.clone(), deleted, at: 5 }).await.unwrap();
    };
    stage(true).await;
    let refused = log(&store, &run, vec![metric("a", 1, 1.0)], vec![], vec![]).await.unwrap_err();
    assert!(refused.message.contains("must be in the 'active' state"), "{refused}");
    assert!(read(&store, &run).await.deleted);
    stage(false).await;
    log(&store, &run, vec![metric("a", 1, 1.0)], vec![], vec![]).await.unwrap();
    assert_eq!(latest(&read(&store, &run).await, "a"), Some(1.0));
    store.close().await;
}

async fn changes_that_come_together_are_each_answered_for_themselves(place: Place) {
    let (store, run) = place_with_run(&place).await;
    log(&store, &run, vec![], vec![pair("a", "1")], vec![]).await.unwrap();
    let store = Arc::new(store);
    let tasks = (0..100).map(|n| {
        let (store, run) = (store.clone(), run.clone());
        tokio::spawn(async move {
            // Every other change is invalid.
            let params = vec![pair("a", if n % 2 == 0 { "1" } else { "2" })];
            log(&store, &run, vec![metric("m", n, 1.0)], params, vec![]).await.is_ok()
        })
    });
    let mut good = 0;
    for task in tasks.collect::<Vec<_>>() {
        good += usize::from(task.await.unwrap());
    }
    assert_eq!(good, 50);
    assert_eq!(history(&store, &run, "m").await.len(), 50);
    let figures = store.figures();
    assert!(figures.commits() <= figures.changes() && figures.points() == 50);
    store.close().await;
}

async fn what_was_acknowledged_is_there_after_a_restart(place: Place) {
    let (store, run) = place_with_run(&place).await;
    log(&store, &run, vec![metric("a", 1, 1.0)], vec![pair("p", "1")], vec![]).await.unwrap();
    store.close().await;
    let store = place.open().await;
    let run = store.run_head("r1").await.unwrap().unwrap();
    log(&store, &run, vec![metric("a", 2, 2.0), metric("b", 1, 3.0)], vec![], vec![])
        .await
        .unwrap();
    let there = read(&store, &run).await;
    assert_eq!((latest(&there, "a"), latest(&there, "b")), (Some(2.0), Some(3.0)));
    assert_eq!(history(&store, &run, "a").await.len(), 2);
    assert_eq!(there.params, [pair("p", "1")]);
    store.close().await;
}

async fn history_comes_in_pages_and_samples_stand_for_all_of_it(place: Place) {
    let (store, run) = place_with_run(&place).await;
    let points = (0..1000).map(|step| metric("m", step, step as f64)).collect();
    log(&store, &run, points, vec![], vec![]).await.unwrap();
    let page = HistoryQuery { run: &run, key: "m", offset: 990, limit: 20 };
    let steps = |points: &[Point]| points.iter().map(|point| point.step).collect::<Vec<_>>();
    assert_eq!(steps(&store.history(page).await.unwrap()), (990..1000).collect::<Vec<_>>());
    let sampled = async |most, between| {
        let query = SampleQuery { run: &run, key: "m", steps: between, most };
        steps(&store.samples(query).await.unwrap())
    };
    let some = sampled(10, None).await;
    assert!(some.len() <= 10 && some.len() >= 8, "{some:?}");
    assert_eq!((some.first(), some.last()), (Some(&0), Some(&999)));
    assert_eq!(sampled(2500, Some((10, 12))).await, [10, 11, 12]);
    assert_eq!(sampled(1, None).await.len(), 1);
    store.close().await;
}

async fn data_sets_and_models_are_kept_with_their_run(place: Place) {
    let (store, run) = place_with_run(&place).await;
    let dataset = Dataset {
        name: "c4".into(),
        digest: "d1".into(),
        source_type: "dvc".into(),
        source: "{}".into(),
        schema: None,
        profile: Some("large".into()),
    };
    let input = Input { dataset, tags: vec![pair("mlflow.data.context", "train")] };
    let model = |is_output| RunModel { id: "m-1".into(), is_output, step: 3 };
    for _ in 0..2 {
        let (datasets, models) = (vec![input.clone()], vec![model(false), model(true)]);
        store.write(RunChange::Inputs { run: run.clone(), datasets, models }).await.unwrap();
    }
    let there = read(&store, &run).await;
    assert_eq!(there.datasets, [input]);
    assert_eq!(there.models, [model(false), model(true)]);
    let summary = store.datasets(&[run.experiment]).await.unwrap();
    assert_eq!((&*summary[0].name, &*summary[0].context, summary.len()), ("c4", "train", 1));
    store.close().await;
}

async fn runs_are_found_by_the_data_and_the_models_that_they_have_read(place: Place) {
    let store = place.open().await;
    let first = experiment(&store, "vision", "one").await;
    let second = experiment(&store, "audio", "two").await;
    let reads = async |experiment: i64, id: &str, at: i64, digests: &[&str]| {
        let head = run(&store, experiment, id, at).await;
        let input = |digest: &&str| Input {
            dataset: Dataset {
                name: format!("of {digest}"),
                digest: (*digest).to_owned(),
                source_type: "berth".into(),
                source: "{}".into(),
                schema: None,
                profile: None,
            },
            tags: vec![],
        };
        let datasets = digests.iter().map(input).collect();
        let change = RunChange::Inputs { run: head.clone(), datasets, models: vec![] };
        store.write(change).await.unwrap();
        head.no
    };
    let a = reads(first, "a", 1, &["d1", "d2"]).await;
    let b = reads(second, "b", 2, &["d1"]).await;
    reads(first, "c", 3, &["d3"]).await;
    let found = async |of, limit| store.runs_that_read(of, limit).await.unwrap();
    assert_eq!(found(ReadBy::Digest("d1"), 10).await, [b, a], "in any experiment");
    assert_eq!(found(ReadBy::Digest("d2"), 10).await, [a]);
    assert_eq!(found(ReadBy::Digest("d1"), 1).await, [b], "the newest");
    assert!(found(ReadBy::Digest("d4"), 10).await.is_empty());
    let model = |is_output| RunModel { id: "m-1".into(), is_output, step: 0 };
    for (id, is_output) in [("a", true), ("b", false)] {
        let run = store.run_head(id).await.unwrap().unwrap();
        let change = RunChange::Inputs { run, datasets: vec![], models: vec![model(is_output)] };
        store.write(change).await.unwrap();
    }
    assert_eq!(found(ReadBy::Model("m-1"), 10).await, [b], "what made it has not read it");
    store.close().await;
}

async fn metrics_of_logged_models_are_kept_by_data_set(place: Place) {
    let (store, run) = place_with_run(&place).await;
    let of = |dataset: &str, step, value| Metric {
        model: Some(OfModel {
            id: "m-1".into(),
            dataset_name: dataset.into(),
            dataset_digest: "d".into(),
        }),
        ..metric("acc", step, value)
    };
    let points = vec![of("train", 1, 0.5), of("train", 2, 0.6), of("test", 1, 0.4)];
    log(&store, &run, points, vec![], vec![]).await.unwrap();
    let found = store.model_metrics(&["m-1".to_owned()]).await.unwrap();
    let mut found: Vec<(&str, f64)> =
        found.iter().map(|one| (&*one.dataset_name, value::decode(one.point.value))).collect();
    found.sort_by(|a, b| a.0.cmp(b.0));
    assert_eq!(found, [("test", 0.4), ("train", 0.6)]);
    assert_eq!(history(&store, &run, "acc").await.len(), 3);
    store.close().await;
}

async fn a_run_is_updated_and_renamed_by_its_tag(place: Place) {
    let (store, run) = place_with_run(&place).await;
    let update = RunChange::Update {
        run: run.clone(),
        status: Some(Status::Finished),
        end: Some(9),
        name: None,
    };
    store.write(update).await.unwrap();
    let there = read(&store, &run).await;
    assert_eq!((&*there.status, there.end, &*there.name), ("FINISHED", Some(9), "run r1"));
    let renamed = vec![pair("mlflow.runName", "other"), pair("note", "a")];
    log(&store, &run, vec![], vec![], renamed).await.unwrap();
    assert_eq!(read(&store, &run).await.name, "other");
    let delete = || RunChange::DeleteTag { run: run.clone(), key: "note".into() };
    store.write(delete()).await.unwrap();
    assert_eq!(store.write(delete()).await.unwrap_err().code, Code::DoesNotExist);
    store.close().await;
}

async fn a_run_that_is_made_twice_is_there_once_and_harms_no_other_change(place: Place) {
    let (store, run) = place_with_run(&place).await;
    let new = || NewRun {
        id: "r1".into(),
        experiment: run.experiment,
        name: "again".into(),
        user: "ada".into(),
        by: "ada".into(),
        start: 2,
        tags: vec![],
    };
    let store = Arc::new(store);
    let tasks = (0..20).map(|n| {
        let (store, run, new) = (store.clone(), run.clone(), new());
        tokio::spawn(async move {
            match n % 2 {
                0 => store.write(RunChange::Create(new)).await.err().map(|error| error.code),
                _ => log(&store, &run, vec![metric("m", n, 1.0)], vec![], vec![])
                    .await
                    .err()
                    .map(|error| error.code),
            }
        })
    });
    for (n, task) in tasks.collect::<Vec<_>>().into_iter().enumerate() {
        let expected = (n % 2 == 0).then_some(Code::AlreadyExists);
        assert_eq!(task.await.unwrap(), expected);
    }
    assert_eq!(read(&store, &run).await.name, "run r1");
    assert_eq!(history(&store, &run, "m").await.len(), 10);
    store.close().await;
}

async fn a_run_that_moves_takes_all_that_was_logged_along(place: Place) {
    let (store, before) = place_with_run(&place).await;
    let to = experiment(&store, "vision", "two").await;
    let other = run(&store, to, "r2", 1).await;
    let points = (0..3).map(|step| metric("loss", step, 0.5)).collect();
    log(&store, &before, points, vec![pair("lr", "0.1")], vec![pair("t", "x")]).await.unwrap();
    let dataset = Dataset { name: "c4".into(), digest: "d1".into(), ..Dataset::default() };
    let input = Input { dataset, tags: vec![] };
    let inputs =
        |run: RunHead| RunChange::Inputs { run, datasets: vec![input.clone()], models: vec![] };
    store.write(inputs(before.clone())).await.unwrap();
    log(&store, &other, vec![metric("loss", 9, 0.1)], vec![], vec![]).await.unwrap();
    // A caller who read the run before the move logs to its new experiment.
    let moved = RunChange::Move { run: before.clone(), experiment: to };
    let (first, moved, last) = tokio::join!(
        log(&store, &before, vec![metric("loss", 3, 0.4)], vec![], vec![]),
        store.write(moved),
        log(&store, &before, vec![metric("acc", 1, 0.9)], vec![], vec![]),
    );
    first.and(moved).and(last).unwrap();
    let after = store.run_head("r1").await.unwrap().unwrap();
    assert_eq!((after.experiment, after.no), (to, before.no));
    let there = read(&store, &after).await;
    assert_eq!((latest(&there, "loss"), latest(&there, "acc")), (Some(0.4), Some(0.9)));
    assert_eq!(history(&store, &after, "loss").await.len(), 4);
    assert_eq!(history(&store, &other, "loss").await.len(), 1);
    assert_eq!((there.params, there.datasets), (vec![pair("lr", "0.1")], vec![input.clone()]));
    assert!(there.tags.contains(&pair("t", "x")));
    assert!(store.datasets(&[before.experiment]).await.unwrap().is_empty());
    // A search in the new experiment finds the run by its metrics.
    let filter = "metrics.loss = 0.4 and params.lr = '0.1'";
    let query = |experiment| RunQuery {
        experiments: vec![experiment],
        view: View::Active,
        clauses: grammar::filter(grammar::Entity::Run, filter).unwrap(),
        orders: vec![],
        offset: 0,
        limit: 10,
    };
    assert_eq!(store.search(&query(to)).await.unwrap(), [before.no]);
    assert!(store.search(&query(before.experiment)).await.unwrap().is_empty());
    store.close().await;
    let store = place.open().await;
    let again = store.run_head("r1").await.unwrap().unwrap();
    assert_eq!(again.experiment, to);
    log(&store, &again, vec![metric("loss", 7, 0.3)], vec![], vec![]).await.unwrap();
    assert_eq!(history(&store, &again, "loss").await.len(), 5);
    store.close().await;
}
