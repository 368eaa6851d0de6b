//! What the tests of several commands share.

use berth_api::wire::{Job, JobKind, JobRef, JobState, Segment, SegmentState, Timeline};
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
        run: None,
    }
}

/// The time of a job that another one has preempted.
pub fn preempted() -> Timeline {
    let at = |text: &str| format!("2026-11-15T{text}:00Z").parse().expect("a moment");
    let by = JobRef {
        job: "4688".parse().expect("a number"),
        name: Some("vit-l".into()),
        user: Some("lea".into()),
        team: Some("vision".into()),
    };
    let segment = |state, from: &str, to: Option<&str>| Segment {
        state,
        attempt: None,
        from: at(from),
        to: to.map(at),
        cause: None,
        text: None,
        by: None,
        cost_micros: 0,
    };
    let gave_way = |state, from: &str, to: Option<&str>, attempt| Segment {
        attempt,
        cause: Some("preempt".into()),
        text: Some("made room for a job of a higher class".into()),
        by: Some(by.clone()),
        ..segment(state, from, to)
    };
    let runs = segment(SegmentState::Running, "13:00", Some("13:30"));
    Timeline {
        job: "17".parse().expect("a number"),
        state: JobState::Pending,
        segments: vec![
            segment(SegmentState::Waiting, "12:30", Some("13:00")),
            Segment { attempt: Some(0), cost_micros: 590_000, ..runs },
            gave_way(SegmentState::Saving, "13:30", Some("13:31"), Some(0)),
            gave_way(SegmentState::Preempted, "13:31", None, None),
        ],
        cost_micros: 600_000,
        waited_ms: 59 * 60_000,
        ran_ms: 31 * 60_000,
        exit: None,
        notes: Vec::new(),
    }
}
