//! `berth experiments --by cost-per-result`: the cost of runs and their results.

use crate::complete;
use crate::context::Context;
use crate::fail::{Failure, Result};
use crate::show::{Look, Page, Table, words};
use berth_api::wire::{BetterValues, Return, Returns, ReturnsBy, ReturnsQuery};
use clap::ValueEnum;

#[derive(clap::Args, Debug)]
pub struct Args {
    /// Show the cost of experiments and their results
    #[arg(long, value_enum, value_name = "FIGURES")]
    by: Option<By>,
    /// The metric of the result
    #[arg(long, value_name = "METRIC", requires = "by")]
    metric: Option<String>,
    /// The value that counts as a result (the best value so far)
    #[arg(long, value_name = "VALUE", requires = "metric", allow_negative_numbers = true)]
    goal: Option<f64>,
    /// Which values are better (lower for a loss or an error, else higher)
    #[arg(long, value_enum, value_name = "VALUES", requires = "metric")]
    better: Option<Better>,
    /// One row for each experiment or each project
    #[arg(long, value_enum, value_name = "WHAT", default_value = "experiment")]
    group: Group,
    /// Only this experiment, by name or id
    #[arg(short, long, value_name = "EXPERIMENT", requires = "by")]
    experiment: Option<String>,
    /// The team (your default team)
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// The cost for each run that reached the goal
    CostPerResult,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Better {
    Higher,
    Lower,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Group {
    Experiment,
    Project,
}

pub async fn run(context: &Context, args: &Args) -> Result<()> {
    let Some(By::CostPerResult) = args.by else {
        let failure = Failure::usage("it is not said what to show of the experiments");
        return Err(failure.next("add --by cost-per-result, or use `berth experiments list`"));
    };
    let query = ReturnsQuery {
        team: context.team(args.team.as_deref()),
        experiment: args.experiment.clone(),
        by: match args.group {
            Group::Experiment => ReturnsBy::Experiment,
            Group::Project => ReturnsBy::Project,
        },
        metric: args.metric.clone(),
        goal: args.goal,
        better: args.better.map(|better| match better {
            Better::Higher => BetterValues::Higher,
            Better::Lower => BetterValues::Lower,
        }),
    };
    let found = context.client()?.returns(&query).await?;
    let names = |found: &Returns| found.rows.iter().map(|row| row.name.clone()).collect();
    context.show(&Page::new(found, table, names).remarks(|found| found.notes.clone()))
}

fn table(found: &Returns, look: &Look) -> String {
    let mut table = Table::new(&[
        match found.by {
            ReturnsBy::Experiment => "EXPERIMENT",
            ReturnsBy::Project => "PROJECT",
        },
        ">RUNS",
        ">SPENT",
        ">GPU-HOURS",
        ">BEST",
        ">GOAL",
        ">REACHED",
        ">UNTIL GOAL",
        ">PER RESULT",
        ">FAILED",
        ">SUPERSEDED",
    ]);
    for row in &found.rows {
        table.row(vec![
            if row.name.is_empty() { "(none)".into() } else { row.name.as_str().into() },
            words::thousands(row.runs).into(),
            words::money(row.spent_micros).into(),
            hours(row.gpu_hours).into(),
            row.best.map(number).into(),
            row.goal.map(number).into(),
            row.goal.map(|_| words::thousands(row.reached)).into(),
            row.until_goal_micros.map(words::money).into(),
            row.per_result_micros.map(words::money).into(),
            share(row.failed_micros, row).into(),
            row.goal.map(|_| share(row.superseded_micros, row)).into(),
        ]);
    }
    table.or(look, "No runs.")
}

/// Formats GPU-hours like the other tables.
fn hours(hours: f64) -> String {
    words::gpu_hours((hours * 3_600_000.0) as i64)
}

fn number(value: f64) -> String {
    format!("{value}")
}

/// An amount and its share of the total.
fn share(micros: i64, of: &Return) -> String {
    match of.spent_micros {
        0 => words::money(micros),
        spent => {
            let percent = i128::from(micros) * 100 / i128::from(spent);
            format!("{} ({percent}%)", words::money(micros))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_was_spent_for_each_result_and_for_nothing() {
        let row = Return {
            name: "digits".into(),
            runs: 12,
            spent_micros: 60_000_000,
            gpu_hours: 7.5,
            best: Some(0.93),
            goal: Some(0.9),
            reached: 3,
            until_goal_micros: Some(20_500_000),
            per_result_micros: Some(20_000_000),
            failed_micros: 6_000_000,
            superseded_micros: 15_000_000,
            ..Return::default()
        };
        let found = Returns {
            team: "nlp".into(),
            by: ReturnsBy::Experiment,
            metric: Some("acc".into()),
            better: Some(BetterValues::Higher),
            rows: vec![row],
            total_micros: 60_000_000,
            notes: Vec::new(),
        };
        let shown = table(&found, &Look::fixed());
        let line: Vec<&str> = shown.lines().nth(1).unwrap().split("  ").map(str::trim).collect();
        let cells: Vec<&str> = line.into_iter().filter(|cell| !cell.is_empty()).collect();
        assert_eq!(
            cells,
            [
                "digits",
                "12",
                "$60.00",
                "7.50",
                "0.93",
                "0.9",
                "3",
                "$20.50",
                "$20.00",
                "$6.00 (10%)",
                "$15.00 (25%)"
            ]
        );
    }
}
