//! What the machine has.

mod declared;
mod host;
mod model;
mod nodes;
mod nvidia;
mod watch;

pub use declared::{Declared, ParseDeclared};
pub use host::{Machine, machine};
pub use nvidia::{GpuProcess, GpuSample, Probe};
pub use watch::{GpuFault, GpuWatch};

use crate::cgroup::Limits;
use crate::task::Gpus;
use berth_model::{
    Bytes, GpuSpec, Health, Lifecycle, MigSlot, Name, NodeSpec, NodeState, Share, Slice,
};
use std::collections::BTreeMap;
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
    /// The MIG instances with their UUIDs; `None` while MIG is off.
    pub mig: Option<Vec<(MigSlot, String)>>,
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
    #[error("GPU {index} has no MIG instance {profile} at {start}")]
    NoInstance { index: u32, profile: Name, start: u8 },
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
        limits: Limits,
    ) -> Inventory {
        let (devices, nvlink) = match declared {
            Some(declared) => (declared.devices(), Vec::new()),
            None => (probe.devices(), probe.islands()),
        };
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

    /// The devices behind the slices of a lease.
    pub fn gpus(&self, slices: &[Slice]) -> Result<Gpus, DeviceError> {
        let indices: Vec<u32> = slices.iter().map(|slice| slice.gpu).collect();
        let uuids: Vec<Option<String>> =
            slices.iter().map(|slice| self.uuid(slice)).collect::<Result<_, _>>()?;
        if self.declared {
            return Ok(Gpus::Declared { indices });
        }
        Ok(Gpus::Real { indices, uuids: uuids.into_iter().flatten().collect() })
    }

    /// The device nodes that a task with these GPUs may open. Declared GPUs hide nothing.
    pub fn device_nodes(&self, gpus: &Gpus) -> Vec<PathBuf> {
        let Gpus::Real { indices, .. } = gpus else { return nodes::all() };
        let granted = self.devices.iter().filter(|device| indices.contains(&device.index));
        let minors: Vec<u32> = granted.clone().filter_map(|device| device.minor).collect();
        nodes::of(&minors, granted.clone().any(|device| device.mig.is_some()))
    }

    fn uuid(&self, slice: &Slice) -> Result<Option<String>, DeviceError> {
        let index = slice.gpu;
        let missing = DeviceError::NoGpu { index, count: self.devices.len() };
        let device = self.devices.iter().find(|device| device.index == index).ok_or(missing)?;
        let Share::Mig(slot) = &slice.share else { return Ok(device.uuid.clone()) };
        if self.declared {
            return Ok(None);
        }
        let instances = device.mig.iter().flatten();
        let found = instances.into_iter().find(|(there, _)| there == slot);
        match found {
            Some((_, uuid)) => Ok(Some(uuid.clone())),
            None => {
                let (profile, start) = (slot.profile.clone(), slot.start);
                Err(DeviceError::NoInstance { index, profile, start })
            }
        }
    }
}

fn gpu_spec(device: &Device) -> GpuSpec {
    let mig = device.mig.as_ref();
    GpuSpec {
        model: device.model.clone(),
        memory: device.memory,
        health: device.health,
        mig: mig.map(|all| all.iter().map(|(slot, _)| slot.clone()).collect()),
        division: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LIMITS: Limits =
        Limits { groups: false, cpu: false, memory: false, processes: false, missing: None };

    fn slice(gpu: u32) -> Slice {
        Slice { gpu, share: Share::Whole }
    }

    fn slot(profile: &str, start: u8) -> MigSlot {
        MigSlot { profile: profile.into(), start }
    }

    #[test]
    fn declared_gpus_are_bookkeeping_and_say_so() {
        let declared: Declared = "2xH100,1xL4".parse().unwrap();
        let found = Inventory::read("here", Some(&declared), &Probe::none(), NO_LIMITS);
        let models: Vec<&str> = found.node.gpus.iter().map(|gpu| gpu.model.as_str()).collect();
        assert_eq!(models, ["H100-80GB", "H100-80GB", "L4-24GB"]);
        assert!(found.declared && found.devices.iter().all(Device::declared));
        let gpus = found.gpus(&[slice(0), slice(2)]).unwrap();
        assert_eq!(gpus, Gpus::Declared { indices: vec![0, 2] });
        let error = found.gpus(&[slice(3)]).unwrap_err();
        assert_eq!(error.to_string(), "there is no GPU 3 on this machine; it has 3");
    }

    #[test]
    fn a_machine_without_gpus_runs_tasks_without() {
        let found = Inventory::read("here", None, &Probe::none(), NO_LIMITS);
        assert_eq!((found.node.gpus.len(), found.declared), (0, false));
        let gpus = found.gpus(&[]).unwrap();
        assert_eq!(gpus, Gpus::Real { indices: vec![], uuids: vec![] });
        assert!(found.machine.cpu.0 > 0 && found.machine.memory.0 > 0);
    }

    #[test]
    fn a_mig_slice_is_named_by_the_uuid_of_its_instance() {
        let mut found = Inventory::read("here", None, &Probe::none(), NO_LIMITS);
        found.devices = vec![Device {
            index: 0,
            uuid: Some("GPU-a".to_owned()),
            minor: Some(0),
            model: "H100-80GB".into(),
            memory: Bytes::gib(80),
            health: Health::Ok,
            mig: Some(vec![(slot("1g.10gb", 6), "MIG-b".to_owned())]),
        }];
        let mig = |start| Slice { gpu: 0, share: Share::Mig(slot("1g.10gb", start)) };
        let gpus = found.gpus(&[mig(6)]).unwrap();
        assert_eq!(gpus, Gpus::Real { indices: vec![0], uuids: vec!["MIG-b".to_owned()] });
        let error = found.gpus(&[mig(4)]).unwrap_err();
        assert_eq!(error.to_string(), "GPU 0 has no MIG instance 1g.10gb at 4");
    }
}
