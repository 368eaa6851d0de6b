//! What is written together.

use crate::error::Result;
use crate::rows::seals::{self, Seal};
use crate::rows::{AuditEntry, CostRecord, IdempotencyRow, JobRow, LeaseRow, NoticeRow};
use crate::rows::{IdentityRow, MemberRow, SessionRow, TeamRow, TokenRow, UserRow};
use crate::table::{Row, Table};
use crate::value::{Key, Value};
use berth_model::{JobId, LeaseId, Micros, Stamped};
use std::collections::BTreeSet;
use std::fmt;

/// All of it is written, or none. Rows of jobs, leases and notices replace those with the same
/// key; of several with one key the last counts.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// They go on exactly where the log ends.
    pub events: Vec<Stamped>,
    pub jobs: Vec<JobRow>,
    pub leases: Vec<LeaseRow>,
    pub costs: Vec<CostRecord>,
    pub spent: Spent,
    pub audit: Vec<AuditEntry>,
    pub idempotency: Vec<IdempotencyRow>,
    pub notices: Vec<NoticeRow>,
    /// Added by [`Batch::put`] and [`Batch::delete`], made in their order.
    pub changes: Vec<Change>,
}

/// What jobs and leases have cost by now, where nothing else about them has changed. They are all
/// billed at once and their rows are long, so this alone is written.
#[derive(Debug, Clone, Default)]
pub struct Spent {
    pub jobs: Vec<(JobId, Micros)>,
    pub leases: Vec<(LeaseId, Micros)>,
}

impl Spent {
    fn len(&self) -> usize {
        self.jobs.len() + self.leases.len()
    }
}

impl Batch {
    /// Adds a row of any kind, or replaces the one with its key.
    pub fn put<R: Document>(&mut self, row: &R) {
        let what = RowChange::Put(row.values());
        self.changes.push(Change { table: R::TABLE, what, seals: true });
    }

    /// Replaces a row in which nothing changes that gives anybody rights. The audit log does not
    /// vouch for the row, as it does for one that is put: a row that was changed behind the
    /// server's back must not become sound by being used.
    pub fn touch<R: Document>(&mut self, row: &R) {
        let what = RowChange::Put(row.values());
        self.changes.push(Change { table: R::TABLE, what, seals: false });
    }

    /// What the audit log says about the rows that give rights and change.
    pub(crate) fn seals(&self) -> Vec<Seal> {
        let seal = |change: &Change| match &change.what {
            RowChange::Put(row) if change.seals => seals::of_row(change.table.name, row),
            RowChange::Put(_) => None,
            RowChange::Delete(key) => seals::of_deleted(change.table.name, key),
        };
        self.changes.iter().filter_map(seal).collect()
    }

    /// Deletes a row, if there is one. What depends on it goes too: a user's tokens,
    /// sessions and memberships, a team's members, projects and secrets.
    pub fn delete<R: Document>(&mut self, key: R::Key<'_>) {
        let what = RowChange::Delete(key.values().0);
        self.changes.push(Change { table: R::TABLE, what, seals: true });
    }

    /// Adds what has come about later, so that both are written together.
    pub fn append(&mut self, later: Batch) {
        let Batch { events, jobs, leases, costs, spent, audit, idempotency, notices, changes } =
            later;
        // What was spent is written after the rows, each once: what comes later says it, too.
        let newer: BTreeSet<JobId> =
            jobs.iter().map(|row| row.id).chain(spent.jobs.iter().map(|(id, _)| *id)).collect();
        let newer_leases = leases.iter().map(|row| row.id);
        let newer_leases: BTreeSet<LeaseId> =
            newer_leases.chain(spent.leases.iter().map(|(id, _)| *id)).collect();
        self.spent.jobs.retain(|(id, _)| !newer.contains(id));
        self.spent.leases.retain(|(id, _)| !newer_leases.contains(id));
        self.events.extend(events);
        self.jobs.extend(jobs);
        self.leases.extend(leases);
        self.costs.extend(costs);
        self.spent.jobs.extend(spent.jobs);
        self.spent.leases.extend(spent.leases);
        self.audit.extend(audit);
        self.idempotency.extend(idempotency);
        self.notices.extend(notices);
        self.changes.extend(changes);
    }

    /// Whether all of it can be kept. A batch that cannot would be refused as a whole, so whoever
    /// puts several wishes into one asks for each of them first.
    pub fn check(&self) -> Result<()> {
        keepable(&self.jobs)?;
        keepable(&self.leases)?;
        keepable(&self.costs)?;
        keepable(&self.idempotency)?;
        keepable(&self.notices)?;
        self.changes.iter().try_for_each(Change::check)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it changes a row by which people have rights: a user, a team, a membership, a token,
    /// a session or an identity. To touch one changes no right.
    pub fn changes_rights(&self) -> bool {
        let tables = [
            UserRow::TABLE.name,
            TeamRow::TABLE.name,
            MemberRow::TABLE.name,
            TokenRow::TABLE.name,
            SessionRow::TABLE.name,
            IdentityRow::TABLE.name,
        ];
        self.changes.iter().any(|change| change.seals && tables.contains(&change.table.name))
    }

    /// How many rows it writes.
    pub(crate) fn len(&self) -> usize {
        let Batch { events, jobs, leases, costs, spent, audit, idempotency, notices, changes } =
            self;
        let logged = events.len() + audit.len() + idempotency.len() + notices.len();
        jobs.len() + leases.len() + costs.len() + spent.len() + logged + changes.len()
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
    FigureRow,
    EnergyRow,
    SessionRow,
    IdentityRow,
    BlobRow,
    BlobNameRow,
    DataVersionRow,
    BlobQuotaRow,
);

/// A row of some [`Document`] to put or to delete.
#[derive(Clone)]
pub struct Change {
    pub(crate) table: Table,
    pub(crate) what: RowChange,
    /// Whether the audit log says what the row is from now on.
    pub(crate) seals: bool,
}

impl Change {
    pub(crate) fn check(&self) -> Result<()> {
        let (RowChange::Put(row) | RowChange::Delete(row)) = &self.what;
        self.table.keepable(row)
    }
}

#[derive(Clone)]
pub(crate) enum RowChange {
    Put(Vec<Value>),
    Delete(Vec<Value>),
}

/// Without the values: secrets and hashes are among them.
impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.what {
            RowChange::Put(_) => "put into",
            RowChange::Delete(_) => "delete from",
        };
        write!(f, "{verb} {}", self.table.name)
    }
}
