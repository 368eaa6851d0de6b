//! Sums of what was spent. They are exact: integers, whether from single rows or from the totals
//! that old rows have become.

use crate::error::Result;
use crate::rows::CostRecord;
use crate::store::Store;
use crate::value::{Binds, Field, NO_ELEMENT, Reader, Value};
use berth_model::{JobId, LeaseId, Micros, Span, Time};
use sqlx::error::BoxDynError;

/// What to group by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CostKey {
    Team,
    Project,
    Experiment,
    User,
    Job,
    Kind,
    /// In UTC.
    Day,
    /// In UTC. What has become part of a day's total counts at its first hour.
    Hour,
}

/// What to add up. A range has of each row the part that lies in it, so that ranges that follow one
/// another sum to the whole. No row passes a full hour. Of a day whose rows have become a total, a
/// range has all or nothing: the total counts at the start of its day.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CostQuery {
    pub by: Vec<CostKey>,
    pub since: Option<Time>,
    pub until: Option<Time>,
    /// Any of these; all, if there are none.
    pub teams: Vec<String>,
    pub project: Option<String>,
    pub experiment: Option<String>,
    pub user: Option<String>,
    pub job: Option<JobId>,
    /// The last single row that counts. Later ones have been cut meanwhile.
    pub upto: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostSum {
    /// One for each key asked for, in that order: names, job ids such as `17_3`, dates such as
    /// `2026-11-15`. Empty for machines that no lease held.
    pub keys: Vec<String>,
    pub amount: Micros,
    /// Millionths of a GPU-second: thousandths of a GPU × milliseconds.
    pub gpu_us: i64,
}

impl Store {
    /// Sums by group, in the order of their keys.
    pub async fn costs(&self, query: &CostQuery) -> Result<Vec<CostSum>> {
        let mut binds = Binds::default();
        let sql = query.sql(&mut binds);
        let rows = self.rows("costs", sql, binds).await?;
        let mut sums = Vec::with_capacity(rows.len());
        for row in &rows {
            let sum = query.read(&mut Reader::new(row));
            sums.extend(sum.map_err(|why| self.unreadable("a sum of costs", why))?);
        }
        Ok(sums)
    }

    /// The single rows of a lease that have not become part of a total, in their order.
    pub async fn costs_of(&self, lease: LeaseId) -> Result<Vec<CostRecord>> {
        let mut binds = Binds::default();
        let mut values = Vec::new();
        lease.write(&mut values);
        binds.push_all(values);
        let rest = "WHERE job = $1 AND element = $2 AND task = $3 AND attempt = $4 ORDER BY id";
        self.select(rest, binds).await
    }
}

impl CostKey {
    pub(super) const fn columns(self) -> &'static [&'static str] {
        match self {
            CostKey::Team => &["team"],
            CostKey::Project => &["project"],
            CostKey::Experiment => &["experiment"],
            CostKey::User => &["\"user\""],
            CostKey::Job => &["job", "element"],
            CostKey::Kind => &["kind"],
            CostKey::Day => &["day"],
            CostKey::Hour => &["hour"],
        }
    }

    pub(super) fn read(self, from: &mut Reader<'_>) -> std::result::Result<String, BoxDynError> {
        match self {
            CostKey::Team
            | CostKey::Project
            | CostKey::Experiment
            | CostKey::User
            | CostKey::Kind => String::read(from),
            CostKey::Job => read_job(from),
            CostKey::Day => {
                let start = Time(i64::read(from)? * Span::days(1).0).to_string();
                Ok(start.split('T').next().unwrap_or_default().to_owned())
            }
            CostKey::Hour => Ok(Time(i64::read(from)? * Span::hours(1).0).to_string()),
        }
    }
}

fn read_job(from: &mut Reader<'_>) -> std::result::Result<String, BoxDynError> {
    let (number, element) = (i64::read(from)?, i64::read(from)?);
    Ok(match (number, element) {
        (-1, _) => String::new(),
        (number, NO_ELEMENT) => number.to_string(),
        (number, element) => format!("{number}_{element}"),
    })
}

impl CostQuery {
    /// The shape of `cost_totals`, from both.
    fn sql(&self, binds: &mut Binds) -> String {
        let (day, hour) = (Span::days(1).0, Span::hours(1).0);
        let (rows, totals) = self.ranges(binds);
        let (amount, gpu_us) = self.parts();
        let terms = self.terms(binds);
        let columns: Vec<&str> = self.by.iter().flat_map(|key| key.columns()).copied().collect();
        let keys = columns.join(", ");
        let (select, group) = if columns.is_empty() {
            (String::new(), String::new())
        } else {
            (format!("{keys}, "), format!("GROUP BY {keys} ORDER BY {keys}"))
        };
        format!(
            "SELECT {select}CAST(SUM(amount) AS BIGINT), CAST(SUM(gpu_us) AS BIGINT) FROM (\
             SELECT \"from\" / {day} AS day, \"from\" / {hour} AS hour, COALESCE(job, -1) AS job, \
             COALESCE(element, -1) AS element, team, project, experiment, \"user\", kind, \
             {amount} AS amount, {gpu_us} AS gpu_us FROM costs {rows} UNION ALL \
             SELECT day, day * 24 AS hour, job, element, team, project, experiment, \"user\", kind, \
             amount, gpu_us FROM cost_totals {totals}) AS spent {terms} {group}"
        )
    }

    fn ranges(&self, binds: &mut Binds) -> (String, String) {
        let mut totals = Vec::new();
        for (comparison, time) in [(">=", self.since), ("<", self.until)] {
            if let Some(Time(time)) = time {
                let mark = binds.mark(Value::Int(Some(time)));
                totals.push(format!("day * {} {comparison} {mark}", Span::days(1).0));
            }
        }
        (condition(&self.overlaps(binds)), condition(&totals))
    }

    /// Single rows of which any part lies in the range.
    pub(super) fn overlaps(&self, binds: &mut Binds) -> Vec<String> {
        let mut terms = Vec::new();
        if let Some(Time(since)) = self.since {
            // No row is longer than an hour, and there is an index on where rows begin.
            let begins = binds.mark(Value::Int(Some(since.saturating_sub(Span::hours(1).0))));
            let since = binds.mark(Value::Int(Some(since)));
            terms.push(format!("\"from\" > {begins} AND \"to\" > {since}"));
        }
        if let Some(Time(until)) = self.until {
            terms.push(format!("\"from\" < {}", binds.mark(Value::Int(Some(until)))));
        }
        if let Some(upto) = self.upto {
            let upto = i64::try_from(upto).unwrap_or(i64::MAX);
            terms.push(format!("id <= {}", binds.mark(Value::Int(Some(upto)))));
        }
        terms
    }

    /// The amount and the time of GPUs of the part of a single row that lies in the range.
    fn parts(&self) -> (String, String) {
        let mut from = "\"from\"".to_owned();
        let mut to = "\"to\"".to_owned();
        let mut whole = Vec::new();
        if let Some(Time(since)) = self.since {
            from = format!("(CASE WHEN \"from\" < {since} THEN {since} ELSE \"from\" END)");
            whole.push(format!("\"from\" >= {since}"));
        }
        if let Some(Time(until)) = self.until {
            to = format!("(CASE WHEN \"to\" > {until} THEN {until} ELSE \"to\" END)");
            whole.push(format!("\"to\" <= {until}"));
        }
        let gpu_us = format!("gpus * ({to} - {from})");
        if whole.is_empty() {
            return ("amount".to_owned(), gpu_us);
        }
        let amount = format!(
            "CASE WHEN {} THEN amount ELSE {} - {} END",
            whole.join(" AND "),
            share(&to),
            share(&from)
        );
        (amount, gpu_us)
    }

    pub(super) fn terms(&self, binds: &mut Binds) -> String {
        let mut terms = Vec::new();
        let texts = [
            ("project", &self.project),
            ("experiment", &self.experiment),
            ("\"user\"", &self.user),
        ];
        for (column, text) in texts {
            if text.is_some() {
                terms.push(format!("{column} = {}", binds.mark(Value::Text(text.clone()))));
            }
        }
        if !self.teams.is_empty() {
            let teams = self.teams.iter().map(|team| binds.mark(Value::Text(Some(team.clone()))));
            let marks: Vec<String> = teams.collect();
            terms.push(format!("team IN ({})", marks.join(", ")));
        }
        if let Some(job) = self.job {
            let mut values = Vec::new();
            job.write(&mut values);
            let marks: Vec<String> = values.into_iter().map(|value| binds.mark(value)).collect();
            // A plain number stands for all elements of its array.
            terms.push(format!("job = {}", marks[0]));
            if job.element.is_some() {
                terms.push(format!("element = {}", marks[1]));
            }
        }
        condition(&terms)
    }

    /// None for the sum over no rows, which has no value.
    fn read(&self, from: &mut Reader<'_>) -> std::result::Result<Option<CostSum>, BoxDynError> {
        let keys = self.by.iter().map(|key| key.read(from));
        let keys = keys.collect::<std::result::Result<_, _>>()?;
        let (amount, gpu_us) = (from.int()?, from.int()?);
        Ok(amount.zip(gpu_us).map(|(amount, gpu_us)| CostSum {
            keys,
            amount: Micros(amount),
            gpu_us,
        }))
    }
}

/// What a row has cost up to that moment. The quotient comes first, so that no product passes 64
/// bits.
fn share(at: &str) -> String {
    let length = "(\"to\" - \"from\")";
    let passed = format!("({at} - \"from\")");
    format!("(amount / {length} * {passed} + amount % {length} * {passed} / {length})")
}

pub(super) fn condition(terms: &[String]) -> String {
    if terms.is_empty() { String::new() } else { format!("WHERE {}", terms.join(" AND ")) }
}
