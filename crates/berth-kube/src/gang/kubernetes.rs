//! The scheduling group of Kubernetes itself.

use super::draft::{Draft, Gang, first};
use super::source::AnnotationSource;
use super::{GangKind, GroupKey, PodGroup};

pub(super) fn group(source: &AnnotationSource) -> Option<GroupKey> {
    let spec = &source.pod.spec;
    let named = spec.scheduling_group.as_ref().and_then(|group| group.pod_group_name.as_deref());
    if let Some(name) = named {
        return Some(source.key(GangKind::PodGroup, name));
    }
    let workload = spec.workload_ref.as_ref()?;
    let parts = [&workload.name, &workload.pod_group, &workload.pod_group_replica_key];
    let parts: Vec<&str> =
        parts.into_iter().map(|part| &**part).filter(|part| !part.is_empty()).collect();
    Some(source.key(GangKind::Workload, &parts.join("/")))
}

pub(super) fn read(source: &AnnotationSource, draft: &mut Draft) {
    let Some(key) = group(source) else {
        return;
    };
    let Some(PodGroup::Upstream(object)) = source.context.group else {
        return draft.gang(Gang { key, members: None, min: None });
    };
    let at = |field: &str| format!("PodGroup {}: {field}", object.metadata.name);
    match object.spec.scheduling_constraints.topology[..] {
        [] => {}
        [ref only] => draft.required(Some(&only.key)),
        [_, ref second, ..] => {
            let what = "keep to one topology constraint";
            draft.invalid(&at("schedulingConstraints.topology"), &second.key, what);
        }
    }
    if let Some(claim) = object.spec.resource_claims.first() {
        let what = "claims of a group are not supported; let each pod have its own";
        draft.invalid(&at("resourceClaims"), &claim.name, what);
    }
    draft.class(object.spec.priority_class_name.as_deref());
    first(&mut draft.priority, object.spec.priority);
    let policy = &object.spec.scheduling_policy;
    match (&policy.gang, &policy.basic) {
        (Some(gang), _) => {
            let min = draft.number(&at("gang.minCount"), Some(gang.min_count));
            draft.gang(Gang { key, members: None, min });
        }
        // Grouped for other purposes: each pod starts by itself.
        (None, Some(_)) => {}
        (None, None) => {
            draft.invalid(&at("schedulingPolicy"), "", "write gang with minCount, or basic");
        }
    }
}
