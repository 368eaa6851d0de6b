//! One machine as a site: its GPUs, and the processes that run on it.
//!
//! Deliberately absent: any scheduling choice. A lease names its GPUs.

mod condition;
mod data;
mod energy;
mod executor;
mod fetching;
mod figures;
mod gpu_checks;
mod gpu_faults;
mod gpu_holders;
mod host;
mod identity;
mod job_files;
mod output;
mod recovery;
mod setup;
mod site;
mod slices;
mod volumes;
mod workplace;

pub use condition::Condition;
pub use data::{DataCache, DataCounts, DataOptions};
pub use energy::Energy;
pub use executor::Watch;
pub use figures::begin as gather_figures;
pub use gpu_checks::{CheckAtStart, GpuChecks, hold_back};
pub use gpu_faults::{FaultSource, open_recording};
pub use gpu_holders::GpuHolders;
pub use host::{Host, shown_check};
pub use identity::ServerAddress;
pub use output::KeepOutput;
pub use site::{Begun, begin};
pub use slices::Slices;
pub use volumes::Volumes;
pub use workplace::{KeyError, ShareError, Snapshots, Workplace, check_keys, shares};
