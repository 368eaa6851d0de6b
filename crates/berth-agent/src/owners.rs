//! The names that device plugins have for GPUs, and the pods behind them.

use crate::gpu::Gpu;
use berth_kube::PodDevices;
use berth_node::MigPart;
use std::collections::{BTreeMap, BTreeSet};

const RESOURCES: &str = "nvidia.com/";
const DRIVER: &str = "gpu.nvidia.com";
/// What a UUID of a MIG instance begins with.
const MIG: &str = "MIG-";

/// A pod, by namespace and name.
pub type Pod = (String, String);

/// A GPU, or an instance on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Gpu(u32),
    Part { gpu: u32, instance: u32 },
}

/// Who has what.
pub type Owners = BTreeMap<Place, BTreeSet<Pod>>;

/// The UUIDs of the instances that pods have.
pub fn instances(pods: &[PodDevices]) -> BTreeSet<String> {
    let names = pods.iter().flat_map(names).filter(|name| name.starts_with(MIG));
    names.map(str::to_owned).collect()
}

pub fn owners(pods: &[PodDevices], gpus: &[Gpu], parts: &[MigPart]) -> Owners {
    let mut owners = Owners::new();
    for pod in pods {
        let claimed = pod.claimed.iter().filter(|(driver, _)| driver == DRIVER);
        let claimed = claimed.filter_map(|(_, name)| claimed_gpu(name, gpus));
        for place in names(pod).filter_map(|name| place(name, gpus, parts)).chain(claimed) {
            let all = owners.entry(place).or_default();
            all.insert((pod.namespace.clone(), pod.name.clone()));
        }
    }
    owners
}

/// Those of NVIDIA's devices. One that is shared has a name for each share.
fn names(pod: &PodDevices) -> impl Iterator<Item = &str> {
    let nvidia = pod.devices.iter().filter(|(resource, _)| resource.starts_with(RESOURCES));
    nvidia.map(|(_, name)| name.split_once("::").map_or(name.as_str(), |(device, _)| device))
}

fn place(name: &str, gpus: &[Gpu], parts: &[MigPart]) -> Option<Place> {
    if let Some(part) = parts.iter().find(|part| part.uuid == name) {
        return Some(Place::Part { gpu: part.gpu, instance: part.instance });
    }
    if let Some(gpu) = gpus.iter().find(|gpu| gpu.uuid == name) {
        return Some(Place::Gpu(gpu.index));
    }
    // The plugin may go by numbers.
    if let Ok(index) = name.parse::<u32>() {
        return gpus.iter().find(|gpu| gpu.index == index).map(|gpu| Place::Gpu(gpu.index));
    }
    // As Google's has it: nvidia0, nvidia0/gi3, nvidia0/vgpu1.
    let mut words = name.strip_prefix("nvidia")?.split('/');
    let minor: u32 = words.next()?.parse().ok()?;
    let gpu = gpus.iter().find(|gpu| gpu.minor == Some(minor))?.index;
    let instance = words.find_map(|word| word.strip_prefix("gi")?.parse().ok());
    Some(instance.map_or(Place::Gpu(gpu), |instance| Place::Part { gpu, instance }))
}

/// As NVIDIA's driver for claims has it: gpu-0, by the number of the device node.
fn claimed_gpu(name: &str, gpus: &[Gpu]) -> Option<Place> {
    let minor: u32 = name.strip_prefix("gpu-")?.parse().ok()?;
    gpus.iter().find(|gpu| gpu.minor == Some(minor)).map(|gpu| Place::Gpu(gpu.index))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(index: u32, minor: u32) -> Gpu {
        let uuid = format!("GPU-{index}");
        Gpu { index, uuid, minor: Some(minor), model: "H100-80GB".to_owned() }
    }

    /// What a pod has that was given a device of this name.
    fn check(resource: &str, device: &str, expect: Option<Place>) {
        let mut pod = PodDevices { name: "x".to_owned(), ..PodDevices::default() };
        let list = if resource == DRIVER { &mut pod.claimed } else { &mut pod.devices };
        list.push((resource.to_owned(), device.to_owned()));
        let part = MigPart { gpu: 1, instance: 7, uuid: "MIG-a".to_owned() };
        let found = owners(&[pod], &[gpu(0, 4), gpu(1, 5)], &[part]);
        assert_eq!(found.keys().copied().next(), expect, "{resource} {device}");
    }

    #[test]
    fn every_plugin_has_its_own_names_for_the_same_gpus() {
        let whole = |index| Some(Place::Gpu(index));
        let part = Some(Place::Part { gpu: 1, instance: 7 });
        check("nvidia.com/gpu", "GPU-1", whole(1));
        check("nvidia.com/gpu", "0", whole(0));
        check("nvidia.com/gpu.shared", "GPU-0::3", whole(0));
        check("nvidia.com/mig-1g.10gb", "MIG-a", part);
        check("nvidia.com/gpu", "MIG-a::1", part);
        check("nvidia.com/gpu", "nvidia5", whole(1));
        check("nvidia.com/gpu", "nvidia5/gi7", part);
        check("nvidia.com/gpu", "nvidia4/vgpu2", whole(0));
        check(DRIVER, "gpu-4", whole(0));
        for (resource, device) in [
            ("rdma/hca", "GPU-1"),
            ("nvidia.com/gpu", "GPU-9"),
            ("nvidia.com/gpu", "nvidia"),
            ("nvidia.com/gpu", "9"),
            ("nvidia.com/mig-1g.10gb", "MIG-b"),
            (DRIVER, "gpu-9"),
        ] {
            check(resource, device, None);
        }
    }
}
