//! Documents, such as experiments.

use crate::place::{Place, experiment, on_both, read, run};
use berth_tracker::{DocChange, DocKey, DocSet, Effect, Error, Kind, Load, Store};

on_both!(
    experiments_are_there_again_after_a_restart_and_numbers_are_not_given_twice,
    a_refused_change_changes_nothing,
    documents_are_read_by_scope_by_name_and_one_by_one,
    what_happens_along_with_a_change_happens_with_it,
);

fn key(name: &str, sub: i64) -> DocKey {
    DocKey { kind: Kind::ModelVersion, scope: "vision".into(), name: name.into(), sub }
}

async fn put(store: &berth_tracker_store::TrackingStore, keys: Vec<DocKey>) {
    let edit = move |docs: &mut DocSet| {
        keys.into_iter().for_each(|key| docs.put(key.clone(), &key.sub));
        Ok(Vec::new())
    };
    store.edit(DocChange { load: Vec::new(), edit: Box::new(edit) }).await.unwrap();
}

async fn experiments_are_there_again_after_a_restart_and_numbers_are_not_given_twice(place: Place) {
    let store = place.open().await;
    let first = experiment(&store, "vision", "one").await;
    assert_eq!(store.experiment_named("vision", "one").unwrap().no, first);
    assert!(store.experiment_named("nlp", "one").is_none());
    store.close().await;
    let store = place.open().await;
    assert_eq!(store.experiment(first).unwrap().name, "one");
    let second = experiment(&store, "nlp", "one").await;
    assert!(second > first);
    assert_eq!(store.experiments().len(), 2);
    store.close().await;
}

async fn a_refused_change_changes_nothing(place: Place) {
    let store = place.open().await;
    put(&store, vec![key("net", 1)]).await;
    let edit = |docs: &mut DocSet| {
        docs.remove(&key("net", 1));
        docs.put(key("net", 2), &2);
        Err(Error::invalid("no"))
    };
    let refused = store.edit(DocChange { load: Vec::new(), edit: Box::new(edit) }).await;
    assert_eq!(refused, Err(Error::invalid("no")));
    let scope = || "vision".to_owned();
    let all = Load { kind: Kind::ModelVersion, scope: scope(), name: None, sub: None };
    assert_eq!(store.docs(all).await.unwrap(), [(key("net", 1), "1".to_owned())]);
    store.close().await;
}

async fn documents_are_read_by_scope_by_name_and_one_by_one(place: Place) {
    let store = place.open().await;
    put(&store, vec![key("net", 1), key("net", 2), key("other", 1)]).await;
    let load = |name: Option<&str>, sub| Load {
        kind: Kind::ModelVersion,
        scope: "vision".into(),
        name: name.map(str::to_owned),
        sub,
    };
    let found = async |load| store.docs(load).await.unwrap().len();
    assert_eq!(found(load(None, None)).await, 3);
    assert_eq!(found(load(Some("net"), None)).await, 2);
    assert_eq!(found(load(Some("net"), Some(2))).await, 1);
    assert_eq!(found(Load { scope: "nlp".into(), ..load(None, None) }).await, 0);
    assert_eq!(store.count(Kind::ModelVersion, "vision".into()).await, Ok(3));
    let (named, _) = store.named(Kind::ModelVersion, "other".into()).await.unwrap().unwrap();
    assert_eq!(named, key("other", 1));
    // A change sees the documents that it loads.
    let edit = |docs: &mut DocSet| {
        let all = docs.all::<i64>(Kind::ModelVersion)?;
        assert_eq!(all.len(), 2);
        docs.remove(&key("net", 1));
        Ok(Vec::new())
    };
    let change = DocChange { load: vec![load(Some("net"), None)], edit: Box::new(edit) };
    store.edit(change).await.unwrap();
    assert_eq!(found(load(Some("net"), None)).await, 1);
    store.close().await;
}

async fn what_happens_along_with_a_change_happens_with_it(place: Place) {
    let store = place.open().await;
    let (one, other) = (experiment(&store, "a", "x").await, experiment(&store, "a", "y").await);
    let run_of_one = run(&store, one, "r1", 1).await;
    let run_of_other = run(&store, other, "r2", 1).await;
    let edit = move |docs: &mut DocSet| {
        docs.effects.push(Effect::RunsOf { experiment: one, deleted: true, at: 7 });
        Ok(Vec::new())
    };
    store.edit(DocChange { load: Vec::new(), edit: Box::new(edit) }).await.unwrap();
    assert!(read(&store, &run_of_one).await.deleted);
    assert!(!read(&store, &run_of_other).await.deleted);
    store.close().await;
}
