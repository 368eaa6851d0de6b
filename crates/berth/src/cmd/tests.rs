//! What the tests of several commands share.

use berth_api::wire::{Job, JobKind, JobState};
use std::collections::BTreeMap;

/// A job that runs.
pub fn job() -> Job {
    let at = |text: &str| text.parse().expect("a moment");
    Job {
        id: "17".parse().expect("a number"),
        name: "bert".into(),
        kind: JobKind::Job,
        state: JobState::Running,
        user: "kim".into(),
        team: "nlp".into(),
        project: "llama".into(),
        experiment: String::new(),
        priority: 50,
        nodes: 1,
        gpus_milli: 8_000,
        asks: "H100:8".into(),
        submitted: at("2026-11-15T12:30:00Z"),
        started: Some(at("2026-11-15T13:00:00Z")),
        ended: None,
        attempts: 1,
        cost_micros: 1_200_000,
        price_micros_per_hour: Some(1_200_000),
        position: None,
        eta: None,
        eta_p90: None,
        projected_micros: None,
        utilization: None,
        reason: None,
        reason_code: None,
        exit: None,
        on: vec!["n1".into()],
        url: None,
        ready: false,
        declared: false,
        labels: BTreeMap::new(),
        tags: Vec::new(),
        comment: None,
        parameters: BTreeMap::new(),
    }
}
