//! Even spreading over places.

use crate::object::{Pod, SpreadConstraint, Text};
use crate::selector::{LabelMatcher, UnsupportedConstraint};

/// Between two places the numbers of such pods may differ by no more than the skew.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopologySpread {
    pub topology_key: Text,
    pub max_skew: u32,
    /// Otherwise it is a preference.
    pub required: bool,
    /// Pods of the pod's own namespace.
    pub pods: LabelMatcher,
    /// With fewer places than this the smallest number counts as zero.
    pub min_domains: u32,
    /// Whether places count only where the pod's own selector and affinity allow a node.
    pub honors_node_affinity: bool,
    /// Whether nodes with taints that the pod does not tolerate are left out.
    pub honors_node_taints: bool,
}

const PLACE: &str = "topologySpreadConstraints";

impl TopologySpread {
    pub(super) fn of(
        written: &SpreadConstraint,
        pod: &Pod,
    ) -> Result<TopologySpread, UnsupportedConstraint> {
        let positive = |what: &str, count: i32| {
            u32::try_from(count).ok().filter(|count| *count > 0).ok_or_else(|| {
                UnsupportedConstraint::new(PLACE, format!("{what} is {count}; write 1 or more"))
            })
        };
        let required = match &*written.when_unsatisfiable {
            "DoNotSchedule" => true,
            "ScheduleAnyway" => false,
            other => return Err(unknown("whenUnsatisfiable", other)),
        };
        if written.topology_key.is_empty() {
            return Err(UnsupportedConstraint::new(
                PLACE,
                "there is no topologyKey; name a node label",
            ));
        }
        let mut pods = LabelMatcher::of(PLACE, written.label_selector.as_ref())?;
        pods.same_as(&pod.metadata.labels, &written.match_label_keys);
        Ok(TopologySpread {
            topology_key: written.topology_key.clone(),
            max_skew: positive("maxSkew", written.max_skew)?,
            required,
            pods,
            min_domains: positive("minDomains", written.min_domains.unwrap_or(1))?,
            honors_node_affinity: honors(
                "nodeAffinityPolicy",
                &written.node_affinity_policy,
                true,
            )?,
            honors_node_taints: honors("nodeTaintsPolicy", &written.node_taints_policy, false)?,
        })
    }
}

fn honors(key: &str, policy: &Option<Text>, default: bool) -> Result<bool, UnsupportedConstraint> {
    match policy.as_deref() {
        None => Ok(default),
        Some("Honor") => Ok(true),
        Some("Ignore") => Ok(false),
        Some(other) => Err(unknown(key, other)),
    }
}

fn unknown(key: &str, value: &str) -> UnsupportedConstraint {
    UnsupportedConstraint::new(PLACE, format!("{key} is `{value}`, which is not one we know"))
}
