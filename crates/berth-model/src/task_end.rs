//! What a driver reports of a task: that it started, is ready, or how it ended.

use crate::{Bytes, Cause, ExitKind, LeaseId, LeaseOutcome, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The exit code by which a task asks to be run again (Grid Engine's).
const REQUEUE: i32 = 99;

/// What the task's processes used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    pub cpu_ms: u64,
    /// Of all processes together where there is a cgroup; otherwise of the largest one, as far
    /// as it was seen. `None` when it ended before anyone looked.
    pub memory_peak: Option<Bytes>,
}

/// What was observed of the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub lease: LeaseId,
    pub at: Time,
    pub started_at: Option<Time>,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// The rank that code and signal are of: the first that failed, or 0.
    pub rank: u32,
    /// The kernel killed a process because the task was over its memory.
    pub oom: bool,
    /// The number (XID) of a hardware error on one of its GPUs while it ran.
    pub gpu_error: Option<u64>,
    /// We had it end because one of its GPUs had failed, or what shares the GPU had.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gpu_stop: bool,
    /// Set when we had asked it to stop before it ended.
    pub asked: Option<Cause>,
    /// It was ended because it had not become ready in time.
    #[serde(default)]
    pub not_ready: bool,
    /// Why nobody knows how it ended.
    pub lost: Option<String>,
    /// Why it never ran.
    pub not_started: Option<String>,
    /// Why the machine could not start it: the disk was full, or the like. Nothing of it ran, and
    /// another try may go well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// When it ended by the clock of the machine that nobody can set, in milliseconds since the
    /// machine was started. `at` is wrong where somebody has set the other clock since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uptime_ms: Option<u64>,
    pub usage: Usage,
    /// Bytes of log that could not be written.
    pub log_lost: u64,
}

impl Ended {
    /// The end of a task of which nothing is known yet.
    pub fn unknown(lease: LeaseId, at: Time) -> Ended {
        Ended {
            lease,
            at,
            started_at: None,
            code: None,
            signal: None,
            rank: 0,
            oom: false,
            gpu_error: None,
            gpu_stop: false,
            asked: None,
            not_ready: false,
            lost: None,
            not_started: None,
            trouble: None,
            uptime_ms: None,
            usage: Usage::default(),
            log_lost: 0,
        }
    }

    /// The end of a task of which nothing is left to look at.
    pub fn lost(lease: LeaseId, at: Time, why: String) -> Ended {
        Ended { lost: Some(why), ..Ended::unknown(lease, at) }
    }

    /// The end of a task that could not be begun.
    pub fn not_started(lease: LeaseId, at: Time, why: String) -> Ended {
        Ended { not_started: Some(why), ..Ended::unknown(lease, at) }
    }

    /// The end of a task that the machine could not begin for lack of something.
    pub fn trouble(lease: LeaseId, at: Time, why: String) -> Ended {
        Ended { trouble: Some(why), ..Ended::unknown(lease, at) }
    }

    /// It was asked to end for this, or for a GPU that had failed, before anything of it ran.
    pub fn stopped_before_its_start(&mut self, cause: Option<Cause>) {
        self.asked = cause;
        self.gpu_stop = cause.is_none();
        if cause.is_some() {
            self.not_started = Some("it was asked to stop before it was started".to_owned());
        }
    }

    /// The one thing to tell of it. What we asked for comes before what the process made of it:
    /// frameworks that save on a signal exit with 0, 143 or 255 alike.
    pub fn end(&self) -> TaskEnd {
        if self.asked.is_some() {
            return TaskEnd::Stopped;
        }
        if let Some(why) = &self.trouble {
            return TaskEnd::Trouble(why.clone());
        }
        if let Some(why) = &self.not_started {
            return TaskEnd::NotStarted(why.clone());
        }
        if self.lost.is_some() {
            return TaskEnd::Lost;
        }
        if self.not_ready {
            return TaskEnd::NotReady;
        }
        match (self.code, self.signal) {
            // It may have saved on the signal and exited with 0; its work is not done.
            _ if self.gpu_stop => TaskEnd::GpuError,
            (Some(0), _) => TaskEnd::Done,
            (Some(REQUEUE), _) => TaskEnd::Requeue,
            _ if self.oom => TaskEnd::OutOfMemory,
            _ if self.gpu_error.is_some() => TaskEnd::GpuError,
            (Some(code), _) => TaskEnd::Failed(code),
            (None, Some(signal)) => TaskEnd::Signalled(signal),
            (None, None) => TaskEnd::Lost,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    Done,
    Failed(i32),
    Signalled(i32),
    OutOfMemory,
    GpuError,
    /// A service that did not serve in time.
    NotReady,
    /// By us, whatever the exit code.
    Stopped,
    /// It asked to be run again.
    Requeue,
    Lost,
    NotStarted(String),
    /// The machine could not start it, which is no fault of the task's.
    Trouble(String),
}

impl TaskEnd {
    /// The same without its particulars, as people see it.
    pub const fn kind(&self) -> ExitKind {
        match self {
            TaskEnd::Done => ExitKind::Done,
            TaskEnd::Failed(_) => ExitKind::Failed,
            TaskEnd::Signalled(_) => ExitKind::Signalled,
            TaskEnd::OutOfMemory => ExitKind::OutOfMemory,
            TaskEnd::GpuError => ExitKind::GpuError,
            TaskEnd::NotReady => ExitKind::NotReady,
            TaskEnd::Stopped => ExitKind::Stopped,
            TaskEnd::Requeue => ExitKind::Requeue,
            TaskEnd::Lost => ExitKind::Lost,
            TaskEnd::NotStarted(_) | TaskEnd::Trouble(_) => ExitKind::NotStarted,
        }
    }

    /// What Berth reports to the core. A task that asks to be run again was not stopped by us, but it
    /// goes back to waiting in the same way.
    pub fn outcome(&self) -> LeaseOutcome {
        match self {
            TaskEnd::Done => LeaseOutcome::Done,
            TaskEnd::Failed(_)
            | TaskEnd::Signalled(_)
            | TaskEnd::OutOfMemory
            | TaskEnd::NotReady => LeaseOutcome::Failed,
            TaskEnd::Stopped | TaskEnd::Requeue => LeaseOutcome::Stopped,
            // A command that is not there is the job's failure, not the node's: trying it
            // elsewhere forever would help nobody.
            TaskEnd::NotStarted(_) => LeaseOutcome::Failed,
            TaskEnd::GpuError | TaskEnd::Lost | TaskEnd::Trouble(_) => LeaseOutcome::Lost,
        }
    }
}

impl fmt::Display for TaskEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskEnd::Done => f.write_str("done"),
            TaskEnd::Failed(code) => write!(f, "failed with exit code {code}"),
            TaskEnd::Signalled(signal) => write!(f, "ended by signal {}", signal_name(*signal)),
            TaskEnd::OutOfMemory => f.write_str("killed because it was out of memory"),
            TaskEnd::GpuError => f.write_str("failed with an error of the GPU"),
            TaskEnd::NotReady => f.write_str("did not become ready in time"),
            TaskEnd::Stopped => f.write_str("stopped"),
            TaskEnd::Requeue => f.write_str("asked to be run again"),
            TaskEnd::Lost => f.write_str("lost"),
            TaskEnd::NotStarted(why) => write!(f, "not started: {why}"),
            TaskEnd::Trouble(why) => write!(f, "the machine could not start it: {why}"),
        }
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        6 => "ABRT",
        7 => "BUS",
        8 => "FPE",
        9 => "KILL",
        10 => "USR1",
        11 => "SEGV",
        12 => "USR2",
        13 => "PIPE",
        15 => "TERM",
        _ => return signal.to_string(),
    };
    format!("{signal} ({name})")
}

/// A change of a task. One driver reports each once; a driver that is opened later reports again what
/// is true of tasks that are not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observed {
    Started { lease: LeaseId, at: Time },
    Ready { lease: LeaseId, at: Time },
    Ended(Box<Ended>),
}

impl Observed {
    /// When it happened, as the clock of the machine has it.
    pub fn at(&self) -> Time {
        match self {
            Observed::Started { at, .. } | Observed::Ready { at, .. } => *at,
            Observed::Ended(ended) => ended.at,
        }
    }

    pub fn lease(&self) -> LeaseId {
        match self {
            Observed::Started { lease, .. } | Observed::Ready { lease, .. } => *lease,
            Observed::Ended(ended) => ended.lease,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobId;

    fn kind(change: impl FnOnce(&mut Ended)) -> TaskEnd {
        let lease = LeaseId { job: JobId::new(1), task: 0, attempt: 0 };
        let mut ended = Ended::unknown(lease, Time(0));
        change(&mut ended);
        ended.end()
    }

    #[test]
    fn ends_are_told_apart() {
        assert_eq!(kind(|e| e.code = Some(0)), TaskEnd::Done);
        assert_eq!(kind(|e| e.code = Some(3)), TaskEnd::Failed(3));
        assert_eq!(kind(|e| e.code = Some(99)), TaskEnd::Requeue);
        assert_eq!(kind(|e| e.signal = Some(11)), TaskEnd::Signalled(11));
        assert_eq!(kind(|e| e.lost = Some("reboot".into())), TaskEnd::Lost);
        assert_eq!(kind(|_| ()), TaskEnd::Lost);
    }

    #[test]
    fn trouble_of_the_machine_is_no_failure_of_the_task() {
        let end = kind(|e| e.trouble = Some("the disk is full".into()));
        assert_eq!(end, TaskEnd::Trouble("the disk is full".into()));
        assert_eq!(end.outcome(), LeaseOutcome::Lost);
    }

    #[test]
    fn our_own_stop_comes_before_any_exit_code() {
        for code in [0, 143, 255] {
            let stopped = kind(|e| (e.code, e.asked) = (Some(code), Some(Cause::Reclaim)));
            assert_eq!(stopped, TaskEnd::Stopped);
        }
    }

    #[test]
    fn a_service_that_was_late_has_failed_however_it_took_its_end() {
        for code in [0, 1, 143] {
            assert_eq!(kind(|e| (e.code, e.not_ready) = (Some(code), true)), TaskEnd::NotReady);
        }
    }

    #[test]
    fn memory_and_gpu_errors_explain_a_failure_and_not_a_success() {
        let with = |code| kind(|e| (e.code, e.oom) = (Some(code), true));
        assert_eq!((with(1), with(0)), (TaskEnd::OutOfMemory, TaskEnd::Done));
        let with = |code| kind(|e| (e.code, e.gpu_error) = (Some(code), Some(79)));
        assert_eq!((with(1), with(0)), (TaskEnd::GpuError, TaskEnd::Done));
    }
}
