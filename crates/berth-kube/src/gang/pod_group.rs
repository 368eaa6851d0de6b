//! PodGroups of KAI, Volcano and Kubernetes itself: what is read of them.

use crate::object::{LabelSelector, List, Map, Meta, Text};
use serde::Deserialize;

/// A PodGroup of any of the three.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodGroup {
    /// `scheduling.run.ai/v2alpha2`
    Kai(KaiPodGroup),
    /// `scheduling.volcano.sh/v1beta1`
    Volcano(VolcanoPodGroup),
    /// `scheduling.k8s.io/v1alpha2` and later
    Upstream(UpstreamPodGroup),
}

macro_rules! objects {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }
    )* };
}

objects! {
    KaiPodGroup { metadata: Meta, spec: KaiSpec, }

    KaiSpec {
        min_member: Option<i64>,
        min_sub_group: Option<i64>,
        queue: Option<Text>,
        priority_class_name: Option<Text>,
        preemptibility: Option<Text>,
        preemption_delay: Option<Text>,
        topology_constraint: KaiTopology,
        sub_groups: List<KaiSubGroup>,
    }

    KaiTopology {
        topology: Option<Text>,
        required_topology_level: Option<Text>,
        preferred_topology_level: Option<Text>,
    }

    KaiSubGroup {
        name: Text,
        /// The subgroup that this one is in.
        parent: Option<Text>,
        min_member: Option<i64>,
        min_sub_group: Option<i64>,
        topology_constraint: Option<KaiTopology>,
    }

    VolcanoPodGroup { metadata: Meta, spec: VolcanoSpec, }

    VolcanoSpec {
        min_member: Option<i64>,
        min_task_member: Map<i64>,
        queue: Option<Text>,
        priority_class_name: Option<Text>,
        network_topology: Option<NetworkTopology>,
        sub_group_policy: List<SubGroupPolicy>,
    }

    SubGroupPolicy {
        name: Text,
        sub_group_size: Option<i64>,
        min_sub_groups: Option<i64>,
        label_selector: Option<LabelSelector>,
        /// Pods with the same values of these labels are together.
        match_label_keys: List<Text>,
        network_topology: Option<NetworkTopology>,
    }

    NetworkTopology {
        mode: Option<Text>,
        highest_tier_allowed: Option<i64>,
        highest_tier_name: Option<Text>,
    }

    UpstreamPodGroup { metadata: Meta, spec: UpstreamSpec, }

    UpstreamSpec {
        scheduling_policy: UpstreamPolicy,
        scheduling_constraints: UpstreamConstraints,
        /// Of the group as a whole, which we do not have.
        resource_claims: List<UpstreamClaim>,
        priority_class_name: Option<Text>,
        /// The number of that class, as the API server has looked it up.
        priority: Option<i32>,
    }

    UpstreamPolicy { gang: Option<UpstreamGang>, basic: Option<Basic>, }

    UpstreamGang { min_count: i64, }

    Basic {}

    UpstreamConstraints { topology: List<UpstreamTopology>, }

    UpstreamTopology { key: Text, }

    UpstreamClaim { name: Text, }
}
