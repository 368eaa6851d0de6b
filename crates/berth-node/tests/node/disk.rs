//! A full disk.

use super::*;
use berth_model::TaskEnd;
use std::process::Command;

/// A file system of two megabytes, as long as it lives.
struct Disk {
    path: PathBuf,
}

impl Disk {
    fn mount(path: PathBuf) -> Disk {
        std::fs::create_dir(&path).unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m", "berth-test"])
            .arg(&path)
            .status();
        assert!(mount.unwrap().success(), "cannot mount");
        Disk { path }
    }

    /// Writes until nothing fits any more.
    fn fill(&self) {
        let file = std::fs::File::create(self.path.join("filler")).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while std::io::Write::write_all(&mut &file, &vec![0; size]).is_ok() {}
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.path).status();
    }
}

#[test]
#[ignore = "needs root: it mounts a small file system"]
fn a_task_on_a_full_disk_goes_on_and_its_end_is_written() {
    let mut machine = machine();
    let disk = Disk::mount(machine.path("disk"));
    let driver = Driver::open(&machine.path("disk/root"), launcher(), unconfined());
    machine.driver = Some(driver.unwrap());
    machine.start_line(1, "while ! test -e go; do sleep 0.01; done; seq 10000; exit 3");
    let folder = machine.path("disk/root/tasks/1.0.0");
    wait_until("it runs", || folder.join("started.json").exists());
    disk.fill();
    std::fs::write(machine.path("go"), "").unwrap();
    let ended = machine.end(1);
    assert_eq!(ended.end(), TaskEnd::Failed(3));
    assert!(ended.log_lost > 0, "{ended:?}");
    // A start needs room, and says so; with room it can be tried again.
    assert!(machine.driver().start(shell_task(&machine, 2, "exit 0")).is_err());
    std::fs::remove_file(disk.path.join("filler")).unwrap();
    assert_eq!(machine.run(2, "exit 0").end(), TaskEnd::Done);
    machine.driver = None;
}
