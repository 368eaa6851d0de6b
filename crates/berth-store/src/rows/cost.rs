//! What was spent.

use crate::table::table;
use crate::value::words;
use berth_model::{LeaseId, Micros, Milli, Name, Time};

words! {
    /// What an amount was spent on, as the ledger tells it.
    CostKind {
        Used = "used",
        Held = "held",
        Unallocated = "unallocated",
        Fragmented = "fragmented",
        Shared = "shared",
    }
}

table! {
    /// What part of one machine cost from one moment to another. What nobody holds names no
    /// lease, and nobody: its team, project, experiment and user are empty.
    #[derive(Debug)]
    CostRow in "costs", 1 of the columns are its key: u64;
    /// Counts up through the rows. The store numbers them, whatever is said here.
    id: u64 = "id",
    lease: Option<LeaseId> = "job" "element" "task" "attempt",
    team: Name = "team",
    project: Name = "project",
    experiment: Name = "experiment",
    user: Name = "user",
    node: Name = "node",
    kind: CostKind = "kind",
    from: Time = "from",
    to: Time = "to",
    /// GPUs held all that time.
    gpus: Milli = "gpus",
    amount: Micros = "amount",
}
