//! Jobs and leases as people look at them.

use crate::table::table;
use crate::value::{Field, Reader, Type, Value, stored_word};
use berth_model::{JobId, JobKind, JobState, LeaseId, LeaseOutcome, Micros, Milli, Time};
use sqlx::error::BoxDynError;

stored_word!(JobKind);
stored_word!(JobState);

table! {
    /// A job, or one element of an array.
    #[derive(Debug)]
    JobRow in "jobs", 2 of the columns are its key: JobId;
    id: JobId = "id" "element",
    name: String = "name",
    kind: JobKind = "kind",
    user: String = "user",
    team: String = "team",
    project: String = "project",
    experiment: String = "experiment",
    state: JobState = "state",
    priority: i32 = "priority",
    submitted: Time = "submitted",
    started: Option<Time> = "started",
    ended: Option<Time> = "ended",
    attempt: u32 = "attempt",
    gpus: Milli = "gpus",
    cost: Micros = "cost",
    /// The job file as it was submitted.
    file: String = "file",
    /// JSON: command, environment without secrets, launch, ports, exit, labels.
    detail: String = "detail",
    reason: String = "reason",
}

table! {
    /// One holding of GPUs by a task.
    #[derive(Debug)]
    LeaseRow in "leases", 4 of the columns are its key: LeaseId;
    id: LeaseId = "job" "element" "task" "attempt",
    node: String = "node",
    /// JSON.
    slices: String = "slices",
    /// Per hour.
    price: Micros = "price",
    opened: Time = "opened",
    started: Option<Time> = "started",
    closed: Option<Time> = "closed",
    outcome: Option<LeaseOutcome> = "outcome",
    /// JSON.
    exit: Option<String> = "exit",
    cost: Micros = "cost",
    /// When it was told to end.
    stop_at: Option<Time> = "stop_at",
    /// Why, and for whom. JSON.
    stop: Option<String> = "stop",
}

impl Field for LeaseOutcome {
    const TYPES: &'static [Type] = &[Type::Text];
    fn write(&self, out: &mut Vec<Value>) {
        let word = match self {
            LeaseOutcome::Done => "done",
            LeaseOutcome::Failed => "failed",
            LeaseOutcome::Stopped => "stopped",
            LeaseOutcome::Lost => "lost",
        };
        out.push(Value::Text(Some(word.to_owned())));
    }
    fn read(from: &mut Reader<'_>) -> Result<LeaseOutcome, BoxDynError> {
        match String::read(from)?.as_str() {
            "done" => Ok(LeaseOutcome::Done),
            "failed" => Ok(LeaseOutcome::Failed),
            "stopped" => Ok(LeaseOutcome::Stopped),
            "lost" => Ok(LeaseOutcome::Lost),
            other => Err(format!("`{other}` is no outcome of a lease").into()),
        }
    }
}
