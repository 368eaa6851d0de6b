//! What this machine adds to requests about its jobs.

use crate::condition::Condition;
use crate::data::DataCache;
use crate::energy::Energy;
use crate::gpu_checks::{GpuChecks, Outcome};
use crate::job_files;
use crate::output::KeepOutput;
use crate::slices::Slices;
use crate::volumes;
use crate::workplace::{Workplace, setup_of};
use berth_engine::clock;
use berth_file::job::{JobFile, Refused, Warning};
use berth_model::run::RunSpec;
use berth_model::{GroupSpec, JobId, JobRequest, Time};
use berth_node::{
    Check, Device, Driver, GpuFigures, GpuSample, Inventory, Isolation, Probe, ReadGpus,
};
use berth_service::host::{
    GpuCheck, GpuFacts, GpuFigure, GpuReading, JobFileFacts, JobFiles, JobHost, KeptVolume,
    MeasuredGpu, NodeFacts, NodeIsolation, NotMade, OpenJobFile, PutBack, Removal, TeamVolumes,
    VolumeSize,
};
use berth_service::{Book, Fault, Figures};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The machine that the server runs on.
pub struct Host {
    pub driver: Arc<Driver>,
    pub inventory: Arc<Inventory>,
    pub probe: Arc<Probe>,
    pub workplace: Arc<Workplace>,
    pub slices: Arc<Slices>,
    pub condition: Arc<Condition>,
    pub checks: Arc<GpuChecks>,
    pub keep: KeepOutput,
    /// Nothing where figures are not gathered.
    pub figures: Option<Arc<Figures>>,
    /// Nothing where no GPU counts its energy.
    pub energy: Option<Arc<Energy>>,
    /// Versions of data that jobs have.
    pub data: Arc<DataCache>,
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
        if let Some(refused) = too_many_processes(request) {
            return Err(refused);
        }
        let is_made_later = !request.after.is_empty();
        self.workplace.check(&request.user, team, run, is_made_later)
    }

    fn must_have_room(&self) -> Result<(), Fault> {
        self.condition.full().map_or(Ok(()), |trouble| Err(Fault::no_room(&trouble.to_string())))
    }

    fn runs_containers(&self) -> bool {
        false
    }

    fn setup_of(&self, team: &str, user: &str, run: &RunSpec) -> Option<PathBuf> {
        setup_of(&self.workplace.home, team, user, run)
    }

    fn machine(&self) -> Option<String> {
        berth_node::this_machine()
    }

    fn keeps_from_starting_in(&self, user: &str, folder: &Path) -> Option<String> {
        self.workplace.keeps_from_starting_in(user, folder)
    }

    fn gives_account_of(&self, user: &str) -> bool {
        let Workplace { isolation, accounts, .. } = &*self.workplace;
        matches!(isolation, Isolation::Sandbox { accounts: true }) && accounts.is_taken(user)
    }

    fn fetches_data(&self) -> bool {
        true
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
        Some(GpuFacts {
            uuid: device.uuid.clone(),
            declared: device.declared(),
            held,
            failed: self.condition.failed_gpu(index),
            checking: self.condition.checking_gpu(index),
            checked: self.checks.book.last(device).map(|last| shown_check(last.at, &last.check)),
        })
    }

    fn put_gpu_back(&self, node: &str, index: u32, check: bool) -> PutBack {
        if !self.is_this(node) {
            return PutBack::unknown(node);
        }
        let Outcome { refused, check } = self.checks.put_back(index, check);
        PutBack { refused, check: check.map(|check| shown_check(clock::now(), &check)) }
    }

    fn volumes(&self) -> Option<&dyn TeamVolumes> {
        Some(self)
    }

    fn files(&self) -> Option<&dyn JobFiles> {
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
        match &self.checks.recording {
            Some(recording) => recording.clone().read().into_iter().map(played).collect(),
            None if self.inventory.declared => Vec::new(),
            None => self.probe.sample().into_iter().map(reading).collect(),
        }
    }
}

fn reading(sample: GpuSample) -> GpuReading {
    GpuReading {
        index: sample.index,
        utilization_percent: sample.utilization_percent,
        memory_used: sample.memory_used,
        power_milliwatts: sample.power_milliwatts,
        temperature_celsius: sample.temperature_celsius,
    }
}

fn played(figures: GpuFigures) -> GpuReading {
    GpuReading {
        index: figures.index,
        utilization_percent: figures.utilization_percent,
        memory_used: figures.memory_used,
        power_milliwatts: figures.power_milliwatts,
        temperature_celsius: figures.temperature_celsius,
    }
}

/// Processes that one job may have on one machine: more would use up its process numbers.
const MOST_PROCESSES: u64 = 4_096;

/// Tasks that ask for nothing fit any machine in any number.
fn too_many_processes(request: &JobRequest) -> Option<Refused> {
    let run = request.workload.run()?;
    let tasks: u64 =
        request.groups.iter().flat_map(GroupSpec::leaves).map(|group| u64::from(group.count)).sum();
    let each = u64::from(run.ranks.max(1));
    if tasks.saturating_mul(each) <= MOST_PROCESSES {
        return None;
    }
    let key = if tasks > each { "nodes" } else { "ranks" };
    let message = format!(
        "{tasks} x {each} processes on one machine are too many; it takes at most {MOST_PROCESSES} \
         of one job"
    );
    Some(Refused { key, message })
}

/// A check as people see it.
pub fn shown_check(at: Time, check: &Check) -> GpuCheck {
    let figures = check.figures.iter().map(|figure| GpuFigure {
        of: figure.of.word().to_owned(),
        measured: figure.measured,
        nominal: figure.nominal,
        least: figure.least,
        unit: figure.of.unit().to_owned(),
    });
    GpuCheck {
        at: at.into(),
        passed: check.passed,
        why: check.why.clone(),
        correct: check.correct,
        figures: figures.collect(),
        remarks: check.remarks.clone(),
        took_ms: check.took_ms,
    }
}

impl JobFiles for Host {
    fn list(&self, job: JobId, path: &str, most: usize) -> io::Result<(Vec<JobFileFacts>, bool)> {
        job_files::list(&self.workplace.home.job(job), path, most)
    }

    fn open(&self, job: JobId, path: &str) -> io::Result<OpenJobFile> {
        job_files::open(&self.workplace.home.job(job), path)
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
