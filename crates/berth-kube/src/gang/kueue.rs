//! Kueue's marks.

use super::draft::{Draft, Gang, first};
use super::source::AnnotationSource;
use super::{GangKind, owner};
use crate::object::{Raw, Text};
use berth_model::{Name, Segment, Span, TopologyAsk};
use serde::Deserialize;

const QUEUE: &str = "kueue.x-k8s.io/queue-name";
const POD_GROUP: &str = "kueue.x-k8s.io/pod-group-name";
const TOTAL: &str = "kueue.x-k8s.io/pod-group-total-count";
const MIN: &str = "kueue.x-k8s.io/job-min-parallelism";
const BOOST: &str = "kueue.x-k8s.io/priority-boost";
const TIME: &str = "kueue.x-k8s.io/max-exec-time-seconds";
const REQUIRED: &str = "kueue.x-k8s.io/podset-required-topology";
const SLICE: &str = "kueue.x-k8s.io/podset-slice-required-topology";
const SLICE_SIZE: &str = "kueue.x-k8s.io/podset-slice-size";
const SLICES: &str = "kueue.x-k8s.io/podset-slice-required-topology-constraints";
const FAST: &str = "kueue.x-k8s.io/pod-group-fast-admission";

pub(super) fn read(source: &AnnotationSource, draft: &mut Draft) {
    let queue = source.label(QUEUE);
    draft.queue(queue);
    draft.class(source.label("kueue.x-k8s.io/priority-class"));
    if let Some(value) = source.annotation(BOOST) {
        match value.parse() {
            Ok(boost) => first(&mut draft.boost, Some(boost)),
            Err(_) => draft.invalid(BOOST, value, "write a whole number such as 10 or -5"),
        }
    }
    if let Some(value) = source.label(TIME) {
        match value.parse().ok().filter(|seconds| (1..=i64::from(i32::MAX)).contains(seconds)) {
            Some(seconds) => first(&mut draft.time_limit, Some(Span::secs(seconds))),
            None => draft.invalid(TIME, value, "write a whole number of seconds, 1 or more"),
        }
    }
    if let Some(value) = source.annotation(FAST).filter(|value| *value == "true") {
        draft.ignore(FAST, value, "a gang begins when all its pods are there");
    }
    topology(source, draft);
    gang(source, draft, queue.is_some());
}

/// Each role of a job has a place of its own, unless the roles are named as a group.
fn topology(source: &AnnotationSource, draft: &mut Draft) {
    let already = draft.topology != TopologyAsk::default();
    draft.required(source.annotation(REQUIRED));
    draft.preferred(source.annotation("kueue.x-k8s.io/podset-preferred-topology"));
    slices(source, draft);
    let is_ours = !already && draft.topology != TopologyAsk::default();
    draft.by_part = is_ours && source.annotation("kueue.x-k8s.io/podset-group-name").is_none();
}

fn slices(source: &AnnotationSource, draft: &mut Draft) {
    if let Some(value) = source.annotation(SLICES) {
        return layers(source, value, draft);
    }
    let size = draft.count(SLICE_SIZE, source.annotation(SLICE_SIZE));
    match (source.annotation(SLICE), size) {
        (Some(level), Some(size)) => {
            draft.segment(Some(Segment { size, within: Name::new(level) }));
        }
        (Some(level), None) if source.annotation(SLICE_SIZE).is_none() => {
            match owner::pods_of_one_job(source) {
                // A slice of a set is one of its jobs.
                Some(size) => draft.segment(Some(Segment { size, within: Name::new(level) })),
                None => draft.invalid(SLICE, level, &format!("say {SLICE_SIZE} as well")),
            }
        }
        (None, Some(size)) => {
            draft.invalid(SLICE_SIZE, &size.to_string(), &format!("say {SLICE} as well"));
        }
        (Some(_), None) | (None, None) => {}
    }
}

/// A layer of slices. Its size is written as a number or as the text of one.
#[derive(Deserialize)]
struct Layer {
    topology: Text,
    size: Raw,
}

/// Slices of slices, the outermost first. One layer is what the other marks say with less.
fn layers(source: &AnnotationSource, value: &str, draft: &mut Draft) {
    if source.annotation(SLICE).is_some() || source.annotation(SLICE_SIZE).is_some() {
        return draft.invalid(SLICES, value, &format!("say this, or {SLICE} with {SLICE_SIZE}"));
    }
    match serde_json::from_str::<Vec<Layer>>(value).as_deref() {
        Ok([only]) if !only.topology.is_empty() => {
            let size = draft.count(SLICES, Some(only.size.as_str()));
            let within = Name::new(&only.topology);
            draft.segment(size.map(|size| Segment { size, within }));
        }
        Ok([_, _, ..]) => {
            let what = format!(
                "there is one layer of slices here; keep the innermost, and say with {REQUIRED} where \
                 all of them have to be"
            );
            draft.invalid(SLICES, value, &what);
        }
        Ok(_) | Err(_) => {
            let what = r#"write a list such as [{"topology": "LEVEL", "size": 4}]"#;
            draft.invalid(SLICES, value, what);
        }
    }
}

/// Plain pods name their group; a Job in a queue is admitted as a whole, and is a gang thereby.
fn gang(source: &AnnotationSource, draft: &mut Draft, queued: bool) {
    let total = source.annotation(TOTAL);
    if let Some(name) = source.label(POD_GROUP) {
        if total.is_none() {
            return draft.invalid(POD_GROUP, name, &format!("say {TOTAL} as well"));
        }
        let members = draft.count(TOTAL, total);
        let key = source.key(GangKind::KueuePodGroup, name);
        return draft.gang(Gang { key, members, min: members });
    }
    if let Some(total) = total {
        return draft.invalid(TOTAL, total, &format!("name the group with {POD_GROUP}"));
    }
    let of_job = source
        .pod
        .metadata
        .controller()
        .is_some_and(|owner| owner.group() == "batch" && &*owner.kind == "Job");
    if queued
        && of_job
        && let Some(gang) = owner::any(source, draft)
        && gang.key.kind == GangKind::Job
    {
        let least = draft.count(MIN, source.annotation(MIN));
        draft.gang(Gang { min: least.or(gang.min), ..gang });
    }
}
