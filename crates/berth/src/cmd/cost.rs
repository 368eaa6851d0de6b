//! `berth cost`.

use super::{cost_more, when};
use crate::complete;
use crate::context::Context;
use crate::fail::{BadValue, Result};
use crate::show::{Cell, Look, Page, Table, words};
use crate::watch::{self, Watch};
use berth_api::wire::{At, CostGroup, CostKey, CostQuery, CostReport, CostStep};
use clap::{Args, ValueEnum};
use std::fmt::Write;

#[derive(Args, Debug)]
pub struct Cost {
    /// Group by team, project, experiment, user or job, separated by commas
    #[arg(long, value_name = "KEYS", default_value = "team", value_delimiter = ',', value_parser = key)]
    by: Vec<CostKey>,
    /// From: a time, or a time ago such as 30d (the first of this month)
    #[arg(long, value_name = "WHEN", value_parser = when::past)]
    from: Option<At>,
    /// Up to (now)
    #[arg(long, value_name = "WHEN", value_parser = when::past)]
    to: Option<At>,
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
    #[arg(short, long, value_name = "PROJECT", add = complete::projects())]
    project: Option<String>,
    #[arg(long, value_name = "EXPERIMENT")]
    experiment: Option<String>,
    #[arg(long, value_name = "USER", add = complete::users())]
    user: Option<String>,
    #[arg(long, value_name = "JOB", add = complete::all_jobs())]
    job: Option<String>,
    /// By day or hour, for the first key of --by
    #[arg(long, value_enum, value_name = "STEP", conflicts_with_all = ["rows", "idle"])]
    over: Option<Over>,
    /// Show the newest N single rows that the sums consist of
    #[arg(long, value_name = "N", conflicts_with = "idle")]
    rows: Option<u32>,
    /// Show cost that brought nothing, by cause
    #[arg(long, conflicts_with_all = ["project", "experiment", "user", "job"])]
    idle: bool,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    watch: Watch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Over {
    Day,
    Hour,
}

fn key(text: &str) -> Result<CostKey, BadValue> {
    CostKey::ALL.into_iter().find(|key| key.word() == text).ok_or_else(|| {
        let words: Vec<&str> = CostKey::ALL.iter().map(|key| key.word()).collect();
        BadValue(format!("expected some of {}", words.join(", ")))
    })
}

pub async fn run(context: &Context, args: &Cost) -> Result<()> {
    let client = context.client()?;
    let by: Vec<&str> = args.by.iter().map(|key| key.word()).collect();
    let query = CostQuery {
        by: Some(by.join(",")),
        from: args.from,
        to: args.to,
        team: args.team.clone(),
        project: args.project.clone(),
        experiment: args.experiment.clone(),
        user: args.user.clone(),
        job: args.job.clone(),
        format: args.csv.then(|| "csv".to_owned()),
    };
    if let Some(over) = args.over {
        let step = match over {
            Over::Day => CostStep::Day,
            Over::Hour => CostStep::Hour,
        };
        let by = args.by.first().map(|key| key.word().to_owned());
        return cost_more::series(context, CostQuery { by, ..query }, step, args.csv).await;
    }
    if let Some(rows) = args.rows {
        return cost_more::rows(context, query, rows, args.csv).await;
    }
    if args.idle {
        return cost_more::idle(context, query, args.csv).await;
    }
    if args.csv {
        return cost_more::csv(context, "list_cost", &query).await;
    }
    let fetch = async || Ok(Page::new(client.cost(&query).await?, text, names));
    watch::show(context, args.watch, "job", fetch).await
}

fn value(row: &CostGroup, key: CostKey) -> Option<&str> {
    match key {
        CostKey::Team => row.team.as_deref(),
        CostKey::Project => row.project.as_deref(),
        CostKey::Experiment => row.experiment.as_deref(),
        CostKey::User => row.user.as_deref(),
        CostKey::Job => row.job.as_deref(),
    }
}

fn names(report: &CostReport) -> Vec<String> {
    let name = |row: &CostGroup| {
        let keys: Vec<&str> =
            report.by.iter().map(|key| value(row, *key).unwrap_or_default()).collect();
        keys.join("/")
    };
    report.rows.iter().map(name).collect()
}

fn title(key: CostKey) -> &'static str {
    match key {
        CostKey::Team => "TEAM",
        CostKey::Project => "PROJECT",
        CostKey::Experiment => "EXPERIMENT",
        CostKey::User => "USER",
        CostKey::Job => "JOB",
    }
}

fn text(report: &CostReport, look: &Look) -> String {
    let mut titles: Vec<&'static str> = report.by.iter().map(|key| title(*key)).collect();
    let has_names = report.by.contains(&CostKey::Job);
    titles.extend(has_names.then_some("NAME"));
    titles.extend([">COST", ">GPU-HOURS", ">JOBS"]);
    let (has_energy, has_carbon) = (report.energy_mj.is_some(), report.carbon_intensity.is_some());
    titles.extend(has_energy.then_some(">ENERGY"));
    titles.extend((has_energy && has_carbon).then_some(">CO2"));
    let mut table = Table::new(&titles);
    for row in &report.rows {
        let key = |key: &CostKey| match (key, &row.job) {
            (CostKey::Job, Some(job)) if !job.is_empty() => Cell::of_job(look, job),
            _ => Cell::from(value(row, *key)),
        };
        let name = has_names.then(|| Cell::from(row.name.as_deref()));
        let keys = report.by.iter().map(key).chain(name);
        let sums: [Cell; 3] = [
            words::money(row.amount_micros).into(),
            words::gpu_hours(row.gpu_ms).into(),
            row.jobs.into(),
        ];
        let energy = has_energy
            .then(|| Cell::from(row.energy_mj.map(|energy| words::energy(energy / 1_000))));
        let carbon =
            (has_energy && has_carbon).then(|| Cell::from(row.carbon_mg.map(words::grams)));
        table.row(keys.chain(sums).chain(energy).chain(carbon).collect());
    }
    let mut out = table.or(look, "No costs.");
    let (from, to) = (look.at(report.from), look.at(report.to));
    let total = words::money(report.total_micros);
    let energy = report.energy_mj.map(|energy| format!(", {}", words::energy(energy / 1_000)));
    let energy = energy.unwrap_or_default();
    let _ = writeln!(out, "\ntotal {total}{energy} from {from} to {to}");
    if report.idle_micros != 0 {
        let idle = words::money(report.idle_micros);
        let _ = writeln!(out, "idle  {idle}: cost of machines while no job held them");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stand_beside_the_keys_they_are_taken_by() {
        let row = |team: &str, project: &str, amount_micros| CostGroup {
            team: Some(team.into()),
            project: Some(project.into()),
            amount_micros,
            gpu_ms: 3_600_000,
            jobs: 2,
            ..CostGroup::default()
        };
        let report = CostReport {
            by: vec![CostKey::Team, CostKey::Project],
            from: "2026-10-31T23:00:00Z".parse().unwrap(),
            to: "2026-11-15T14:00:00Z".parse().unwrap(),
            rows: vec![row("nlp", "llama", 3_010_000_000), row("nlp", "", 5_000_000)],
            total_micros: 3_015_000_000,
            idle_micros: 40_000_000,
            energy_mj: None,
            carbon_intensity: None,
        };
        let expect = "\
TEAM  PROJECT       COST  GPU-HOURS  JOBS
nlp   llama    $3,010.00       1.00     2
nlp   -            $5.00       1.00     2

total $3,015.00 from 2026-11-01 00:00 to 15:00
idle  $40.00: cost of machines while no job held them
";
        assert_eq!(text(&report, &Look::fixed()), expect);
        assert_eq!(names(&report), ["nlp/llama", "nlp/"]);
    }

    #[test]
    fn jobs_are_shown_with_their_names() {
        let row = |job: &str, name: Option<&str>, gpu_ms| CostGroup {
            job: Some(job.into()),
            name: name.map(str::to_owned),
            amount_micros: 4_000,
            gpu_ms,
            jobs: 1,
            ..CostGroup::default()
        };
        let report = CostReport {
            by: vec![CostKey::Job],
            from: "2026-10-31T23:00:00Z".parse().unwrap(),
            to: "2026-11-15T14:00:00Z".parse().unwrap(),
            rows: vec![row("9", Some("prep"), 5_000), row("10", None, 90_000)],
            total_micros: 8_000,
            idle_micros: 0,
            energy_mj: None,
            carbon_intensity: None,
        };
        let expect = "\
JOB  NAME    COST  GPU-HOURS  JOBS
9    prep  <$0.01     0.0014     1
10   -     <$0.01     0.0250     1

total <$0.01 from 2026-11-01 00:00 to 15:00
";
        assert_eq!(text(&report, &Look::fixed()), expect);
    }

    #[test]
    fn energy_and_carbon_stand_beside_the_cost_where_they_are_known() {
        let row = |team: &str, energy_mj, carbon_mg| CostGroup {
            team: Some(team.into()),
            energy_mj,
            carbon_mg,
            ..CostGroup::default()
        };
        let report = CostReport {
            by: vec![CostKey::Team],
            from: "2026-10-31T23:00:00Z".parse().unwrap(),
            to: "2026-11-15T14:00:00Z".parse().unwrap(),
            rows: vec![row("nlp", Some(7_200_000_000), Some(760_000)), row("vision", None, None)],
            total_micros: 0,
            idle_micros: 0,
            energy_mj: Some(7_200_000_000),
            carbon_intensity: Some(380),
        };
        let expect = "\
TEAM     COST  GPU-HOURS  JOBS    ENERGY    CO2
nlp     $0.00          0     0  2.00 kWh  760 g
vision  $0.00          0     0         -      -

total $0.00, 2.00 kWh from 2026-11-01 00:00 to 15:00
";
        assert_eq!(text(&report, &Look::fixed()), expect);
    }
}
