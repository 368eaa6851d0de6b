//! What the place where jobs run adds to requests about them. A machine and a cluster differ in
//! what a job file may ask for, and in what they know of their nodes.

use crate::fault::Fault;
use crate::figure_book::Book;
pub use berth_api::wire::{GpuCheck, GpuFigure, NodeIsolation};
use berth_engine::Core;
use berth_file::job::{JobFile, Refused, Warning};
use berth_model::run::RunSpec;
use berth_model::{Bytes, GpuAsk, GroupSpec, JobId, JobRequest, Name, Reason, Time};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

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
    /// What is wrong with it, where it has failed.
    pub failed: Option<String>,
    /// Why it is checked, where it is.
    pub checking: Option<String>,
    /// What its last check came to.
    pub checked: Option<GpuCheck>,
}

/// What came of putting a GPU back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PutBack {
    /// Why it takes no work.
    pub refused: Option<String>,
    /// Nothing where none was made.
    pub check: Option<GpuCheck>,
}

impl PutBack {
    pub fn unknown(node: &str) -> PutBack {
        let refused = format!("the GPUs of {node} are not looked after by this server");
        PutBack { refused: Some(refused), check: None }
    }
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

/// A GPU that has figures, by what measures it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MeasuredGpu {
    pub uuid: Option<String>,
    pub model: Option<String>,
}

/// A volume that a host keeps for a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptVolume {
    pub team: String,
    pub name: String,
    pub created: Option<Time>,
}

/// What a volume takes on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VolumeSize {
    pub bytes: u64,
    pub files: u64,
    /// What was looked at: files and folders.
    pub entries: u64,
    /// Not all of it was.
    pub partial: bool,
}

/// Why a volume was not made.
#[derive(Debug)]
pub enum NotMade {
    /// Somebody has to do something first.
    Refused(String),
    Failed(io::Error),
}

/// What came of deleting a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    Done,
    Absent,
    InUse,
}

/// Where a host keeps the named volumes of teams. All of it blocks: it asks the disk.
pub trait TeamVolumes: Send + Sync {
    /// All there are, in the order of team and name.
    fn list(&self) -> io::Result<Vec<KeptVolume>>;

    fn of_team(&self, team: &str) -> io::Result<Vec<KeptVolume>>;

    /// Looks at so many files and folders at the most, and follows no link.
    fn measure(&self, team: &str, name: &str, most_entries: u64) -> VolumeSize;

    /// Makes an empty volume, where there is none.
    fn make(&self, team: &str, name: &str) -> Result<(), NotMade>;

    /// Takes a volume away, if it is free in the moment that no job can get it.
    fn remove(&self, team: &str, name: &str, is_free: &dyn Fn() -> bool) -> io::Result<Removal>;
}

/// What is in a folder of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobFileKind {
    File,
    Folder,
    /// It is shown and never followed.
    Link,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFileFacts {
    pub name: String,
    pub kind: JobFileKind,
    pub bytes: u64,
    pub modified: Option<Time>,
}

/// A file that can be read, whatever happens to its name.
#[derive(Debug)]
pub struct OpenJobFile {
    pub file: std::fs::File,
    pub bytes: u64,
    pub modified: Option<Time>,
}

/// The folders that jobs work in. Whoever runs a job owns what is in its folder, so nothing there is
/// taken at its word: no link is followed, and what is no plain file is not read. All of it blocks.
pub trait JobFiles: Send + Sync {
    /// So many entries of a folder in the order of their names, and whether there are more.
    fn list(&self, job: JobId, path: &str, most: usize) -> io::Result<(Vec<JobFileFacts>, bool)>;

    fn open(&self, job: JobId, path: &str) -> io::Result<OpenJobFile>;
}

/// Pods that are to begin together and do not all exist, so that they are no job yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncompleteGang {
    pub namespace: Name,
    pub name: Name,
    pub queue: Name,
    pub since: Time,
    pub pods: u32,
    pub needed: u32,
    pub why: Reason,
}

pub trait JobHost: Send + Sync {
    /// The reasons why a job waits in the terms of this host. `job` is nothing for one that is not
    /// submitted yet.
    fn refine(
        &self,
        _: &Core,
        _job: Option<JobId>,
        _: &[GroupSpec],
        reasons: Vec<Reason>,
    ) -> Vec<Reason> {
        reasons
    }

    /// Gangs that wait for their pods.
    fn incomplete_gangs(&self, _now: Time) -> Vec<IncompleteGang> {
        Vec::new()
    }

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

    /// The machine on which jobs are processes, where there is one.
    fn machine(&self) -> Option<String> {
        None
    }

    /// Why no job of the user may start in the folder that they are in, where that is so. It starts
    /// in its own folder then.
    fn keeps_from_starting_in(&self, _user: &str, _folder: &Path) -> Option<String> {
        None
    }

    /// Whether jobs of a user with that name would act for an account of the machine that is not
    /// Berth's to give. This may block: accounts can be kept elsewhere.
    fn gives_account_of(&self, _user: &str) -> bool {
        false
    }

    /// Whether jobs get the versions of data that their files name.
    fn fetches_data(&self) -> bool {
        false
    }

    /// The folder of a job's setup, which is first in its `PATH`; `None` without a setup, or if the folder is
    /// on another machine.
    fn setup_of(&self, _team: &str, _user: &str, _run: &RunSpec) -> Option<PathBuf> {
        None
    }

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

    /// Puts a GPU back that had failed, if it is well and passes a check. This blocks for as long
    /// as the check takes.
    fn put_gpu_back(&self, node: &str, _index: u32, _check: bool) -> PutBack {
        PutBack::unknown(node)
    }

    /// Where it keeps named volumes; nothing where somebody else does.
    fn volumes(&self) -> Option<&dyn TeamVolumes> {
        None
    }

    /// The folders of jobs; nothing where they are somewhere else.
    fn files(&self) -> Option<&dyn JobFiles> {
        None
    }

    /// Where figures are gathered before they are written; nothing where none are.
    fn figures(&self) -> Option<&Book> {
        None
    }

    /// Whether a task has the GPUs that were decided for it, by their numbers. On a cluster the
    /// device plugin chooses, and figures say which a task has.
    fn chooses_gpus(&self) -> bool {
        true
    }

    /// The GPU whose figures have this number.
    fn measured_gpu(&self, _node: &str, _index: u32) -> Option<MeasuredGpu> {
        None
    }

    /// Why nothing is measured of the GPUs of a node, or not of whose they are, where that is
    /// known.
    fn why_not_measured(&self, _node: &str) -> Option<String> {
        None
    }

    /// Asks the GPUs of this machine. Declared GPUs have a reading only where a recording plays one.
    /// This blocks: the driver waits for the device.
    fn read_gpus(&self) -> Vec<GpuReading> {
        Vec::new()
    }
}
