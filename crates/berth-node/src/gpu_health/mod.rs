//! What is wrong with GPUs: errors as they happen, and what the driver says of a device that is ill.

mod nvidia;

pub use nvidia::NvidiaHealth;
pub(crate) use nvidia::ill;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest wait for an error, and so for the end of a watch.
const WAIT: Duration = Duration::from_secs(1);

/// NVIDIA's numbers (XIDs) of the errors for which the device is to blame, with what they mean. The
/// others, such as 13 and 31 (a bad memory access), are programs' own.
const HARDWARE: [(u64, &str); 11] = [
    (48, "an ECC error in memory that could not be corrected"),
    (62, "its microcontroller has halted"),
    (64, "a bad row of its memory could not be replaced"),
    (74, "an NVLink error"),
    (79, "it has fallen off the bus"),
    (94, "an ECC error that was contained"),
    (95, "an ECC error that was not contained"),
    (110, "a security fault"),
    (119, "its firmware does not answer"),
    (120, "an error in its firmware"),
    (140, "an ECC error that was not recovered"),
];

/// A GPU that is not there any more.
pub(crate) const LOST: u64 = 79;
/// Memory that could not be corrected, and rows that could not be replaced.
const UNCORRECTED: u64 = 48;
const NOT_REMAPPED: u64 = 64;

/// Something for which a GPU is to blame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuFault {
    pub index: u32,
    pub xid: u64,
}

impl GpuFault {
    /// A GPU that is not there any more.
    pub fn lost(index: u32) -> GpuFault {
        GpuFault { index, xid: LOST }
    }

    /// Nothing for an error that a program has made.
    pub(crate) fn of(index: u32, xid: u64) -> Option<GpuFault> {
        HARDWARE.iter().any(|(number, _)| *number == xid).then_some(GpuFault { index, xid })
    }

    /// `XID 79: it has fallen off the bus`.
    pub fn words(&self) -> String {
        let known = HARDWARE.iter().find(|(number, _)| *number == self.xid);
        let meaning = known.map_or("an error of the device", |(_, meaning)| meaning);
        format!("XID {}: {meaning}", self.xid)
    }
}

/// Tells what is wrong with GPUs.
pub trait GpuHealth: Send {
    /// Waits for at most so long, and tells what happened. A GPU that is ill may be told again and
    /// again.
    fn faults(&mut self, wait: Duration) -> Vec<GpuFault>;

    /// What is wrong with a GPU now, whatever happened before.
    fn now(&self, index: u32) -> Option<GpuFault>;
}

/// Watches until it is dropped.
#[derive(Debug)]
pub struct GpuWatch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl GpuWatch {
    /// Calls back for each fault, from a thread of its own.
    pub fn start(
        mut health: Box<dyn GpuHealth>,
        tell: impl Fn(GpuFault) + Send + 'static,
    ) -> GpuWatch {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                health.faults(WAIT).into_iter().for_each(&tell);
            }
        });
        GpuWatch { over, thread: Some(thread) }
    }
}

impl Drop for GpuWatch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_access_is_the_programs_own_and_a_fallen_gpu_is_not() {
        assert_eq!(GpuFault::of(0, 31), None);
        let fallen = GpuFault::of(3, 79).unwrap();
        assert_eq!(fallen.words(), "XID 79: it has fallen off the bus");
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU that is well"]
    fn a_real_gpu_that_is_well_has_no_faults() {
        let mut health = NvidiaHealth::load().expect("a GPU");
        assert_eq!((health.now(0), health.faults(Duration::from_millis(1_500))), (None, vec![]));
    }
}
