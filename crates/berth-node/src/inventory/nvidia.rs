//! GPUs as NVIDIA's management library sees them. The library is loaded when the program runs; a
//! machine without it has no GPUs.

use super::{Device, model};
use crate::gpu_health::ill;
use berth_model::{Bytes, Health, MigSlot};
use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{P2pCapabilitiesIndex, P2pStatus, TemperatureSensor};

/// The library, if it is there.
#[derive(Debug)]
pub struct Probe {
    pub(super) nvml: Option<Nvml>,
}

/// What a GPU does at a moment. A figure that it does not give is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuSample {
    pub index: u32,
    pub utilization_percent: Option<u32>,
    pub memory_used: Option<Bytes>,
    pub power_milliwatts: Option<u32>,
    pub temperature_celsius: Option<u32>,
}

/// A process that computes on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GpuProcess {
    pub gpu: u32,
    pub pid: u32,
}

impl Probe {
    pub fn load() -> Probe {
        Probe { nvml: Nvml::init().ok() }
    }

    /// As on a machine without GPUs.
    pub fn none() -> Probe {
        Probe { nvml: None }
    }

    pub fn devices(&self) -> Vec<Device> {
        self.each(device).into_iter().flatten().collect()
    }

    pub fn sample(&self) -> Vec<GpuSample> {
        self.each(sample)
    }

    /// The processes that compute on these GPUs.
    pub fn processes(&self, gpus: &[u32]) -> Vec<GpuProcess> {
        let Some(nvml) = &self.nvml else { return Vec::new() };
        let mut found = Vec::new();
        for gpu in gpus {
            let device = nvml.device_by_index(*gpu);
            let running = device.and_then(|device| device.running_compute_processes());
            let running = running.unwrap_or_default().into_iter();
            found.extend(running.map(|process| GpuProcess { gpu: *gpu, pid: process.pid }));
        }
        found
    }

    /// GPUs that reach one another over NVLink, as lists of indices; none if all are alone.
    pub fn islands(&self) -> Vec<Vec<u32>> {
        let all = self.each(|_, gpu| gpu);
        let linked = |a: usize, b: usize| {
            let status = all[a].p2p_status(&all[b], P2pCapabilitiesIndex::NvLink);
            matches!(status, Ok(P2pStatus::Ok))
        };
        join(all.len(), linked)
    }

    fn each<'a, T>(&'a self, read: impl Fn(u32, nvml_wrapper::Device<'a>) -> T) -> Vec<T> {
        let Some(nvml) = &self.nvml else { return Vec::new() };
        let count = nvml.device_count().unwrap_or(0);
        (0..count).filter_map(|i| Some(read(i, nvml.device_by_index(i).ok()?))).collect()
    }
}

/// Groups of at least two that are linked, directly or over others.
fn join(count: usize, linked: impl Fn(usize, usize) -> bool) -> Vec<Vec<u32>> {
    let mut island: Vec<usize> = (0..count).collect();
    for a in 0..count {
        for b in a + 1..count {
            if island[a] != island[b] && linked(a, b) {
                let (into, from) = (island[a].min(island[b]), island[a].max(island[b]));
                island.iter_mut().filter(|i| **i == from).for_each(|i| *i = into);
            }
        }
    }
    let members = |of: usize| (0..).zip(&island).filter(move |(_, i)| **i == of).map(|(g, _)| g);
    let groups = (0..count).map(|of| members(of).collect::<Vec<u32>>());
    groups.filter(|group| group.len() > 1).collect()
}

fn device(index: u32, gpu: nvml_wrapper::Device<'_>) -> Option<Device> {
    let memory = gpu.memory_info().ok().map(|info| bytes(info.total))?;
    let model = model::observed(&gpu.name().ok()?, memory);
    let mig = instances(&gpu);
    let health = if ill(&gpu).is_some() { Health::Failed } else { Health::Ok };
    let (uuid, minor) = (Some(gpu.uuid().ok()?), gpu.minor_number().ok());
    Some(Device { index, uuid, minor, model, memory, health, mig })
}

fn bytes(count: u64) -> Bytes {
    Bytes(i64::try_from(count).unwrap_or(i64::MAX))
}

/// An empty list while MIG is on: what is in it is for `nvidia-smi` to say.
fn instances(gpu: &nvml_wrapper::Device<'_>) -> Option<Vec<MigSlot>> {
    gpu.mig_mode().ok().filter(|mode| mode.current == 1).map(|_| Vec::new())
}

fn sample(index: u32, gpu: nvml_wrapper::Device<'_>) -> GpuSample {
    GpuSample {
        index,
        utilization_percent: gpu.utilization_rates().ok().map(|rates| rates.gpu),
        memory_used: gpu.memory_info().ok().map(|info| bytes(info.used)),
        power_milliwatts: gpu.power_usage().ok(),
        temperature_celsius: gpu.temperature(TemperatureSensor::Gpu).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_gpus_form_islands() {
        assert_eq!(join(4, |a, b| b == a + 1 && a != 1), [vec![0, 1], vec![2, 3]]);
        assert_eq!(join(3, |a, b| (a, b) != (0, 1)), [vec![0, 1, 2]]);
        assert_eq!(join(2, |_, _| false), Vec::<Vec<u32>>::new());
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU that nobody uses"]
    fn nobody_computes_on_a_gpu_that_nobody_uses() {
        assert_eq!(Probe::load().processes(&[0]), []);
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn a_real_gpu_is_found_with_its_figures() {
        let probe = Probe::load();
        let devices = probe.devices();
        assert!(!devices.is_empty(), "no GPU");
        for (device, sample) in devices.iter().zip(probe.sample()) {
            println!("{device:?}\n{sample:?}");
            assert!(device.uuid.as_ref().unwrap().starts_with("GPU-"));
            assert_eq!(device.health, Health::Ok);
            assert!(berth_model::catalog(&device.model).is_some(), "{}", device.model);
            assert!(sample.memory_used.unwrap() < device.memory);
            assert!(sample.power_milliwatts.unwrap() > 0);
            assert!(sample.utilization_percent.unwrap() <= 100);
        }
    }
}
