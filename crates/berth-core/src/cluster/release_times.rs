//! When the GPUs of one node come free at the earliest.

use berth_model::Time;

/// Release times that are stored for a node. Of a larger node only the GPUs that come free first
/// count, as if the others never did.
const STORED_TIMES: usize = 8;

/// When each usable GPU of a node is free of what runs and is promised there, in order. An overrun,
/// an operator's reservation or a lack of CPU may make it later, nothing makes it earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GpuReleaseTimes {
    pub(super) is_known: bool,
    /// The node is in the cluster's list of dirty nodes.
    pub(super) is_dirty: bool,
    gpus: u8,
    times: [Time; STORED_TIMES],
}

impl Default for GpuReleaseTimes {
    fn default() -> GpuReleaseTimes {
        GpuReleaseTimes {
            is_known: false,
            is_dirty: false,
            gpus: 0,
            times: [Time(0); STORED_TIMES],
        }
    }
}

impl GpuReleaseTimes {
    /// Takes over the times of a node, earliest first.
    pub(super) fn set(&mut self, times: &[Time]) {
        let stored = times.len().min(STORED_TIMES);
        *self = GpuReleaseTimes {
            is_known: true,
            is_dirty: self.is_dirty,
            gpus: stored as u8,
            times: [Time(0); STORED_TIMES],
        };
        self.times[..stored].copy_from_slice(&times[..stored]);
    }

    /// Whether so many GPUs are surely not together before that time.
    pub fn later_than(&self, gpus: u32, at: Option<Time>) -> bool {
        let gpus = gpus as usize;
        if gpus > STORED_TIMES || gpus == 0 {
            return false;
        }
        if gpus > usize::from(self.gpus) {
            return true;
        }
        at.is_some_and(|at| self.times[gpus - 1] >= at)
    }
}
