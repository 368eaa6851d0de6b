//! Jobs and leases.

use crate::error::Result;
use crate::rows::{JobRow, LeaseRow};
use crate::store::Store;
use crate::value::{Binds, Field, Key, Reader, Value};
use berth_model::{JobId, Time};
use berth_model::{JobKind, JobState};
use std::collections::BTreeMap;

/// Which jobs to read. What is left out does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFilter {
    /// Any of these; all, if there are none.
    pub states: Vec<JobState>,
    pub kind: Option<JobKind>,
    pub user: Option<String>,
    /// Any of these; all, if there are none.
    pub teams: Vec<String>,
    pub project: Option<String>,
    pub experiment: Option<String>,
    pub name: Option<String>,
    /// All elements of this array, or the one job.
    pub number: Option<u64>,
    /// Part of a name, whatever its case.
    pub text: Option<String>,
    /// Submitted then or later.
    pub since: Option<Time>,
    /// Submitted before.
    pub until: Option<Time>,
}

/// Jobs that are read together where many are asked for.
const PAGE: u32 = 2_000;

/// How many jobs are in each state; those that no job is in are left out.
pub type JobCounts = BTreeMap<JobState, u64>;

impl Store {
    /// Up to `limit` jobs from the one after `after` on: the newest first, elements of an array
    /// in their order. Goes through as many pages as it takes.
    pub async fn jobs(
        &self,
        filter: &JobFilter,
        mut after: Option<JobId>,
        limit: u32,
    ) -> Result<Vec<JobRow>> {
        let mut found: Vec<JobRow> = Vec::new();
        loop {
            let left = limit.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
            if left == 0 {
                return Ok(found);
            }
            let page = self.job_page(filter, after, left.min(PAGE)).await?;
            found.extend(page.jobs);
            after = page.next;
            if after.is_none() {
                return Ok(found);
            }
        }
    }

    /// How many jobs there are in each state. All of them are counted one by one.
    pub async fn count_jobs(&self, filter: &JobFilter) -> Result<JobCounts> {
        let mut binds = Binds::default();
        let condition = condition(&filter.terms(&mut binds));
        let sql = format!("SELECT state, COUNT(*) FROM jobs {condition} GROUP BY state");
        let rows = self.rows("jobs", sql, binds).await?;
        let counts = rows.iter().map(|row| {
            let from = &mut Reader::new(row);
            Ok((JobState::read(from)?, u64::read(from)?))
        });
        let counts: std::result::Result<JobCounts, sqlx::error::BoxDynError> = counts.collect();
        counts.map_err(|why| self.unreadable("a count of jobs", why))
    }

    pub async fn job(&self, id: JobId) -> Result<Option<JobRow>> {
        self.get(id).await
    }

    /// The newest job with a name.
    pub async fn job_named(&self, name: &str) -> Result<Option<JobRow>> {
        let filter = JobFilter { name: Some(name.to_owned()), ..JobFilter::default() };
        Ok(self.jobs(&filter, None, 1).await?.pop())
    }

    /// The leases of a job, or of all elements of an array.
    pub async fn leases_of(&self, job: JobId) -> Result<Vec<LeaseRow>> {
        let mut binds = Binds::default();
        let mut values = job.values().0.into_iter();
        let number = values.next().expect("a job's key begins with its number");
        let mut condition = format!("WHERE job = {}", binds.mark(number));
        if let (Some(_), Some(element)) = (job.element, values.next()) {
            condition.push_str(&format!(" AND element = {}", binds.mark(element)));
        }
        let order = "ORDER BY job, element, task, attempt";
        self.select(&format!("{condition} {order}"), binds).await
    }

    /// The leases that have not been closed.
    pub async fn open_leases(&self) -> Result<Vec<LeaseRow>> {
        let rest = "WHERE closed IS NULL ORDER BY job, element, task, attempt";
        self.select(rest, Binds::default()).await
    }
}

impl JobFilter {
    pub(super) fn terms(&self, binds: &mut Binds) -> Vec<String> {
        let mut terms = self.terms_but_states(binds);
        let states: Vec<&str> = self.states.iter().map(|state| state.as_str()).collect();
        terms.extend(any_of("state", &states, binds));
        terms
    }

    pub(super) fn terms_but_states(&self, binds: &mut Binds) -> Vec<String> {
        let mut terms = Vec::new();
        let texts = [
            ("kind", self.kind.map(JobKind::as_str)),
            ("\"user\"", self.user.as_deref()),
            ("project", self.project.as_deref()),
            ("experiment", self.experiment.as_deref()),
            ("name", self.name.as_deref()),
        ];
        for (column, text) in texts {
            if let Some(text) = text {
                terms.push(format!("{column} = {}", mark_text(binds, text)));
            }
        }
        let teams: Vec<&str> = self.teams.iter().map(String::as_str).collect();
        terms.extend(any_of("team", &teams, binds));
        if let Some(number) = self.number {
            let number = JobId::new(number).values().0.swap_remove(0);
            terms.push(format!("id = {}", binds.mark(number)));
        }
        if let Some(text) = &self.text {
            let pattern = mark_text(binds, &contains(text));
            terms.push(format!("LOWER(name) LIKE {pattern} ESCAPE '\\'"));
        }
        for (comparison, time) in [(">=", self.since), ("<", self.until)] {
            if let Some(Time(time)) = time {
                let mark = binds.mark(Value::Int(Some(time)));
                terms.push(format!("submitted {comparison} {mark}"));
            }
        }
        terms
    }
}

/// Nothing where any will do.
pub(super) fn any_of(column: &str, words: &[&str], binds: &mut Binds) -> Option<String> {
    let marks: Vec<String> = words.iter().map(|word| mark_text(binds, word)).collect();
    (!marks.is_empty()).then(|| format!("{column} IN ({})", marks.join(", ")))
}

pub(super) fn mark_text(binds: &mut Binds, text: &str) -> String {
    binds.mark(Value::Text(Some(text.to_owned())))
}

/// Only ASCII letters lose their case: SQLite knows no others, and both shall find the same.
fn contains(text: &str) -> String {
    let mut pattern = String::from("%");
    for letter in text.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter.to_ascii_lowercase());
    }
    pattern.push('%');
    pattern
}

pub(super) fn condition(terms: &[String]) -> String {
    if terms.is_empty() { String::new() } else { format!("WHERE {}", terms.join(" AND ")) }
}
