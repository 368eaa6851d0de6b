//! What was spent over time, and the rows that sums are made of.

use super::cost::{self, range};
use super::{csv, spent};
use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::wire::{
    CostLine, CostLines, CostPoint, CostRowsQuery, CostSeries, CostSeriesQuery, CostStep,
};
use berth_api::{Code, wire};
use berth_engine::{Unbilled, clock};
use berth_file::error::or_list;
use berth_model::{CostKind, Span, Time};
use berth_store::{self as store, CostRecord, CostRowQuery};
use std::collections::BTreeMap;
use std::fmt;

const TOP: u32 = 12;
const MOST_TOP: u32 = 50;
/// Steps of one answer.
const MOST_POINTS: i64 = 3_000;
const LIMIT: u32 = 100;
const MOST_ROWS: u32 = 1_000;

pub async fn series(
    service: &Service,
    caller: &Caller,
    query: CostSeriesQuery,
) -> Result<CostSeries, Fault> {
    let by = match cost::keys(query.by.as_deref().unwrap_or("team"))?.as_slice() {
        [one] => *one,
        _ => {
            let fault = Fault::new(Code::BadRequest, "by: one key is needed");
            return Err(fault.next("`GET /v1/cost` adds up by several"));
        }
    };
    let (from, to) = range(query.from, query.to, clock::now())?;
    let length = match query.step {
        CostStep::Hour => Span::hours(1),
        CostStep::Day => Span::days(1),
    };
    if (to - from).0 / length.0 > MOST_POINTS {
        let detail = format!("that is more than {MOST_POINTS} steps");
        return Err(Fault::new(Code::BadRequest, detail).next("take longer steps, or less time"));
    }
    let mut answer = CostSeries {
        by,
        step: query.step,
        from: from.into(),
        to: to.into(),
        keys: Vec::new(),
        points: Vec::new(),
        total_micros: 0,
    };
    let Some(teams) = cost::teams(caller, query.team.as_deref()) else { return Ok(answer) };
    let asked = store::CostQuery {
        by: vec![
            match query.step {
                CostStep::Hour => store::CostKey::Hour,
                CostStep::Day => store::CostKey::Day,
            },
            store::CostKey::Kind,
            cost::stored_key(by),
        ],
        since: Some(from),
        until: Some(to),
        teams,
        project: query.project,
        experiment: query.experiment,
        user: query.user,
        job: query.job.as_deref().map(cost::job).transpose()?,
        upto: None,
    };
    let sums = spent::sums(service, &asked).await?;
    let mut totals: BTreeMap<&str, i64> = BTreeMap::new();
    for sum in sums.iter().filter(|sum| cost::is_of_lease(&sum.keys[1])) {
        *totals.entry(&sum.keys[2]).or_default() += sum.amount.0;
    }
    answer.total_micros = totals.values().sum();
    let mut keys: Vec<(&str, i64)> = totals.into_iter().collect();
    keys.sort_by_key(|(key, amount)| (-amount, *key));
    keys.truncate(query.top.unwrap_or(TOP).clamp(1, MOST_TOP) as usize);
    answer.keys = keys.iter().map(|(key, _)| (*key).to_owned()).collect();
    let mut points: BTreeMap<Time, CostPoint> = BTreeMap::new();
    for sum in &sums {
        let Some(at) = moment(&sum.keys[0]) else { continue };
        let point = points.entry(at).or_insert_with(|| CostPoint {
            at: at.into(),
            amounts: BTreeMap::new(),
            others_micros: 0,
            idle_micros: 0,
        });
        let (kind, key) = (&sum.keys[1], &sum.keys[2]);
        if !cost::is_of_lease(kind) {
            point.idle_micros += sum.amount.0;
        } else if answer.keys.contains(key) {
            *point.amounts.entry(key.clone()).or_default() += sum.amount.0;
        } else {
            point.others_micros += sum.amount.0;
        }
    }
    answer.points = points.into_values().collect();
    Ok(answer)
}

/// A date, or a moment.
fn moment(text: &str) -> Option<Time> {
    match text.contains('T') {
        true => text.parse().ok(),
        false => format!("{text}T00:00:00Z").parse().ok(),
    }
}

pub fn series_csv(series: &CostSeries) -> String {
    let mut head = vec!["at".to_owned()];
    head.extend(series.keys.iter().cloned());
    head.extend(["others".to_owned(), "idle".to_owned()]);
    let rows = series.points.iter().map(|point| {
        let amount = |key: &String| csv::dollars(point.amounts.get(key).copied().unwrap_or(0));
        let mut row = vec![point.at.to_string()];
        row.extend(series.keys.iter().map(amount));
        row.extend([csv::dollars(point.others_micros), csv::dollars(point.idle_micros)]);
        row
    });
    csv::table(&head, rows)
}

/// Where a page of single rows begins.
enum FromRow {
    /// After so many of those that are not written yet.
    Open(usize),
    /// With the newest before that one.
    Before(u64),
}

impl Default for FromRow {
    fn default() -> FromRow {
        FromRow::Open(0)
    }
}

impl FromRow {
    fn of(text: &str) -> Result<FromRow, Fault> {
        let found = match text.strip_prefix("open:") {
            Some(from) => from.parse().ok().map(FromRow::Open),
            None => text.parse().ok().map(FromRow::Before),
        };
        found.ok_or_else(|| Fault::new(Code::BadCursor, format!("`{text}` is not a cursor")))
    }
}

impl fmt::Display for FromRow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FromRow::Open(from) => write!(out, "open:{from}"),
            FromRow::Before(row) => write!(out, "{row}"),
        }
    }
}

/// The single rows, the newest first.
pub async fn rows(
    service: &Service,
    caller: &Caller,
    query: CostRowsQuery,
) -> Result<CostLines, Fault> {
    let (from, to) = range(query.from, query.to, clock::now())?;
    if let Some(kind) = &query.kind
        && !CostKind::ALL.iter().any(|known| known.as_str() == kind)
    {
        let fault = Fault::new(Code::BadRequest, format!("kind: there is no `{kind}`"));
        return Err(fault.next(format!("use {}", or_list(CostKind::ALL.map(CostKind::as_str)))));
    }
    let from_row = query.cursor.as_deref().map(FromRow::of).transpose()?.unwrap_or_default();
    let limit = query.limit.unwrap_or(LIMIT).clamp(1, MOST_ROWS);
    let mut answer = CostLines { rows: Vec::new(), next: None, notes: Vec::new() };
    let Some(teams) = cost::teams(caller, query.team.as_deref()) else { return Ok(answer) };
    let of = store::CostQuery {
        by: Vec::new(),
        since: Some(from),
        until: Some(to),
        teams,
        project: query.project,
        experiment: query.experiment,
        user: query.user,
        job: query.job.as_deref().map(cost::job).transpose()?,
        upto: None,
    };
    let mut asked = CostRowQuery { of, kind: query.kind, node: query.node, before: None };
    let mut found = Vec::new();
    if let FromRow::Open(from) = from_row {
        // What runs now comes first, each row up to now.
        let Unbilled { upto, rows } = spent::unbilled(service);
        asked.of.upto = Some(upto);
        let mut open: Vec<CostRecord> = rows.into_iter().filter(|row| asked.has(row)).collect();
        open.sort_by_key(|row| (std::cmp::Reverse(row.from), row.lease, row.node.clone()));
        found.extend(open.into_iter().skip(from).take(limit as usize + 1));
        if found.len() > limit as usize {
            found.truncate(limit as usize);
            answer.next = Some(FromRow::Open(from + limit as usize).to_string());
        }
    } else if let FromRow::Before(before) = from_row {
        asked.before = Some(before);
    }
    if answer.next.is_none() {
        let left = limit - found.len() as u32;
        let written = service.store.cost_rows(&asked, left + 1).await?;
        let more = written.len() > left as usize;
        found.extend(written.into_iter().take(left as usize));
        // Where no row of the store fitted, the next page begins with its newest.
        let last = found.last().map(|row| row.id).filter(|id| *id > 0);
        let next = FromRow::Before(last.unwrap_or(asked.of.upto.unwrap_or(u64::MAX - 1) + 1));
        answer.next = more.then(|| next.to_string());
    }
    answer.rows = found
        .into_iter()
        .map(|row| CostLine {
            from: row.from.into(),
            to: row.to.into(),
            kind: row.kind.as_str().to_owned(),
            node: row.node.to_string(),
            job: row.lease.map(|lease| lease.job.into()),
            task: row.lease.map(|lease| lease.task),
            attempt: row.lease.map(|lease| lease.attempt),
            team: row.team.to_string(),
            project: row.project.to_string(),
            experiment: row.experiment.to_string(),
            user: row.user.to_string(),
            gpus_milli: row.gpus.0,
            amount_micros: row.amount.0,
        })
        .collect();
    if answer.next.is_none() {
        let old = "what is older than the server keeps single rows is in the sums alone";
        answer.notes.push(old.to_owned());
    }
    Ok(answer)
}

pub fn rows_csv(lines: &CostLines) -> String {
    let head = [
        "from",
        "to",
        "kind",
        "node",
        "job",
        "task",
        "attempt",
        "team",
        "project",
        "experiment",
        "user",
        "gpus",
        "amount",
    ];
    let number = |number: Option<u32>| number.map_or_else(String::new, |number| number.to_string());
    let rows = lines.rows.iter().map(|line| {
        vec![
            line.from.to_string(),
            line.to.to_string(),
            line.kind.clone(),
            line.node.clone(),
            line.job.map_or_else(String::new, |job: wire::Id| job.to_string()),
            number(line.task),
            number(line.attempt),
            line.team.clone(),
            line.project.clone(),
            line.experiment.clone(),
            line.user.clone(),
            csv::thousandths(line.gpus_milli),
            csv::dollars(line.amount_micros),
        ]
    });
    csv::table(&head.map(str::to_owned), rows)
}
