//! Pods.

use super::{
    Affinity, Container, Labels, List, Map, Meta, PodStatus, Raw, Resources, SpreadConstraint,
    Text, Toleration, Volume, affinity,
};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    pub metadata: Meta,
    pub spec: PodSpec,
    pub status: PodStatus,
}

/// Everything of a pod's spec that bears on scheduling.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodSpec {
    /// Empty until the pod is bound.
    pub node_name: Text,
    pub scheduler_name: Text,
    pub priority_class_name: Text,
    pub priority: Option<i32>,
    pub preemption_policy: Option<Text>,
    pub node_selector: Labels,
    pub affinity: Option<Box<Affinity>>,
    /// Without those that every pod gets for a node that has stopped answering.
    pub tolerations: List<Toleration>,
    pub topology_spread_constraints: List<SpreadConstraint>,
    pub containers: List<Container>,
    pub init_containers: List<Container>,
    pub overhead: Map<Raw>,
    /// For the pod as a whole; where set, it wins over the sum of its containers.
    pub resources: Option<Box<Resources>>,
    pub volumes: List<Volume>,
    pub scheduling_gates: List<Gate>,
    pub resource_claims: List<PodResourceClaim>,
    pub restart_policy: Text,
    pub termination_grace_period_seconds: Option<i64>,
    pub active_deadline_seconds: Option<i64>,
    pub scheduling_group: Option<SchedulingGroup>,
    pub workload_ref: Option<Box<WorkloadRef>>,
    /// Keys that we do not know: the pod has to wait, because what they ask for may bear on
    /// scheduling.
    pub unknown: Vec<Text>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Gate {
    pub name: Text,
}

/// A claim on devices, by its own name or made from a template.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodResourceClaim {
    pub name: Text,
    pub resource_claim_name: Option<Text>,
    pub resource_claim_template_name: Option<Text>,
}

/// The upstream PodGroup a pod belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingGroup {
    pub pod_group_name: Option<Text>,
}

/// The form `schedulingGroup` had in Kubernetes 1.35: a group inside a Workload.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadRef {
    pub name: Text,
    pub pod_group: Text,
    pub pod_group_replica_key: Text,
}

/// Keys of a pod's spec that concern the kubelet or were turned into other fields before a
/// scheduler sees the pod (a runtime class has become overhead, selector and tolerations).
const HARMLESS: [&str; 23] = [
    "automountServiceAccountToken",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "ephemeralContainers",
    "evictionResponders",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "hostname",
    "hostnameOverride",
    "imagePullSecrets",
    "os",
    "readinessGates",
    "runtimeClassName",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "subdomain",
];

/// By hand, because a spec is read with every change of a pod: whatever keeps keys that are left over
/// would otherwise copy all of it first.
impl<'de> Deserialize<'de> for PodSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PodSpec, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = PodSpec;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("the spec of a pod")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PodSpec, A::Error> {
                let mut spec = PodSpec::default();
                while let Some(key) = map.next_key::<Text>()? {
                    spec.take(key, &mut map)?;
                }
                spec.unknown.sort();
                Ok(spec)
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

impl PodSpec {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: Text, map: &mut A) -> Result<(), A::Error> {
        match &*key {
            "nodeName" => self.node_name = map.next_value()?,
            "schedulerName" => self.scheduler_name = map.next_value()?,
            "priorityClassName" => self.priority_class_name = map.next_value()?,
            "priority" => self.priority = map.next_value()?,
            "preemptionPolicy" => self.preemption_policy = map.next_value()?,
            "nodeSelector" => self.node_selector = map.next_value()?,
            "affinity" => self.affinity = map.next_value()?,
            "tolerations" => self.tolerations = affinity::own_tolerations(map.next_value()?),
            "topologySpreadConstraints" => self.topology_spread_constraints = map.next_value()?,
            "containers" => self.containers = map.next_value()?,
            "initContainers" => self.init_containers = map.next_value()?,
            "overhead" => self.overhead = map.next_value()?,
            "resources" => self.resources = map.next_value()?,
            "volumes" => self.volumes = map.next_value()?,
            "schedulingGates" => self.scheduling_gates = map.next_value()?,
            "resourceClaims" => self.resource_claims = map.next_value()?,
            "restartPolicy" => self.restart_policy = map.next_value()?,
            "terminationGracePeriodSeconds" => {
                self.termination_grace_period_seconds = map.next_value()?;
            }
            "activeDeadlineSeconds" => self.active_deadline_seconds = map.next_value()?,
            "schedulingGroup" => self.scheduling_group = map.next_value()?,
            "workloadRef" => self.workload_ref = map.next_value()?,
            _ => {
                let value = map.next_value::<Option<IgnoredAny>>()?;
                if value.is_some() && HARMLESS.binary_search(&&*key).is_err() {
                    self.unknown.push(key);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(json: &str) -> PodSpec {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn keys_that_do_not_bear_on_scheduling_are_sorted_for_the_search() {
        assert!(HARMLESS.is_sorted());
    }

    #[test]
    fn a_key_nobody_knows_is_kept_by_name_so_that_the_pod_can_wait() {
        let spec = spec(
            r#"{"dnsPolicy": "ClusterFirst", "quantumAffinity": {"spin": "up"},
                "containers": [{"name": "a", "image": "b", "env": [{"name": "X"}]}],
                "securityContext": {}, "cosmicRays": null, "enableServiceLinks": true,
                "alibi": [1]}"#,
        );
        assert_eq!(spec.unknown, ["alibi".into(), "quantumAffinity".into()]);
        assert_eq!(&*spec.containers[0].name, "a");
    }

    #[test]
    fn a_spec_of_the_api_server_has_no_unknown_keys() {
        let spec = spec(
            r#"{"activeDeadlineSeconds": 60, "affinity": {}, "containers": [], "dnsPolicy": "x",
                "hostNetwork": true, "initContainers": null, "nodeName": "n1", "nodeSelector": {},
                "overhead": {"cpu": "100m"}, "preemptionPolicy": "Never", "priority": 7,
                "priorityClassName": "high", "resourceClaims": [{"name": "gpu",
                "resourceClaimTemplateName": "one"}], "restartPolicy": "Never",
                "schedulerName": "berth", "schedulingGates": [{"name": "wait"}],
                "schedulingGroup": {"podGroupName": "g"}, "serviceAccountName": "default",
                "terminationGracePeriodSeconds": 30, "tolerations": [], "volumes": [],
                "topologySpreadConstraints": [], "workloadRef": {"name": "w", "podGroup": "p"}}"#,
        );
        assert!(spec.unknown.is_empty(), "{:?}", spec.unknown);
        assert_eq!(spec.overhead.get("cpu").unwrap().as_str(), "100m");
        assert_eq!(spec.scheduling_group.unwrap().pod_group_name.as_deref(), Some("g"));
        assert_eq!(&*spec.node_name, "n1");
    }

    #[test]
    fn a_pod_that_says_nothing_takes_little_room() {
        // What is held of 50,000 pods at least, before any text of theirs.
        assert!(size_of::<Pod>() <= 720, "{}", size_of::<Pod>());
    }
}
