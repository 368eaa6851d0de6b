//! Amounts and times that are accepted.

use berth_model::{Span, Time};

/// Amounts up to here can be added, multiplied by counts and compared without running over; nothing
/// real is larger.
const MAX_AMOUNT: i64 = 1 << 53;

/// A hundred years.
pub(crate) const MAX_SPAN: Span = Span::days(36_500);

pub(crate) fn too_large(amount: i64) -> bool {
    amount > MAX_AMOUNT
}

/// Whether a moment is one that anybody means.
pub(crate) fn is_plausible_time(at: Time) -> bool {
    (0..MAX_AMOUNT).contains(&at.0)
}
