//! Starting a supervisor.

use super::Driver;
use crate::error::Error;
use crate::home::{Home, folder_name, private};
use crate::supervisor::LaunchSpec;
use crate::task::TaskSpec;
use rustix::fs::{MemfdFlags, memfd_create};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// How the binary is started as a helper: `exe args… supervise <folder>`, which must come to
/// [`helper`](crate::helper) with the last two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    pub exe: PathBuf,
    pub args: Vec<OsString>,
}

/// What tasks get of the server's own environment. All of it would hand them its secrets.
const INHERITED: [&str; 13] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
];

const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Launcher {
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

impl Driver {
    pub(super) fn launch(&self, home: &Home, spec: TaskSpec) -> Result<Child, Error> {
        let lease = spec.lease;
        let name = folder_name(lease);
        let cgroup = self.cgroups.as_ref().map(|groups| groups.group(&name, spec.cpu, spec.memory));
        let bell = self.bell_path.clone();
        let order = LaunchSpec { spec, inherited: inherited(), cgroup, bell };
        let launched = || {
            let complaints =
                private().create(true).append(true).open(home.file("supervisor.log"))?;
            let mut command = self.launcher.command("supervise", &home.dir, &order)?;
            command.stdout(Stdio::null()).stderr(complaints).spawn()
        };
        launched().map_err(|source| {
            let exe = self.launcher.exe.clone();
            Error::Launch { lease, exe, source }
        })
    }
}

fn inherited() -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = INHERITED
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
        .collect();
    found.entry("PATH".to_owned()).or_insert_with(|| DEFAULT_PATH.to_owned());
    found
}
