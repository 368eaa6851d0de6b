//! The only SQL of Berth: the event log, what people look at, and who may look.
//!
//! One server writes, through a [`Writer`], one [`Batch`] at a time; anybody reads, through a
//! [`Store`]. SQLite and PostgreSQL serve alike, by the same statements.
//!
//! Deliberately absent: decisions and clocks. Times come with the rows, and what a role, a state
//! or a scope means is known elsewhere.

mod address;
mod audit_keys;
mod backup;
mod batch;
mod error;
mod files;
mod lock;
mod lost;
mod read;
mod rows;
mod schema;
mod store;
mod table;
mod value;
mod writer;

pub use address::{Backend, shown_url, sqlite_url};
pub use audit_keys::{AUDIT_KEY_LEN, AuditKeys};
pub use backup::{Attachment, Summary, attached, restore, signing_keys};
pub use batch::{Batch, Change, Document, Spent};
pub use error::{Error, Result, Retry};
pub use read::{
    AuditCheck, AuditFilter, AuditFollower, Broken, CostKey, CostQuery, CostRowQuery, CostSum,
    DueNotices, EnergySum, FigureKey, FigureQuery, HeldLease, JobCounts, JobFilter, JobKey,
    JobOrder, JobPage, JobPlace, KeyValue, LeaseFilter, Loading, NamedSum, NamesQuery,
    OrderedJobPage, RightsFinding, Verified,
};
pub use rows::{
    AuditEntry, AuditRow, BlobNameRow, BlobQuotaRow, BlobRow, CostRecord, DataVersionRow,
    EnergyRow, FigureRow, IdempotencyRow, IdentityRow, JobRow, LeaseRow, MemberRow, NoticeRow,
    ProjectRow, QueueFileRow, ScheduleRow, SecretRow, SessionRow, SettingRow, TeamRow, TemplateRow,
    TokenRow, UserRow,
};
pub use store::{AuditEnd, Options, Store};
pub use table::Row;
pub use writer::{Recovered, Retained, Writer};
