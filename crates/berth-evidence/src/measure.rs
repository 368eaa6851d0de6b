//! Medians, percentiles and memory.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// A running clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    id: ClockId,
    began: Duration,
}

impl Clock {
    /// By the clock on the wall, or, for machines that are not idle, by the time this thread had
    /// the CPU.
    pub fn start(on_cpu: bool) -> Clock {
        let id = if on_cpu { ClockId::ThreadCPUTime } else { ClockId::Monotonic };
        Clock { id, began: Clock::read(id) }
    }

    fn read(id: ClockId) -> Duration {
        let time = clock_gettime(id);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    pub fn elapsed(self) -> Duration {
        Clock::read(self.id) - self.began
    }
}

pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// The middle one of an odd number of runs.
pub fn median(mut runs: Vec<Duration>) -> Duration {
    runs.sort_unstable();
    runs[runs.len() / 2]
}

/// The smallest value that so many thousandths of all values do not exceed.
pub fn percentile(sorted: &[Duration], thousandths: usize) -> Duration {
    let rank = (sorted.len() * thousandths).div_ceil(1_000).max(1);
    sorted[rank - 1]
}

/// What a process has in memory, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    pub now: u64,
    pub peak: u64,
}

impl Memory {
    /// Of this process.
    pub fn read() -> Memory {
        Memory::of("self")
    }

    /// Of a process by its number. Zeros where the system does not tell.
    pub fn of(process: &str) -> Memory {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let of = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
            kib.unwrap_or(0) * 1_024
        };
        Memory { now: of("VmRSS:"), peak: of("VmHWM:") }
    }
}
