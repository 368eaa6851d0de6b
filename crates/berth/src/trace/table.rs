//! The comparison on a terminal.

use super::{Row, Variant};
use crate::tables;
use berth_sim::metrics::Parts;
use berth_sim::outcome::SizeClass;
use berth_sim::workload::Workload;
use comfy_table::CellAlignment;
use std::fmt::Write as _;

/// Queues that a table has room for.
const QUEUES: usize = 8;

pub fn text(about: &[String], workload: &Workload, variants: &[Variant], rows: &[Row]) -> String {
    let mut out = about.join("\n") + "\n";
    let mut add = |table: String| {
        let _ = writeln!(out, "\n{table}");
    };
    add(waits(rows));
    add(by_size(rows));
    if workload.teams.len() > 1 {
        add(by_queue(workload, rows));
    }
    add(use_of_gpus(rows));
    add(costs(rows));
    if variants.iter().any(|variant| !variant.quotas.is_empty()) {
        add(fairness(rows));
    }
    if rows.iter().any(|row| row.calibration.is_some()) {
        add(forecasts(rows));
    }
    for row in rows.iter().filter(|row| row.picture.report.unfinished > 0) {
        let (name, jobs) = (&row.picture.name, row.picture.report.unfinished);
        let _ = writeln!(out, "\n{name}: {jobs} jobs never ran to their end.");
    }
    out
}

fn waits(rows: &[Row]) -> String {
    let header = [
        "policy",
        "jobs",
        "mean wait",
        "P50",
        "P95",
        "longest",
        "mean JCT",
        "slowdown",
        "stops",
        "failures",
        "lost GPU-h",
    ];
    let line = |row: &Row| {
        let report = &row.picture.report;
        let all = &report.all;
        vec![
            row.picture.name.clone(),
            all.jobs.to_string(),
            time(all.wait.mean),
            time(all.wait.p50),
            time(all.wait.p95),
            time(all.wait.max),
            time(all.completion.mean),
            format!("{:.1}", all.slowdown.mean),
            report.preemptions.to_string(),
            report.interruptions.to_string(),
            format!("{:.1}", report.lost_gpu_hours),
        ]
    };
    figures(&header, rows.iter().map(line).collect())
}

/// Mean and P95 wait by size: a policy can look good in the mean by starving large jobs.
fn by_size(rows: &[Row]) -> String {
    let sizes: Vec<SizeClass> = SizeClass::ALL
        .into_iter()
        .filter(|size| {
            rows.iter().any(|row| row.picture.report.by_size.iter().any(|(of, _)| of == size))
        })
        .collect();
    let header: Vec<String> = sizes.iter().map(|size| format!("{} GPUs", size.word())).collect();
    let header: Vec<&str> = std::iter::once("mean / P95 wait by size")
        .chain(header.iter().map(String::as_str))
        .collect();
    let line = |row: &Row| {
        let report = &row.picture.report;
        let of = |size: &SizeClass| report.by_size.iter().find(|(other, _)| other == size);
        let wait = |size| of(size).map_or(String::new(), |(_, group)| both(&group.wait));
        std::iter::once(row.picture.name.clone()).chain(sizes.iter().map(wait)).collect()
    };
    figures(&header, rows.iter().map(line).collect())
}

fn both(wait: &berth_sim::metrics::Figures) -> String {
    format!("{} / {}", time(wait.mean), time(wait.p95))
}

/// The same by queue, for the largest of them, and the worst of all.
fn by_queue(workload: &Workload, rows: &[Row]) -> String {
    let mut jobs = vec![0_u64; workload.teams.len()];
    for job in &workload.jobs {
        jobs[job.team as usize] += 1;
    }
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|team| (std::cmp::Reverse(jobs[*team]), *team));
    order.truncate(QUEUES);
    let name = |team: &usize| match workload.teams[*team].as_str() {
        "" => "(none)",
        name => name,
    };
    let mut header = vec!["mean / P95 wait by queue"];
    header.extend(order.iter().map(name));
    header.push("worst");
    let line = |row: &Row| {
        let by_team = &row.picture.report.by_team;
        let of = |team: &usize| by_team.iter().find(|(name, _)| *name == workload.teams[*team]);
        let wait = |team| of(team).map_or(String::new(), |(_, group)| both(&group.wait));
        let worst = by_team.iter().max_by(|a, b| a.1.wait.mean.total_cmp(&b.1.wait.mean));
        let worst = worst
            .map_or(String::new(), |(name, group)| format!("{} {name}", time(group.wait.mean)));
        let cells = order.iter().map(wait).chain([worst]);
        std::iter::once(row.picture.name.clone()).chain(cells).collect()
    };
    figures(&header, rows.iter().map(line).collect())
}

fn use_of_gpus(rows: &[Row]) -> String {
    let mut header = vec!["GPU time", "utilization", "allocation", "fragmentation"];
    header.extend(&Parts::NAMES[1..]);
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let line = |row: &Row| {
        let account = &row.picture.account;
        // All of one whole, from the first submission to the last end, with what was bought.
        let hours = &account.gpu_hours;
        let mut cells = vec![
            row.picture.name.clone(),
            percent(hours.utilization()),
            percent(hours.allocation()),
            percent(account.fragmentation),
        ];
        let all = hours.total().max(1e-9);
        cells.extend(hours.all()[1..].iter().map(|part| percent(part / all)));
        cells
    };
    figures(&header, rows.iter().map(line).collect())
}

fn costs(rows: &[Row]) -> String {
    let header = [
        "cost",
        "total",
        "on demand",
        "spot",
        "used",
        "lost",
        "idle",
        "out of order",
        "booting",
        "$ / used GPU-h",
        "energy",
    ];
    let dollars = |value: f64| format!("${value:.0}");
    let line = |row: &Row| {
        let account = &row.picture.account;
        let (cost, parts) = (&account.cost, &account.cost.parts);
        vec![
            row.picture.name.clone(),
            dollars(cost.total),
            dollars(cost.on_demand),
            dollars(cost.spot),
            dollars(parts.used),
            dollars(parts.lost),
            dollars(parts.idle()),
            dollars(parts.out_of_order),
            dollars(parts.booting),
            format!("{:.2}", cost.total / account.gpu_hours.used.max(1e-9)),
            format!("{:.1} MWh", account.energy_kwh / 1_000.0),
        ]
    };
    figures(&header, rows.iter().map(line).collect())
}

fn fairness(rows: &[Row]) -> String {
    let header = [
        "fairness",
        "Jain, days",
        "worst",
        "weeks all ask",
        "largest gap",
        "days all ask",
        "largest gap",
    ];
    let line = |row: &Row| {
        let mut cells = vec![row.picture.name.clone()];
        if let Some(fairness) = &row.picture.report.fairness {
            let (daily, weekly) = (&fairness.daily, &fairness.weekly);
            let gap = |gap: f64, windows: u32| match windows {
                0 => String::new(),
                _ => format!("{:.2} %", 100.0 * gap),
            };
            cells.extend([
                format!("{:.3}", daily.jain),
                format!("{:.3}", daily.worst_jain),
                weekly.contested.to_string(),
                gap(weekly.worst_gap, weekly.contested),
                daily.contested.to_string(),
                gap(daily.worst_gap, daily.contested),
            ]);
        }
        cells
    };
    figures(&header, rows.iter().map(line).collect())
}

/// What jobs of the part that was held back were told at submission, beside what came of it.
fn forecasts(rows: &[Row]) -> String {
    let header = [
        "forecasts",
        "jobs",
        "by P50",
        "by P90",
        "corrected",
        "of them waited",
        "by P50",
        "by P90",
        "corrected",
        "factor",
    ];
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let line = |row: &Row| {
        let calibration = row.calibration.as_ref()?;
        let accuracy = &calibration.held_back;
        Some(vec![
            row.picture.name.clone(),
            accuracy.jobs.to_string(),
            percent(accuracy.by_p50),
            percent(accuracy.by_p90),
            percent(accuracy.by_corrected),
            accuracy.waited.to_string(),
            percent(accuracy.waited_by_p50),
            percent(accuracy.waited_by_p90),
            percent(accuracy.waited_by_corrected),
            format!("{:.2}", calibration.factor),
        ])
    };
    figures(&header, rows.iter().filter_map(line).collect())
}

/// A table whose columns, but for the first, are numbers.
pub fn figures(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = tables::table(header);
    table.add_rows(rows);
    for column in 1..header.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// A time with the unit that suits it.
pub fn time(seconds: f64) -> String {
    match seconds {
        ..60.0 => format!("{seconds:.0} s"),
        ..7_200.0 => format!("{:.1} min", seconds / 60.0),
        ..172_800.0 => format!("{:.1} h", seconds / 3_600.0),
        _ => format!("{:.1} d", seconds / 86_400.0),
    }
}
