//! Leases in a time, whoever had them.

use super::jobs::any_of;
use crate::error::Result;
use crate::rows::LeaseRow;
use crate::store::Store;
use crate::value::{Binds, Field, Reader, Value};
use berth_model::{JobId, Time};
use sqlx::error::BoxDynError;

/// Which leases. What is left out does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseFilter {
    /// Those that were open at some moment in `[from, to)`.
    pub from: Time,
    pub to: Time,
    pub node: Option<String>,
    pub job: Option<JobId>,
    /// Any of these; all, if there are none.
    pub teams: Vec<String>,
}

/// A lease, and whose it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLease {
    pub lease: LeaseRow,
    pub name: String,
    pub user: String,
    pub team: String,
}

impl Store {
    /// Up to `limit` leases: those that are open, and then those that ended last.
    pub async fn leases_in(&self, filter: &LeaseFilter, limit: u32) -> Result<Vec<HeldLease>> {
        let open = self.held(filter, "closed IS NULL", "opened DESC", limit).await?;
        let left = limit.saturating_sub(u32::try_from(open.len()).unwrap_or(u32::MAX));
        let mut all = open;
        if left > 0 {
            let ended = format!("closed > {}", filter.from.0);
            all.extend(self.held(filter, &ended, "closed DESC", left).await?);
        }
        Ok(all)
    }

    async fn held(
        &self,
        filter: &LeaseFilter,
        which: &str,
        order: &str,
        limit: u32,
    ) -> Result<Vec<HeldLease>> {
        let mut binds = Binds::default();
        let mut terms = vec![which.to_owned()];
        terms.push(format!("opened < {}", binds.mark(Value::Int(Some(filter.to.0)))));
        if let Some(node) = &filter.node {
            terms.push(format!("node = {}", binds.mark(Value::Text(Some(node.clone())))));
        }
        if let Some(job) = filter.job {
            let mut values = Vec::new();
            job.write(&mut values);
            let mut values = values.into_iter();
            if let Some(number) = values.next() {
                terms.push(format!("job = {}", binds.mark(number)));
            }
            // A plain number stands for all elements of its array.
            if let (Some(_), Some(element)) = (job.element, values.next()) {
                terms.push(format!("leases.element = {}", binds.mark(element)));
            }
        }
        let teams: Vec<&str> = filter.teams.iter().map(String::as_str).collect();
        terms.extend(any_of("jobs.team", &teams, &mut binds));
        let sql = format!(
            "SELECT leases.job, leases.element, leases.task, leases.attempt, leases.node, \
             leases.slices, leases.price, leases.opened, leases.started, leases.closed, \
             leases.outcome, leases.exit, leases.cost, leases.stop_at, leases.stop, \
             jobs.name, jobs.\"user\", jobs.team \
             FROM leases JOIN jobs ON jobs.id = leases.job AND jobs.element = leases.element \
             WHERE {} ORDER BY {order} LIMIT {limit}",
            terms.join(" AND ")
        );
        let rows = self.rows("leases", sql, binds).await?;
        let read = |row| {
            let from = &mut Reader::new(row);
            let lease = <LeaseRow as crate::table::Row>::read(from)?;
            let (name, user) = (String::read(from)?, String::read(from)?);
            Ok(HeldLease { lease, name, user, team: String::read(from)? })
        };
        let rows: std::result::Result<Vec<_>, BoxDynError> = rows.iter().map(read).collect();
        rows.map_err(|why| self.unreadable("a lease", why))
    }
}
