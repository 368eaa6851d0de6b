//! This machine: disk, isolation, limits and GPUs.

use super::Check;
use rustix::fs::statvfs;
use rustix::process::{Resource, getrlimit};
use std::path::{Path, PathBuf};
use std::process::Command;

/// With less the server stops taking jobs.
const LEAST_DISK: u64 = 1 << 30;
/// With less one large log fills it.
const LITTLE_DISK: u64 = 10 << 30;
/// Each running process of a job and each reader takes some.
const LEAST_FILES: u64 = 4_096;

pub fn checks() -> Vec<Check> {
    let mut checks = vec![disk(), namespaces(), cgroups(), files()];
    checks.extend(gpus());
    checks
}

fn home() -> PathBuf {
    let named = std::env::var_os("BERTH_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    named.unwrap_or_else(|| {
        PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/".into())).join(".berth")
    })
}

fn disk() -> Check {
    let home = home();
    let there = home.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
    match statvfs(there) {
        Ok(stat) => of_disk(stat.f_bavail.saturating_mul(stat.f_frsize), &home),
        Err(error) => {
            let detail = format!("{}: {error}", there.display());
            Check::failed("disk", detail, "See that this folder can be read.")
        }
    }
}

fn of_disk(free: u64, home: &Path) -> Check {
    let gib = free >> 30;
    let detail = format!("{gib} GiB are free for {}", home.display());
    let next = "Make room, or put the home elsewhere: `berth up --home DIR`.";
    match free {
        ..LEAST_DISK => Check::failed("disk", detail, next),
        LEAST_DISK..LITTLE_DISK => Check::warning("disk", detail, next),
        _ => Check::ok("disk", detail),
    }
}

fn number(path: &str) -> Option<i64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn namespaces() -> Check {
    const NAME: &str = "user namespaces";
    let closed = [
        ("/proc/sys/user/max_user_namespaces", 0, "user.max_user_namespaces=15000"),
        ("/proc/sys/kernel/unprivileged_userns_clone", 0, "kernel.unprivileged_userns_clone=1"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            1,
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ];
    let found = closed.iter().find(|(path, closed, _)| number(path) == Some(*closed));
    match found {
        None => Check::ok(NAME, "allowed"),
        Some(_) if rustix::process::geteuid().is_root() => {
            Check::ok(NAME, "closed to ordinary users, and the server runs as root")
        }
        Some((path, _, setting)) => Check::warning(
            NAME,
            format!("{path} forbids them, so jobs cannot be isolated"),
            format!("As root: `sysctl -w {setting}`."),
        ),
    }
}

fn cgroups() -> Check {
    match Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        true => Check::ok("cgroup v2", "mounted at /sys/fs/cgroup"),
        false => Check::warning(
            "cgroup v2",
            "not mounted at /sys/fs/cgroup, so jobs are not held to CPU and memory",
            "Boot with systemd.unified_cgroup_hierarchy=1.",
        ),
    }
}

fn files() -> Check {
    of_files(getrlimit(Resource::Nofile).maximum)
}

/// The server raises its own limit up to the hard one.
fn of_files(most: Option<u64>) -> Check {
    match most {
        Some(most) if most < LEAST_FILES => Check::warning(
            "open files",
            format!("at most {most} for each process"),
            "Raise the hard limit: `ulimit -Hn 65536`, or LimitNOFILE=65536 in the unit.",
        ),
        Some(most) => Check::ok("open files", format!("up to {most}")),
        None => Check::ok("open files", "no limit"),
    }
}

fn gpus() -> Vec<Check> {
    if !Path::new("/proc/driver/nvidia").exists() && !Path::new("/dev/nvidia0").exists() {
        return vec![Check::skipped("gpu", "no NVIDIA GPU with a driver on this machine")];
    }
    let version = std::fs::read_to_string("/sys/module/nvidia/version").unwrap_or_default();
    let mut checks = vec![Check::ok("gpu driver", format!("NVIDIA {}", version.trim()))];
    let Some(listed) =
        said("nvidia-smi", &["--query-gpu=name,mig.mode.current", "--format=csv,noheader"])
    else {
        checks.push(Check::failed(
            "nvml",
            "nvidia-smi does not answer, so the driver and its library do not fit",
            "Install the utilities of the same driver version, and load its module again.",
        ));
        return checks;
    };
    let gpus: Vec<&str> = listed.lines().filter(|line| !line.trim().is_empty()).collect();
    checks.push(Check::ok("nvml", format!("{} GPUs answer", gpus.len())));
    let with_mig = gpus.iter().filter(|line| line.ends_with("Enabled")).count();
    checks.push(match with_mig {
        0 => Check::ok("mig", "off; Berth turns it on where jobs ask for instances"),
        _ => Check::ok("mig", format!("on for {with_mig} of {} GPUs", gpus.len())),
    });
    checks.push(match on_path("nvidia-cuda-mps-control") {
        true => Check::ok("mps", "nvidia-cuda-mps-control is there"),
        false => Check::warning(
            "mps",
            "nvidia-cuda-mps-control is missing, so jobs cannot have fractions of a GPU",
            "Install the package of the driver that has it, such as nvidia-compute-utils.",
        ),
    });
    checks
}

/// What a program printed, if it ended well.
pub fn said(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

pub fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn a_full_disk_fails_and_one_with_little_room_is_worth_a_warning() {
        let status = |gib: u64| of_disk(gib << 30, Path::new("/srv/berth")).status;
        assert_eq!(
            [status(0), status(2), status(100)],
            [Status::Failed, Status::Warning, Status::Ok]
        );
        let full = of_disk(0, Path::new("/srv/berth"));
        assert_eq!(full.detail, "0 GiB are free for /srv/berth");
    }

    #[test]
    fn a_low_limit_of_open_files_is_worth_a_warning() {
        assert_eq!(of_files(Some(1_024)).status, Status::Warning);
        assert_eq!(
            [of_files(Some(65_536)).status, of_files(None).status],
            [Status::Ok, Status::Ok]
        );
    }
}
