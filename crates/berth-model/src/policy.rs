//! Every knob of the scheduler, in one versioned value that arrives by event.

use crate::{Milli, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The passes of a plan, least disruptive first. `settle` and `share` always run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pass {
    Settle,
    Serve,
    Share,
    Place,
    Backfill,
    Defragment,
    Reclaim,
    Pools,
    Preempt,
    Grow,
}

impl Pass {
    pub const ALL: [Pass; 10] = [
        Pass::Settle,
        Pass::Serve,
        Pass::Share,
        Pass::Place,
        Pass::Backfill,
        Pass::Defragment,
        Pass::Reclaim,
        Pass::Pools,
        Pass::Preempt,
        Pass::Grow,
    ];
}

/// Which job of a queue goes next, after its priority class.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum QueueOrder {
    /// Deadlines at risk, then the largest wait over work.
    #[default]
    ResponseRatio,
    Fifo,
    /// The least work first.
    Shortest,
    /// First in, first out, and the head blocks the queue.
    Strict,
}

/// Where the ends of running jobs are taken from when GPUs are reserved.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum BackfillEnds {
    /// Enforced time limits: a reservation never moves because of an overrun.
    #[default]
    Limits,
    /// Estimates from history: earlier reservations, which an overrun may move.
    Estimates,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Fill nodes that are in use before empty ones.
    #[default]
    Pack,
    /// Prefer the emptiest nodes.
    Spread,
}

/// Whose shares may lie on one GPU at the same time. MIG instances are apart: they are asked no such
/// thing.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum ShareGpus {
    /// Those of one queue that jobs wait in.
    #[default]
    Team,
    Anyone,
}

/// A named priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PriorityClass {
    pub value: i32,
    /// Its jobs may take GPUs from lower classes of any queue.
    pub across: bool,
}

/// How the scheduler behaves. Each field's default is what [`Policy::default`] sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Grows by one with each change.
    pub version: u64,
    /// Which passes run, besides settle and share (all).
    pub passes: BTreeSet<Pass>,
    /// Time between SIGTERM and SIGKILL for jobs that name none, and the most one may name (5m).
    pub grace: Span,
    /// How long a gang below its minimum keeps its GPUs (60s).
    pub stale: Span,
    /// How whole-GPU jobs choose nodes (pack).
    pub strategy: Strategy,
    /// Order inside queues that name none (response-ratio).
    pub order: QueueOrder,
    /// Whether fractional tasks minimise fragmentation against the request mix (true); otherwise
    /// they take the best fit.
    pub fragmentation: bool,
    /// Whose shares may lie on one GPU at the same time (team).
    pub share_gpus: ShareGpus,
    /// How much of its part of the CPU and memory of its node jobs without GPUs leave to each free
    /// GPU (0.5). 0: they leave nothing; 1: all that one GPU of so many has.
    pub gpu_reserve: Milli,
    /// Weight of energy against fit when models of unequal efficiency both suit: a model whose
    /// work per watt is larger by this many thousandths goes first (100).
    pub energy: Milli,
    /// Blocked jobs per queue that hold a reservation (1).
    pub reservations: u32,
    /// A job that has waited this long holds a reservation whatever its share (24h).
    pub aging_max: Span,
    /// Where ends of running jobs come from (limits).
    pub backfill: BackfillEnds,
    /// Enforced for jobs that name no time limit (24h).
    pub default_time_limit: Span,
    /// Enforced for pods of work that ends and names no time limit; zero: none (0s).
    pub pod_time_limit: Span,
    /// The same for pods of services, which their controllers replace for ever (0s).
    pub service_pod_time_limit: Span,
    /// Time since its start during which a job is no victim (0s).
    pub min_runtime: Span,
    /// How long a job waits before it displaces others for anything but its own lent GPUs (0s).
    pub preempt_after: Span,
    /// Assumed for jobs that name none (2m).
    pub restart_cost: Span,
    /// Queues share time by default (false).
    pub time_sharing: bool,
    /// Running time after which a job may be paused for shorter ones (30m).
    pub quantum: Span,
    /// Pauses of one job in a day (4).
    pub pauses_per_day: u32,
    /// Half-life of past use (7d).
    pub half_life: Span,
    /// How strongly past use corrects the division of what is left over, in thousandths (1000).
    pub past_use: Milli,
    /// Credits are earned and spent (true).
    pub credits: bool,
    /// The most credit a queue keeps, as time of its whole quota (24h).
    pub credit_cap: Span,
    /// Jobs moved to defragment in any hour (12).
    pub moves_per_hour: u32,
    /// An idle bought node is given back after this time (10m).
    pub idle_after: Span,
    /// How many recent starts count beside the waiting jobs as the request mix (1000).
    pub mix: u32,
    /// Steps after which the packing of unlike tasks gives up; the reason says so (20000).
    pub search: u32,
    /// Runs of a forecast (32).
    pub forecast_runs: u32,
    /// How far a forecast looks ahead (14d).
    pub forecast_horizon: Span,
    /// Ended jobs whose outcome is kept for dependencies (10000).
    pub outcomes: u32,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            version: 1,
            passes: Pass::ALL.into_iter().collect(),
            grace: Span::mins(5),
            stale: Span::secs(60),
            strategy: Strategy::Pack,
            order: QueueOrder::ResponseRatio,
            fragmentation: true,
            share_gpus: ShareGpus::Team,
            gpu_reserve: Milli(500),
            energy: Milli(100),
            reservations: 1,
            aging_max: Span::hours(24),
            backfill: BackfillEnds::Limits,
            default_time_limit: Span::hours(24),
            pod_time_limit: Span::ZERO,
            service_pod_time_limit: Span::ZERO,
            min_runtime: Span::ZERO,
            preempt_after: Span::ZERO,
            restart_cost: Span::mins(2),
            time_sharing: false,
            quantum: Span::mins(30),
            pauses_per_day: 4,
            half_life: Span::days(7),
            past_use: Milli::ONE,
            credits: true,
            credit_cap: Span::hours(24),
            moves_per_hour: 12,
            idle_after: Span::mins(10),
            mix: 1_000,
            search: 20_000,
            forecast_runs: 32,
            forecast_horizon: Span::days(14),
            outcomes: 10_000,
        }
    }
}

impl Policy {
    pub fn runs(&self, pass: Pass) -> bool {
        matches!(pass, Pass::Settle | Pass::Share) || self.passes.contains(&pass)
    }
}
