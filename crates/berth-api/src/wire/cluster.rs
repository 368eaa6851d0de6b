//! Queues, shares, GPUs and nodes.

use super::{At, Id};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// Where a queue stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    pub name: String,
    pub parent: Option<String>,
    pub quota_milli: i64,
    pub used_milli: i64,
    pub fair_share_milli: i64,
    pub running: u32,
    pub waiting: u32,
    /// Its children are promised more than it has itself.
    pub overcommitted: bool,
    /// Half of those that started in the last day had waited less.
    pub wait_p50_ms: Option<i64>,
    pub wait_p90_ms: Option<i64>,
    /// Who waits, in order; only when one queue is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub line: Vec<QueueLine>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueLine {
    pub position: u32,
    pub id: Id,
    pub name: String,
    pub user: String,
    pub asks: String,
    pub reason: String,
    pub eta: Option<At>,
}

/// What a queue is entitled to, and how that came about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Share {
    pub queue: String,
    pub parent: Option<String>,
    pub quota_milli: i64,
    pub weight_milli: i64,
    pub fair_share_milli: i64,
    pub used_milli: i64,
    /// Used, and asked for by those who wait.
    pub demand_milli: i64,
    pub borrowed_milli: i64,
    /// Of its quota, used by others.
    pub lent_milli: i64,
    pub credits_gpu_s: i64,
    pub past_use_gpu_s: i64,
    /// All of it in a sentence.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Gpu {
    pub node: String,
    pub index: u32,
    pub model: String,
    pub memory_bytes: i64,
    /// None of a GPU that is declared.
    pub uuid: Option<String>,
    /// It is bookkeeping: jobs run for real, the device does not exist.
    pub declared: bool,
    pub healthy: bool,
    /// By which process, where it is not used because one holds it that no job explains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// What is wrong with it, where it has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Why it is checked before it takes work, while that goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checking: Option<String>,
    /// What its last check came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<GpuCheck>,
    /// The state of its node, if the node takes no new jobs. No job can use its free GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<NodeState>,
    /// How much of it nobody holds.
    pub free_milli: i64,
    pub holders: Vec<GpuHolder>,
    pub price_micros_per_hour: i64,
    /// Percent, where it can be measured.
    pub utilization: Option<u32>,
    pub used_bytes: Option<i64>,
    pub watts: Option<u32>,
    pub celsius: Option<u32>,
    /// How long nothing has been computed on it while it was held, up to now: nothing where it is
    /// free, or is not measured. At least so long, where it is more than a quarter of an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<i64>,
}

/// What a check of a GPU came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GpuCheck {
    pub at: At,
    pub passed: bool,
    /// What is wrong, if it has not passed.
    pub why: Option<String>,
    /// Whether all its results were right, where it came to that.
    pub correct: Option<bool>,
    pub figures: Vec<GpuFigure>,
    /// What was not judged, and why.
    pub remarks: Vec<String>,
    pub took_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GpuFigure {
    /// `memory`, `to_gpu`, `from_gpu` or `product`.
    pub of: String,
    pub measured: u64,
    /// What its model is said to do.
    pub nominal: Option<u64>,
    /// What it has to reach; nothing where it is not judged.
    pub least: Option<u64>,
    /// `MB/s` or `GFLOPS`.
    pub unit: String,
}

/// How a GPU is put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GpuResume {
    /// Without a check: it takes work as it is.
    pub no_check: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GpuHolder {
    pub job: Id,
    pub name: String,
    /// As the name, for those who may read the job.
    #[serde(default)]
    pub user: String,
    pub team: String,
    /// Since when it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<At>,
    pub milli: i64,
    /// Such as `whole`, `fraction`, or a MIG profile.
    pub share: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    Ready,
    Cordoned,
    Draining,
    /// It takes no new work until it can start processes again.
    Troubled,
    Failed,
    Leaving,
}

impl NodeState {
    /// Whether jobs can start on a node in this state.
    pub const fn takes_work(self) -> bool {
        matches!(self, NodeState::Ready | NodeState::Leaving)
    }

    pub const fn word(self) -> &'static str {
        match self {
            NodeState::Ready => "ready",
            NodeState::Cordoned => "cordoned",
            NodeState::Draining => "draining",
            NodeState::Troubled => "in trouble",
            NodeState::Failed => "failed",
            NodeState::Leaving => "leaving",
        }
    }
}

impl Gpu {
    /// How much of it a new job can use.
    pub fn usable_milli(&self) -> i64 {
        if self.closed.is_some() { 0 } else { self.free_milli }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    pub name: String,
    pub state: NodeState,
    /// When it leaves.
    pub until: Option<At>,
    /// Why it was drained or cordoned, in the words of whoever did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What keeps it from starting anything, while it is in trouble.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// What the output of ended jobs takes on its disk, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<i64>,
    /// Models and how many of each.
    pub gpus: BTreeMap<String, u32>,
    pub declared: bool,
    pub gpus_milli: i64,
    pub free_milli: i64,
    pub cpu_milli: Option<i64>,
    pub cpu_free_milli: Option<i64>,
    pub memory_bytes: Option<i64>,
    pub memory_free_bytes: Option<i64>,
    pub price_micros_per_hour: i64,
    pub labels: BTreeMap<String, String>,
    pub jobs: Vec<Id>,
    /// Whether jobs are held to their CPU and memory.
    pub cgroup: bool,
    /// How jobs are kept apart; nothing where Berth does not start their processes.
    #[serde(default)]
    pub isolation: Option<NodeIsolation>,
}

/// How a node is drained or cordoned.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct NodeChange {
    /// Why; `berth nodes` shows it until the node takes work again. At most 200 characters.
    pub reason: Option<String>,
}

/// How the jobs of a node are kept apart from each other and from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeIsolation {
    /// Namespaces, and an account for each user.
    Accounts,
    /// Namespaces. All jobs run as the server's account.
    Sandbox,
    /// Every job reaches what the server reaches.
    None,
}
