//! What the machine has.

mod declared;
mod host;
mod known;
mod model;
mod nodes;
mod nvidia;

pub use declared::{Declared, ParseDeclared};
pub use host::{Machine, machine};
pub use known::Known;
pub use nvidia::{GpuProcess, GpuSample, Probe};

use crate::cgroup::Limits;
use crate::task::Gpus;
use berth_model::{Bytes, GpuSpec, Health, Lifecycle, MigSlot, Name, NodeSpec, NodeState};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// One GPU, or what was declared to be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    pub index: u32,
    /// Declared GPUs have none.
    pub uuid: Option<String>,
    /// The number of its device node.
    pub minor: Option<u32>,
    pub model: Name,
    pub memory: Bytes,
    pub health: Health,
    /// The MIG instances that its operator has made; `None` where it is not divided, or Berth
    /// divides it.
    pub mig: Option<Vec<MigSlot>>,
}

impl Device {
    pub fn declared(&self) -> bool {
        self.uuid.is_none()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    #[error("there is no GPU {index} on this machine; it has {count}")]
    NoGpu { index: u32, count: usize },
}

/// The machine as the scheduler and as the driver see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory {
    pub node: NodeSpec,
    pub devices: Vec<Device>,
    /// Whether the GPUs are bookkeeping: every surface has to say so.
    pub declared: bool,
    pub machine: Machine,
    pub limits: Limits,
}

impl Inventory {
    /// With the declared GPUs, or without any declared with the real ones.
    pub fn read(
        name: &str,
        declared: Option<&Declared>,
        probe: &Probe,
        known: &Known,
        limits: Limits,
    ) -> Inventory {
        let (devices, nvlink) = match declared {
            Some(declared) => (declared.devices(), Vec::new()),
            None => (known.complete(probe.devices()), probe.islands()),
        };
        if declared.is_none() {
            known.remember(&devices);
        }
        let machine = machine();
        let node = NodeSpec {
            name: Name::new(name),
            gpus: devices.iter().map(gpu_spec).collect(),
            cpu: Some(machine.cpu),
            memory: Some(machine.memory),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            nvlink,
            state: NodeState::Ready,
            price: None,
            pool: None,
            lifecycle: Lifecycle::OnDemand,
            tasks: None,
            counted: BTreeMap::new(),
        };
        Inventory { node, devices, declared: declared.is_some(), machine, limits }
    }

    /// Says how the GPUs are divided, of those on which MIG is on. An operator's division is all
    /// that the core may use; what Berth has divided itself, it may divide anew.
    pub fn divide(&mut self, ours: &BTreeSet<u32>, list: impl Fn(u32) -> Vec<MigSlot>) {
        for (device, spec) in self.devices.iter_mut().zip(&mut self.node.gpus) {
            if device.mig.is_some() {
                device.mig = (!ours.contains(&device.index)).then(|| list(device.index));
                spec.mig = device.mig.clone();
            }
        }
    }

    pub fn device(&self, index: u32) -> Result<&Device, DeviceError> {
        let missing = DeviceError::NoGpu { index, count: self.devices.len() };
        self.devices.iter().find(|device| device.index == index).ok_or(missing)
    }

    /// The device nodes that a task with these GPUs may open, and with these MIG instances: each is
    /// a GPU and the number of the instance on it. Declared GPUs hide nothing.
    pub fn device_nodes(&self, gpus: &Gpus, instances: &[(u32, u32)]) -> Vec<PathBuf> {
        let Gpus::Real { indices, .. } = gpus else { return nodes::all() };
        let minor = |index: &u32| self.device(*index).ok().and_then(|device| device.minor);
        let minors: Vec<u32> = indices.iter().filter_map(minor).collect();
        let instances = instances.iter().filter_map(|(gpu, id)| Some((minor(gpu)?, *id)));
        nodes::of(&minors, &instances.collect::<Vec<_>>())
    }
}

fn gpu_spec(device: &Device) -> GpuSpec {
    GpuSpec {
        model: device.model.clone(),
        memory: device.memory,
        health: device.health,
        mig: device.mig.clone(),
        division: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LIMITS: Limits =
        Limits { groups: false, cpu: false, memory: false, processes: false, missing: None };

    fn slot(profile: &str, start: u8) -> MigSlot {
        MigSlot { profile: profile.into(), start }
    }

    #[test]
    fn declared_gpus_are_bookkeeping_and_say_so() {
        let declared: Declared = "2xH100,1xL4".parse().unwrap();
        let found =
            Inventory::read("here", Some(&declared), &Probe::none(), &Known::default(), NO_LIMITS);
        let models: Vec<&str> = found.node.gpus.iter().map(|gpu| gpu.model.as_str()).collect();
        assert_eq!(models, ["H100-80GB", "H100-80GB", "L4-24GB"]);
        assert!(found.declared && found.devices.iter().all(Device::declared));
        let error = found.device(3).unwrap_err();
        assert_eq!(error.to_string(), "there is no GPU 3 on this machine; it has 3");
    }

    #[test]
    fn a_machine_without_gpus_runs_tasks_without() {
        let found = Inventory::read("here", None, &Probe::none(), &Known::default(), NO_LIMITS);
        assert_eq!((found.node.gpus.len(), found.declared), (0, false));
        assert!(found.machine.cpu.0 > 0 && found.machine.memory.0 > 0);
    }

    #[test]
    fn the_core_uses_an_operators_division_and_makes_its_own_elsewhere() {
        let declared: Declared = "3xH100".parse().unwrap();
        let mut found =
            Inventory::read("here", Some(&declared), &Probe::none(), &Known::default(), NO_LIMITS);
        for at in [0, 1] {
            found.devices[at].mig = Some(Vec::new());
        }
        found.divide(&BTreeSet::from([1]), |_| vec![slot("1g.10gb", 6)]);
        let mig: Vec<_> = found.node.gpus.iter().map(|gpu| gpu.mig.clone()).collect();
        assert_eq!(mig, [Some(vec![slot("1g.10gb", 6)]), None, None]);
    }
}
