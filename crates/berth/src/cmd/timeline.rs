//! `berth timeline` and `berth leases`: what became of a job, and who had which GPUs.

use super::when;
use crate::complete;
use crate::context::Context;
use crate::fail::Result;
use crate::show::{Cell, Look, Page, Table, words};
use crate::watch::{self, Watch};
use berth_api::wire::{At, JobRef, LeaseList, LeaseQuery, LeaseState, Segment, Timeline};
use clap::Args;
use std::fmt::Write;

#[derive(Args, Debug)]
pub struct TimelineArgs {
    /// A job, by number or name
    #[arg(value_name = "JOB", add = complete::all_jobs())]
    job: String,
    #[command(flatten)]
    watch: Watch,
}

pub async fn timeline(context: &Context, args: &TimelineArgs) -> Result<()> {
    let client = context.client()?;
    let names = |found: &Timeline| {
        found.segments.iter().map(|segment| segment.state.word().to_owned()).collect()
    };
    let fetch = async || {
        let found = client.timeline(&args.job).await?;
        Ok(Page::new(found, timeline_text, names).remarks(|found| found.notes.clone()))
    };
    watch::show(context, args.watch, "job", fetch).await
}

fn timeline_text(found: &Timeline, look: &Look) -> String {
    let titles = ["STATE", ">ATTEMPT", "FROM", ">TIME", ">COST", "CAUSE", "BY"];
    let mut table = Table::new(&titles);
    for segment in &found.segments {
        let Segment { state, attempt, from, to, cost_micros, .. } = segment;
        let time = to.map_or_else(|| look.since_ms(*from), |to| (to.0 - from.0).0);
        table.row(vec![
            state.word().into(),
            (*attempt).into(),
            look.at_second(*from).into(),
            words::span(time).into(),
            words::money(*cost_micros).into(),
            segment.cause.clone().or_else(|| segment.text.clone()).into(),
            segment.by.as_ref().map(named).into(),
        ]);
    }
    let mut out = table.or(look, "No history.");
    let (waited, ran) = (words::span(found.waited_ms), words::span(found.ran_ms));
    let cost = words::money(found.cost_micros);
    let _ = writeln!(out, "\nwaited {waited}, ran {ran}, cost {cost}");
    out
}

/// `preempted: made room for a job of a higher class, for 4688 vit-l (vision)`.
pub fn told(segment: &Segment) -> String {
    let attempt = segment.attempt.map(|number| format!(" (attempt {number})"));
    let mut told = format!("{}{}", segment.state.word(), attempt.unwrap_or_default());
    if let Some(why) = segment.text.as_ref().or(segment.cause.as_ref()) {
        told.push_str(&format!(": {why}"));
    }
    if let Some(by) = &segment.by {
        told.push_str(&format!(", for {}", named(by)));
    }
    told
}

/// `4688 vit-l (vision)`, as far as the caller may know it.
pub fn named(of: &JobRef) -> String {
    let name = of.name.as_deref().map_or_else(String::new, |name| format!(" {name}"));
    let team = of.team.as_deref().map_or_else(String::new, |team| format!(" ({team})"));
    format!("{}{name}{team}", of.job)
}

#[derive(Args, Debug)]
pub struct Leases {
    /// From: a time, or a time ago such as 2d (a day ago)
    #[arg(long, value_name = "WHEN", value_parser = when::past)]
    from: Option<At>,
    /// Up to (now)
    #[arg(long, value_name = "WHEN", value_parser = when::past)]
    to: Option<At>,
    #[arg(long, value_name = "NODE", add = complete::nodes())]
    node: Option<String>,
    #[arg(long, value_name = "JOB", add = complete::all_jobs())]
    job: Option<String>,
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
    /// How many to show
    #[arg(short = 'n', long, value_name = "N", default_value = "200", value_parser = super::ps::from_one())]
    limit: u32,
    #[command(flatten)]
    watch: Watch,
}

pub async fn leases(context: &Context, args: &Leases) -> Result<()> {
    let client = context.client()?;
    let query = LeaseQuery {
        from: args.from,
        to: args.to,
        node: args.node.clone(),
        job: args.job.clone(),
        team: args.team.clone(),
        limit: Some(args.limit),
    };
    let names = |list: &LeaseList| list.leases.iter().map(|lease| lease.id.clone()).collect();
    let fetch = async || {
        let list = client.leases(&query).await?;
        Ok(Page::new(list, leases_text, names).remarks(remarks))
    };
    watch::show(context, args.watch, "job,node", fetch).await
}

fn remarks(list: &LeaseList) -> Vec<String> {
    let more = list.more.then(|| "older leases are left out; --limit shows more".to_owned());
    more.into_iter().collect()
}

fn leases_text(list: &LeaseList, look: &Look) -> String {
    let titles = ["LEASE", "NAME", "TEAM", "NODE", "GPUS", "STATE", "FROM", "TO", "END"];
    let mut table = Table::new(&titles);
    let gpus = |gpus: &[u32]| {
        let each: Vec<String> = gpus.iter().map(ToString::to_string).collect();
        each.join(",")
    };
    for lease in &list.leases {
        let (state, expected) = match lease.state {
            LeaseState::Starting => ("starting", lease.expected_to),
            LeaseState::Running => ("running", lease.expected_to),
            LeaseState::Stopping => ("stopping", None),
            LeaseState::Ended => ("ended", None),
        };
        let to = lease.to.map(|to| look.at(to));
        table.row(vec![
            lease.id.as_str().into(),
            lease.of.name.clone().into(),
            lease.of.team.clone().into(),
            lease.node.as_str().into(),
            gpus(&lease.gpus).into(),
            state.into(),
            look.at(lease.from).into(),
            to.or_else(|| expected.map(|to| format!("~{}", look.at(to)))).into(),
            lease.end_reason.clone().into(),
        ]);
    }
    for promised in &list.promised {
        for place in &promised.places {
            table.row(vec![
                promised.of.job.to_string().into(),
                promised.of.name.clone().into(),
                promised.of.team.clone().into(),
                place.node.as_str().into(),
                gpus(&place.gpus).into(),
                "promised".into(),
                format!("~{}", look.at(promised.from)).into(),
                promised.to.map(|to| format!("~{}", look.at(to))).into(),
                Cell::from(""),
            ]);
        }
    }
    for reserved in &list.reserved {
        table.row(vec![
            reserved.name.as_str().into(),
            Cell::from(""),
            reserved.owner.as_str().into(),
            reserved.nodes.join(",").into(),
            Cell::from(""),
            "reserved".into(),
            look.at(reserved.from).into(),
            look.at(reserved.to).into(),
            Cell::from(""),
        ]);
    }
    table.or(look, "No job had GPUs.")
}
