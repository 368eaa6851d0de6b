//! The GPUs that this machine had when a server last looked. Leases name a GPU by its place, so a GPU
//! that is gone keeps its place as one that has failed: otherwise another one would take it, with
//! the tasks that are on it.

use super::Device;
use berth_model::{Bytes, Health, Name};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Known {
    /// Nothing is remembered without one.
    path: Option<PathBuf>,
    devices: Vec<KnownDevice>,
    /// Whether tasks have been found that may be on any of them.
    in_use: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KnownDevice {
    uuid: Option<String>,
    minor: Option<u32>,
    model: Name,
    memory: Bytes,
}

impl Known {
    pub fn open(folder: &Path, in_use: bool) -> Known {
        let path = folder.join("gpus.json");
        let devices = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        Known { path: Some(path), devices: devices.unwrap_or_default(), in_use }
    }

    /// What was found, each at the place of its index.
    pub(super) fn complete(&self, mut found: Vec<Device>) -> Vec<Device> {
        let count = found.iter().map(|device| device.index + 1).max().unwrap_or(0) as usize;
        let count = if self.in_use { count.max(self.devices.len()) } else { count };
        for place in 0..count {
            let index = u32::try_from(place).expect("a machine has few GPUs");
            if found.get(place).is_none_or(|device| device.index != index) {
                let lost = self.lost(place, index);
                tracing::error!(gpu = index, uuid = lost.uuid, "a GPU is lost");
                found.insert(place.min(found.len()), lost);
            }
        }
        found
    }

    fn lost(&self, place: usize, index: u32) -> Device {
        let known = self.devices.get(place).cloned().unwrap_or_else(|| KnownDevice {
            uuid: Some("unknown".to_owned()),
            minor: None,
            model: Name::new("unknown"),
            memory: Bytes(0),
        });
        let KnownDevice { uuid, minor, model, memory } = known;
        Device { index, uuid, minor, model, memory, health: Health::Failed, mig: None }
    }

    /// For the next server. What cannot be written is found anew by it.
    pub(super) fn remember(&self, devices: &[Device]) {
        let Some(path) = &self.path else { return };
        let known: Vec<KnownDevice> = devices
            .iter()
            .map(|device| KnownDevice {
                uuid: device.uuid.clone(),
                minor: device.minor,
                model: device.model.clone(),
                memory: device.memory,
            })
            .collect();
        if known == self.devices {
            return;
        }
        if let Err(error) = crate::home::write_json(path, &known) {
            tracing::warn!(%error, "the GPUs of this machine cannot be remembered");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(index: u32) -> Device {
        Device {
            index,
            uuid: Some(format!("GPU-{index}")),
            minor: Some(index),
            model: Name::new("H200-141GB"),
            memory: Bytes::gib(140),
            health: Health::Ok,
            mig: None,
        }
    }

    fn places(devices: &[Device]) -> Vec<(u32, &str, Health)> {
        let told = |device: &Device| (device.index, device.uuid.clone(), device.health);
        devices
            .iter()
            .map(|device| {
                let (index, _, health) = told(device);
                (index, device.uuid.as_deref().unwrap_or_default(), health)
            })
            .collect()
    }

    #[test]
    fn a_gpu_that_is_gone_keeps_its_place_so_that_no_task_gets_the_gpu_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let all: Vec<Device> = (0..3).map(device).collect();
        Known::open(folder.path(), false).remember(&all);

        let known = Known::open(folder.path(), true);
        let left = known.complete(vec![device(0), device(2)]);
        let (ok, failed) = (Health::Ok, Health::Failed);
        let expect = [(0, "GPU-0", ok), (1, "GPU-1", failed), (2, "GPU-2", ok)];
        assert_eq!(places(&left), expect);
        assert_eq!(left[1].model, Name::new("H200-141GB"));
        let left = known.complete(vec![device(0)]);
        let expect = [(0, "GPU-0", ok), (1, "GPU-1", failed), (2, "GPU-2", failed)];
        assert_eq!(places(&left), expect);
    }

    #[test]
    fn a_gpu_that_was_taken_out_of_a_machine_without_tasks_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        Known::open(folder.path(), false).remember(&[device(0), device(1)]);
        let known = Known::open(folder.path(), false);
        assert_eq!(places(&known.complete(vec![device(0)])), [(0, "GPU-0", Health::Ok)]);
        // One that the driver counts and cannot reach is there.
        let left = known.complete(vec![device(1)]);
        assert_eq!(places(&left)[0], (0, "GPU-0", Health::Failed));
    }
}
