//! Amounts and times that are accepted.

use berth_model::{Span, Time};

/// Amounts up to here can be added, multiplied by counts and compared without running over; nothing
/// real is larger.
const LARGEST: i64 = 1 << 53;

/// A hundred years.
pub(crate) const LONGEST: Span = Span::days(36_500);

pub(crate) fn too_large(amount: i64) -> bool {
    amount > LARGEST
}

/// Whether a moment is one that anybody means.
pub(crate) fn sensible(at: Time) -> bool {
    (0..LARGEST).contains(&at.0)
}
