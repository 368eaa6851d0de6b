//! One machine with GPUs: what it has, and the processes that run there.
//!
//! A [`Driver`] starts each task under a small supervisor process that outlives it. All that is
//! known of a task lies in the task's folder, so a driver that was killed is replaced by opening
//! another one on the same root: what runs goes on, and what ended meanwhile is reported then.
//!
//! Deliberately absent: any scheduling choice (a lease names its GPUs), any knowledge of jobs
//! beyond one lease, an async runtime, and `unsafe`.

mod cgroup;
mod driver;
mod environ;
mod error;
mod folder;
mod gpu_check;
mod gpu_figures;
mod gpu_health;
mod gpu_recording;
mod home;
mod inventory;
mod isolation;
mod launcher;
mod log;
mod mig;
mod mps;
mod open_files;
mod owner;
mod power;
mod process;
mod script;
mod shell;
mod supervisor;
mod task;
mod this_machine;
mod trouble;

pub use berth_gpucheck::{Check, Figure, Quantity};
pub use berth_sandbox::{
    Access, Account, Network, Opener, everybody_may, hides_abstract_sockets, may_access,
    other_names,
};
pub use cgroup::Limits;
pub use driver::{Adopted, Driver, Kept, Options, Started, State, Stop, Stranger, TaskUse};
pub use environ::environment;
pub use error::Error;
pub use gpu_check::{CheckBook, Checked, can_be_checked, check_gpu};
pub use gpu_figures::{
    Activity, EnergyCounters, GpuFigures, GpuQuery, GpuReader, MigPart, Nvidia, Player, ReadGpus,
    RecordedGpu,
};
pub use gpu_health::{GpuFault, GpuHealth, GpuWatch, NvidiaHealth};
pub use gpu_recording::GpuRecording;
pub use inventory::{
    Declared, Device, DeviceError, GpuProcess, GpuSample, Inventory, Known, Machine, ParseDeclared,
    Probe, machine,
};
pub use isolation::{
    Accounts, Confine, Isolation, NoSandbox, Shown, Wanted, is_of_system, own_account,
};
pub use launcher::Launcher;
pub use log::{
    Chunk, LONGEST_LOG_LINE, LogFollower, LogHit, LogLimits, LogPlace, LogReader, LogWriter,
    Looked, Piece,
};
pub use mig::{Instance, Mig, MigError, NvidiaSmi, Smi, SmiError};
pub use mps::{Mps, MpsControl, MpsError, NvidiaMps};
pub use open_files::OpenFiles;
pub use owner::{give, remove_tree};
pub use power::{NvidiaPower, ParsePowerCaps, Power, PowerCaps, PowerControl};
pub use script::{LONGEST_ARGUMENT, shell_command};
pub use shell::{Shell, Size};
pub use supervisor::{helper, supervise};
pub use task::{Gang, Gpus, Launch, Ready, TaskSpec};
pub use this_machine::this_machine;
pub use trouble::{Lack, Trouble};
