//! Kueue's marks.

use super::draft::{Draft, Gang, first};
use super::said::Said;
use super::{Kind, owner};
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

pub(super) fn read(said: &Said, draft: &mut Draft) {
    let queue = said.label(QUEUE);
    draft.queue(queue);
    draft.class(said.label("kueue.x-k8s.io/priority-class"));
    if let Some(value) = said.annotation(BOOST) {
        match value.parse() {
            Ok(boost) => first(&mut draft.boost, Some(boost)),
            Err(_) => draft.complain(BOOST, value, "write a whole number such as 10 or -5"),
        }
    }
    if let Some(value) = said.label(TIME) {
        match value.parse().ok().filter(|seconds| (1..=i64::from(i32::MAX)).contains(seconds)) {
            Some(seconds) => first(&mut draft.time_limit, Some(Span::secs(seconds))),
            None => draft.complain(TIME, value, "write a whole number of seconds, 1 or more"),
        }
    }
    if let Some(value) = said.annotation(FAST).filter(|value| *value == "true") {
        draft.leave_out(FAST, value, "a gang begins when all its pods are there");
    }
    topology(said, draft);
    gang(said, draft, queue.is_some());
}

/// Each role of a job has a place of its own, unless the roles are named as a group.
fn topology(said: &Said, draft: &mut Draft) {
    let already = draft.topology != TopologyAsk::default();
    draft.required(said.annotation(REQUIRED));
    draft.preferred(said.annotation("kueue.x-k8s.io/podset-preferred-topology"));
    slices(said, draft);
    let is_ours = !already && draft.topology != TopologyAsk::default();
    draft.by_part = is_ours && said.annotation("kueue.x-k8s.io/podset-group-name").is_none();
}

fn slices(said: &Said, draft: &mut Draft) {
    if let Some(value) = said.annotation(SLICES) {
        return layers(said, value, draft);
    }
    let size = draft.count(SLICE_SIZE, said.annotation(SLICE_SIZE));
    match (said.annotation(SLICE), size) {
        (Some(level), Some(size)) => {
            draft.segment(Some(Segment { size, within: Name::new(level) }));
        }
        (Some(level), None) if said.annotation(SLICE_SIZE).is_none() => {
            match owner::pods_of_one_job(said) {
                // A slice of a set is one of its jobs.
                Some(size) => draft.segment(Some(Segment { size, within: Name::new(level) })),
                None => draft.complain(SLICE, level, &format!("say {SLICE_SIZE} as well")),
            }
        }
        (None, Some(size)) => {
            draft.complain(SLICE_SIZE, &size.to_string(), &format!("say {SLICE} as well"));
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
fn layers(said: &Said, value: &str, draft: &mut Draft) {
    if said.annotation(SLICE).is_some() || said.annotation(SLICE_SIZE).is_some() {
        return draft.complain(SLICES, value, &format!("say this, or {SLICE} with {SLICE_SIZE}"));
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
            draft.complain(SLICES, value, &what);
        }
        Ok(_) | Err(_) => {
            let what = r#"write a list such as [{"topology": "LEVEL", "size": 4}]"#;
            draft.complain(SLICES, value, what);
        }
    }
}

/// Plain pods name their group; a Job in a queue is admitted as a whole, and is a gang thereby.
fn gang(said: &Said, draft: &mut Draft, queued: bool) {
    let total = said.annotation(TOTAL);
    if let Some(name) = said.label(POD_GROUP) {
        if total.is_none() {
            return draft.complain(POD_GROUP, name, &format!("say {TOTAL} as well"));
        }
        let members = draft.count(TOTAL, total);
        let key = said.key(Kind::KueuePodGroup, name);
        return draft.gang(Gang { key, members, min: members });
    }
    if let Some(total) = total {
        return draft.complain(TOTAL, total, &format!("name the group with {POD_GROUP}"));
    }
    let of_job = said
        .pod
        .metadata
        .controller()
        .is_some_and(|owner| owner.group() == "batch" && &*owner.kind == "Job");
    if queued
        && of_job
        && let Some(gang) = owner::any(said, draft)
        && gang.key.kind == Kind::Job
    {
        let least = draft.count(MIN, said.annotation(MIN));
        draft.gang(Gang { min: least.or(gang.min), ..gang });
    }
}
