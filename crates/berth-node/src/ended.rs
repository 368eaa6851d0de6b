//! How a task ended.

use berth_model::{Bytes, Cause, LeaseId, LeaseOutcome, Time};
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
    /// Set when we had asked it to stop before it ended.
    pub asked: Option<Cause>,
    /// It was ended because it had not become ready in time.
    #[serde(default)]
    pub not_ready: bool,
    /// Why nobody knows how it ended.
    pub lost: Option<String>,
    /// Why it never ran.
    pub not_started: Option<String>,
    pub usage: Usage,
    /// Bytes of log that could not be written.
    pub log_lost: u64,
}

impl Ended {
    pub(crate) fn unknown(lease: LeaseId, at: Time) -> Ended {
        Ended {
            lease,
            at,
            started_at: None,
            code: None,
            signal: None,
            rank: 0,
            oom: false,
            gpu_error: None,
            asked: None,
            not_ready: false,
            lost: None,
            not_started: None,
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

    /// The one thing to tell of it. What we asked for comes before what the process made of it:
    /// frameworks that save on a signal exit with 0, 143 or 255 alike.
    pub fn kind(&self) -> ExitKind {
        if self.asked.is_some() {
            return ExitKind::Stopped;
        }
        if let Some(why) = &self.not_started {
            return ExitKind::NotStarted(why.clone());
        }
        if self.lost.is_some() {
            return ExitKind::Lost;
        }
        if self.not_ready {
            return ExitKind::NotReady;
        }
        match (self.code, self.signal) {
            (Some(0), _) => ExitKind::Done,
            (Some(REQUEUE), _) => ExitKind::Requeue,
            _ if self.oom => ExitKind::OutOfMemory,
            _ if self.gpu_error.is_some() => ExitKind::GpuError,
            (Some(code), _) => ExitKind::Failed(code),
            (None, Some(signal)) => ExitKind::Signalled(signal),
            (None, None) => ExitKind::Lost,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitKind {
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
}

impl ExitKind {
    /// What the core is told. A task that asks to be run again was not stopped by us, but it
    /// goes back to waiting in the same way.
    pub fn outcome(&self) -> LeaseOutcome {
        match self {
            ExitKind::Done => LeaseOutcome::Done,
            ExitKind::Failed(_)
            | ExitKind::Signalled(_)
            | ExitKind::OutOfMemory
            | ExitKind::NotReady => LeaseOutcome::Failed,
            ExitKind::Stopped | ExitKind::Requeue => LeaseOutcome::Stopped,
            // A command that is not there is the job's failure, not the node's: trying it
            // elsewhere forever would help nobody.
            ExitKind::NotStarted(_) => LeaseOutcome::Failed,
            ExitKind::GpuError | ExitKind::Lost => LeaseOutcome::Lost,
        }
    }
}

impl fmt::Display for ExitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitKind::Done => f.write_str("done"),
            ExitKind::Failed(code) => write!(f, "failed with exit code {code}"),
            ExitKind::Signalled(signal) => write!(f, "ended by signal {}", signal_name(*signal)),
            ExitKind::OutOfMemory => f.write_str("killed because it was out of memory"),
            ExitKind::GpuError => f.write_str("failed with an error of the GPU"),
            ExitKind::NotReady => f.write_str("did not become ready in time"),
            ExitKind::Stopped => f.write_str("stopped"),
            ExitKind::Requeue => f.write_str("asked to be run again"),
            ExitKind::Lost => f.write_str("lost"),
            ExitKind::NotStarted(why) => write!(f, "not started: {why}"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::JobId;

    fn kind(change: impl FnOnce(&mut Ended)) -> ExitKind {
        let lease = LeaseId { job: JobId::new(1), task: 0, attempt: 0 };
        let mut ended = Ended::unknown(lease, Time(0));
        change(&mut ended);
        ended.kind()
    }

    #[test]
    fn ends_are_told_apart() {
        assert_eq!(kind(|e| e.code = Some(0)), ExitKind::Done);
        assert_eq!(kind(|e| e.code = Some(3)), ExitKind::Failed(3));
        assert_eq!(kind(|e| e.code = Some(99)), ExitKind::Requeue);
        assert_eq!(kind(|e| e.signal = Some(11)), ExitKind::Signalled(11));
        assert_eq!(kind(|e| e.lost = Some("reboot".into())), ExitKind::Lost);
        assert_eq!(kind(|_| ()), ExitKind::Lost);
    }

    #[test]
    fn our_own_stop_comes_before_any_exit_code() {
        for code in [0, 143, 255] {
            let stopped = kind(|e| (e.code, e.asked) = (Some(code), Some(Cause::Reclaim)));
            assert_eq!(stopped, ExitKind::Stopped);
        }
    }

    #[test]
    fn a_service_that_was_late_has_failed_however_it_took_its_end() {
        for code in [0, 1, 143] {
            assert_eq!(kind(|e| (e.code, e.not_ready) = (Some(code), true)), ExitKind::NotReady);
        }
    }

    #[test]
    fn memory_and_gpu_errors_explain_a_failure_and_not_a_success() {
        let with = |code| kind(|e| (e.code, e.oom) = (Some(code), true));
        assert_eq!((with(1), with(0)), (ExitKind::OutOfMemory, ExitKind::Done));
        let with = |code| kind(|e| (e.code, e.gpu_error) = (Some(code), Some(79)));
        assert_eq!((with(1), with(0)), (ExitKind::GpuError, ExitKind::Done));
    }
}
