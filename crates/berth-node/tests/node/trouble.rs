//! A machine that cannot start anything, and tasks that do not stay where they belong.

use super::*;
use berth_model::{Cause, TaskEnd};
use berth_node::{GpuProcess, Gpus, Mps, MpsControl};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// A driver whose supervisors do that instead.
fn open_with(machine: &mut Machine, script: &str) {
    let exe = machine.path("supervisor.sh");
    std::fs::write(&exe, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&exe, std::fs::Permissions::from_mode(0o700)).unwrap();
    machine.driver = None;
    let launcher = Launcher { exe, args: Vec::new() };
    let driver = Driver::open(&machine.path("root"), launcher, Options::default()).unwrap();
    machine.driver = Some(driver);
}

#[test]
fn a_supervisor_that_finds_no_room_is_trouble_of_the_machine_and_leaves_nothing() {
    let mut machine = machine();
    open_with(&mut machine, "exit 28");
    machine.start_line(1, "exit 0");
    let ended = machine.end(1);
    let why = "there is no room on the disk: No space left on device (os error 28)";
    assert_eq!(ended.end(), TaskEnd::Trouble(why.to_owned()));
    assert!(!machine.folder(1).exists());
    machine.driver().acknowledge(lease(1)).unwrap();
    // Nothing of it ran, so it may be run under the same lease.
    machine.restart();
    assert_eq!(machine.run(1, "exit 0").end(), TaskEnd::Done);
}

#[test]
fn a_supervisor_that_was_killed_before_it_began_is_trouble_of_the_machine() {
    let mut machine = machine();
    open_with(&mut machine, "kill -9 $$");
    machine.start_line(1, "exit 0");
    assert!(matches!(machine.end(1).end(), TaskEnd::Trouble(_)));
}

#[test]
fn a_supervisor_that_is_broken_is_not_tried_for_ever() {
    let mut machine = machine();
    open_with(&mut machine, "exit 1");
    machine.start_line(1, "exit 0");
    assert!(matches!(machine.end(1).end(), TaskEnd::NotStarted(_)));
}

#[test]
fn a_trial_start_goes_well_where_a_start_does() {
    let mut machine = machine();
    assert_eq!(machine.driver().probe(), Ok(()));
    open_with(&mut machine, "exit 11");
    let trouble = machine.driver().probe().unwrap_err();
    assert_eq!(trouble.lack, berth_node::Lack::Processes);
}

#[test]
fn a_task_reaches_its_time_limit_although_no_server_runs() {
    let mut machine = machine();
    let line = "trap 'echo saved > saved; exit 0' TERM; while :; do sleep 0.02; done";
    let mut task = shell_task(&machine, 1, line);
    task.runs_for = Some(Span::ms(600));
    machine.start(task);
    machine.driver = None;
    wait_until("it has ended", || machine.folder(1).join("exit.json").exists());
    machine.restart();
    let ended = machine.end(1);
    assert_eq!((ended.end(), ended.asked), (TaskEnd::Stopped, Some(Cause::TimeLimit)));
    assert!(machine.path("saved").exists(), "it did not get its grace");
}

#[test]
fn a_limit_that_was_changed_while_it_runs_is_the_one_that_counts() {
    let machine = machine();
    let mut task = shell_task(&machine, 1, "echo up > up; exec sleep 1000");
    task.runs_for = Some(Span::hours(1));
    machine.start(task);
    wait_until("it is up", || machine.path("up").exists());
    machine.driver().limit(lease(1), Some(Span::ZERO)).unwrap();
    assert_eq!(machine.end(1).asked, Some(Cause::TimeLimit));
}

#[test]
fn a_task_that_deletes_its_folder_is_ended_and_lost() {
    for delete in ["rm -rf ${BERTH_TASK_DIR%/job}", "rm ${BERTH_TASK_DIR%/job}/lock"] {
        let machine = machine();
        machine.start_line(1, &format!("echo $$ > pid; {delete}; exec sleep 1000"));
        let pid = machine.number("pid");
        let ended = machine.end(1);
        assert_eq!(ended.end(), TaskEnd::Lost, "{delete}");
        assert!(ended.lost.unwrap().contains("folder"), "{delete}");
        assert!(!is_alive(pid), "{delete}");
        machine.driver().acknowledge(lease(1)).unwrap();
        assert_eq!(machine.driver().wait(Duration::ZERO).unwrap(), []);
    }
}

#[test]
fn what_a_task_started_is_found_by_its_name_when_its_folder_is_gone() {
    let mut machine = machine();
    machine.start_line(1, "echo $$ > pid; rm -rf ${BERTH_TASK_DIR%/job}; exec sleep 1000");
    machine.driver = None;
    let pid = machine.number("pid");
    wait_until("its folder is gone", || !machine.folder(1).exists());
    machine.restart();
    assert_eq!(machine.driver().adopt().unwrap(), []);
    assert!(machine.driver().sweep(lease(1)));
    assert!(!is_alive(pid));
}

/// A session without its leader, as tasks of a killed supervisor are, which is older than the
/// supervisor whose number it has.
#[test]
fn processes_of_a_session_that_had_the_number_before_are_left_alone() {
    let mut machine = machine();
    let script = "sleep 1000 & echo $! > stranger; echo $$ > session";
    let mut leader = Command::new("setsid")
        .args(["--wait", "sh", "-c", script])
        .current_dir(machine.dir.path())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    leader.wait().unwrap();
    let (stranger, session) = (machine.number("stranger"), machine.number("session"));
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    std::fs::create_dir(machine.folder(1)).unwrap();
    let begun = format!(
        r#"{{"at":"2026-11-15T09:00:00Z","boot":"{}","supervisor":{session},"start":{},"cgroup":null}}"#,
        boot.trim(),
        u64::MAX,
    );
    std::fs::write(machine.folder(1).join("lock"), begun).unwrap();
    machine.restart();
    assert_eq!(machine.end(1).end(), TaskEnd::Lost);
    assert!(is_alive(stranger));
    kill(stranger);
}

#[test]
fn a_process_on_a_gpu_belongs_to_the_task_that_has_it_or_is_a_stranger() {
    let machine = machine();
    let gpus = |indices: &[u32]| Gpus::Real { indices: indices.to_vec(), uuids: Vec::new() };
    let mut task = shell_task(&machine, 1, "sleep 1000 & echo $! > pid; wait");
    task.gpus = gpus(&[0]);
    machine.start(task);
    let pid = u32::try_from(machine.number("pid")).unwrap();
    let mps = Mps::new(&machine.path("mps"), Arc::new(Sleeps::default()));
    let strangers = |found: &[(u32, u32)]| {
        let found: Vec<GpuProcess> =
            found.iter().map(|(gpu, pid)| GpuProcess { gpu: *gpu, pid: *pid }).collect();
        let strangers = machine.driver().strangers(&gpus(&[0, 1]), &found, &mps);
        strangers.into_iter().map(|stranger| (stranger.gpu, stranger.pid)).collect::<Vec<_>>()
    };
    assert_eq!(strangers(&[(0, pid)]), []);
    // The task was not given this one.
    assert_eq!(strangers(&[(1, pid)]), [(1, pid)]);
    let me = std::process::id();
    assert_eq!(strangers(&[(0, me), (7, me)]), [(0, me)]);
}

/// An MPS daemon that does nothing.
#[derive(Default)]
struct Sleeps(Mutex<Option<Child>>);

impl MpsControl for Sleeps {
    fn exists(&self) -> bool {
        true
    }

    fn start(&self, _: &Path, _: &str) -> io::Result<()> {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo $!; wait"]).stdout(Stdio::piped());
        *self.0.lock().unwrap() = Some(command.spawn()?);
        Ok(())
    }

    fn tell(&self, _: &Path, _: &str) -> io::Result<String> {
        Ok(String::new())
    }

    fn daemon(&self, _: &Path) -> Option<i32> {
        Some(self.0.lock().unwrap().as_ref()?.id().cast_signed())
    }
}

#[test]
fn a_process_with_the_name_of_an_mps_daemon_is_a_stranger_and_berths_own_daemon_is_none() {
    let machine = machine();
    let (gpus, control) =
        (Gpus::Real { indices: vec![0, 1], uuids: Vec::new() }, Arc::new(Sleeps::default()));
    std::fs::create_dir_all(machine.path("node")).unwrap();
    let mps = Mps::new(&machine.path("node"), control.clone());
    mps.provide(0, "GPU-a").unwrap();
    let (daemon, server) = {
        let mut daemon = control.0.lock().unwrap();
        let daemon = daemon.as_mut().unwrap();
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(daemon.stdout.take().unwrap()), &mut line)
            .unwrap();
        (daemon.id(), line.trim().parse::<u32>().unwrap())
    };
    // A symbolic link is enough to be called anything.
    let name = machine.path("nvidia-cuda-mps-server");
    std::os::unix::fs::symlink("/bin/sleep", &name).unwrap();
    let mut liar = Command::new(&name).arg("600").spawn().unwrap();
    let of = |gpu, pid| {
        let found = [GpuProcess { gpu, pid }];
        !machine.driver().strangers(&gpus, &found, &mps).is_empty()
    };
    assert_eq!((of(0, daemon), of(0, server), of(0, liar.id())), (false, false, true));
    assert!(of(1, server), "it was started for another GPU");
    liar.kill().unwrap();
    liar.wait().unwrap();
    mps.stop(0).unwrap();
    control.0.lock().unwrap().take().unwrap().wait().unwrap();
}
