//! `berth sim size`: how many nodes the jobs need, so that waits stay below a bound.

use super::input::Input;
use super::policy::Policy;
use super::progress::Bar;
use super::refusal::refuse;
use super::table::{figures, time};
use crate::show::ReportFormat;
use anyhow::Result;
use berth_model::{Milli, Span};
use berth_sim::metrics::{Account, Report, Setting};
use berth_sim::prices::PriceList;
use berth_sim::site::Site;
use berth_sim::workload::Workload;
use clap::Args;
use serde::Serialize;
use std::process::ExitCode;

#[derive(Args)]
pub struct Size {
    #[command(flatten)]
    input: Input,
    /// The highest P95 waiting time
    #[arg(long, value_name = "SPAN", default_value = "10m")]
    p95_wait: Span,
    #[arg(long, value_name = "NAME", default_value = "berth")]
    policy: Policy,
    /// The most nodes to try
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    most: u32,
}

/// A size that was tried.
#[derive(Debug, Clone, Serialize)]
struct Tried {
    nodes: u32,
    gpus: u64,
    mean_wait: f64,
    p95_wait: f64,
    utilization: f64,
    cost: f64,
    unfinished: u64,
    enough: bool,
}

struct Search<'a> {
    args: &'a Size,
    workload: Workload,
    prices: PriceList,
    /// With one node of the kind that is multiplied, and the others as they are.
    site: Site,
    tried: Vec<Tried>,
}

pub fn run(args: &Size, output: ReportFormat) -> Result<ExitCode> {
    let prices = args.input.prices()?;
    let site = args.input.site(&prices, &[])?;
    let Some(kind) = site.fleet.nodes.first().copied() else {
        let message = "nodes of which kind? give --cluster 1x8xA100";
        return Err(refuse("no-cluster", message));
    };
    let start_nodes = site.fleet.nodes.iter().filter(|node| **node == kind).count() as u32;
    let mut workload = args.input.jobs_to_run()?;
    workload.suit(&site.fleet);
    let mut search = Search { args, workload, prices, site, tried: Vec::new() };
    let found = search.find(start_nodes)?;
    let base = search.tried.iter().find(|tried| tried.nodes == start_nodes).cloned();
    print(args, output, &mut search, found.as_ref(), base.as_ref())?;
    Ok(if found.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Search<'_> {
    /// Doubles until it is enough, then halves the gap. Waits hardly ever grow with more nodes, but
    /// they may; so what is found is enough and one node less is not, which is what is claimed.
    fn find(&mut self, start_nodes: u32) -> Result<Option<Tried>> {
        let (mut short, mut enough) = (0, None);
        let mut nodes = start_nodes.max(1);
        while enough.is_none() {
            if self.try_with(nodes)?.enough {
                enough = Some(nodes);
            } else if nodes >= self.args.most {
                return Ok(None);
            } else {
                short = nodes;
                nodes = nodes.saturating_mul(2).min(self.args.most);
            }
        }
        let mut enough = enough.unwrap_or(nodes);
        while enough - short > 1 {
            let middle = short + (enough - short) / 2;
            if self.try_with(middle)?.enough {
                enough = middle;
            } else {
                short = middle;
            }
        }
        self.try_with(enough).map(Some)
    }

    fn try_with(&mut self, nodes: u32) -> Result<Tried> {
        if let Some(known) = self.tried.iter().find(|tried| tried.nodes == nodes) {
            return Ok(known.clone());
        }
        let mut site = self.site.clone();
        let kind = site.fleet.nodes[0];
        site.fleet.nodes.retain(|node| *node != kind);
        site.fleet.nodes.splice(0..0, std::iter::repeat_n(kind, nodes as usize));
        let bar = Bar::new(&format!("{nodes} nodes"), self.workload.jobs.len());
        let progress = &mut |finished: usize| bar.set(finished);
        let policy = self.args.policy;
        let (timeline, _) = policy.run(&site, &self.workload, &[], None, progress)?;
        let setting = Setting { gpus: site.fleet.gpus(), trim: Milli::ZERO, ..Setting::default() };
        let report = Report::new(&timeline.outcomes, &setting);
        let account = Account::new(&timeline, &site.fleet, &self.workload.jobs, &self.prices);
        let wait = &report.all.wait;
        let bound = self.args.p95_wait.0 as f64 / 1_000.0;
        let tried = Tried {
            nodes,
            gpus: site.fleet.gpus(),
            mean_wait: wait.mean,
            p95_wait: wait.p95,
            utilization: account.gpu_hours.utilization(),
            cost: account.cost.total,
            unfinished: report.unfinished,
            // A job that never runs would not count as one that waits.
            enough: report.unfinished == 0 && wait.p95 <= bound,
        };
        self.tried.push(tried.clone());
        Ok(tried)
    }
}

fn print(
    args: &Size,
    output: ReportFormat,
    search: &mut Search<'_>,
    found: Option<&Tried>,
    base: Option<&Tried>,
) -> Result<()> {
    search.tried.sort_by_key(|tried| tried.nodes);
    let tried = &search.tried;
    if output == ReportFormat::Json {
        let value = serde_json::json!({
            "policy": args.policy.word(),
            "p95_wait_at_most": args.p95_wait.0 as f64 / 1_000.0,
            "jobs": search.workload.jobs.len(),
            "found": found,
            "base": base,
            "tried": tried,
        });
        println!("{}", serde_json::to_string_pretty(&value)?);
        return Ok(());
    }
    let line = |one: &Tried| {
        vec![
            one.nodes.to_string(),
            one.gpus.to_string(),
            time(one.mean_wait),
            time(one.p95_wait),
            format!("{:.1} %", 100.0 * one.utilization),
            format!("${:.0}", one.cost),
            one.unfinished.to_string(),
            if one.enough { "yes" } else { "no" }.to_owned(),
        ]
    };
    let header =
        ["nodes", "GPUs", "mean wait", "P95 wait", "utilization", "cost", "never ran", "enough"];
    println!("{}\n", figures(&header, tried.iter().map(line).collect()));
    let bound = args.p95_wait;
    let policy = args.policy.word();
    match (found, base) {
        (Some(one), Some(base)) => println!(
            "{} GPUs ({} nodes) keep the P95 wait at {bound} or less under {policy}: {}. The {} \
             GPUs that were given have {}.",
            one.gpus,
            one.nodes,
            time(one.p95_wait),
            base.gpus,
            time(base.p95_wait)
        ),
        _ => println!("Not even {} nodes keep the P95 wait at {bound} under {policy}.", args.most),
    }
    Ok(())
}
