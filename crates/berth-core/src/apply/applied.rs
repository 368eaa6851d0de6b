//! What an event brought about.

use berth_ledger::{Alert, CostRow, Loss};
use berth_model::{JobId, Outcome, Time};

/// What an event brought about besides the change of state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "cost rows are written nowhere else"]
pub struct Applied {
    pub rows: Vec<CostRow>,
    pub alerts: Vec<Alert>,
    pub losses: Vec<Loss>,
    /// Reservations that had to move, with the time they were for and the one they are for now.
    pub moved: Vec<(JobId, Time, Time)>,
    /// Jobs that ended with this event.
    pub ended: Vec<(JobId, Outcome)>,
}
