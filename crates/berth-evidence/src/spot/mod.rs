//! What a job with a deadline costs on spot machines that come and go as recorded.

mod series;
mod table;

use crate::report::{Row, Target};
use anyhow::{Result, ensure};
use berth_sim::random::Rng;
use berth_sim::spot::{
    Greedy, Market, OnDemand, Rule, Steady, Terms, UniformProgress, bound, play,
};
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct Spot {
    /// The folder with the traces
    #[arg(long)]
    traces: PathBuf,
    /// What spot costs, in thousandths of on demand: 0.97 of 3.06 dollars an hour
    #[arg(long, default_value_t = SPOT_MILLI)]
    price: i64,
    /// Draws the windows of series that have none of their own
    #[arg(long, default_value_t = 42)]
    seed: u64,
}

const HOUR_S: i64 = 3_600;
const WORK_H: i64 = 48;
const DEADLINES_H: [i64; 3] = [52, 60, 70];
/// Overheads of a start, in thousandths of an hour.
const OVERHEADS_MILLI_H: [i64; 3] = [20, 200, 400];
const WINDOWS: usize = 300;

/// A rule by its name.
type Named = (&'static str, fn() -> Box<dyn Rule>);

const RULES: [Named; 4] = [
    ("on demand", || Box::new(OnDemand)),
    ("greedy", || Box::<Greedy>::default()),
    ("Uniform Progress", || Box::<UniformProgress>::default()),
    ("Berth", || Box::<Steady>::default()),
];

/// A market, and where in it the job begins.
pub struct Windows {
    pub market: Market,
    pub starts: Vec<usize>,
}

/// What many windows came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum {
    pub windows: u64,
    pub cost: i128,
    pub missed: u64,
    pub restarts: u64,
}

pub struct Case {
    pub deadline_h: i64,
    pub overhead_milli_h: i64,
    pub on_demand: i128,
    pub bound: i128,
    pub rules: Vec<(&'static str, Sum)>,
}

fn case(sets: &[Windows], deadline_h: i64, overhead_milli_h: i64, spot_milli: i64) -> Case {
    let terms = Terms {
        work_s: WORK_H * HOUR_S,
        deadline_s: deadline_h * HOUR_S,
        overhead_s: overhead_milli_h * HOUR_S / 1_000,
        spot_milli,
    };
    let mut rules = RULES.map(|(name, _)| (name, Sum::default()));
    let (mut least, mut on_demand) = (0_i128, 0_i128);
    for set in sets {
        for start in &set.starts {
            let window = set.market.window(*start, terms.deadline_s);
            least += i128::from(bound(&window, &terms));
            on_demand += i128::from(terms.on_demand_cost());
            for ((_, sum), (_, make)) in rules.iter_mut().zip(RULES) {
                let outcome = play(&window, &terms, make().as_mut());
                sum.windows += 1;
                sum.cost += i128::from(outcome.cost);
                sum.missed += u64::from(outcome.missed);
                sum.restarts += u64::from(outcome.restarts);
            }
        }
    }
    Case { deadline_h, overhead_milli_h, on_demand, bound: least, rules: rules.to_vec() }
}

fn cases(sets: &[Windows], spot_milli: i64) -> Vec<Case> {
    let all = OVERHEADS_MILLI_H.iter().flat_map(|overhead| {
        DEADLINES_H.iter().map(move |deadline| case(sets, *deadline, *overhead, spot_milli))
    });
    all.collect()
}

/// Starts drawn so that the longest job still lies in the record.
fn draw(market: &Market, seed: u64) -> Vec<usize> {
    let longest_s = DEADLINES_H[DEADLINES_H.len() - 1] * HOUR_S;
    let last = market.samples().saturating_sub((longest_s / market.step_s) as usize + 1);
    let mut random = Rng::new(seed);
    (0..WINDOWS).map(|_| random.below(last.max(1) as u64) as usize).collect()
}

/// What the rules cost on the series with windows of their own, the longest overhead and the
/// shortest deadline included.
pub fn rows(folder: &std::path::Path, _seed: u64) -> Result<Vec<Row>> {
    let all = series::read(folder)?;
    let mut published: Vec<Windows> = Vec::new();
    for (name, starts) in series::windows(folder)? {
        if let Some(series) = all.get(&name) {
            published.push(Windows { market: series.market(), starts });
        }
    }
    ensure!(!published.is_empty(), "no series with windows is here");
    let mut rows = Vec::new();
    for case in cases(&published, SPOT_MILLI) {
        let hours = case.overhead_milli_h as f64 / 1_000.0;
        let name =
            |what: &str| format!("deadline {} h, overhead {hours} h: {what}", case.deadline_h);
        let percent = |cost: i128| 100.0 * cost as f64 / case.on_demand as f64;
        let of =
            |rule: &str| case.rules.iter().find(|(name, _)| *name == rule).map(|(_, sum)| *sum);
        let (Some(ours), Some(theirs)) = (of("Berth"), of("Uniform Progress")) else { continue };
        let target = Target::AtMost(percent(theirs.cost));
        rows.push(Row::new(
            name("cost, at most Uniform Progress"),
            percent(ours.cost),
            "%",
            target,
        ));
        rows.push(Row::new(name("cost, bound"), percent(case.bound), "%", Target::None));
        let missed = ours.missed as f64;
        rows.push(Row::new(name("deadlines missed"), missed, "jobs", Target::Exactly(0.0)));
    }
    Ok(rows)
}

/// What spot costs, in thousandths of on demand: 0.97 of 3.06 dollars an hour.
const SPOT_MILLI: i64 = 317;

pub fn command(spot: &Spot) -> Result<()> {
    let all = series::read(&spot.traces)?;
    let windows = series::windows(&spot.traces)?;
    let mut published: Vec<Windows> = Vec::new();
    for (name, starts) in &windows {
        if let Some(series) = all.get(name) {
            published.push(Windows { market: series.market(), starts: starts.clone() });
        }
    }
    ensure!(!published.is_empty(), "no series with windows is here");
    let title = format!("{} series of 2022 with windows of their own", published.len());
    println!("{}", table::table(&title, &cases(&published, spot.price)));
    let east: Vec<_> =
        all.iter().filter(|(name, _)| name.starts_with("avail-20230215-us-east-1")).collect();
    ensure!(!east.is_empty(), "there is no series of us-east-1");
    let mut each = Vec::new();
    for (_, series) in &east {
        let market = series.market();
        each.push(Windows { starts: draw(&market, spot.seed), market });
    }
    let title = format!("{} zones of us-east-1 in 2023, each for itself", east.len());
    println!("{}", table::table(&title, &cases(&each, spot.price)));
    let zones = each.iter().flat_map(|set| set.market.zones.clone()).collect();
    let market = Market { step_s: each[0].market.step_s, zones };
    let pooled = [Windows { starts: draw(&market, spot.seed), market }];
    println!("{}", table::table("the zones of us-east-1 pooled", &cases(&pooled, spot.price)));
    Ok(())
}
