//! How the driver starts helper processes: supervisors, and shells beside a task.

use berth_sandbox::Helper;
use rustix::fs::{MemfdFlags, memfd_create};
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How the binary is started as a helper: `exe args… supervise <folder>`, which must come to
/// [`helper`](crate::helper) with the last two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    pub exe: PathBuf,
    pub args: Vec<OsString>,
}

impl Launcher {
    /// The same for the steps of a sandbox.
    pub(crate) fn sandbox(&self) -> Helper {
        let args = self.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        Helper { exe: self.exe.clone(), args }
    }

    /// A command for a helper, with an order that is readable until the last one has closed it
    /// and never lies on a disk.
    pub(crate) fn command(
        &self,
        word: &str,
        home: &Path,
        order: &impl Serialize,
    ) -> io::Result<Command> {
        let mut file = File::from(memfd_create("berth-order", MemfdFlags::CLOEXEC)?);
        file.write_all(&serde_json::to_vec(order).map_err(io::Error::other)?)?;
        file.rewind()?;
        let mut command = Command::new(&self.exe);
        command.args(&self.args).arg(word).arg(home).env_clear().current_dir("/").stdin(file);
        Ok(command)
    }
}
