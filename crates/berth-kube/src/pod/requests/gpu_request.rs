//! What a pod asks of GPUs.

use super::{Bytes, Milli, Name};

/// What a pod asks of GPUs, before a node says how it shares them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum GpuRequest {
    #[default]
    None,
    Whole {
        vendor: GpuVendor,
        count: u32,
    },
    Mig {
        profile: Name,
        count: u32,
    },
    /// Replicas of a GPU that its node hands out: time slices or MPS shares, as its labels say.
    Shared {
        count: u32,
    },
    Fraction {
        milli: Milli,
        count: u32,
    },
    /// A share as large as this much of a GPU's memory, and no smaller than `least`.
    Memory {
        bytes: Bytes,
        least: Milli,
        count: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GpuVendor {
    Nvidia,
    Amd,
}
