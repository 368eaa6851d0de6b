//! The removal of deleted runs and experiments.

use crate::place::{Place, experiment, log, metric, on_both, pair, read, run};
use berth_tracker::{
    Code, Dataset, DocChange, DocKey, DocSet, Experiment, Input, Kind, Load, LoggedModel,
    ModelVersion, RunChange, RunHead, RunModel, Store, Tags,
};
use berth_tracker_store::{Clean, Removal, TrackingStore};
use std::collections::BTreeSet;

on_both!(
    a_run_that_was_deleted_long_ago_is_gone_with_all_that_it_logged,
    a_run_that_a_version_names_stays,
    a_removal_goes_on_after_a_restart_and_frees_no_number,
    an_experiment_goes_when_its_runs_are_gone_and_its_name_is_free,
    all_that_a_removed_team_had_goes_and_nothing_of_another_team,
);

/// A time after every deletion in these tests.
const LATE: i64 = 1_000;

async fn delete(store: &TrackingStore, run: &RunHead, at: i64) {
    store.write(RunChange::Stage { run: run.clone(), deleted: true, at }).await.unwrap();
}

async fn begin(store: &TrackingStore, before: i64) -> Vec<Removal> {
    let mut begun = Vec::new();
    let mut after = 0;
    loop {
        let step = store.clean(Clean::Runs { before, after, dry: false }).await.unwrap();
        begun.extend(step.begun);
        match step.next {
            Some(next) => after = next,
            None => return begun,
        }
    }
}

/// Runs all removals and returns the number of steps.
async fn finish(store: &TrackingStore) -> usize {
    let mut steps = 0;
    for of in store.removals(100).await.unwrap() {
        loop {
            steps += 1;
            let step = store.clean(Clean::Rows(of.clone())).await.unwrap();
            if step.next.is_none() {
                break;
            }
        }
        store.clean(Clean::End(of)).await.unwrap();
    }
    steps
}

async fn rows(store: &TrackingStore, table: &str) -> usize {
    let mut file = Vec::new();
    store.backup(&mut file).await.unwrap();
    let text = String::from_utf8(file).unwrap();
    text.lines().filter(|line| line.starts_with(&format!("[\"{table}\","))).count()
}

async fn a_run_that_was_deleted_long_ago_is_gone_with_all_that_it_logged(place: Place) {
    let store = place.open().await;
    let of = experiment(&store, "vision", "one").await;
    let (old, young, kept) = (
        run(&store, of, "old", 1).await,
        run(&store, of, "young", 1).await,
        run(&store, of, "kept", 1).await,
    );
    for one in [&old, &young, &kept] {
        // More points than one step can remove.
        for from in (0..21_000).step_by(1_000) {
            let points = (from..from + 1_000).map(|step| metric("loss", step, 0.5)).collect();
            log(&store, one, points, vec![], vec![]).await.unwrap();
        }
        log(&store, one, vec![], vec![pair("lr", "1")], vec![pair("a", "b")]).await.unwrap();
        let dataset = |name: &str| Dataset { name: name.into(), ..Dataset::default() };
        let own = format!("of {}", one.id);
        let datasets = [dataset("shared"), dataset(&own)];
        let datasets = datasets.map(|dataset| Input { dataset, tags: vec![] }).to_vec();
        let models = vec![RunModel { id: "m-9".into(), is_output: false, step: 0 }];
        store.write(RunChange::Inputs { run: one.clone(), datasets, models }).await.unwrap();
    }
    delete(&store, &old, 10).await;
    delete(&store, &young, 500).await;
    let dry = Clean::Runs { before: 100, after: 0, dry: true };
    assert_eq!(store.clean(dry).await.unwrap().begun.len(), 1);
    assert!(store.run_head("old").await.unwrap().is_some(), "it was only looked for");
    let begun = begin(&store, 100).await;
    assert_eq!(begun.len(), 1, "{begun:?}");
    assert_eq!((&*begun[0].team, &*begun[0].path), ("vision", &*format!("{of}/old")));
    // From now on, requests cannot find, change or restore the run.
    assert_eq!(store.run_head("old").await.unwrap(), None);
    let refused = log(&store, &old, vec![metric("loss", 1, 1.0)], vec![], vec![]).await;
    assert!(refused.is_err());
    let restore = RunChange::Stage { run: old.clone(), deleted: false, at: 0 };
    assert_eq!(store.write(restore).await.unwrap_err().code, Code::DoesNotExist);
    assert_eq!(finish(&store).await, 2, "20,000 points, and the rest");
    for (table, number) in [
        ("runs", 2),
        ("points", 42_000),
        ("latest", 2),
        ("params", 2),
        ("run_datasets", 4),
        ("datasets", 3),
        ("run_models", 2),
        ("removals", 0),
    ] {
        assert_eq!(rows(&store, table).await, number, "{table}");
    }
    assert_eq!(store.figures().removed_runs(), 1);
    assert_eq!(store.figures().removed_points(), 21_000);
    // The run that was deleted later can still be restored.
    let restore = RunChange::Stage { run: young.clone(), deleted: false, at: 0 };
    store.write(restore).await.unwrap();
    assert_eq!(read(&store, &young).await.params, [pair("lr", "1")]);
    store.close().await;
}

fn version(run: Option<&str>, model: Option<&str>, source: &str) -> ModelVersion {
    ModelVersion {
        name: "chat".into(),
        version: 1,
        created: 1,
        updated: 1,
        by: "ada".into(),
        description: None,
        stage: "None".into(),
        source: source.into(),
        storage: String::new(),
        run: run.map(str::to_owned),
        run_link: None,
        model: model.map(str::to_owned),
        tags: Tags::new(),
    }
}

async fn put(store: &TrackingStore, docs: Vec<(DocKey, ModelVersion)>) {
    let edit = move |set: &mut DocSet| {
        docs.into_iter().for_each(|(key, doc)| set.put(key, &doc));
        Ok(Vec::new())
    };
    store.edit(DocChange { load: Vec::new(), edit: Box::new(edit) }).await.unwrap();
}

fn key(sub: i64) -> DocKey {
    DocKey { kind: Kind::ModelVersion, scope: "vision".into(), name: "chat".into(), sub }
}

async fn a_run_that_a_version_names_stays(place: Place) {
    let store = place.open().await;
    let of = experiment(&store, "vision", "one").await;
    for id in ["named", "sourced", "logged", "made", "free"] {
        let head = run(&store, of, id, 1).await;
        if id == "made" {
            let models = vec![RunModel { id: "m-2".into(), is_output: true, step: 0 }];
            let made = RunChange::Inputs { run: head.clone(), datasets: vec![], models };
            store.write(made).await.unwrap();
        }
        delete(&store, &head, 10).await;
    }
    let model = LoggedModel {
        id: "m-1".into(),
        experiment: of,
        name: "net".into(),
        model_type: String::new(),
        run: "logged".into(),
        status: String::new(),
        created: 1,
        updated: 1,
        by: "ada".into(),
        tags: Tags::new(),
        params: Tags::new(),
    };
    let edit = move |set: &mut DocSet| {
        let (scope, name) = (of.to_string(), "m-1".to_owned());
        set.put(DocKey { kind: Kind::LoggedModel, scope, name, sub: 0 }, &model);
        Ok(Vec::new())
    };
    store.edit(DocChange { load: Vec::new(), edit: Box::new(edit) }).await.unwrap();
    let versions = vec![
        (key(1), version(Some("named"), None, "s3://x")),
        (key(2), version(None, None, "runs:/sourced/model")),
        (key(3), version(None, Some("m-1"), "models:/m-1")),
        (key(4), version(None, Some("m-2"), "models:/m-2")),
    ];
    put(&store, versions).await;
    let begun = begin(&store, LATE).await;
    let paths: Vec<String> = begun.into_iter().map(|of| of.path).collect();
    assert_eq!(paths, [format!("{of}/free")]);
    // After the version is deleted, Berth removes its run.
    let edit = |set: &mut DocSet| {
        set.remove(&key(1));
        Ok(Vec::new())
    };
    store.edit(DocChange { load: Vec::new(), edit: Box::new(edit) }).await.unwrap();
    let begun = begin(&store, LATE).await;
    assert_eq!(begun.len(), 1, "{begun:?}");
    store.close().await;
}

async fn a_removal_goes_on_after_a_restart_and_frees_no_number(place: Place) {
    let store = place.open().await;
    let of = experiment(&store, "vision", "one").await;
    let last = run(&store, of, "last", 1).await;
    log(&store, &last, vec![metric("loss", 1, 0.5)], vec![], vec![]).await.unwrap();
    delete(&store, &last, 10).await;
    begin(&store, LATE).await;
    store.close().await;
    let store = place.open().await;
    // A new run must not get the points of the old one.
    let next = run(&store, of, "next", 1).await;
    assert!(next.no > last.no);
    assert_eq!(finish(&store).await, 1);
    assert_eq!(rows(&store, "points").await, 0);
    assert_eq!(store.removals(10).await.unwrap(), []);
    store.close().await;
}

async fn an_experiment_goes_when_its_runs_are_gone_and_its_name_is_free(place: Place) {
    let store = place.open().await;
    let of = experiment(&store, "vision", "one").await;
    let only = run(&store, of, "only", 1).await;
    let begin_experiment =
        async |before| store.clean(Clean::Experiment { no: of, before }).await.unwrap().begun.len();
    assert_eq!(begin_experiment(LATE).await, 0, "it is not deleted");
    let old = Experiment::clone(&store.experiment(of).unwrap());
    let deleted = Experiment { deleted: true, updated: 10, ..old };
    let edit = move |set: &mut DocSet| {
        let (scope, name) = ("vision".to_owned(), "one".to_owned());
        set.put(DocKey { kind: Kind::Experiment, scope, name, sub: of }, &deleted);
        Ok(Vec::new())
    };
    store.edit(DocChange { load: Vec::new(), edit: Box::new(edit) }).await.unwrap();
    delete(&store, &only, 10).await;
    assert_eq!(begin_experiment(LATE).await, 0, "it has a run");
    begin(&store, LATE).await;
    finish(&store).await;
    assert_eq!(begin_experiment(10).await, 0, "it is too young");
    assert_eq!(begin_experiment(LATE).await, 1);
    assert!(store.experiment(of).is_none() && store.experiment_named("vision", "one").is_none());
    finish(&store).await;
    store.close().await;
    let store = place.open().await;
    assert!(experiment(&store, "vision", "one").await > of);
    store.close().await;
}

async fn all_that_a_removed_team_had_goes_and_nothing_of_another_team(place: Place) {
    let store = place.open().await;
    for team in ["vision", "audio"] {
        for name in ["one", "two"] {
            let of = experiment(&store, team, name).await;
            let only = run(&store, of, &format!("{team}-{name}"), 1).await;
            log(&store, &only, vec![metric("loss", 1, 0.5)], vec![], vec![]).await.unwrap();
        }
        let scope = team.to_owned();
        let edit = move |set: &mut DocSet| {
            for (kind, name) in [(Kind::RegisteredModel, "chat"), (Kind::Webhook, "hook")] {
                let key = DocKey { kind, scope: scope.clone(), name: name.to_owned(), sub: 0 };
                set.put(key, &"a document");
            }
            // The model is shared with every team.
            let (kind, name) = (Kind::ModelShare, format!("{scope}/chat"));
            set.put(DocKey { kind, scope: "*".to_owned(), name, sub: 0 }, &"a share");
            Ok(Vec::new())
        };
        store.edit(DocChange { load: Vec::new(), edit: Box::new(edit) }).await.unwrap();
    }
    let step = async |store: &TrackingStore| {
        store.clean(Clean::Team { team: "vision".to_owned() }).await.unwrap()
    };
    let first = step(&store).await;
    assert_eq!(first.begun.len(), 2, "a run and its experiment");
    // A new process goes on.
    store.close().await;
    let store = place.open().await;
    let (mut begun, mut models) = (0, 0);
    loop {
        let next = step(&store).await;
        (begun, models) = (begun + next.begun.len(), models + next.models);
        if next.next.is_none() {
            break;
        }
    }
    assert_eq!((begun, models), (2, 1));
    assert!(store.experiment_named("vision", "one").is_none());
    assert!(store.run_head("vision-two").await.unwrap().is_none());
    assert_eq!(store.teams().await.unwrap(), BTreeSet::from(["audio".to_owned()]));
    let (kind, scope) = (Kind::ModelShare, "*".to_owned());
    let shares = store.docs(Load { kind, scope, name: None, sub: None }).await.unwrap();
    assert_eq!(shares.iter().map(|(key, _)| &*key.name).collect::<Vec<_>>(), ["audio/chat"]);
    finish(&store).await;
    assert_eq!(store.removals(10).await.unwrap(), []);
    assert_eq!((rows(&store, "points").await, rows(&store, "runs").await), (2, 2));
    assert!(store.run_head("audio-two").await.unwrap().is_some());
    store.close().await;
}
