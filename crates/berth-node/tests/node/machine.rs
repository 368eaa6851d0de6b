//! The supervisor as a guest on the machine.

use super::*;

#[test]
fn a_supervisor_is_small_and_holds_on_to_nothing_of_the_server() {
    let machine = machine();
    machine.start_line(1, "echo up > up; exec sleep 1000");
    wait_until("it is up", || machine.path("up").exists());
    let supervisor = machine.supervisor(1);
    let status = std::fs::read_to_string(format!("/proc/{supervisor}/status")).unwrap();
    let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: u64 = rss.trim().trim_end_matches("kB").trim().parse().unwrap();
    assert!(kib < 8 << 10, "it takes {kib} KiB");
    let folder = machine.folder(1).canonicalize().unwrap();
    // It opens files for a moment to look around; what it keeps is what counts.
    let mut held = Vec::new();
    let foreign = |target: &PathBuf| {
        let text = target.display().to_string();
        let kinds = ["/dev/null", "pipe:", "anon_inode:[pidfd]", "pidfd:"];
        !target.starts_with(&folder) && !kinds.iter().any(|kind| text.starts_with(kind))
    };
    wait_until("it holds only what is its own", || {
        let fds = std::fs::read_dir(format!("/proc/{supervisor}/fd")).unwrap();
        held = fds.flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok()).collect();
        !held.iter().any(foreign)
    });
    assert!(held.len() > 4, "{held:?}");
    let environ = std::fs::read(format!("/proc/{supervisor}/environ")).unwrap();
    assert!(environ.is_empty(), "it has an environment");
    let session = rustix::process::getsid(rustix::process::Pid::from_raw(supervisor)).unwrap();
    assert_eq!(session.as_raw_pid(), supervisor);
}

#[test]
fn the_files_of_a_task_are_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let machine = machine();
    machine.run(1, "echo out");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o077;
    let folder = machine.folder(1);
    assert_eq!(mode(&folder), 0);
    for entry in std::fs::read_dir(&folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            assert_eq!(mode(&entry.path()), 0, "{}", entry.path().display());
        }
    }
}
