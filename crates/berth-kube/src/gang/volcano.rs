//! Volcano's marks. Its own Job kind is out, its PodGroups are in.

use super::draft::{Draft, Gang, first};
use super::pod_group::{NetworkTopology, SubGroupPolicy, VolcanoPodGroup};
use super::source::AnnotationSource;
use super::{GangKind, GroupKey, ParentGroup, PodGroup, Subgroup, owner};
use crate::hypernode;
use crate::object::Text;
use crate::selector::LabelMatcher;
use berth_model::{Name, Segment, TopologyAsk};

const POD_GROUP: [&str; 2] = ["scheduling.volcano.sh/group-name", "scheduling.k8s.io/group-name"];
const QUEUE: [&str; 2] = ["scheduling.volcano.sh/queue-name", "volcano.sh/queue-name"];
const MIN: &str = "scheduling.volcano.sh/group-min-member";
const PREEMPTABLE: &str = "volcano.sh/preemptable";
const COOLDOWN: &str = "volcano.sh/cooldown-time";
const WAITING: &str = "volcano.sh/sla-waiting-time";
const TASK: &str = "volcano.sh/task-spec";
const NUMA: &str = "volcano.sh/numa-topology-policy";
/// Marks that bind a pod to nodes in ways we do not have.
const BINDING: [&str; 2] = ["volcano.sh/revocable-zone", NUMA];

pub(super) fn group(source: &AnnotationSource) -> Option<GroupKey> {
    let name = POD_GROUP.iter().find_map(|key| source.pod.metadata.annotation(key))?;
    (!name.is_empty()).then(|| source.key(GangKind::VolcanoPodGroup, name))
}

pub(super) fn read(source: &AnnotationSource, draft: &mut Draft) {
    draft.queue(QUEUE.iter().find_map(|key| source.either(key)));
    let preemptible = draft.flag(PREEMPTABLE, source.either(PREEMPTABLE));
    first(&mut draft.preemptible, preemptible);
    let cooldown = draft.span(COOLDOWN, source.either(COOLDOWN));
    first(&mut draft.min_runtime, cooldown);
    if let Some(value) = source.either(WAITING) {
        let what = "how long a job waits is not bounded here; give it a higher priority if it is \
                    urgent";
        draft.ignore(WAITING, value, what);
    }
    for key in BINDING {
        let value = source.either(key).filter(|value| *value != "none");
        if key == NUMA && value == Some("best-effort") {
            let what = "nodes are not chosen by it; kubelets align pods as well as their own \
                        policies let them";
            draft.ignore(NUMA, "best-effort", what);
        } else if let Some(value) = value {
            draft.invalid(key, value, "this is not supported; take the mark away");
        }
    }
    gang(source, draft);
}

fn gang(source: &AnnotationSource, draft: &mut Draft) {
    if let Some(key) = group(source) {
        let min = match source.context.group {
            Some(PodGroup::Volcano(object)) => pod_group(source, object, draft),
            Some(PodGroup::Kai(_) | PodGroup::Upstream(_)) | None => None,
        };
        return draft.gang(Gang { key, members: None, min });
    }
    if let Some(value) = source.annotation(MIN)
        && let Some(min) = draft.count(MIN, Some(value))
    {
        match owner::any(source, draft) {
            Some(gang) => draft.gang(Gang { min: Some(min), ..gang }),
            None => draft.invalid(MIN, value, "nothing owns this pod; make a PodGroup for it"),
        }
    }
}

fn pod_group(
    source: &AnnotationSource,
    object: &VolcanoPodGroup,
    draft: &mut Draft,
) -> Option<u32> {
    let spec = &object.spec;
    let at = |field: &str| format!("PodGroup {}: {field}", object.metadata.name);
    draft.queue(spec.queue.as_deref());
    draft.class(spec.priority_class_name.as_deref());
    if let Some(topology) = &spec.network_topology
        && let Some((level, is_hard)) = level(&at("networkTopology"), topology, draft)
    {
        if is_hard { draft.required(Some(&level)) } else { draft.preferred(Some(&level)) }
    }
    if let Some(task) = source.annotation(TASK) {
        let min = spec.min_task_member.get(task).copied().filter(|min| *min != 0);
        let min = draft.number(&at("minTaskMember"), min);
        first(&mut draft.subgroup, Some(Subgroup::new(task, min)));
    }
    for policy in &spec.sub_group_policy {
        let at = at(&format!("subGroupPolicy {}", policy.name));
        if policy.min_sub_groups.is_some_and(|count| count > 0) {
            draft.invalid(&at, "minSubGroups", "say minMember of the group instead");
        }
    }
    let mut policies = spec.sub_group_policy.iter();
    if let Some((policy, values)) = policies.find_map(|policy| {
        let at = at(&format!("subGroupPolicy {}", policy.name));
        Some((policy, subgroup(source, &at, policy, draft)?))
    }) {
        let at = at(&format!("subGroupPolicy {}", policy.name));
        divide(&at, policy, &values, draft);
    }
    // A minimum of the whole that is less than those of its tasks makes these a wish.
    let tasks = spec.min_task_member.iter().filter(|(_, min)| **min > 0);
    let total = tasks.clone().fold(0i64, |sum, (_, min)| sum.saturating_add(*min));
    if spec.min_member.is_some_and(|min| min >= total) {
        let needed =
            tasks.filter_map(|(task, min)| Some((Name::new(task), u32::try_from(*min).ok()?)));
        draft.needed.extend(needed);
    }
    // Zero and absent are one in Volcano: no pod waits for another.
    draft.number(&at("minMember"), Some(spec.min_member.filter(|min| *min != 0).unwrap_or(1)))
}

/// The values by which a pod belongs to one of the subgroups of a policy; nothing where the policy is
/// not for it.
fn subgroup<'a>(
    source: &AnnotationSource<'a>,
    at: &str,
    policy: &SubGroupPolicy,
    draft: &mut Draft,
) -> Option<Vec<&'a str>> {
    let meta = &source.pod.metadata;
    if let Some(selector) = &policy.label_selector {
        match LabelMatcher::of("labelSelector", Some(selector)) {
            Ok(selector) if selector.matches(&meta.labels) => {}
            Ok(_) => return None,
            Err(error) => {
                draft.invalid(at, "labelSelector", &error.to_string());
                return None;
            }
        }
    }
    let value = |key: &Text| meta.label(key).filter(|value| !value.is_empty());
    policy.match_label_keys.iter().map(value).collect()
}

/// Pods of the same values are in one place. Where nothing tells them apart they are divided into
/// blocks.
fn divide(at: &str, policy: &SubGroupPolicy, values: &[&str], draft: &mut Draft) {
    let size = draft.number(at, Some(policy.sub_group_size.unwrap_or(1)));
    let found = policy.network_topology.as_ref().and_then(|written| level(at, written, draft));
    let (Some(size), Some((within, is_hard))) = (size, found) else { return };
    let within = Some(within);
    if !values.is_empty() {
        let (required, preferred) = if is_hard { (within, None) } else { (None, within) };
        let topology = TopologyAsk { required, preferred, ..TopologyAsk::default() };
        let name = Name::new(&format!("{}/{}", policy.name, values.join("/")));
        part(policy, draft).above.push(ParentGroup { name, topology });
    } else if !is_hard {
        let what = "blocks are kept together or not at all; write hard, or tell the subgroups apart \
                    by matchLabelKeys";
        draft.ignore(at, "soft", what);
    } else if let Some(within) = within {
        let segment = Some(Segment { size, within });
        match policy.label_selector {
            None => draft.segment(segment),
            Some(_) => {
                let topology = TopologyAsk { segment, ..TopologyAsk::default() };
                part(policy, draft).topology = Some(topology);
            }
        }
    }
}

/// The part of its gang that a pod is in; where nothing else says, that of the policy.
fn part<'a>(policy: &SubGroupPolicy, draft: &'a mut Draft) -> &'a mut Subgroup {
    draft.subgroup.get_or_insert_with(|| Subgroup::new(&policy.name, None))
}

/// The level, and whether it is a must.
fn level(at: &str, written: &NetworkTopology, draft: &mut Draft) -> Option<(Name, bool)> {
    let is_hard = match written.mode.as_deref() {
        None | Some("hard") => true,
        Some("soft") => false,
        Some(other) => {
            draft.invalid(at, other, "write hard or soft");
            return None;
        }
    };
    match (&written.highest_tier_name, written.highest_tier_allowed) {
        (Some(name), _) => Some((Name::new(name), is_hard)),
        (None, Some(tier)) if tier < 0 => {
            draft.invalid(at, &format!("highestTierAllowed {tier}"), "write a tier from 0 on");
            None
        }
        (None, Some(tier)) => {
            // All that are too high are the same: any place will do.
            let tier = u32::try_from(tier).unwrap_or(u32::MAX).min(hypernode::MAX_TIER + 1);
            Some((hypernode::level(tier), is_hard))
        }
        (None, None) => None,
    }
}
