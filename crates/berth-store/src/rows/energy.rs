//! Energy of leases.

use crate::table::table;
use berth_model::{LeaseId, Time};

table! {
    /// What a lease used from one moment to another. What is in `counters` is known to whoever
    /// wrote it.
    #[derive(Debug)]
    EnergyRow in "energy", 5 of the columns are its key: (LeaseId, Time);
    lease: LeaseId = "job" "element" "task" "attempt",
    start: Time = "start",
    end: Time = "end",
    energy_mj: i64 = "energy_mj",
    counters: String = "counters",
}
