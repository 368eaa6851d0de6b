//! What the place where jobs run adds to requests about them. A machine and a cluster differ in
//! what a job file may ask for, and in what they know of their nodes.

use crate::fault::Fault;
pub use berth_api::wire::NodeIsolation;
use berth_file::job::{JobFile, Refused, Warning};
use berth_model::{Bytes, GpuAsk, JobRequest, Name};
use std::collections::BTreeMap;

/// What a host knows of one of its nodes beyond what the core knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeFacts {
    /// Its GPUs are bookkeeping.
    pub declared: bool,
    /// Its jobs are held to their CPU and memory.
    pub limits_jobs: bool,
    /// Nothing where Berth does not start its processes.
    pub isolation: Option<NodeIsolation>,
    /// What keeps it from starting anything: the disk is full, or the like.
    pub trouble: Option<String>,
    /// What the output of ended jobs takes on its disk, by team.
    pub output: BTreeMap<Name, Bytes>,
}

/// What a host knows of one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GpuFacts {
    pub uuid: Option<String>,
    pub declared: bool,
    /// By which process, where it is not used because one holds it that no job explains.
    pub held: Option<String>,
}

/// What a GPU of this host does right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GpuReading {
    pub index: u32,
    pub utilization_percent: Option<u32>,
    pub memory_used: Option<Bytes>,
    pub power_milliwatts: Option<u32>,
    pub temperature_celsius: Option<u32>,
}

pub trait JobHost: Send + Sync {
    /// A server of a cluster may take no jobs of Berth's own.
    fn must_take_jobs(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// Nothing more is taken in while the disk of the server has no room for what it would write.
    fn must_have_room(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// Adapts a job to this host, or refuses it with the key of the file that is wrong.
    fn accept(
        &self,
        _: &JobFile,
        _team: &str,
        _: &mut JobRequest,
        _: &mut Vec<Warning>,
    ) -> Result<(), Refused> {
        Ok(())
    }

    /// One share of each GPU model that nodes hand out several times over.
    fn shared_gpus(&self) -> Vec<(Name, GpuAsk)> {
        Vec::new()
    }

    /// Whether jobs run in containers. A job that does not starts in the folder of its user.
    fn runs_containers(&self) -> bool;

    /// Whether checkpoints outlive an attempt.
    fn keeps_checkpoints(&self) -> bool;

    /// Whether all GPUs are bookkeeping.
    fn has_declared_gpus(&self) -> bool {
        false
    }

    fn node(&self, _name: &str) -> Option<NodeFacts> {
        None
    }

    fn gpu(&self, _node: &str, _index: u32) -> Option<GpuFacts> {
        None
    }

    /// Asks the GPUs of this machine. This blocks: the driver waits for the device.
    fn read_gpus(&self) -> Vec<GpuReading> {
        Vec::new()
    }
}
