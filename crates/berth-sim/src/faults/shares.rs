//! How much of a GPU a share is.

use berth_model::{Name, Share};

/// Thousandths of a GPU.
pub(super) fn milli(share: &Share) -> i64 {
    match share {
        Share::Whole => 1_000,
        Share::Fraction(part) | Share::Mps(part) | Share::TimeSlice(part) => part.0,
        Share::Mig(slot) => mig_milli(&slot.profile),
    }
}

/// Compute slices and gigabytes of `3g.20gb`.
pub(super) fn mig_profile(name: &Name) -> Option<(i64, i64)> {
    let (compute, memory) = name.split_once("g.")?;
    Some((compute.parse().ok()?, memory.strip_suffix("gb")?.parse().ok()?))
}

/// Compute slices of an instance, in thousandths of its GPU.
fn mig_milli(name: &Name) -> i64 {
    mig_profile(name).map_or(0, |(compute, _)| compute * 1_000 / 7)
}
