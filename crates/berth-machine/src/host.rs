//! What this machine adds to requests about its jobs.

use crate::condition::Condition;
use crate::energy::Energy;
use crate::gpu_faults::FaultSource;
use crate::output::KeepOutput;
use crate::slices::Slices;
use crate::volumes;
use crate::workplace::Workplace;
use berth_file::job::{JobFile, Refused, Warning};
use berth_model::JobRequest;
use berth_node::{Device, Driver, GpuRecording, Inventory, Isolation, Probe};
use berth_service::host::{
    GpuFacts, GpuReading, JobHost, KeptVolume, MeasuredGpu, NodeFacts, NodeIsolation, NotMade,
    Removal, TeamVolumes, VolumeSize,
};
use berth_service::{Book, Fault, Figures};
use std::io;
use std::sync::Arc;

/// The machine that the server runs on.
pub struct Host {
    pub driver: Arc<Driver>,
    pub inventory: Arc<Inventory>,
    pub probe: Arc<Probe>,
    pub workplace: Arc<Workplace>,
    pub slices: Arc<Slices>,
    pub condition: Arc<Condition>,
    pub faults: FaultSource,
    /// What declared GPUs tell, where a file says so.
    pub recording: Option<GpuRecording>,
    pub keep: KeepOutput,
    /// Nothing where figures are not gathered.
    pub figures: Option<Arc<Figures>>,
    /// Nothing where no GPU counts its energy.
    pub energy: Option<Arc<Energy>>,
}

impl Host {
    fn is_this(&self, node: &str) -> bool {
        self.inventory.node.name.as_str() == node
    }
}

impl JobHost for Host {
    fn accept(
        &self,
        _: &JobFile,
        team: &str,
        request: &mut JobRequest,
        _: &mut Vec<Warning>,
    ) -> Result<(), Refused> {
        let Some(run) = request.workload.run() else { return Ok(()) };
        let checked = self.workplace.check(&request.user, team, run);
        checked.map_err(|(key, why)| Refused { key, message: why.to_string() })
    }

    fn must_have_room(&self) -> Result<(), Fault> {
        self.condition.full().map_or(Ok(()), |trouble| Err(Fault::no_room(&trouble.to_string())))
    }

    fn runs_containers(&self) -> bool {
        false
    }

    fn keeps_checkpoints(&self) -> bool {
        true
    }

    fn has_declared_gpus(&self) -> bool {
        self.inventory.declared
    }

    fn node(&self, name: &str) -> Option<NodeFacts> {
        let limits = &self.inventory.limits;
        self.is_this(name).then_some(NodeFacts {
            declared: self.inventory.declared,
            limits_jobs: limits.cpu && limits.memory,
            isolation: Some(match self.workplace.isolation {
                Isolation::Sandbox { accounts: true } => NodeIsolation::Accounts,
                Isolation::Sandbox { accounts: false } => NodeIsolation::Sandbox,
                Isolation::Off { .. } => NodeIsolation::None,
            }),
            trouble: self.condition.trouble().map(|trouble| trouble.to_string()),
            output: self.condition.output(),
        })
    }

    fn gpu(&self, node: &str, index: u32) -> Option<GpuFacts> {
        let mut devices = self.inventory.devices.iter().filter(|_| self.is_this(node));
        let device: &Device = devices.find(|device| device.index == index)?;
        let held = self.condition.held_gpu(device.index);
        let failed = self.condition.failed_gpu(device.index);
        Some(GpuFacts { uuid: device.uuid.clone(), declared: device.declared(), held, failed })
    }

    fn put_gpu_back(&self, node: &str, index: u32) -> Result<(), String> {
        if !self.is_this(node) {
            return Err(format!("the GPUs of {node} are not looked after by this server"));
        }
        if let Some(fault) = self.faults.now(index) {
            return Err(format!("GPU {index} of {node} is still ill, {}", fault.words()));
        }
        self.condition.gpu_is_well(index);
        Ok(())
    }

    fn volumes(&self) -> Option<&dyn TeamVolumes> {
        Some(self)
    }

    fn figures(&self) -> Option<&Book> {
        self.figures.as_ref().map(|figures| &figures.book)
    }

    fn measured_gpu(&self, node: &str, index: u32) -> Option<MeasuredGpu> {
        let mut devices = self.inventory.devices.iter().filter(|_| self.is_this(node));
        let device = devices.find(|device| device.index == index)?;
        let model = Some(device.model.to_string());
        Some(MeasuredGpu { uuid: device.uuid.clone(), model })
    }

    fn read_gpus(&self) -> Vec<GpuReading> {
        let samples = self.probe.sample().into_iter();
        let reading = samples.map(|sample| GpuReading {
            index: sample.index,
            utilization_percent: sample.utilization_percent,
            memory_used: sample.memory_used,
            power_milliwatts: sample.power_milliwatts,
            temperature_celsius: sample.temperature_celsius,
        });
        reading.collect()
    }
}

impl TeamVolumes for Host {
    fn list(&self) -> io::Result<Vec<KeptVolume>> {
        self.workplace.volumes.list()
    }

    fn of_team(&self, team: &str) -> io::Result<Vec<KeptVolume>> {
        self.workplace.volumes.of_team(team)
    }

    fn measure(&self, team: &str, name: &str, most_entries: u64) -> VolumeSize {
        self.workplace.volumes.measure(team, name, most_entries)
    }

    fn make(&self, team: &str, name: &str) -> Result<(), NotMade> {
        let accounts = self.workplace.isolation.is_on();
        match self.workplace.volumes.keep(team, name, accounts) {
            Ok(_) => Ok(()),
            Err(volumes::Error::Make { error, .. }) => Err(NotMade::Failed(error)),
            Err(refused) => Err(NotMade::Refused(refused.to_string())),
        }
    }

    fn remove(&self, team: &str, name: &str, is_free: &dyn Fn() -> bool) -> io::Result<Removal> {
        self.workplace.volumes.remove(team, name, is_free)
    }
}
