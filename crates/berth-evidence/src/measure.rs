//! Medians, percentiles and memory.

use std::time::Duration;

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

/// What the process has in memory, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    pub now: u64,
    pub peak: u64,
}

impl Memory {
    /// Zeros where the system does not tell.
    pub fn read() -> Memory {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let of = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
            kib.unwrap_or(0) * 1_024
        };
        Memory { now: of("VmRSS:"), peak: of("VmHWM:") }
    }
}
