//! `berth sim trace`: a workload under several policies, side by side, and beside what-ifs.

mod input;
mod output;
mod policy;
mod progress;
mod refusal;
mod size;
mod table;
mod whatif;

pub use size::Size;
pub use size::run as run_size;

use crate::show::ReportFormat;
use anyhow::Result;
use berth_model::{Milli, Span, Time};
use berth_sim::calibration::Calibration;
use berth_sim::metrics::{Account, Report, Setting};
use berth_sim::page::{Page, RunSummary};
use berth_sim::prices::PriceList;
use berth_sim::replay::{ForecastRequests, Rules};
use berth_sim::site::Site;
use berth_sim::workload::Workload;
use clap::Args;
use input::Input;
use policy::Policy;
use progress::Bar;
use refusal::refuse;
use std::path::PathBuf;
use std::process::ExitCode;
use whatif::{Quotas, WhatIf};

#[derive(Args)]
pub struct Trace {
    #[command(flatten)]
    input: Input,
    /// What to compare, such as fifo,fifo-skip,easy,sjf,fair-share,best-fit,fgd,berth
    #[arg(
        long = "policy",
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "fifo,easy,sjf,berth,berth-sharing"
    )]
    policies: Vec<Policy>,
    /// Make each team a queue, with a quota in proportion to its demand, or as given in GPUs:
    /// --teams=vision=24,nlp=40
    #[arg(
        long,
        alias = "teams-as-queues",
        value_name = "TEAM=GPUS,…",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    teams: Option<Quotas>,
    /// At every Nth submission, forecast when the job will start, and compare
    #[arg(long, value_name = "N")]
    forecast: Option<u32>,
    /// Evaluate forecasts on this share at the end of the trace, and calibrate them on the rest
    #[arg(long, value_name = "SPAN", default_value = "30d", requires = "forecast")]
    held_back: Span,
    #[command(flatten)]
    what_if: WhatIf,
    /// Write a self-contained HTML page with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the report to this file instead of printing it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// One world that is run: the base, or the what-if.
struct Variant {
    /// Behind a policy's name; nothing for the base.
    suffix: &'static str,
    site: Site,
    prices: PriceList,
    quotas: Vec<u64>,
    /// What `--set` changes about the core.
    set: Vec<whatif::Set>,
}

/// A policy in a variant, run and worked out.
struct Row {
    policy: &'static str,
    what_if: bool,
    picture: RunSummary,
    calibration: Option<Calibration>,
}

pub fn run(args: &Trace, output: ReportFormat) -> Result<ExitCode> {
    let mut workload = args.input.jobs_to_run()?;
    let variants = variants(args, &workload)?;
    let mut rows = Vec::new();
    for variant in &variants {
        workload.suit(&variant.site.fleet);
        for policy in &args.policies {
            rows.push(row(args, *policy, variant, &workload)?);
        }
    }
    // A policy and its what-if stand together.
    rows.sort_by_key(|row| {
        let place = args.policies.iter().position(|policy| policy.word() == row.policy);
        (place, row.what_if)
    });
    let about = about(args, &workload, &variants);
    let text = match output {
        ReportFormat::Table => table::text(&about, &workload, &variants, &rows),
        ReportFormat::Json => output::json(args, &about, &workload, &variants, &rows)?,
    };
    if let Some(path) = &args.html {
        output::whole(path, &page(args, &about, &workload, &variants, &rows))?;
    }
    match &args.out {
        Some(path) => output::whole(path, &text)?,
        None => print!("{text}"),
    }
    Ok(ExitCode::SUCCESS)
}

fn variants(args: &Trace, workload: &Workload) -> Result<Vec<Variant>> {
    let prices = args.input.prices()?;
    let site = args.input.site(&prices, &[])?;
    check_peers(&args.policies, &site)?;
    let quotas = match &args.teams {
        Some(given) => given.of(workload, site.fleet.gpus())?,
        None => Vec::new(),
    };
    let base = Variant { suffix: "", site, prices, quotas, set: Vec::new() };
    let mut variants = vec![base];
    if args.what_if.is_asked() {
        let other = args.what_if.apply(&args.input, &variants[0], workload)?;
        check_peers(&args.policies, &other.site)?;
        variants.push(other);
    }
    Ok(variants)
}

/// The peers have no way to buy, so without fixed nodes they have nothing.
fn check_peers(policies: &[Policy], site: &Site) -> Result<()> {
    let peer = policies.iter().find(|policy| matches!(policy, Policy::Peer(_)));
    match peer {
        Some(peer) if site.fleet.nodes.is_empty() => {
            let word = peer.word();
            let message = format!(
                "{word} cannot buy machines, and there are no fixed ones: give --cluster or \
                 --nodes, or compare --policy berth alone"
            );
            Err(refuse("peers-cannot-buy", message))
        }
        _ => Ok(()),
    }
}

fn row(args: &Trace, policy: Policy, variant: &Variant, workload: &Workload) -> Result<Row> {
    let name = format!("{}{}", policy.word(), variant.suffix);
    let bar = Bar::new(&name, workload.jobs.len());
    let rules = match policy.rules() {
        Some(rules) => Some(rules_of(args, rules, variant)?),
        None => None,
    };
    let site = &variant.site;
    let progress = &mut |finished: usize| bar.set(finished);
    let (timeline, forecasts) =
        policy.run(site, workload, &variant.quotas, rules.as_ref(), progress)?;
    let last = workload.jobs.last().map_or(Time(0), |job| job.submit);
    let calibration = (!forecasts.is_empty())
        .then(|| Calibration::new(&forecasts, &timeline.outcomes, last - args.held_back));
    let setting = Setting {
        gpus: site.fleet.gpus(),
        teams: workload.teams.clone(),
        quotas: variant.quotas.clone(),
        trim: Milli::ZERO,
    };
    let report = Report::new(&timeline.outcomes, &setting);
    let account = Account::new(&timeline, &site.fleet, &workload.jobs, &variant.prices);
    let teams = workload.teams.len();
    let picture = RunSummary::new(&name, &timeline, &site.fleet, teams, report, account);
    let what_if = !variant.suffix.is_empty();
    Ok(Row { policy: policy.word(), what_if, picture, calibration })
}

fn rules_of(args: &Trace, rules: Rules, variant: &Variant) -> Result<Rules> {
    let mut rules = rules.with_quotas(variant.quotas.clone());
    if let Some(every) = args.forecast {
        let runs = rules.policy.forecast_runs;
        let (seed, after) = (args.input.seed, Span::ZERO);
        rules = rules.with_forecasts(ForecastRequests { every, runs, seed, after });
    }
    for set in &variant.set {
        rules.policy = set.on(&rules.policy)?;
    }
    Ok(rules)
}

/// What was run, a line each.
fn about(args: &Trace, workload: &Workload, variants: &[Variant]) -> Vec<String> {
    let base = &variants[0];
    let fleet = &base.site.fleet;
    let mut lines = vec![format!("{} jobs on {}", workload.jobs.len(), fleet.describe())];
    if workload.left_out > 0 {
        lines.push(format!("{} jobs that need no GPU are left out", workload.left_out));
    }
    lines.extend(base.site.market.iter().map(|offer| {
        let model = &fleet.models[offer.model as usize];
        let how = match (&offer.spot, offer.on_demand) {
            (Some(_), Some(_)) => "spot or on demand",
            (Some(_), None) => "spot",
            _ => "on demand",
        };
        format!("up to {} machines of {} {model} may be bought, {how}", offer.max, offer.gpus)
    }));
    let failures = &args.input.failures;
    let mut failing = Vec::new();
    failing.extend(failures.node_mtbf.map(|span: Span| format!("a node fails every {span}")));
    failing.extend(failures.gpu_mtbf.map(|span: Span| format!("a GPU every {span}")));
    failing.extend(failures.checkpoint.map(|span: Span| format!("jobs save every {span}")));
    if !failing.is_empty() {
        lines.push(failing.join(", "));
    }
    let unknown: Vec<&str> =
        fleet.models.iter().map(|model| model.as_str()).filter(|m| !base.prices.knows(m)).collect();
    if !unknown.is_empty() {
        let rate = base.prices.rate(unknown[0]);
        let dollars = rate.on_demand.0 as f64 / 1e6;
        lines.push(format!(
            "what {} costs is not known: ${dollars:.2} a GPU-hour is assumed (--prices)",
            unknown.join(", ")
        ));
    }
    if let Some(other) = variants.get(1) {
        lines.push(format!("What if: {}", args.what_if.describe(other)));
    }
    lines
}

fn page(
    args: &Trace,
    about: &[String],
    workload: &Workload,
    variants: &[Variant],
    rows: &[Row],
) -> String {
    let pictures: Vec<RunSummary> = rows.iter().map(|row| row.picture.clone()).collect();
    let title = match &args.input.jobs {
        Some(path) => path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into()),
        None => "Simulated jobs".to_owned(),
    };
    let quotas = &variants[0].quotas;
    let title = format!("{title}, by policy");
    Page { title: &title, about, teams: &workload.teams, quotas, pictures: &pictures }.html()
}
