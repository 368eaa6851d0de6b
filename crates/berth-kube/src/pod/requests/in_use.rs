//! What a pod takes of the node that it has.

use super::{Bytes, Cpu, Error, GpuRequest, Name, Quantity, ResourceRequests, ResourceSums};
use crate::object::{Container, ContainerStatus, Map, Pod, PodSpec, Raw, Resources};
use crate::quantity;
use std::collections::BTreeMap;

/// Amounts that a pod takes of its node where they are not what it asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourcesInUse {
    pub cpu: Cpu,
    pub memory: Bytes,
    /// Of one pod several kinds may be in use: whoever bound it may know how.
    pub gpus: Vec<GpuRequest>,
    pub other: BTreeMap<Name, i64>,
}

/// More than any node has, and little enough that many of them add up.
const MOST: i64 = 1 << 52;

impl ResourcesInUse {
    /// None where the pod uses what it asks for. It uses something else while its resources are
    /// resized in place. A pod whose requests are invalid may run as well: another scheduler bound
    /// it, or its labels were changed after the bind. Labels and annotations are ignored then.
    pub fn by(pod: &Pod, need: &Result<ResourceRequests, Error>) -> Option<ResourcesInUse> {
        let changed = changed_in_place(pod);
        if need.is_ok() && changed.is_none() {
            return None;
        }
        // The API server takes no quantity that cannot be read.
        let mut sums = ResourceSums::of(changed.as_ref().unwrap_or(&pod.spec)).unwrap_or_default();
        let cpu = sums.0.remove("cpu").unwrap_or_default();
        let memory = sums.0.remove("memory").unwrap_or_default();
        let gpus = GpuRequest::all(&mut sums);
        let other = sums.0.iter().map(|(name, amount)| (Name::new(name), most(amount.whole())));
        Some(ResourcesInUse {
            cpu: Cpu(most(cpu.milli())),
            memory: Bytes(most(memory.whole())),
            gpus,
            other: other.filter(|(_, amount)| *amount > 0).collect(),
        })
    }
}

fn most(amount: Result<i64, quantity::Error>) -> i64 {
    amount.map_or(MOST, |amount| amount.min(MOST))
}

/// What the pod counts as while its resources are changed: of each the most of what is asked for,
/// what its node has set aside, and what it runs with, since any of them may come true. What is
/// asked for does not count where the node can never give it. Nothing where all are the same.
fn changed_in_place(pod: &Pod) -> Option<PodSpec> {
    let status = &pod.status;
    let whole = pod.spec.resources.as_ref().zip(status.resources.as_deref());
    let whole = whole.filter(|(asked, runs)| {
        asked.requests != runs.requests || asked.requests != status.allocated_resources
    });
    let statuses = || status.container_statuses.iter().chain(&status.init_container_statuses);
    if whole.is_none() && !statuses().any(|status| differs(pod, status)) {
        return None;
    }
    let is_refused = status.conditions.iter().any(|condition| {
        &*condition.kind == "PodResizePending" && &*condition.reason == "Infeasible"
    });
    let change = |container: &Container| {
        let mut container = container.clone();
        let status = statuses().find(|status| status.name == container.name);
        if let Some((status, runs)) = status.and_then(|one| Some((one, one.resources.as_ref()?))) {
            let asked = &container.resources.requests;
            let most = larger(asked, &runs.requests, &status.allocated_resources, is_refused);
            container.resources.requests = most;
        }
        container
    };
    let mut spec = pod.spec.clone();
    spec.containers = pod.spec.containers.iter().map(change).collect();
    // Only those that go on running can be changed.
    let init = |init: &Container| if init.is_sidecar() { change(init) } else { init.clone() };
    spec.init_containers = pod.spec.init_containers.iter().map(init).collect();
    if let Some((asked, runs)) = whole {
        let requests = &asked.requests;
        let most = larger(requests, &runs.requests, &status.allocated_resources, is_refused);
        spec.resources = Some(Resources { requests: most, limits: asked.limits.clone() }.into());
    }
    Some(spec)
}

fn differs(pod: &Pod, status: &ContainerStatus) -> bool {
    let Some(runs) = &status.resources else { return false };
    let all = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let mut all = all.filter(|container| container.name == status.name);
    all.any(|container| {
        let asked = &container.resources.requests;
        *asked != runs.requests || *asked != status.allocated_resources
    })
}

/// The larger ones, as they are written.
fn larger(asked: &Map<Raw>, runs: &Map<Raw>, set_aside: &Map<Raw>, is_refused: bool) -> Map<Raw> {
    let is_told = |resource: &str| runs.contains(resource) || set_aside.contains(resource);
    let asked = asked.iter().filter(|(resource, _)| !is_refused || !is_told(resource));
    let mut most: BTreeMap<&str, (Quantity, &Raw)> = BTreeMap::new();
    for (resource, written) in asked.chain(runs.iter()).chain(set_aside.iter()) {
        let amount = written.as_str().parse().unwrap_or_default();
        let known = most.entry(resource).or_insert((amount, written));
        if amount > known.0 {
            *known = (amount, written);
        }
    }
    most.into_iter().map(|(resource, (_, written))| (resource, written.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_use(pod: &str) -> Option<ResourcesInUse> {
        let pod: Pod = serde_json::from_str(pod).unwrap();
        ResourcesInUse::by(&pod, &ResourceRequests::of(&pod))
    }

    /// A pod that asks for so much CPU and was set aside that, runs with that, and has such
    /// conditions.
    fn changed(asked: &str, set_aside: &str, runs: &str, conditions: &str) -> Option<i64> {
        let pod = format!(
            r#"{{"spec": {{"containers": [
                   {{"name": "a", "resources": {{"requests": {{"cpu": "{asked}"}}}}}},
                   {{"name": "b", "resources": {{"requests": {{"cpu": "1", "x/y": "3"}}}}}}]}},
                 "status": {{"conditions": [{conditions}], "containerStatuses": [
                   {{"name": "a", "allocatedResources": {{"cpu": "{set_aside}"}},
                     "resources": {{"requests": {{"cpu": "{runs}"}}}}}}]}}}}"#
        );
        in_use(&pod).map(|in_use| {
            assert_eq!(in_use.other, BTreeMap::from([("x/y".into(), 3)]));
            in_use.cpu.0
        })
    }

    #[test]
    fn a_pod_that_is_changed_in_place_takes_the_most_of_before_and_after() {
        assert_eq!(changed("2", "2", "2", ""), None, "it is what it asks for");
        assert_eq!(changed("2", "16", "16", ""), Some(17_000), "it has yet to give back");
        assert_eq!(changed("16", "2", "2", ""), Some(17_000), "it is about to get more");
        assert_eq!(changed("2", "2", "16", ""), Some(17_000), "it still runs with more");
        let refused = r#"{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}"#;
        assert_eq!(changed("640", "2", "2", refused), Some(3_000), "it never gets more");
    }

    #[test]
    fn what_a_pod_as_a_whole_and_its_sidecars_run_with_counts() {
        let pod = r#"{"spec": {
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}],
            "initContainers": [
                {"name": "side", "restartPolicy": "Always",
                 "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
            "resources": {"requests": {"cpu": "4"}}},
          "status": {
            "allocatedResources": {"cpu": "8"}, "resources": {"requests": {"cpu": "6"}},
            "initContainerStatuses": [
                {"name": "side", "allocatedResources": {"cpu": "1", "memory": "3Gi"},
                 "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}]}}"#;
        let in_use = in_use(pod).unwrap();
        assert_eq!((in_use.cpu, in_use.memory), (Cpu(8_000), Bytes::gib(3)));
    }

    #[test]
    fn what_is_not_understood_is_in_use_all_the_same() {
        let pod = |annotations: &str, limits: &str| {
            in_use(&format!(
                r#"{{"metadata": {{"annotations": {annotations}}}, "spec": {{"containers": [
                       {{"name": "a", "resources": {{"limits": {limits}}}}}]}}}}"#
            ))
        };
        let whole =
            |count| GpuRequest::Whole { vendor: crate::pod::requests::GpuVendor::Nvidia, count };
        assert_eq!(pod("{}", r#"{"nvidia.com/gpu": 8}"#), None);
        for fraction in ["1", "0.5", "much"] {
            let annotations = format!(r#"{{"gpu-fraction": "{fraction}"}}"#);
            let in_use = pod(&annotations, r#"{"nvidia.com/gpu": 8, "cpu": 2}"#).unwrap();
            assert_eq!((in_use.gpus, in_use.cpu), (vec![whole(8)], Cpu(2_000)), "{fraction}");
        }
        let mixed = r#"{"nvidia.com/gpu": 2, "nvidia.com/mig-1g.10gb": 3}"#;
        let instances = GpuRequest::Mig { profile: "1g.10gb".into(), count: 3 };
        assert_eq!(pod("{}", mixed).unwrap().gpus, [whole(2), instances]);
        assert_eq!(pod(r#"{"gpu-fraction": "much"}"#, "{}").unwrap().gpus, []);
    }
}
