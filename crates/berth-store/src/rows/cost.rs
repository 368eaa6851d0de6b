//! What was spent.

use crate::table::table;
use crate::value::stored_word;
use berth_model::{CostKind, LeaseId, Micros, Milli, Name, Time};

stored_word!(CostKind);

table! {
    /// What part of one machine cost from one moment to another. Where no lease held that part,
    /// the row names no lease, and its team, project, experiment and user are empty.
    #[derive(Debug)]
    CostRecord in "costs", 1 of the columns are its key: u64;
    /// Counts up through the rows. The store numbers them and ignores what a caller sets here.
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
