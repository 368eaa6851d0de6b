//! Real processes under real supervisors.

mod crash;
mod disk;
mod ends;
mod logs;
mod machine;
mod sandbox;
mod shell;
mod stops;
mod trouble;

use berth_model::{Ended, Observed};
use berth_model::{JobId, LeaseId, Span};
use berth_node::{Driver, Launcher, Options, Started, Stop, TaskSpec, Wanted};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Long enough for a machine that is busy with everything else.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A machine of its own for one test.
struct Machine {
    dir: tempfile::TempDir,
    driver: Option<Driver>,
    options: Options,
}

fn launcher() -> Launcher {
    Launcher { exe: PathBuf::from(env!("CARGO_BIN_EXE_berth-supervise")), args: Vec::new() }
}

/// Tasks that write where the test looks, and whose process ids the test knows.
fn unconfined() -> Options {
    Options { isolation: Wanted::Off, ..Options::default() }
}

fn machine() -> Machine {
    machine_with(unconfined())
}

fn machine_with(options: Options) -> Machine {
    let dir = tempfile::tempdir().unwrap();
    let driver = Driver::open(&dir.path().join("root"), launcher(), options).unwrap();
    Machine { dir, driver: Some(driver), options }
}

fn lease(job: u64) -> LeaseId {
    LeaseId { job: JobId::new(job), task: 0, attempt: 0 }
}

/// A task that is one line of shell, in the machine's folder.
fn shell_task(machine: &Machine, job: u64, line: &str) -> TaskSpec {
    TaskSpec::new(lease(job), &["sh", "-c", line], machine.dir.path())
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !done() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Machine {
    fn driver(&self) -> &Driver {
        self.driver.as_ref().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What a new server finds.
    fn restart(&mut self) {
        self.driver = None;
        let opened = Driver::open(&self.path("root"), launcher(), self.options);
        self.driver = Some(opened.unwrap());
    }

    fn folder(&self, job: u64) -> PathBuf {
        self.path(&format!("root/tasks/{job}.0.0"))
    }

    fn start(&self, spec: TaskSpec) -> Started {
        self.driver().start(spec).unwrap()
    }

    fn start_line(&self, job: u64, line: &str) {
        assert_eq!(self.start(shell_task(self, job, line)), Started::Fresh);
    }

    fn stop(&self, job: u64, grace: Span) {
        let cause = berth_model::Cause::Preempt;
        self.driver().stop(lease(job), Stop { cause, grace, signal: None }).unwrap();
    }

    /// All news up to and with the end of a job.
    fn news_to_the_end(&self, job: u64) -> Vec<Observed> {
        let mut all = Vec::new();
        let is_end = |news: &Observed| matches!(news, Observed::Ended(e) if e.lease == lease(job));
        let deadline = Instant::now() + TIMEOUT;
        while !all.iter().any(is_end) {
            assert!(Instant::now() < deadline, "job {job} does not end: {all:?}");
            all.extend(self.driver().wait(Duration::from_secs(1)).unwrap());
        }
        all
    }

    fn end(&self, job: u64) -> Ended {
        match self.news_to_the_end(job).pop() {
            Some(Observed::Ended(ended)) => *ended,
            other => panic!("the end is told last, not {other:?}"),
        }
    }

    fn run(&self, job: u64, line: &str) -> Ended {
        self.start_line(job, line);
        self.end(job)
    }

    fn log(&self, job: u64, rank: u32) -> String {
        let reader = self.driver().log(lease(job), rank).unwrap();
        let mut follower = reader.follow(0);
        let mut text = Vec::new();
        loop {
            let chunk = follower.read_more(1 << 16).unwrap();
            if chunk.bytes.is_empty() {
                return String::from_utf8(text).unwrap();
            }
            text.extend(chunk.bytes);
        }
    }

    /// A number that a task wrote into a file.
    fn number(&self, name: &str) -> i32 {
        let path = self.path(name);
        let mut found = None;
        wait_until(&format!("a number in {name}"), || {
            found = std::fs::read_to_string(&path).ok().and_then(|t| t.trim().parse().ok());
            found.is_some()
        });
        found.unwrap()
    }

    /// The supervisor of a job, once it has begun.
    fn supervisor(&self, job: u64) -> i32 {
        let lock = self.folder(job).join("lock");
        let mut found = None;
        wait_until("a supervisor that has begun", || {
            let text = std::fs::read_to_string(&lock).unwrap_or_default();
            let begun: Option<serde_json::Value> = serde_json::from_str(&text).ok();
            found = begun.and_then(|begun| begun["supervisor"].as_i64());
            found.is_some()
        });
        i32::try_from(found.unwrap()).unwrap()
    }
}

impl Drop for Machine {
    /// Nothing of a failed test goes on running.
    fn drop(&mut self) {
        let Some(driver) = &self.driver else { return };
        for task in driver.adopt().unwrap_or_default() {
            let cause = berth_model::Cause::Cancelled;
            let _ = driver.stop(task.lease, Stop { cause, grace: Span(0), signal: None });
        }
        let deadline = Instant::now() + Duration::from_secs(5);
        while driver.adopt().is_ok_and(|left| !left.is_empty()) && Instant::now() < deadline {
            let _ = driver.wait(Duration::from_millis(100));
        }
    }
}

/// Whether a process is there and not merely waiting to be waited for.
fn is_alive(pid: i32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = text.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
