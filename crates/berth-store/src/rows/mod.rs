//! What is kept, as plain values.

mod audit;
mod blob;
mod cost;
mod energy;
mod figure;
mod identity;
mod job;
pub(crate) mod seals;
mod work;

pub use audit::{AuditEntry, AuditRow};
pub(crate) use audit::{GENESIS, chain};
pub use blob::{BlobNameRow, BlobQuotaRow, BlobRow, DataVersionRow};
pub use cost::CostRecord;
pub use energy::EnergyRow;
pub use figure::FigureRow;
pub use identity::{
    IdentityRow, MemberRow, ProjectRow, SecretRow, SessionRow, TeamRow, TokenRow, UserRow,
};
pub use job::{JobRow, LeaseRow};
pub use work::{IdempotencyRow, NoticeRow, QueueFileRow, ScheduleRow, SettingRow, TemplateRow};

use crate::table::{Row, Table};

pub(crate) const LOG: Table = Table {
    name: "log",
    columns: &[
        "one",
        "epoch",
        "holder",
        "commits",
        "last_seq",
        "cost_id",
        "audit_seq",
        "audit_hash",
    ],
    keys: 1,
    types: || {
        use crate::value::Type::{Int, Text};
        vec![Int, Int, Text, Int, Int, Int, Int, Text]
    },
};

pub(crate) const EVENTS: Table =
    Table { name: "events", columns: &["seq", "at", "body"], keys: 1, types: log_types };

pub(crate) const SNAPSHOTS: Table = Table {
    name: "snapshots",
    columns: &["seq", "at", "body", "parts"],
    keys: 1,
    types: || {
        use crate::value::Type::{Int, Text};
        vec![Int, Int, Text, Int]
    },
};

pub(crate) const SNAPSHOT_PARTS: Table =
    Table { name: "snapshot_parts", columns: &["seq", "part", "body"], keys: 2, types: log_types };

fn log_types() -> Vec<crate::value::Type> {
    use crate::value::Type::{Int, Text};
    vec![Int, Int, Text]
}

pub(crate) const COST_TOTALS: Table = Table {
    name: "cost_totals",
    columns: &[
        "day",
        "job",
        "element",
        "team",
        "project",
        "experiment",
        "user",
        "kind",
        "amount",
        "gpu_us",
    ],
    keys: 8,
    types: || {
        use crate::value::Type::{Int, Text};
        vec![Int, Int, Int, Text, Text, Text, Text, Text, Int, Int]
    },
};

/// Every table that holds something worth a backup. What others refer to comes first.
pub(crate) const TABLES: &[Table] = &[
    LOG,
    EVENTS,
    SNAPSHOTS,
    JobRow::TABLE,
    LeaseRow::TABLE,
    CostRecord::TABLE,
    COST_TOTALS,
    AuditRow::TABLE,
    IdempotencyRow::TABLE,
    NoticeRow::TABLE,
    UserRow::TABLE,
    TeamRow::TABLE,
    MemberRow::TABLE,
    ProjectRow::TABLE,
    TokenRow::TABLE,
    SecretRow::TABLE,
    TemplateRow::TABLE,
    ScheduleRow::TABLE,
    QueueFileRow::TABLE,
    SettingRow::TABLE,
    SNAPSHOT_PARTS,
    FigureRow::TABLE,
    EnergyRow::TABLE,
    SessionRow::TABLE,
    IdentityRow::TABLE,
    BlobRow::TABLE,
    BlobNameRow::TABLE,
    DataVersionRow::TABLE,
    BlobQuotaRow::TABLE,
];
