//! Searches for runs.

use crate::place::{Place, experiment, log, metric, on_both, pair, run};
use berth_tracker::grammar::{Entity, filter, orders};
use berth_tracker::{Dataset, Input, RunChange, RunQuery, Store, View};
use berth_tracker_store::TrackingStore;

on_both!(
    filters_find_what_they_say,
    missing_values_come_last_and_nan_before_them_either_way,
    equal_runs_are_ordered_by_their_start_and_pages_follow_each_other,
    several_experiments_are_searched_together_and_others_not_at_all,
);

struct Searched {
    store: TrackingStore,
    experiments: Vec<i64>,
}

impl Searched {
    /// The ids of the runs, in their order.
    async fn found(&self, text: &str, by: &[&str]) -> Vec<String> {
        self.page(text, by, 0, 100).await
    }

    async fn page(&self, text: &str, by: &[&str], offset: u64, limit: usize) -> Vec<String> {
        let by: Vec<String> = by.iter().map(|one| (*one).to_owned()).collect();
        let query = RunQuery {
            experiments: self.experiments.clone(),
            view: View::Active,
            clauses: filter(Entity::Run, text).unwrap(),
            orders: orders(Entity::Run, &by).unwrap(),
            offset,
            limit,
        };
        let numbers = self.store.search(&query).await.unwrap();
        let runs = self.store.runs(&numbers).await.unwrap();
        runs.into_iter().map(|run| run.id).collect()
    }
}

/// Five runs: a score of 0, 1, 2 and NaN, and one without.
async fn five(place: &Place) -> Searched {
    let store = place.open().await;
    let no = experiment(&store, "vision", "one").await;
    for (start, (id, score)) in
        [("a", Some(0.0)), ("b", Some(1.0)), ("c", Some(2.0)), ("d", Some(f64::NAN)), ("e", None)]
            .into_iter()
            .enumerate()
    {
        let run = run(&store, no, id, start as i64).await;
        let metrics = score.map(|score| metric("score", 1, score)).into_iter().collect();
        let params = vec![pair("model", if start % 2 == 0 { "ViT_b" } else { "resnet" })];
        let tags = if id == "a" { vec![pair("note", "100% \\ \"quoted\" 'it'")] } else { vec![] };
        log(&store, &run, metrics, params, tags).await.unwrap();
        if id == "b" {
            let dataset = Dataset { name: "c4".into(), digest: "d1".into(), ..Dataset::default() };
            let datasets =
                vec![Input { dataset, tags: vec![pair("mlflow.data.context", "train")] }];
            let change = RunChange::Inputs { run, datasets, models: vec![] };
            store.write(change).await.unwrap();
        }
    }
    Searched { store, experiments: vec![no] }
}

async fn filters_find_what_they_say(place: Place) {
    let five = five(&place).await;
    for (text, expected) in [
        ("", "abcde"),
        ("metrics.score > 0", "bc"),
        ("metrics.score >= 1", "bc"),
        ("metrics.score < 1", "a"),
        ("metrics.score <= 1", "ab"),
        ("metrics.score = 0", "a"),
        ("metrics.score = -0.0", "a"),
        ("metrics.score != 1", "acd"),
        ("metrics.score > 0 AND metrics.score < 2", "b"),
        ("metrics.other > 0", ""),
        ("params.model = 'resnet'", "bd"),
        ("params.model != 'resnet'", "ace"),
        ("params.model LIKE 'ViT%'", "ace"),
        ("params.model LIKE 'vit%'", ""),
        ("params.model ILIKE 'vit__'", "ace"),
        ("params.other IS NULL", "abcde"),
        ("params.model IS NOT NULL AND params.other IS NULL", "abcde"),
        ("tags.note IS NOT NULL", "a"),
        ("tags.note IS NULL", "bcde"),
        ("tags.note LIKE '100\\%'", ""),
        ("tags.note LIKE '100% \\ %'", "a"),
        ("tags.note LIKE \"%'it'\"", "a"),
        ("run_id IN ('a', 'c', 'x')", "ac"),
        ("run_id NOT IN ('a', 'c')", "bde"),
        ("run_name = 'run b'", "b"),
        ("status = 'RUNNING' AND user_id = 'ada'", "abcde"),
        ("artifact_uri LIKE 'mlflow-artifacts:/vision/%/b/artifacts'", "b"),
        ("start_time > 2", "de"),
        ("start_time <= 0.5", "a"),
        ("end_time > 0", ""),
        ("datasets.name = 'c4' AND datasets.context = 'train'", "b"),
        ("datasets.digest IN ('d1', 'd2')", "b"),
        ("datasets.name != 'c4'", ""),
    ] {
        let found = five.found(text, &["run_id"]).await.concat();
        assert_eq!(found, expected, "{text}");
    }
    five.store.close().await;
}

async fn missing_values_come_last_and_nan_before_them_either_way(place: Place) {
    let five = five(&place).await;
    for (by, expected) in [
        ("metrics.score ASC", "abcde"),
        ("metrics.score DESC", "cbade"),
        ("params.model ASC", "ecadb"),
        ("params.model DESC", "dbeca"),
        ("tags.note", "aedcb"),
        ("tags.note DESC", "aedcb"),
        ("metrics.other", "edcba"),
        ("start_time", "abcde"),
        ("run_name DESC", "edcba"),
        ("end_time", "edcba"),
    ] {
        assert_eq!(five.found("", &[by]).await.concat(), expected, "{by}");
        // Pagination keeps the order.
        let mut paged = String::new();
        for offset in 0..6 {
            paged.push_str(&five.page("", &[by], offset, 1).await.concat());
        }
        assert_eq!(paged, expected, "{by}");
    }
    let filtered = five.found("metrics.score >= 0", &["metrics.score DESC"]).await;
    assert_eq!(filtered.concat(), "cba");
    // NaN differs from every number, and is still neither the largest nor the smallest.
    for (order, expected) in [("metrics.score DESC", "cad"), ("metrics.score", "acd")] {
        let filtered = five.found("metrics.score != 1", &[order]).await;
        assert_eq!(filtered.concat(), expected, "{order}");
        let first = five.page("metrics.score != 1", &[order], 0, 2).await;
        assert_eq!(first.concat(), &expected[..2], "{order}");
    }
    five.store.close().await;
}

async fn equal_runs_are_ordered_by_their_start_and_pages_follow_each_other(place: Place) {
    let store = place.open().await;
    let no = experiment(&store, "vision", "one").await;
    for (id, start) in [("a", 1), ("c", 2), ("b", 2), ("d", 3)] {
        let run = run(&store, no, id, start).await;
        log(&store, &run, vec![metric("m", 1, 5.0)], vec![], vec![]).await.unwrap();
    }
    let searched = Searched { store, experiments: vec![no] };
    assert_eq!(searched.found("", &[]).await.concat(), "dbca");
    assert_eq!(searched.found("", &["metrics.m"]).await.concat(), "dbca");
    assert_eq!(searched.page("", &["metrics.m"], 1, 2).await.concat(), "bc");
    assert_eq!(searched.page("", &["metrics.m"], 3, 2).await.concat(), "a");
    searched.store.close().await;
}

async fn several_experiments_are_searched_together_and_others_not_at_all(place: Place) {
    let store = place.open().await;
    let mut experiments = Vec::new();
    for (name, id, value) in [("x", "a", 1.0), ("y", "b", 3.0), ("z", "c", 2.0)] {
        let no = experiment(&store, "vision", name).await;
        let run = run(&store, no, id, 1).await;
        log(&store, &run, vec![metric("m", 1, value)], vec![], vec![]).await.unwrap();
        experiments.push(no);
    }
    let both = Searched { store, experiments: experiments[..2].to_vec() };
    assert_eq!(both.found("metrics.m > 0", &["metrics.m DESC"]).await.concat(), "ba");
    assert_eq!(both.found("metrics.m < 3", &[]).await.concat(), "a");
    both.store.close().await;
}
