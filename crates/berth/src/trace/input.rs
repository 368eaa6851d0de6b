//! What is simulated: jobs, machines, prices and what befalls them, from files and options.

use super::refusal::refuse;
use crate::fail::BadValue;
use anyhow::{Context, Result, anyhow};
use berth_model::{Milli, Name, Span, Time};
use berth_sim::estimate::Estimate;
use berth_sim::fleet::{Fleet, MODELS, UNNAMED};
use berth_sim::prices::PriceList;
use berth_sim::site::{Checkpointing, FailureRates, Offer, Site, Spot};
use berth_sim::synthetic::{self, Recipe};
use berth_sim::trace::{self, Select};
use berth_sim::workload::Workload;
use clap::{Args, ValueEnum};
use flate2::read::GzDecoder;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A trace that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Bundled {
    /// What two busy clusters were asked for in a month: 3,505 jobs
    Month,
    /// 300 made-up jobs of a quiet week
    Week,
}

impl Bundled {
    const fn name(self) -> &'static str {
        match self {
            Bundled::Month => "the bundled month",
            Bundled::Week => "the bundled week",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Bundled::Month => trace::MONTH,
            Bundled::Week => trace::BUNDLED,
        }
    }

    /// A cluster on which its jobs wait now and then.
    fn fleet(self) -> Fleet {
        match self {
            Bundled::Month => Fleet::like(24, 8, "A100"),
            Bundled::Week => Fleet::like(3, 8, "A100"),
        }
    }
}

#[derive(Args)]
pub struct Input {
    /// Jobs as CSV, may be gzipped (a bundled trace)
    #[arg(long, value_name = "FILE", conflicts_with = "synthetic")]
    pub jobs: Option<PathBuf>,
    /// Which bundled trace
    #[arg(long, value_enum, default_value_t = Bundled::Month, conflicts_with_all = ["jobs", "synthetic"])]
    pub bundled: Bundled,
    /// Generate this many jobs instead
    #[arg(long, value_name = "JOBS")]
    pub synthetic: Option<u32>,
    /// Days over which generated jobs arrive
    #[arg(long, value_name = "N", default_value_t = 30, requires = "synthetic")]
    pub days: u32,
    /// Nodes as CSV, may be gzipped, of any models and sizes
    #[arg(long, value_name = "FILE", conflicts_with = "cluster")]
    pub nodes: Option<PathBuf>,
    /// Identical nodes instead: NODESxGPUS or NODESxGPUSxMODEL, such as 68x8xA100
    #[arg(long, value_name = "NxG")]
    pub cluster: Option<Cluster>,
    /// Which workload of a file that has several
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Only jobs of this team
    #[arg(long, value_name = "NAME")]
    pub team: Option<String>,
    /// Only jobs submitted this long after the start of the trace, such as 27d
    #[arg(long, value_name = "SPAN")]
    pub from: Option<Span>,
    /// Only jobs submitted before this time
    #[arg(long, value_name = "SPAN")]
    pub until: Option<Span>,
    /// The run times that users estimate: the truth, the limit in the trace, or the truth with an
    /// error
    #[arg(long, value_enum, default_value_t = Estimates::Noisy)]
    pub estimates: Estimates,
    /// The size of the error: the standard deviation of its logarithm
    #[arg(long, value_name = "SIGMA", default_value = "1")]
    pub error: Milli,
    /// The seed for errors, failures and generated jobs
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Price and power of GPUs, as CSV: gpu_type, usd_per_gpu_h, spot_usd_per_gpu_h, idle_w, busy_w
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    #[command(flatten)]
    pub failures: Failures,
}

/// What befalls machines and jobs.
#[derive(Args)]
pub struct Failures {
    /// Mean time between failures of one node, such as 90d
    #[arg(long, value_name = "SPAN", help_heading = "Failures and checkpoints")]
    pub node_mtbf: Option<Span>,
    /// Mean time between failures of one GPU
    #[arg(long, value_name = "SPAN", help_heading = "Failures and checkpoints")]
    pub gpu_mtbf: Option<Span>,
    /// How long a repair takes
    #[arg(
        long,
        value_name = "SPAN",
        default_value = "4h",
        help_heading = "Failures and checkpoints"
    )]
    pub repair: Span,
    /// Time between checkpoints; without it, a failure loses everything since the start
    #[arg(long, value_name = "SPAN", help_heading = "Failures and checkpoints")]
    pub checkpoint: Option<Span>,
    /// Time that one checkpoint takes
    #[arg(
        long,
        value_name = "SPAN",
        default_value = "0s",
        help_heading = "Failures and checkpoints"
    )]
    pub checkpoint_cost: Span,
    /// Time to restart after a failure
    #[arg(
        long,
        value_name = "SPAN",
        default_value = "5m",
        help_heading = "Failures and checkpoints"
    )]
    pub restart_cost: Span,
    /// Machines that the scheduler may buy: at most NxGxMODEL, such as 20x8xA100, or 20x8xA100:spot or
    /// :on-demand for one of the two
    #[arg(long, value_name = "NxGxMODEL", help_heading = "Bought machines")]
    pub pool: Vec<Pool>,
    /// Time from the order until a machine takes work
    #[arg(long, value_name = "SPAN", default_value = "5m", help_heading = "Bought machines")]
    pub boot: Span,
    /// Mean time until a spot machine is taken back
    #[arg(long, value_name = "SPAN", default_value = "24h", help_heading = "Bought machines")]
    pub spot_lasts: Span,
    /// Availability and price of spot machines, as CSV: t_s, nodes_available, usd_per_h
    #[arg(long, value_name = "FILE", help_heading = "Bought machines")]
    pub spot_trace: Option<PathBuf>,
    /// Which series of that file
    #[arg(long, value_name = "NAME", requires = "spot_trace", help_heading = "Bought machines")]
    pub spot_series: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Estimates {
    Exact,
    Limit,
    Noisy,
}

#[derive(Debug, Clone)]
pub struct Cluster {
    pub nodes: u32,
    pub gpus: u32,
    pub model: String,
}

impl FromStr for Cluster {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Cluster, BadValue> {
        let mut parts = text.splitn(3, 'x');
        let mut number = || parts.next()?.parse::<u32>().ok().filter(|number| *number > 0);
        match (number(), number()) {
            (Some(nodes), Some(gpus)) if u64::from(nodes) * u64::from(gpus) <= 10_000_000 => {
                let model = parts.next().unwrap_or(UNNAMED).to_owned();
                Ok(Cluster { nodes, gpus, model })
            }
            _ => Err(BadValue::new("expected NODESxGPUS or NODESxGPUSxMODEL, such as 68x8xA100")),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buy {
    Both,
    Spot,
    OnDemand,
}

/// Machines that may be bought.
#[derive(Debug, Clone)]
pub struct Pool {
    pub most: Cluster,
    pub buy: Buy,
}

impl FromStr for Pool {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Pool, BadValue> {
        let (most, buy) = match text.split_once(':') {
            None => (text, Buy::Both),
            Some((most, "spot")) => (most, Buy::Spot),
            Some((most, "on-demand")) => (most, Buy::OnDemand),
            Some(_) => return Err(BadValue::new("after the colon comes spot or on-demand")),
        };
        Ok(Pool { most: most.parse()?, buy })
    }
}

impl Input {
    pub fn jobs_to_run(&self) -> Result<Workload> {
        let (name, jobs) = match (&self.jobs, self.synthetic) {
            (_, Some(count)) => {
                if self.days == 0 || count == 0 {
                    return Err(refuse("no-jobs", "give at least one job and one day"));
                }
                let (jobs, days) = (count, self.days);
                let recipe = Recipe { jobs, days, seed: self.seed, ..Recipe::default() };
                ("made-up jobs".to_owned(), synthetic::jobs(&recipe))
            }
            (Some(path), None) => {
                let name = path.display().to_string();
                let jobs = trace::jobs(&name, &read(path)?, &self.select())?;
                (name, jobs)
            }
            (None, None) => {
                let name = self.bundled.name();
                let jobs = trace::jobs(name, self.bundled.text(), &self.select())?;
                (name.to_owned(), jobs)
            }
        };
        let estimate = match self.estimates {
            Estimates::Exact => Estimate::Exact,
            Estimates::Limit => Estimate::Limit,
            Estimates::Noisy => Estimate::Noisy { sigma: self.error, seed: self.seed },
        };
        let workload =
            Workload::new(&jobs, estimate).map_err(|untold| anyhow!("{name}, {untold}"))?;
        if workload.jobs.is_empty() {
            let message =
                format!("{name}: no job that needs a GPU is left; widen --from, --until or --team");
            return Err(refuse("no-jobs", message));
        }
        Ok(workload)
    }

    fn select(&self) -> Select {
        Select {
            set: self.workload.clone(),
            team: self.team.clone(),
            from: self.from.map(|from| Time(0) + from),
            until: self.until.map(|until| Time(0) + until),
        }
    }

    pub fn prices(&self) -> Result<PriceList> {
        self.prices.as_deref().map_or(Ok(PriceList::default()), price_list)
    }

    /// Machines and what befalls them. `more` pools are what-ifs.
    pub fn site(&self, prices: &PriceList, more: &[Pool]) -> Result<Site> {
        let Failures { node_mtbf, gpu_mtbf, repair, checkpoint, checkpoint_cost, .. } =
            &self.failures;
        for (name, span) in [("--node-mtbf", node_mtbf), ("--gpu-mtbf", gpu_mtbf)] {
            if span.is_some_and(|span| span < Span::mins(1)) {
                return Err(refuse("bad-rate", format!("{name} is at least 1m")));
            }
        }
        if checkpoint.is_some_and(|every| every < Span::secs(1)) {
            return Err(refuse("bad-rate", "--checkpoint is at least 1s"));
        }
        let fleet = self.fleet(more)?;
        let troubles =
            FailureRates { seed: self.seed, node: *node_mtbf, gpu: *gpu_mtbf, repair: *repair };
        let failing = node_mtbf.is_some() || gpu_mtbf.is_some() || !self.failures.pool.is_empty();
        let restart =
            if failing || !more.is_empty() { self.failures.restart_cost } else { Span::ZERO };
        let saves = Checkpointing { every: *checkpoint, cost: *checkpoint_cost, restart };
        let mut site = Site { fleet, troubles, saves, market: Vec::new() };
        for pool in self.failures.pool.iter().chain(more) {
            let offer = self.offer(pool, prices, &mut site.fleet)?;
            site.market.push(offer);
        }
        Ok(site)
    }

    fn fleet(&self, more: &[Pool]) -> Result<Fleet> {
        if let Some(path) = &self.nodes {
            return self.fleet_from(path);
        }
        let buys = !self.failures.pool.is_empty() || !more.is_empty();
        match (&self.cluster, &self.jobs, self.synthetic) {
            (Some(Cluster { nodes, gpus, model }), ..) => Ok(Fleet::like(*nodes, *gpus, model)),
            _ if buys => Ok(Fleet::default()),
            (None, None, None) => Ok(self.bundled.fleet()),
            (None, ..) => {
                let message = "what the jobs ran on is not known: give --cluster or --nodes";
                Err(refuse("no-cluster", message))
            }
        }
    }

    fn fleet_from(&self, path: &Path) -> Result<Fleet> {
        let name = path.display().to_string();
        let nodes = trace::nodes(&name, &read(path)?)?;
        let with_gpus = nodes.iter().map(|node| {
            let model = node.gpu_type.as_ref().map_or(UNNAMED, Name::as_str);
            (node.gpus_revised.unwrap_or(node.gpus), model)
        });
        let fleet = Fleet::new(with_gpus.filter(|(gpus, _)| *gpus > 0));
        let fleet = fleet.ok_or_else(|| {
            refuse("many-models", format!("{name}: there are more than {MODELS} GPU models"))
        })?;
        if fleet.nodes.is_empty() {
            return Err(refuse("no-gpus", format!("{name}: no node has a GPU; see column gpus")));
        }
        Ok(fleet)
    }

    fn offer(&self, pool: &Pool, prices: &PriceList, fleet: &mut Fleet) -> Result<Offer> {
        let Cluster { nodes: max, gpus, model } = &pool.most;
        let rate = prices.rate(model);
        let place =
            fleet.model(model).ok_or_else(|| refuse("many-models", "too many GPU models"))?;
        let whole = |price: berth_model::Micros| berth_model::Micros(price.0 * i64::from(*gpus));
        let mut spot = Spot {
            price: whole(rate.spot),
            prices: Vec::new(),
            lasts: Some(self.failures.spot_lasts.max(Span::mins(1))),
            there: Vec::new(),
            notice: Span::mins(2),
        };
        if let Some(path) = &self.failures.spot_trace {
            let name = path.display().to_string();
            let series = self.failures.spot_series.as_deref();
            let seen = trace::spot(&name, &read(path)?, series)?;
            // What a record says about when machines could be had takes the place of chance.
            spot.lasts = if seen.there.is_empty() { spot.lasts } else { None };
            (spot.there, spot.prices) = (seen.there, seen.prices);
        }
        Ok(Offer {
            gpus: *gpus,
            model: place,
            max: *max,
            on_demand: (pool.buy != Buy::Spot).then(|| whole(rate.on_demand)),
            spot: (pool.buy != Buy::OnDemand).then_some(spot),
            boot: self.failures.boot,
        })
    }
}

pub fn price_list(path: &Path) -> Result<PriceList> {
    let name = path.display().to_string();
    Ok(trace::prices(&name, &read(path)?)?)
}

/// Text of a file, which may be gzipped whatever its name.
pub fn read(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let mut text = String::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let read = GzDecoder::new(bytes.as_slice()).read_to_string(&mut text);
        read.with_context(|| format!("unpacking {}", path.display()))?;
        return Ok(text);
    }
    String::from_utf8(bytes).with_context(|| format!("{} is not text", path.display()))
}
