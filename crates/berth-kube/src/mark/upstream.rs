//! The scheduling group of Kubernetes itself.

use super::draft::{Draft, Gang};
use super::said::Said;
use super::{Group, GroupKey, Kind};

pub(super) fn group(said: &Said) -> Option<GroupKey> {
    let spec = &said.pod.spec;
    let named = spec.scheduling_group.as_ref().and_then(|group| group.pod_group_name.as_deref());
    if let Some(name) = named {
        return Some(said.key(Kind::PodGroup, name));
    }
    let workload = spec.workload_ref.as_ref()?;
    let parts = [&workload.name, &workload.pod_group, &workload.pod_group_replica_key];
    let parts: Vec<&str> =
        parts.into_iter().map(|part| &**part).filter(|part| !part.is_empty()).collect();
    Some(said.key(Kind::Workload, &parts.join("/")))
}

pub(super) fn read(said: &Said, draft: &mut Draft) {
    let Some(key) = group(said) else {
        return;
    };
    let Some(Group::Upstream(object)) = said.around.group else {
        return draft.gang(Gang { key, members: None, min: None });
    };
    let at = |field: &str| format!("PodGroup {}: {field}", object.metadata.name);
    match object.spec.scheduling_constraints.topology_constraints[..] {
        [] => {}
        [ref only] => draft.required(Some(&only.topology_key)),
        [_, ref second, ..] => {
            let what = "keep to one topology constraint";
            draft.complain(&at("topologyConstraints"), &second.topology_key, what);
        }
    }
    let policy = &object.spec.scheduling_policy;
    match (&policy.gang, &policy.basic) {
        (Some(gang), _) => {
            let min = draft.number(&at("gang.minCount"), Some(gang.min_count));
            draft.gang(Gang { key, members: None, min });
        }
        // Grouped for other purposes: each pod starts by itself.
        (None, Some(_)) => {}
        (None, None) => {
            draft.complain(&at("schedulingPolicy"), "", "write gang with minCount, or basic");
        }
    }
}
