//! `berth cost --over`, `--rows` and `--idle`, and the burn-down of budgets.

use crate::context::Context;
use crate::fail::Result;
use crate::show::{self, Cell, Look, Page, Table, words};
use berth_api::wire::{
    BudgetForecast, CostIdle, CostIdleQuery, CostLines, CostQuery, CostRowsQuery, CostSeries,
    CostSeriesQuery, CostStep,
};
use std::fmt::Write;

pub async fn csv<Q: serde::Serialize>(
    context: &Context,
    route: &'static str,
    query: &Q,
) -> Result<()> {
    show::print(&context.client()?.cost_csv(route, query).await?)
}

fn csv_format(csv: bool) -> Option<String> {
    csv.then(|| "csv".to_owned())
}

pub async fn series(
    context: &Context,
    of: CostQuery,
    step: CostStep,
    wants_csv: bool,
) -> Result<()> {
    let query = CostSeriesQuery {
        by: of.by,
        step,
        from: of.from,
        to: of.to,
        team: of.team,
        project: of.project,
        experiment: of.experiment,
        user: of.user,
        job: of.job,
        top: None,
        format: csv_format(wants_csv),
    };
    if wants_csv {
        return csv(context, "cost_series", &query).await;
    }
    let found = context.client()?.cost_series(&query).await?;
    context.show(&Page::new(found, series_text, |found| found.keys.clone()))
}

fn series_text(found: &CostSeries, look: &Look) -> String {
    let mut table = Table::new(&["FROM", "OF", ">COST"]);
    for point in &found.points {
        let mut first = Some(look.at(point.at));
        let amounts =
            found.keys.iter().filter_map(|key| Some((key.as_str(), point.amounts.get(key)?)));
        let rest = [("others", &point.others_micros), ("idle", &point.idle_micros)];
        for (key, amount) in amounts.chain(rest.into_iter().filter(|(_, amount)| **amount != 0)) {
            table.row(vec![first.take().into(), key.into(), words::money(*amount).into()]);
        }
    }
    let mut out = table.or(look, "No costs.");
    let _ = writeln!(out, "\ntotal {}", words::money(found.total_micros));
    out
}

pub async fn rows(context: &Context, of: CostQuery, limit: u32, wants_csv: bool) -> Result<()> {
    let query = CostRowsQuery {
        from: of.from,
        to: of.to,
        team: of.team,
        project: of.project,
        experiment: of.experiment,
        user: of.user,
        job: of.job,
        kind: None,
        node: None,
        limit: Some(limit),
        cursor: None,
        format: csv_format(wants_csv),
    };
    if wants_csv {
        return csv(context, "cost_rows", &query).await;
    }
    let found = context.client()?.cost_rows(&query).await?;
    context.show(&Page::new(found, rows_text, |_| Vec::new()).remarks(|found| {
        let more = found.next.as_ref().map(|_| "older rows are left out".to_owned());
        found.notes.iter().cloned().chain(more).collect()
    }))
}

fn rows_text(found: &CostLines, look: &Look) -> String {
    let titles = ["FROM", "TO", "KIND", "NODE", "JOB", "TEAM", "USER", ">GPUS", ">COST"];
    let mut table = Table::new(&titles);
    for line in &found.rows {
        table.row(vec![
            look.at_second(line.from).into(),
            look.at_second(line.to).into(),
            line.kind.as_str().into(),
            line.node.as_str().into(),
            line.job.map(|job| job.to_string()).into(),
            line.team.as_str().into(),
            line.user.as_str().into(),
            line.job.map(|_| words::gpus(line.gpus_milli, false)).into(),
            words::money(line.amount_micros).into(),
        ]);
    }
    table.or(look, "No rows.")
}

pub async fn idle(context: &Context, of: CostQuery, wants_csv: bool) -> Result<()> {
    let query =
        CostIdleQuery { from: of.from, to: of.to, team: of.team, format: csv_format(wants_csv) };
    if wants_csv {
        return csv(context, "cost_idle", &query).await;
    }
    let found = context.client()?.cost_idle(&query).await?;
    let names = |found: &CostIdle| found.causes.iter().map(|cause| cause.cause.clone()).collect();
    context.show(&Page::new(found, idle_text, names).remarks(|found| found.notes.clone()))
}

fn idle_text(found: &CostIdle, look: &Look) -> String {
    let mut table = Table::new(&["CAUSE", ">COST", ">GPU-HOURS", "WHAT IT IS"]);
    for cause in &found.causes {
        // The bill has the idle cost of a machine, but not the number of its idle GPUs.
        let known = cause.billed || cause.gpu_ms > 0 || cause.amount_micros == 0;
        let hours = if known { words::gpu_hours(cause.gpu_ms) } else { "-".to_owned() };
        table.row(vec![
            cause.cause.as_str().into(),
            words::money(cause.amount_micros).into(),
            hours.into(),
            cause.text.as_str().into(),
        ]);
    }
    let mut out = table.text(look);
    if !found.holders.is_empty() {
        let mut holders = Table::new(&["JOB", "NAME", "TEAM", ">IDLE COST", ">GPU-HOURS"]);
        for holder in &found.holders {
            holders.row(vec![
                holder.of.job.to_string().into(),
                holder.of.name.clone().into(),
                holder.of.team.clone().into(),
                words::money(holder.amount_micros).into(),
                words::gpu_hours(holder.gpu_ms).into(),
            ]);
        }
        let _ = write!(out, "\n{}", holders.text(look));
    }
    out
}

pub async fn forecast(context: &Context, queue: &str) -> Result<()> {
    let found = context.client()?.budget_forecast(queue).await?;
    context.show(&Page::new(found, forecast_text, |found| vec![found.queue.clone()]))
}

fn forecast_text(found: &BudgetForecast, look: &Look) -> String {
    let mut table = Table::new(&["AT", ">SPENT", ">P50", ">P90"]);
    for point in &found.points {
        let spent = words::money(point.spent_micros);
        table.row(vec![look.at(point.at).into(), spent.into(), Cell::from(""), Cell::from("")]);
    }
    for point in found.forecast.iter().skip(1) {
        table.row(vec![
            look.at(point.at).into(),
            Cell::from(""),
            words::money(point.p50_micros).into(),
            words::money(point.p90_micros).into(),
        ]);
    }
    let mut out = table.text(look);
    let limit = words::money(found.limit_micros);
    let _ = match found.runs_out_at {
        Some(at) => writeln!(out, "\nthe limit of {limit} is reached ~{}", look.at(at)),
        None => writeln!(out, "\nthe limit of {limit} is not reached until then"),
    };
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_api::wire::IdleCause;

    #[test]
    fn hours_of_what_no_job_held_are_unknown_and_not_zero() {
        let cause = |cause: &str, amount_micros, gpu_ms, billed| IdleCause {
            cause: cause.to_owned(),
            text: "a text".to_owned(),
            amount_micros,
            gpu_ms,
            billed,
        };
        let found = CostIdle {
            from: "2026-10-31T23:00:00Z".parse().unwrap(),
            to: "2026-11-15T14:00:00Z".parse().unwrap(),
            teams: Vec::new(),
            causes: vec![
                cause("unallocated", 2_000_000, 0, false),
                cause("fragmented", 0, 0, false),
                cause("starting", 4_000, 5_000, true),
            ],
            holders: Vec::new(),
            total_micros: 2_004_000,
            notes: Vec::new(),
        };
        let expect = "\
CAUSE          COST  GPU-HOURS  WHAT IT IS
unallocated   $2.00          -  a text
fragmented    $0.00          0  a text
starting     <$0.01     0.0014  a text
";
        assert_eq!(idle_text(&found, &Look::fixed()), expect);
    }
}
