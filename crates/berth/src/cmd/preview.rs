//! What stopping a job or draining a machine would lose, told before it is done.

use crate::context::Context;
use crate::fail::Result;
use crate::show::{Look, Page, Table, words};
use berth_api::wire::{AtRisk, DrainPreview, JobRef, StopPreview};
use std::fmt::Write;

pub async fn drain(context: &Context, node: &str) -> Result<()> {
    let found = context.client()?.preview_drain(node).await?;
    let names =
        |found: &DrainPreview| found.stops.iter().map(|risk| risk.of.job.to_string()).collect();
    context.show(&Page::new(found, drain_text, names))
}

fn drain_text(found: &DrainPreview, look: &Look) -> String {
    let table = risks(&found.stops, look);
    let mut out = table.or(look, "No jobs run there.");
    let _ = writeln!(out, "\nlost {}", words::money(found.lost_micros));
    if let Some(at) = found.empty_at {
        let _ = writeln!(out, "empty ~{}: some jobs cannot be stopped", look.at(at));
    }
    if !found.promised.is_empty() {
        let _ = writeln!(out, "promised to {}, which would wait again", names(&found.promised));
    }
    out
}

pub async fn stop(context: &Context, job: &str) -> Result<()> {
    let found = context.client()?.preview_stop(job).await?;
    context.show(&Page::new(found, stop_text, |found| vec![found.job.of.job.to_string()]))
}

fn stop_text(found: &StopPreview, look: &Look) -> String {
    let mut out = risks(std::slice::from_ref(&found.job), look).text(look);
    let cost = words::money(found.cost_micros);
    let saves = found.saves_micros.map_or_else(String::new, |saves| {
        format!(", and {} more if it runs on", words::money(saves))
    });
    let _ = writeln!(out, "\ncost so far {cost}{saves}");
    if !found.starts.is_empty() {
        let _ = writeln!(out, "would start then: {}", names(&found.starts));
    }
    out
}

fn names(jobs: &[JobRef]) -> String {
    let name = |of: &JobRef| match &of.name {
        Some(name) => format!("{} {name}", of.job),
        None => of.job.to_string(),
    };
    jobs.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn risks(all: &[AtRisk], look: &Look) -> Table {
    let titles = ["JOB", "NAME", "TEAM", ">GPUS", ">LOSES", ">COST", "SAVED", "THEN"];
    let mut table = Table::new(&titles);
    for risk in all {
        let then = match (risk.runs_on, risk.restarts, risk.restarts_at) {
            (true, _, _) => "runs to its end".to_owned(),
            (false, true, Some(at)) => format!("again ~{}", look.at(at)),
            (false, true, None) => "waits again".to_owned(),
            (false, false, _) => "ends".to_owned(),
        };
        table.row(vec![
            risk.of.job.to_string().into(),
            risk.of.name.clone().into(),
            risk.of.team.clone().into(),
            words::gpus(risk.gpus_milli, false).into(),
            words::span(risk.lost_ms).into(),
            words::money(risk.lost_micros).into(),
            risk.last_checkpoint.map(|at| look.at(at)).into(),
            then.into(),
        ]);
    }
    table
}
