//! A page of jobs in the order of their name, priority, GPUs or cost.
//!
//! An index has the keys in that order, and beside them the state, the team and the user, so that
//! jobs of others are passed over without a look at their rows. What no index has is compared in so
//! many rows at the most; such a page may hold fewer jobs than were asked for, and still have a next
//! one. Jobs with the same key come in the order of their numbers, both in the same direction.

use super::jobs::{JobFilter, any_of, condition, mark_text};
use crate::error::Result;
use crate::rows::JobRow;
use crate::store::Store;
use crate::value::{Binds, Field, Key, Reader, Value};
use berth_model::JobId;

/// Rows that are looked at for one page where the index does not have all that is asked for.
const LOOKED_AT: u32 = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobKey {
    Name,
    Priority,
    Gpus,
    Cost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobOrder {
    pub key: JobKey,
    pub descending: bool,
}

/// What a job has under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyValue {
    Int(i64),
    Text(String),
}

/// Where a job is in an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPlace {
    pub value: KeyValue,
    pub id: JobId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedJobPage {
    pub jobs: Vec<JobRow>,
    /// What to ask for the jobs after; none where all have been looked at.
    pub next: Option<JobPlace>,
}

impl JobKey {
    const fn column(self) -> &'static str {
        match self {
            JobKey::Name => "name",
            JobKey::Priority => "priority",
            JobKey::Gpus => "gpus",
            JobKey::Cost => "cost",
        }
    }

    /// The place of a job.
    pub fn place(self, row: &JobRow) -> JobPlace {
        let value = match self {
            JobKey::Name => KeyValue::Text(row.name.clone()),
            JobKey::Priority => KeyValue::Int(i64::from(row.priority)),
            JobKey::Gpus => KeyValue::Int(row.gpus.0),
            JobKey::Cost => KeyValue::Int(row.cost.0),
        };
        JobPlace { value, id: row.id }
    }
}

impl Store {
    /// Up to `limit` jobs after that place. What changes its key between two pages may be on both of
    /// them, or on none.
    pub async fn ordered_job_page(
        &self,
        filter: &JobFilter,
        order: JobOrder,
        after: Option<&JobPlace>,
        limit: u32,
    ) -> Result<OrderedJobPage> {
        let read = Read { filter, order, after, limit };
        let mut binds = Binds::default();
        let from = read.page(&mut binds);
        let mut jobs: Vec<JobRow> = self.select_from(&from, binds).await?;
        let next = if jobs.len() > limit as usize {
            jobs.truncate(limit as usize);
            jobs.last().map(|row| order.key.place(row))
        } else if read.is_covered() {
            None
        } else {
            self.last_looked_at(&read).await?
        };
        Ok(OrderedJobPage { jobs, next })
    }

    /// The last place that was looked at, if there may be more after it.
    async fn last_looked_at(&self, read: &Read<'_>) -> Result<Option<JobPlace>> {
        let mut binds = Binds::default();
        let column = read.order.key.column();
        let (which, order) = (read.which(&mut binds), read.direction());
        let before = LOOKED_AT - 1;
        let sql = format!(
            "SELECT {column}, id, element FROM jobs {which} ORDER BY {order} LIMIT 1 \
             OFFSET {before}"
        );
        let rows = self.rows("jobs", sql, binds).await?;
        let place = rows.first().map(|row| {
            let from = &mut Reader::new(row);
            let value = match read.order.key {
                JobKey::Name => KeyValue::Text(String::read(from)?),
                JobKey::Priority | JobKey::Gpus | JobKey::Cost => KeyValue::Int(i64::read(from)?),
            };
            Ok::<_, sqlx::error::BoxDynError>(JobPlace { value, id: JobId::read(from)? })
        });
        place.transpose().map_err(|why| self.unreadable("a place of a job", why))
    }
}

struct Read<'a> {
    filter: &'a JobFilter,
    order: JobOrder,
    after: Option<&'a JobPlace>,
    limit: u32,
}

impl Read<'_> {
    /// What follows `SELECT … FROM`.
    fn page(&self, binds: &mut Binds) -> String {
        let (column, order) = (self.order.key.column(), self.direction());
        let which = self.which(binds);
        let rest = condition(&self.rest().terms_but_states(binds));
        // One more than is wanted tells whether there are more.
        let limit = self.limit.saturating_add(1);
        let keys = if self.is_covered() { limit } else { LOOKED_AT };
        let way = if self.order.descending { " DESC" } else { "" };
        format!(
            "(SELECT {column} AS at_key, id AS at_id, element AS at_element FROM jobs {which} \
             ORDER BY {order} LIMIT {keys}) AS keys \
             JOIN jobs ON jobs.id = at_id AND jobs.element = at_element \
             {rest} ORDER BY at_key{way}, at_id{way}, at_element{way} LIMIT {limit}"
        )
    }

    fn direction(&self) -> String {
        let way = if self.order.descending { " DESC" } else { "" };
        format!("{}{way}, id{way}, element{way}", self.order.key.column())
    }

    /// Whether the index has all that is asked for.
    fn is_covered(&self) -> bool {
        self.rest() == JobFilter::default()
    }

    /// The entries that are asked for.
    fn which(&self, binds: &mut Binds) -> String {
        let mut terms: Vec<String> = self.after(binds).into_iter().collect();
        terms.extend(self.covered(binds));
        condition(&terms)
    }

    fn after(&self, binds: &mut Binds) -> Option<String> {
        let JobPlace { value, id } = self.after?;
        let value = match value {
            KeyValue::Int(number) => Value::Int(Some(*number)),
            KeyValue::Text(text) => Value::Text(Some(text.clone())),
        };
        let mut marks = vec![binds.mark(value)];
        marks.extend(id.values().0.into_iter().map(|value| binds.mark(value)));
        let comparison = if self.order.descending { "<" } else { ">" };
        let column = self.order.key.column();
        Some(format!("({column}, id, element) {comparison} ({})", marks.join(", ")))
    }

    /// What the index has. As plain columns they would lead to an index of their own, and all that
    /// it finds would be sorted.
    fn covered(&self, binds: &mut Binds) -> Vec<String> {
        let mut terms = Vec::new();
        if let Some(user) = &self.filter.user {
            terms.push(format!("COALESCE(\"user\", '') = {}", mark_text(binds, user)));
        }
        let teams: Vec<&str> = self.filter.teams.iter().map(String::as_str).collect();
        terms.extend(any_of("COALESCE(team, '')", &teams, binds));
        let states: Vec<&str> = self.filter.states.iter().map(|state| state.as_str()).collect();
        terms.extend(any_of("COALESCE(state, '')", &states, binds));
        terms
    }

    /// What it does not have.
    fn rest(&self) -> JobFilter {
        let (states, teams) = (Vec::new(), Vec::new());
        JobFilter { states, teams, user: None, ..self.filter.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, sqlite_url};
    use berth_model::JobState;
    use sqlx::{AssertSqlSafe, Row as _, query_with};

    #[tokio::test]
    async fn every_order_is_read_from_its_index_and_nothing_is_sorted() {
        let folder = tempfile::tempdir().unwrap();
        let url = sqlite_url(&folder.path().join("orders.db"));
        let store = Store::open(&url, Options::default()).await.unwrap();
        let filter = JobFilter {
            states: vec![JobState::Pending, JobState::Running],
            teams: vec!["nlp".into(), "vision".into()],
            user: Some("kim".into()),
            ..JobFilter::default()
        };
        for (key, value, index) in [
            (JobKey::Name, KeyValue::Text("a".into()), "jobs_by_name_order"),
            (JobKey::Priority, KeyValue::Int(5), "jobs_by_priority"),
            (JobKey::Gpus, KeyValue::Int(5), "jobs_by_gpus"),
            (JobKey::Cost, KeyValue::Int(5), "jobs_by_cost"),
        ] {
            let place = JobPlace { value, id: JobId::new(7) };
            for (descending, after) in
                [(false, None), (true, None), (false, Some(&place)), (true, Some(&place))]
            {
                let order = JobOrder { key, descending };
                let mut binds = Binds::default();
                let read = Read { filter: &filter, order, after, limit: 50 };
                let which = read.which(&mut binds);
                let sql = format!(
                    "EXPLAIN QUERY PLAN SELECT {}, id, element FROM jobs {which} ORDER BY {} LIMIT 50",
                    key.column(),
                    read.direction()
                );
                let rows = query_with(AssertSqlSafe(sql), binds.into_arguments());
                let rows = rows.fetch_all(store.readers()).await.unwrap();
                let plan: Vec<String> =
                    rows.iter().map(|row| row.try_get("detail").unwrap()).collect();
                assert_eq!(plan.len(), 1, "{plan:#?}");
                assert!(plan[0].contains(&format!("USING COVERING INDEX {index}")), "{plan:#?}");
            }
        }
    }
}
