//! The parts that are measured here.

use crate::measure::{Clock, Memory};
use crate::report::{Row, Target};
use crate::traces;
use anyhow::Result;
use berth_model::{Milli, Span};
use berth_sim::estimate::Estimate;
use berth_sim::fleet::Fleet;
use berth_sim::metrics::{Account, Report, Setting};
use berth_sim::prices::PriceList;
use berth_sim::replay::{self, Preset};
use berth_sim::synthetic::{self, Recipe};
use berth_sim::trace::{self, Select};
use berth_sim::workload::Workload;
use std::path::Path;

pub fn million(_folder: &Path, seed: u64) -> Result<Vec<Row>> {
    let clock = Clock::start(false);
    let cpu = Clock::start(true);
    let fleet = Fleet::like(360, 8, "A100");
    let workload = {
        let recipe = Recipe { jobs: 1_000_000, days: 365, seed, ..Recipe::default() };
        Workload::new(&synthetic::jobs(&recipe), Estimate::noisy(seed))?
    };
    let rules = Preset::Berth.rules();
    let replayed = replay::run(&rules, fleet.clone(), &workload, &mut |_| ())?;
    let counts = replayed.counts;
    let timeline = replayed.timeline();
    let setting = Setting { gpus: fleet.gpus(), ..Setting::default() };
    let report = Report::new(&timeline.outcomes, &setting);
    let account = Account::new(&timeline, &fleet, &workload.jobs, &PriceList::default());
    let (wall, cpu) = (clock.elapsed().as_secs_f64(), cpu.elapsed().as_secs_f64());
    let peak = Memory::read().peak as f64 / (1 << 20) as f64;
    let unfinished = report.unfinished as f64;
    Ok(vec![
        Row::new("time by the clock", wall, "s", Target::Below(120.0)),
        Row::new("time on the CPU", cpu, "s", Target::None),
        Row::new("peak resident", peak, "MiB", Target::Below(2_048.0)),
        Row::new("jobs that did not end", unfinished, "jobs", Target::Exactly(0.0)),
        Row::new("plans", counts.plans as f64, "plans", Target::None),
        Row::new(
            "findings of the checker",
            counts.findings as f64,
            "findings",
            Target::Exactly(0.0),
        ),
        Row::new("utilization", 100.0 * report.usage.utilization, "%", Target::None),
        Row::new("mean wait", report.all.wait.mean, "s", Target::None),
        Row::new("idle for fragmentation", account.gpu_hours.fragmented, "GPU-h", Target::None),
    ])
}

/// Philly's virtual clusters on fewer nodes than they had, so that there are weeks in which all of
/// the larger ones want more than they have.
pub fn teams(folder: &Path, seed: u64) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let text = traces::read(folder, "philly_jobs")?;
    let mut jobs = trace::jobs("philly_jobs", &text, &Select::default())?;
    // Teams that ask for next to nothing never fill a quota.
    let mut args: std::collections::BTreeMap<_, i128> = std::collections::BTreeMap::new();
    for job in &jobs {
        let time = job.duration.unwrap_or(Span::ZERO).0;
        *args.entry(job.team.clone()).or_default() += i128::from(time) * i128::from(job.gpus.0);
    }
    let mut largest: Vec<_> = args.iter().map(|(team, time)| (*time, team.clone())).collect();
    largest.sort_unstable_by(|a, b| b.cmp(a));
    largest.truncate(TEAMS);
    jobs.retain(|job| largest.iter().any(|(_, team)| *team == job.team));
    for nodes in NODES {
        let (workload, report) = shared(&jobs, nodes, seed)?;
        let name = |what: &str| format!("philly, {TEAMS} teams, {nodes} nodes: {what}");
        let Some(fairness) = &report.fairness else { continue };
        let (daily, weekly) = (&fairness.daily, &fairness.weekly);
        let gap = |report: &Report| {
            100.0 * report.fairness.as_ref().map_or(0.0, |fairness| fairness.weekly.worst_gap)
        };
        let weeks = f64::from(weekly.contested);
        rows.push(Row::new(name("weeks all ask"), weeks, "weeks", Target::None));
        let target = if weekly.contested > 0 { Target::AtMost(2.0) } else { Target::None };
        rows.push(Row::new(name("largest gap of a week"), gap(&report), "%", target));
        // The same GPU time without gangs: what is left of the gap is not for want of fitting.
        let (_, single) = shared(&singles(&jobs), nodes, seed)?;
        let what = "largest gap of a week, every job as jobs of one GPU";
        rows.push(Row::new(name(what), gap(&single), "%", target));
        let largest = workload.jobs.iter().map(|job| job.gpus).max().unwrap_or(0);
        let part = 100.0 * f64::from(largest) / f64::from(nodes * 8);
        rows.push(Row::new(name("the largest job, of all GPUs"), part, "%", Target::None));
        rows.push(Row::new(name("Jain, mean of days"), daily.jain, "", Target::None));
        let worst = report.by_team.iter().max_by(|a, b| a.1.wait.mean.total_cmp(&b.1.wait.mean));
        if let Some((_, group)) = worst {
            let (mean, p95) = (group.wait.mean, group.wait.p95);
            rows.push(Row::new(name("mean wait of the worst team"), mean, "s", Target::None));
            rows.push(Row::new(name("P95 wait of the worst team"), p95, "s", Target::None));
        }
        rows.push(Row::new(name("mean wait"), report.all.wait.mean, "s", Target::None));
    }
    Ok(rows)
}

/// The jobs under the core on a pool of that size, with each team's quota by what it asks for.
fn shared(jobs: &[trace::Job], nodes: u32, seed: u64) -> Result<(Workload, Report)> {
    let workload = Workload::new(jobs, Estimate::noisy(seed))?;
    let quotas = workload.quotas_by_demand();
    let fleet = Fleet::like(nodes, 8, "P100");
    let rules = Preset::Berth.rules().with_quotas(quotas.clone());
    let replayed = replay::run(&rules, fleet.clone(), &workload, &mut |_| ())?;
    let setting =
        Setting { gpus: fleet.gpus(), teams: workload.teams.clone(), quotas, trim: Milli::ZERO };
    let report = Report::new(&replayed.outcomes, &setting);
    Ok((workload, report))
}

/// As many jobs of one GPU as each job has GPUs.
fn singles(jobs: &[trace::Job]) -> Vec<trace::Job> {
    let parts = |job: &trace::Job| {
        let count = (job.gpus.0 / Milli::ONE.0).max(1) as usize;
        let one = trace::Job { gpus: job.gpus.min(Milli::ONE), ..job.clone() };
        std::iter::repeat_n(one, count)
    };
    jobs.iter().flat_map(parts).collect()
}

const TEAMS: usize = 4;
const NODES: [u32; 2] = [16, 24];
