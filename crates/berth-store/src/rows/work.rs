//! Templates, schedules and the rest that a server keeps by name.

use crate::table::table;
use berth_model::{JobId, Time};

table! {
    #[derive(Debug)]
    TemplateRow in "templates", 2 of the columns are its key: (&'k str, &'k str);
    team: String = "team",
    name: String = "name",
    file: String = "file",
    by: String = "by",
    created: Time = "created",
}

table! {
    /// A job file that is submitted again and again.
    #[derive(Debug)]
    ScheduleRow in "schedules", 1 of the columns are its key: &'k str;
    id: String = "id",
    name: String = "name",
    user: String = "user",
    team: String = "team",
    cron: String = "cron",
    file: String = "file",
    next_at: Option<Time> = "next_at",
    last_job: Option<JobId> = "last_job" "last_element",
    paused: bool = "paused",
    /// Why the server paused it; empty where a user did, or where it is not paused.
    reason: String = "reason",
}

table! {
    /// Teams, queues, policies or budgets as a user applied them, to show drift against.
    #[derive(Debug)]
    QueueFileRow in "queue_files", 1 of the columns are its key: &'k str;
    name: String = "name",
    body: String = "body",
    applied: Time = "applied",
    by: String = "by",
}

table! {
    #[derive(Debug)]
    SettingRow in "settings", 1 of the columns are its key: &'k str;
    name: String = "name",
    value: String = "value",
}

table! {
    /// What was answered to a request that may be sent again.
    #[derive(Debug)]
    IdempotencyRow in "idempotency", 2 of the columns are its key: (&'k str, &'k str);
    user: String = "user",
    key: String = "key",
    at: Time = "at",
    /// Tells another request with the same key from the same request.
    fingerprint: String = "fingerprint",
    status: u32 = "status",
    body: String = "body",
}

table! {
    /// A message that has to be delivered outside Berth.
    #[derive(Debug)]
    NoticeRow in "notices", 1 of the columns are its key: &'k str;
    /// Chosen by the sender: the same id is the same notice.
    id: String = "id",
    at: Time = "at",
    target: String = "target",
    body: String = "body",
    attempts: u32 = "attempts",
    /// When to try (again).
    next_at: Time = "next_at",
    /// When it was delivered, or given up.
    sent: Option<Time> = "sent",
}
