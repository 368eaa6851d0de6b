//! Starting a supervisor.

use super::Driver;
use crate::cgroup::PROCESSES;
use crate::error::Error;
use crate::folder::folder_name;
use crate::home::{Home, private};
use crate::isolation::{self, Confine, Own, PROGRAMS, Room};
use crate::supervisor::{Boxed, LaunchSpec};
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
    pub(super) fn launch(&self, home: &Home, mut spec: TaskSpec) -> Result<Child, Error> {
        let lease = spec.lease;
        let name = folder_name(lease);
        let cgroup = self.cgroups.as_ref().map(|groups| groups.group(&name, spec.cpu, spec.memory));
        let bell = self.bell_path.clone();
        let sandbox = self.sandbox(home, &spec)?;
        let mut inherited = inherited();
        if let Some(confine) = spec.confine.as_ref().filter(|_| sandbox.is_some()) {
            inherited.extend(own_variables(confine));
            inherited.remove("TMPDIR");
            if let Some(path) = inherited.get_mut("PATH") {
                *path = format!("{path}:{PROGRAMS}");
            }
        }
        // A user's own path goes before, and Berth's programs stay there.
        if let Some(path) = spec.env.get_mut("PATH").filter(|_| sandbox.is_some()) {
            *path = format!("{path}:{PROGRAMS}");
        }
        let order = LaunchSpec { spec, inherited, cgroup, bell, sandbox };
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

impl Driver {
    /// The sandbox of a task, with its folders made.
    fn sandbox(&self, home: &Home, spec: &TaskSpec) -> Result<Option<Boxed>, Error> {
        let lease = spec.lease;
        let fail = |source| Error::MakeFolder { lease, path: home.dir.clone(), source };
        if !self.isolation.is_on() {
            home.make_folders(None).map_err(fail)?;
            return Ok(None);
        }
        let Some(confine) = &spec.confine else {
            let what = "nothing says what it may see".to_owned();
            return Err(Error::Invalid { lease, what });
        };
        let room = Room::of(&self.rooms, lease);
        home.make_folders(confine.account.as_ref()).map_err(fail)?;
        room.make(confine.account.as_ref()).map_err(fail)?;
        let berth = self.launcher.exe.clone();
        let own = Own { job: home.job(), notices: home.notices(), berth };
        let memory = spec.memory.filter(|_| !self.limits.memory);
        let limits = berth_sandbox::Limits {
            memory: memory.map(|bytes| bytes.0.unsigned_abs()),
            processes: (!self.limits.processes).then_some(PROCESSES),
        };
        let sandbox = isolation::sandbox(&own, &room, confine)
            .map_err(|why| Error::Hidden { path: why.path, source: why.source })?;
        Ok(Some(Boxed {
            sandbox,
            account: confine.account.clone(),
            limits,
            room,
            helper: self.launcher.sandbox(),
        }))
    }
}

/// Who a task in a sandbox is.
fn own_variables(confine: &Confine) -> BTreeMap<String, String> {
    let home = confine.home.display().to_string();
    let all = [("HOME", &home), ("USER", &confine.user), ("LOGNAME", &confine.user)];
    all.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

fn inherited() -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = INHERITED
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
        .collect();
    found.entry("PATH".to_owned()).or_insert_with(|| DEFAULT_PATH.to_owned());
    found
}

#[cfg(test)]
mod tests {
    use super::INHERITED;

    #[test]
    fn every_inherited_variable_is_on_the_page() {
        const PAGE: &str = include_str!("../../../../docs/environment.md");
        let (_, inherited) = PAGE.split_once("## Inherited").expect("a part about them");
        for name in INHERITED {
            assert!(inherited.contains(&format!("`{name}`")), "no {name} in docs/environment.md");
        }
    }
}
