//! Starting a supervisor.

use super::Driver;
use crate::error::Error;
use crate::folder::folder_name;
use crate::home::{Home, private};
use crate::supervisor::LaunchSpec;
use crate::task::TaskSpec;
use std::collections::BTreeMap;
use std::process::{Child, Stdio};

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
