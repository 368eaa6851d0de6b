//! What money was spent on.

use crate::UnknownWord;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What an amount was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostKind {
    /// A lease whose task runs.
    Used,
    /// A lease that was offered and whose task does not run yet: paid for, not used.
    Held,
    /// Idle: nobody holds it.
    Unallocated,
    /// Idle, and of no use to the requests there are.
    Fragmented,
    /// What belongs to nobody: the rounding of shares, about a millionth of a dollar a lease, of
    /// either sign. It is more only where leases are priced above their node, and then negative.
    /// Kept apart so that idle is never negative.
    Shared,
}

impl CostKind {
    pub const ALL: [CostKind; 5] = [
        CostKind::Used,
        CostKind::Held,
        CostKind::Unallocated,
        CostKind::Fragmented,
        CostKind::Shared,
    ];

    /// Whether somebody pays for it: the row then names a lease and a job.
    pub const fn is_attributed(self) -> bool {
        matches!(self, CostKind::Used | CostKind::Held)
    }

    pub const fn is_idle(self) -> bool {
        matches!(self, CostKind::Unallocated | CostKind::Fragmented)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            CostKind::Used => "used",
            CostKind::Held => "held",
            CostKind::Unallocated => "unallocated",
            CostKind::Fragmented => "fragmented",
            CostKind::Shared => "shared",
        }
    }
}

impl FromStr for CostKind {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<CostKind, UnknownWord> {
        let known = CostKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        known.ok_or_else(|| UnknownWord(word.to_owned()))
    }
}
