//! What drivers say there is.

use super::device::{Device, Written};
use crate::node;
use crate::object::{List, Meta, Text};
use crate::quantity::Quantity;
use berth_model::{Bytes, GpuSpec, Health, Name};
use serde::Deserialize;

/// Devices of one driver on one node, or some of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct ResourceSlice {
    pub metadata: Meta,
    pub spec: Spec,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    pub driver: Text,
    /// Nothing for devices that are not of one node; those are not used.
    pub node_name: Option<Text>,
    pub pool: Pool,
    devices: List<Written>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pool {
    pub name: Text,
    pub generation: i64,
    pub resource_slice_count: i64,
}

impl ResourceSlice {
    fn devices(&self) -> impl Iterator<Item = Device> {
        let Spec { driver, pool, devices, .. } = &self.spec;
        devices.iter().map(|written| written.device(driver, &pool.name))
    }
}

/// All devices of a node's slices, in the order of their names. Of a pool only the newest generation
/// counts, and only if all of it is there.
pub fn node_devices<'a>(slices: impl Iterator<Item = &'a ResourceSlice> + Clone) -> Vec<Device> {
    let of_pool = |slice: &ResourceSlice| {
        let pool = (slice.spec.driver.clone(), slice.spec.pool.name.clone());
        let all = slices
            .clone()
            .filter(move |other| (&other.spec.driver, &other.spec.pool.name) == (&pool.0, &pool.1));
        let newest = all.clone().map(|other| other.spec.pool.generation).max();
        let there = all.filter(|other| Some(other.spec.pool.generation) == newest).count();
        let is_whole = there as i64 >= slice.spec.pool.resource_slice_count;
        is_whole && Some(slice.spec.pool.generation) == newest
    };
    let mut devices: Vec<Device> =
        slices.clone().filter(|slice| of_pool(slice)).flat_map(ResourceSlice::devices).collect();
    devices.sort_by(|a, b| a.id.cmp(&b.id));
    devices
}

/// The GPU that a device is; nothing for parts of GPUs and for what is none.
pub fn gpu_spec(device: &Device) -> Option<GpuSpec> {
    let is_whole = device.text("type").is_none_or(|kind| kind == "gpu");
    if !device.id.driver.starts_with("gpu.") || !is_whole {
        return None;
    }
    let memory = device.amount("memory").and_then(|amount| Quantity::whole(amount).ok());
    let memory = memory.map(Bytes);
    let model = match device.text("productName") {
        Some(product) => node::model(&product.replace(' ', "-"), memory),
        None => Name::new("gpu"),
    };
    Some(GpuSpec {
        model,
        // Where the driver does not say how much it has, no request for GPU memory fits.
        memory: memory.unwrap_or_default().max(Bytes(1)),
        health: if device.is_tainted { Health::Failed } else { Health::Ok },
        mig: None,
        division: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(pool: &str, generation: i64, count: i64, devices: &[&str]) -> ResourceSlice {
        let devices: Vec<String> = devices
            .iter()
            .map(|name| {
                format!(
                    r#"{{"name": "{name}", "attributes": {{"type": {{"string": "gpu"}},
                         "productName": {{"string": "NVIDIA H100 80GB HBM3"}}}},
                         "capacity": {{"memory": {{"value": "80Gi"}}}}}}"#
                )
            })
            .collect();
        serde_json::from_str(&format!(
            r#"{{"metadata": {{"name": "s"}}, "spec": {{"driver": "gpu.nvidia.com",
                 "nodeName": "n1", "pool": {{"name": "{pool}", "generation": {generation},
                 "resourceSliceCount": {count}}}, "devices": [{}]}}}}"#,
            devices.join(", ")
        ))
        .unwrap()
    }

    fn names(slices: &[ResourceSlice]) -> Vec<String> {
        node_devices(slices.iter()).iter().map(|device| device.id.device.to_string()).collect()
    }

    #[test]
    fn the_newest_generation_counts_when_all_of_it_is_there() {
        let old = slice("n1", 1, 1, &["gpu-0"]);
        let half = slice("n1", 2, 2, &["gpu-1"]);
        assert_eq!(names(std::slice::from_ref(&old)), ["gpu-0"]);
        assert_eq!(names(&[old.clone(), half.clone()]), [""; 0]);
        assert_eq!(names(&[old, slice("n1", 2, 2, &["gpu-0"]), half]), ["gpu-0", "gpu-1"]);
    }

    #[test]
    fn a_device_that_is_a_gpu_is_one_of_a_known_model() {
        let devices = node_devices([slice("n1", 1, 1, &["gpu-0"])].iter());
        let gpu = gpu_spec(&devices[0]).unwrap();
        assert_eq!(gpu.model.as_str(), "H100-80GB");
        assert_eq!(gpu.memory, Bytes::gib(80));
        let mut nic = devices[0].clone();
        nic.id.driver = "nic.example.com".into();
        assert!(super::gpu_spec(&nic).is_none());
    }
}
