//! What was spent over time, and the rows that sums are made of.

use super::cost::{self, range};
use super::csv;
use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::wire::{
    CostLine, CostLines, CostPoint, CostRowsQuery, CostSeries, CostSeriesQuery, CostStep,
};
use berth_api::{Code, wire};
use berth_engine::clock;
use berth_file::error::or_list;
use berth_model::{CostKind, Span, Time};
use berth_store::{self as store, CostRowQuery};
use std::collections::BTreeMap;

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
    };
    let sums = service.store.costs(&asked).await?;
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
    let before = query.cursor.as_deref().map(|text| {
        let bad = || Fault::new(Code::BadCursor, format!("`{text}` is no cursor"));
        text.parse::<u64>().map_err(|_| bad())
    });
    let before = before.transpose()?;
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
    };
    let asked = CostRowQuery { of, kind: query.kind, node: query.node, before };
    let mut found = service.store.cost_rows(&asked, limit + 1).await?;
    if found.len() > limit as usize {
        found.truncate(limit as usize);
        answer.next = found.last().map(|row| row.id.to_string());
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
