//! Limits bound the database of a team.

use crate::place::{Place, experiment, log, metric, on_both, run};
use berth_tracker::{Code, Metric, OfModel, Store, limits};

on_both!(a_logged_model_has_a_limited_number_of_metrics);

fn of_model(number: u64) -> Metric {
    let of = |id: &str| OfModel {
        id: id.into(),
        dataset_name: String::new(),
        dataset_digest: String::new(),
    };
    Metric { model: Some(of("m-1")), ..metric(&format!("key {number}"), 1, 0.5) }
}

async fn a_logged_model_has_a_limited_number_of_metrics(place: Place) {
    let store = place.open().await;
    let experiment = experiment(&store, "vision", "one").await;
    let run = run(&store, experiment, "r1", 1).await;
    let most = limits::METRICS_PER_MODEL;
    for from in (0..most).step_by(1_000) {
        let metrics = (from..from + 1_000).map(of_model).collect();
        log(&store, &run, metrics, vec![], vec![]).await.unwrap();
    }
    let refused = log(&store, &run, vec![of_model(most)], vec![], vec![]).await.unwrap_err();
    assert_eq!(refused.code, Code::LimitExceeded, "{refused}");
    let kept = store.model_metrics(&["m-1".to_owned()]).await.unwrap();
    assert_eq!(kept.len() as u64, most);
    // The limit of the model does not apply to the run.
    log(&store, &run, vec![metric("other", 1, 0.5)], vec![], vec![]).await.unwrap();
    store.close().await;
}
