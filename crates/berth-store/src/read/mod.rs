//! Reading. Nothing here waits for the writer.

mod audit;
mod blobs;
mod cost_more;
mod cost_rows;
mod costs;
mod documents;
mod energy;
mod figures;
mod job_order;
mod job_page;
mod jobs;
mod leases;
mod log;

pub use audit::{AuditCheck, AuditFilter, AuditFollower, Broken, RightsFinding, Verified};
pub use blobs::{NamedSum, NamesQuery};
pub use cost_rows::CostRowQuery;
pub use costs::{CostKey, CostQuery, CostSum};
pub use documents::DueNotices;
pub use energy::EnergySum;
pub use figures::{FigureKey, FigureQuery};
pub use job_order::{JobKey, JobOrder, JobPlace, KeyValue, OrderedJobPage};
pub use job_page::JobPage;
pub use jobs::{JobCounts, JobFilter};
pub use leases::{HeldLease, LeaseFilter};
pub use log::Loading;

use crate::error::Result;
use crate::store::Store;
use crate::table::{self, Row};
use crate::value::{Binds, Key, Value};
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, query_with};

/// Rows read at a time.
const PAGE: u32 = 1_000;

impl Store {
    /// The row with a key. A key that could not be kept belongs to none.
    pub async fn get<R: Row>(&self, key: R::Key<'_>) -> Result<Option<R>> {
        let key = key.values().0;
        if R::TABLE.keepable(&key).is_err() {
            return Ok(None);
        }
        let mut binds = Binds::default();
        let matches = R::TABLE.matches(key, &mut binds);
        Ok(self.select::<R>(&format!("WHERE {matches}"), binds).await?.pop())
    }

    /// Up to `limit` rows in the order of their keys, from the one after `after` on.
    pub async fn page<R: Row>(&self, after: Option<R::Key<'_>>, limit: u32) -> Result<Vec<R>> {
        self.page_after(after.map(|key| key.values().0), limit).await
    }

    /// All rows in the order of their keys, for tables that fit into memory.
    pub async fn every<R: Row>(&self) -> Result<Vec<R>> {
        let mut all: Vec<R> = Vec::new();
        loop {
            let page = self.page_after(all.last().map(Row::key), PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    async fn page_after<R: Row>(&self, after: Option<Vec<Value>>, limit: u32) -> Result<Vec<R>> {
        let mut binds = Binds::default();
        let keys = R::TABLE.key_list();
        let from = after.map_or(String::new(), |key| {
            let marks: Vec<String> = key.into_iter().map(|value| binds.mark(value)).collect();
            format!("WHERE ({keys}) > ({})", marks.join(", "))
        });
        self.select(&format!("{from} ORDER BY {keys} LIMIT {limit}"), binds).await
    }

    /// All rows with a value in one column, in the order of their keys.
    pub(crate) async fn rows_where<R: Row>(&self, column: &str, value: Value) -> Result<Vec<R>> {
        let mut binds = Binds::default();
        let mark = binds.mark(value);
        let order = R::TABLE.key_list();
        self.select(&format!("WHERE \"{column}\" = {mark} ORDER BY {order}"), binds).await
    }

    /// Whole rows of a table, by what follows its name.
    pub(crate) async fn select<R: Row>(&self, rest: &str, binds: Binds) -> Result<Vec<R>> {
        self.select_from(&format!("{} {rest}", R::TABLE.name), binds).await
    }

    /// Whole rows, by what follows `FROM`.
    pub(crate) async fn select_from<R: Row>(&self, from: &str, binds: Binds) -> Result<Vec<R>> {
        let table = R::TABLE;
        let sql = format!("SELECT {} FROM {from}", table.column_list());
        let rows = self.rows(table.name, sql, binds).await?;
        let read = rows.iter().map(table::read);
        read.collect::<std::result::Result<_, _>>()
            .map_err(|why| self.unreadable(format!("a row of {}", table.name), why))
    }

    pub(crate) async fn rows(
        &self,
        what: &'static str,
        sql: String,
        binds: Binds,
    ) -> Result<Vec<AnyRow>> {
        query_with(AssertSqlSafe(sql), binds.into_arguments())
            .fetch_all(self.readers())
            .await
            .map_err(|source| self.error(reading(what), source))
    }
}

/// Errors name what was to be read; tables have few readers and need no more words than this.
fn reading(what: &'static str) -> &'static str {
    match what {
        "jobs" => "read jobs",
        "leases" => "read leases",
        "costs" => "read costs",
        "events" | "snapshots" => "read its log",
        "audit" => "read the audit log",
        "figures" => "read figures",
        _ => "read",
    }
}
