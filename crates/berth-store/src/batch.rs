//! What is written together.

use crate::error::Result;
use crate::rows::{AuditEntry, CostRow, IdempotencyRow, JobRow, LeaseRow, NoticeRow};
use crate::table::{Row, Table};
use crate::value::{Key, Value};
use berth_model::Stamped;
use std::fmt;

/// All of it is written, or none. Rows of jobs, leases and notices replace those with the same
/// key; of several with one key the last counts.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// They go on exactly where the log ends.
    pub events: Vec<Stamped>,
    pub jobs: Vec<JobRow>,
    pub leases: Vec<LeaseRow>,
    pub costs: Vec<CostRow>,
    pub audit: Vec<AuditEntry>,
    pub idempotency: Vec<IdempotencyRow>,
    pub notices: Vec<NoticeRow>,
    /// Added by [`Batch::put`] and [`Batch::delete`], made in their order.
    pub changes: Vec<Change>,
}

impl Batch {
    /// Adds a row of any kind, or replaces the one with its key.
    pub fn put<R: Document>(&mut self, row: &R) {
        self.changes.push(Change { table: R::TABLE, what: What::Put(row.values()) });
    }

    /// Deletes a row, if there is one. What depends on it goes too: a user's tokens and
    /// memberships, a team's members, projects and secrets.
    pub fn delete<R: Document>(&mut self, key: R::Key<'_>) {
        self.changes.push(Change { table: R::TABLE, what: What::Delete(key.values().0) });
    }

    /// Whether all of it can be kept. A batch that cannot would be refused as a whole, so whoever
    /// puts several wishes into one asks for each of them first.
    pub fn check(&self) -> Result<()> {
        let Batch { jobs, leases, costs, idempotency, notices, audit: _, events: _, changes } =
            self;
        keepable(jobs)?;
        keepable(leases)?;
        keepable(costs)?;
        keepable(idempotency)?;
        keepable(notices)?;
        changes.iter().try_for_each(Change::check)
    }

    pub fn is_empty(&self) -> bool {
        let Batch { events, jobs, leases, costs, audit, idempotency, notices, changes } = self;
        events.is_empty()
            && jobs.is_empty()
            && leases.is_empty()
            && costs.is_empty()
            && audit.is_empty()
            && idempotency.is_empty()
            && notices.is_empty()
            && changes.is_empty()
    }
}

fn keepable<R: Row>(rows: &[R]) -> Result<()> {
    rows.iter().try_for_each(|row| R::TABLE.keepable(&row.values()))
}

/// Rows that are kept by name and changed one at a time.
pub trait Document: Row {}

macro_rules! documents {
    ($($row:ident),* $(,)?) => {
        $( impl Document for crate::rows::$row {} )*
    };
}

documents!(
    UserRow,
    TeamRow,
    MemberRow,
    ProjectRow,
    TokenRow,
    SecretRow,
    TemplateRow,
    ScheduleRow,
    QueueFileRow,
    SettingRow,
);

/// A row of some [`Document`] to put or to delete.
#[derive(Clone)]
pub struct Change {
    pub(crate) table: Table,
    pub(crate) what: What,
}

impl Change {
    pub(crate) fn check(&self) -> Result<()> {
        let (What::Put(row) | What::Delete(row)) = &self.what;
        self.table.keepable(row)
    }
}

#[derive(Clone)]
pub(crate) enum What {
    Put(Vec<Value>),
    Delete(Vec<Value>),
}

/// Without the values: secrets and hashes are among them.
impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.what {
            What::Put(_) => "put into",
            What::Delete(_) => "delete from",
        };
        write!(f, "{verb} {}", self.table.name)
    }
}
