//! Reports as tables.

use berth_sim::report::{
    Bill, DecisionReport, ForecastReport, GpuReport, PlaceReport, Report, TaskReport, TaskStatus,
    WhyReport,
};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use std::fmt::Write;

/// Rows of a table before the rest is only counted: nobody reads a thousand lines.
const MOST_ROWS: usize = 200;

pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    let line = LineStyle::none().fill('─');
    table.load_style(TableStyle::new().header_separator(line));
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header.iter().map(|title| (*title).to_owned()));
    table
}

pub fn report(report: &Report) -> String {
    let mut out = String::new();
    section(&mut out, "Decisions", decisions(&report.decisions), "Nothing to do.");
    section(&mut out, "Placement", placement(&report.tasks), "No job.");
    section(&mut out, "Waiting", waiting(report), "No jobs wait.");
    section(&mut out, "Cost", cost(report), "Nothing costs anything.");
    if let Some(why) = &report.why {
        let _ = writeln!(out, "\nWhy {}\n{}", why.job, why_text(why));
    }
    for aside in &report.set_aside {
        let job = aside.job.as_deref().unwrap_or("decisions for no job");
        let _ = writeln!(out, "\nPut aside: {job}: {}", aside.finding);
    }
    if report.unsettled {
        out.push_str("\nThe plans did not come to an end; please report this world.\n");
    }
    out
}

fn section(out: &mut String, title: &str, table: Option<Table>, empty: &str) {
    let gap = if out.is_empty() { "" } else { "\n" };
    let _ = match table {
        Some(table) => writeln!(out, "{gap}{title}\n{}", table.trim_fmt()),
        None => writeln!(out, "{gap}{title}\n{empty}"),
    };
}

fn rows(table: &mut Table, mut rows: Vec<Vec<String>>) {
    let left = rows.len().saturating_sub(MOST_ROWS);
    rows.truncate(MOST_ROWS);
    table.add_rows(rows);
    if left > 0 {
        table.add_row([format!("… and {left} more (-o json shows all)")]);
    }
}

/// `0-3, 5 (500/1000)`: indices with the part of each, where it is not the whole.
fn gpus(gpus: &[GpuReport]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut run: Option<(u32, u32)> = None;
    let close = |run: &mut Option<(u32, u32)>, parts: &mut Vec<String>| {
        if let Some((from, to)) = run.take() {
            parts.push(if from == to { from.to_string() } else { format!("{from}-{to}") });
        }
    };
    for gpu in gpus {
        if gpu.milli == 1_000 && gpu.mig.is_none() {
            match &mut run {
                Some((_, to)) if *to + 1 == gpu.index => *to = gpu.index,
                _ => {
                    close(&mut run, &mut parts);
                    run = Some((gpu.index, gpu.index));
                }
            }
            continue;
        }
        close(&mut run, &mut parts);
        parts.push(match (&gpu.mig, gpu.kind) {
            (Some(slot), _) => format!("{} ({} at {})", gpu.index, slot.profile, slot.start),
            (None, Some(kind)) => format!("{} ({kind} {}%)", gpu.index, percent(gpu.milli)),
            (None, None) => format!("{} ({}%)", gpu.index, percent(gpu.milli)),
        });
    }
    close(&mut run, &mut parts);
    parts.join(", ")
}

fn percent(milli: i64) -> String {
    match milli % 10 {
        0 => (milli / 10).to_string(),
        tenth => format!("{}.{tenth}", milli / 10),
    }
}

/// Decisions of one round about one job that differ only in the task are one row.
fn decisions(all: &[DecisionReport]) -> Option<Table> {
    if all.is_empty() {
        return None;
    }
    let mut table = table(&["round", "what", "job", "tasks", "details"]);
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut last: Option<(DecisionReport, Vec<u32>, Vec<GpuReport>)> = None;
    let mut flush = |last: &mut Option<(DecisionReport, Vec<u32>, Vec<GpuReport>)>| {
        if let Some((one, tasks, held)) = last.take() {
            lines.push(vec![
                one.round.to_string(),
                one.kind.to_owned(),
                one.job.clone().unwrap_or_default(),
                ranges(&tasks),
                details(&one, &held),
            ]);
        }
    };
    for decision in all {
        let alike = |other: &DecisionReport| {
            (other.round, other.kind, &other.job, &other.cause, &other.for_job, &other.node)
                == (
                    decision.round,
                    decision.kind,
                    &decision.job,
                    &decision.cause,
                    &decision.for_job,
                    &decision.node,
                )
        };
        match &mut last {
            Some((other, tasks, held)) if decision.task.is_some() && alike(other) => {
                tasks.extend(decision.task);
                held.extend(decision.gpus.iter().cloned());
            }
            _ => {
                flush(&mut last);
                let tasks = decision.task.into_iter().collect();
                last = Some((decision.clone(), tasks, decision.gpus.clone()));
            }
        }
    }
    flush(&mut last);
    rows(&mut table, lines);
    Some(table)
}

fn ranges(tasks: &[u32]) -> String {
    let whole: Vec<GpuReport> = tasks
        .iter()
        .map(|task| GpuReport { index: *task, milli: 1_000, kind: None, mig: None })
        .collect();
    gpus(&whole)
}

fn details(decision: &DecisionReport, held: &[GpuReport]) -> String {
    let mut parts = Vec::new();
    let mut part = |label: &str, value: Option<&str>| {
        if let Some(value) = value {
            parts.push(format!("{label}{value}"));
        }
    };
    part("", decision.cause);
    part("for ", decision.for_job.as_deref());
    part("within ", decision.grace.as_deref());
    part("on ", decision.node.as_deref());
    let slices = gpus(held);
    part("GPU ", Some(slices.as_str()).filter(|slices| !slices.is_empty()));
    part("", decision.resume.filter(|resume| *resume).map(|_| "from its checkpoint"));
    part("from ", decision.at.as_deref());
    let places = places(&decision.places);
    part("on ", Some(places.as_str()).filter(|places| !places.is_empty()));
    part("", decision.claim.as_deref());
    part("of pool ", decision.pool.as_deref());
    part("", decision.instance.as_deref());
    part("in ", decision.zone.as_deref());
    part("", decision.finding.as_deref());
    parts.join(", ")
}

/// The GPUs of each node in a row.
fn places(places: &[PlaceReport]) -> String {
    let mut nodes: Vec<(&str, Vec<GpuReport>)> = Vec::new();
    for place in places {
        match nodes.last_mut() {
            Some((node, held)) if *node == place.node => held.extend(place.gpus.iter().cloned()),
            _ => nodes.push((&place.node, place.gpus.clone())),
        }
    }
    let lines = nodes.iter().map(|(node, held)| match held.is_empty() {
        true => (*node).to_owned(),
        false => format!("{node} GPU {}", gpus(held)),
    });
    lines.collect::<Vec<_>>().join("; ")
}

/// Tasks of a group that stand alike on one node are one row.
fn placement(tasks: &[TaskReport]) -> Option<Table> {
    if tasks.is_empty() {
        return None;
    }
    let mut table = table(&["job", "group", "tasks", "state", "node", "GPU", "before"]);
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut from = 0;
    while from < tasks.len() {
        let first = &tasks[from];
        let alike = |task: &&TaskReport| {
            (
                &task.job,
                &task.group,
                task.now.state,
                &task.now.node,
                task.before.state,
                &task.before.node,
            ) == (
                &first.job,
                &first.group,
                first.now.state,
                &first.now.node,
                first.before.state,
                &first.before.node,
            )
        };
        let run = tasks[from..].iter().take_while(alike).count();
        let same = &tasks[from..from + run];
        let numbers: Vec<u32> = same.iter().map(|task| task.task).collect();
        let held: Vec<GpuReport> = same.iter().flat_map(|task| task.now.gpus.clone()).collect();
        lines.push(vec![
            first.job.clone(),
            first.group.clone(),
            ranges(&numbers),
            first.now.state.to_owned(),
            first.now.node.clone().unwrap_or_default(),
            gpus(&held),
            before(&first.now, &first.before),
        ]);
        from += run;
    }
    rows(&mut table, lines);
    Some(table)
}

fn before(now: &TaskStatus, before: &TaskStatus) -> String {
    if now.state == before.state && now.node == before.node {
        return String::new();
    }
    match &before.node {
        Some(node) => format!("{} on {node}", before.state),
        None => before.state.to_owned(),
    }
}

fn waiting(report: &Report) -> Option<Table> {
    if report.waiting.is_empty() {
        return None;
    }
    let mut table = table(&["job", "reason", "which means"]);
    let mut lines = Vec::new();
    for job in &report.waiting {
        for (index, reason) in job.reasons.iter().enumerate() {
            let name = if index == 0 { job.job.clone() } else { String::new() };
            lines.push(vec![name, reason.code.to_owned(), reason.text.clone()]);
        }
        if job.reasons.is_empty() {
            lines.push(vec![job.job.clone(), String::new(), String::new()]);
        }
    }
    rows(&mut table, lines);
    Some(table)
}

fn cost(report: &Report) -> Option<Table> {
    let spent = report.cost.spent.as_ref();
    let mut header = vec!["", "$ an hour"];
    header.extend(spent.map(|_| "$ spent"));
    let mut table = table(&header);
    for column in 1..header.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let hourly = &report.cost.per_hour;
    if hourly.total == 0.0 && spent.is_none() {
        return None;
    }
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut line = |what: String, of: &dyn Fn(&Bill) -> f64| {
        let mut row = vec![what, format!("{:.2}", of(hourly))];
        row.extend(spent.map(|bill| format!("{:.2}", of(bill))));
        lines.push(row);
    };
    let named = |pick: fn(&Bill) -> &std::collections::BTreeMap<String, f64>| {
        let mut names: Vec<String> = pick(hourly).keys().cloned().collect();
        names.extend(spent.into_iter().flat_map(|bill| pick(bill).keys().cloned()));
        names.sort();
        names.dedup();
        names
    };
    for queue in named(|bill| &bill.queues) {
        line(format!("queue {queue}"), &|bill| bill.queues.get(&queue).copied().unwrap_or(0.0));
    }
    for job in named(|bill| &bill.jobs) {
        line(format!("  job {job}"), &|bill| bill.jobs.get(&job).copied().unwrap_or(0.0));
    }
    line("idle".to_owned(), &|bill| bill.idle);
    line("all machines".to_owned(), &|bill| bill.total);
    rows(&mut table, lines);
    Some(table)
}

fn why_text(why: &WhyReport) -> String {
    let mut lines: Vec<String> = Vec::new();
    for reason in &why.reasons {
        lines.push(format!("{}: {}", reason.code, reason.text));
    }
    if let Some(position) = &why.position {
        lines.push(match position.ahead {
            0 => format!("It is the first of {} that wait in its queue.", position.waiting),
            ahead => {
                format!("{ahead} of the {} that wait in its queue go before it.", position.waiting)
            }
        });
    }
    if let Some(forecast) = &why.forecast {
        let ForecastReport { p50, p90, runs, started, horizon } = forecast;
        lines.push(match (p50, p90) {
            (Some(p50), Some(p90)) if p50 == p90 => format!("Forecast: it starts at {p50}."),
            (Some(p50), Some(p90)) => {
                format!("Forecast: it starts by {p50} (in half of {runs} runs), by {p90} (in nine of ten).")
            }
            (Some(p50), None) => format!("Forecast: it starts by {p50} in half of {runs} runs."),
            (None, _) if *started > 0 => {
                format!("Forecast: it starts in {started} of {runs} runs within {horizon}.")
            }
            (None, _) => format!("Forecast: it does not start within {horizon} as things are."),
        });
    }
    if !why.would_start.is_empty() {
        lines.push("What would start it:".to_owned());
        lines.extend(why.would_start.iter().map(|change| format!("  {}.", capital(&change.text))));
    }
    if lines.is_empty() {
        lines.push("It runs, or is not there any more.".to_owned());
    }
    lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
