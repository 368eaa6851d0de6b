//! KAI's marks.
//!
//! Two of them have no effect, and a pod that has them says so: `kai.scheduler/task-priority` (the
//! order of pods within a gang) and `kai.scheduler/staleness-grace-period` (what happens to a gang
//! that has lost pods). `kai.scheduler/skip-podgrouper` is true of everybody: no group is made here.

mod tree;

use super::draft::{Draft, Gang, first};
use super::pod_group::{KaiPodGroup, KaiTopology};
use super::source::AnnotationSource;
use super::{GangKind, GroupKey, PodGroup, Subgroup, owner};
use crate::object::Text;
use berth_model::{Name, Segment, TopologyAsk};
use tree::Tree;

const POD_GROUP: &str = "pod-group-name";
const MIN: [&str; 2] = ["kai.scheduler/batch-min-member", "kai.scheduler/min-member"];
pub(super) const CLASS: &str = "priorityClassName";
const PREEMPTIBILITY: &str = "kai.scheduler/preemptibility";
const DELAY: &str = "kai.scheduler/preemption-delay";
const SUBGROUP: &str = "kai.scheduler/subgroup-name";
const SEGMENT: &str = "kai.scheduler/segment-size";
const SEGMENT_REQUIRED: &str = "kai.scheduler/segment-topology-required-placement";
const SEGMENT_PREFERRED: &str = "kai.scheduler/segment-topology-preferred-placement";

/// Marks that have no effect, and why.
const IGNORED: [(&str, &str); 2] = [
    (
        "kai.scheduler/task-priority",
        "the pods of a gang begin together, so none of them goes first",
    ),
    (
        "kai.scheduler/staleness-grace-period",
        "for how long a gang may go on that has lost pods is `stale` of the policy",
    ),
];

/// The classes KAI brings along. From 100 on nothing is preempted.
const CLASSES: [(&str, i32); 4] =
    [("train", 50), ("build-preemptible", 75), ("build", 100), ("inference", 125)];

pub(super) fn group(source: &AnnotationSource) -> Option<GroupKey> {
    let name = source.pod.metadata.annotation(POD_GROUP).filter(|name| !name.is_empty())?;
    Some(source.key(GangKind::KaiPodGroup, name))
}

pub(super) fn read(source: &AnnotationSource, draft: &mut Draft) {
    draft.queue(source.label("kai.scheduler/queue"));
    first(&mut draft.node_pool, source.label("kai.scheduler/node-pool").map(Name::new));
    class(source.label(CLASS), draft);
    let preemptible = preemptible(PREEMPTIBILITY, source.either(PREEMPTIBILITY), draft);
    first(&mut draft.preemptible, preemptible);
    let delay = draft.span(DELAY, source.either(DELAY));
    first(&mut draft.preempt_after, delay);
    first(&mut draft.topology.within, source.annotation("kai.scheduler/topology").map(Name::new));
    draft.required(source.annotation("kai.scheduler/topology-required-placement"));
    draft.preferred(source.annotation("kai.scheduler/topology-preferred-placement"));
    segment(source, draft);
    for (key, what) in IGNORED {
        if let Some(value) = source.either(key) {
            draft.ignore(key, value, what);
        }
    }
    gang(source, draft);
}

fn class(name: Option<&str>, draft: &mut Draft) {
    draft.class(name);
    let known = CLASSES.iter().find(|(class, _)| Some(*class) == name);
    if let Some((class, value)) = known
        && draft.priority_class.as_deref() == Some(*class)
    {
        first(&mut draft.priority, Some(*value));
        first(&mut draft.preemptible, Some(*value < 100));
    }
}

fn preemptible(key: &str, value: Option<&str>, draft: &mut Draft) -> Option<bool> {
    match value? {
        "preemptible" => Some(true),
        "non-preemptible" => Some(false),
        other => {
            draft.invalid(key, other, "write preemptible or non-preemptible");
            None
        }
    }
}

fn segment(source: &AnnotationSource, draft: &mut Draft) {
    let size = draft.count(SEGMENT, source.annotation(SEGMENT));
    let level = source.annotation(SEGMENT_REQUIRED);
    match (size, level) {
        (Some(size), Some(level)) => {
            draft.segment(Some(Segment { size, within: Name::new(level) }));
        }
        (Some(size), None) => {
            let what = format!("say with {SEGMENT_REQUIRED} where a segment must be together");
            draft.invalid(SEGMENT, &size.to_string(), &what);
        }
        (None, Some(level)) if source.annotation(SEGMENT).is_none() => {
            draft.invalid(SEGMENT_REQUIRED, level, &format!("say {SEGMENT} as well"));
        }
        (None, _) => {}
    }
    if let Some(level) = source.annotation(SEGMENT_PREFERRED) {
        let what = format!("segments are kept together or not at all: use {SEGMENT_REQUIRED}");
        draft.invalid(SEGMENT_PREFERRED, level, &what);
    }
}

fn gang(source: &AnnotationSource, draft: &mut Draft) {
    if let Some(key) = group(source) {
        let mut gang = Gang { key, members: None, min: None };
        if let Some(PodGroup::Kai(object)) = source.context.group {
            gang.min = pod_group(source, object, draft);
        } else if let Some(name) = source.label(SUBGROUP) {
            first(&mut draft.subgroup, Some(Subgroup::new(name, None)));
        }
        return draft.gang(gang);
    }
    let found = MIN.iter().find_map(|key| Some((*key, source.annotation(key)?)));
    if let Some((key, value)) = found
        && let Some(min) = draft.count(key, Some(value))
    {
        match owner::any(source, draft) {
            Some(gang) => draft.gang(Gang { min: Some(min), ..gang }),
            None => draft.invalid(key, value, "nothing owns this pod; make a PodGroup for it"),
        }
    }
}

/// How many pods the group needs, having read the rest of it.
fn pod_group(source: &AnnotationSource, object: &KaiPodGroup, draft: &mut Draft) -> Option<u32> {
    let spec = &object.spec;
    let at = |field: &str| format!("PodGroup {}: {field}", object.metadata.name);
    draft.queue(spec.queue.as_deref());
    class(spec.priority_class_name.as_deref(), draft);
    let free = preemptible(&at("preemptibility"), spec.preemptibility.as_deref(), draft);
    first(&mut draft.preemptible, free);
    let delay = draft.span(&at("preemptionDelay"), spec.preemption_delay.as_deref());
    first(&mut draft.preempt_after, delay);
    let tree = Tree::new(object);
    tree.check(draft);
    if let Some(name) = source.label(SUBGROUP) {
        let part = tree.part(name, draft);
        first(&mut draft.subgroup, part);
    }
    let TopologyAsk { within, required, preferred, .. } = topology(&spec.topology_constraint);
    first(&mut draft.topology.within, within);
    draft.required(required.as_deref());
    draft.preferred(preferred.as_deref());
    let mut parts = 0i64;
    for (name, least) in tree.needed() {
        parts = parts.saturating_add(least);
        let least = draft.number(&at("subGroups.minMember"), Some(least));
        draft.needed.extend(least.map(|least| (name, least)));
    }
    // Zero and absent are one in KAI: no pod waits for another.
    let min = spec.min_member.unwrap_or(0);
    let min = if min < 0 { min } else { min.max(parts).max(1) };
    draft.number(&at("minMember"), Some(min))
}

fn topology(written: &KaiTopology) -> TopologyAsk {
    let name = |text: &Option<Text>| text.as_deref().filter(|text| !text.is_empty()).map(Name::new);
    TopologyAsk {
        within: name(&written.topology),
        required: name(&written.required_topology_level),
        preferred: name(&written.preferred_topology_level),
        segment: None,
    }
}
