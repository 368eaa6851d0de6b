//! Queues: the nodes of the tenant tree, and what is reserved by hand.

use crate::{Bytes, Cpu, Micros, Milli, Name, QueueOrder, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A guaranteed or limiting amount of one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount<T> {
    Of(T),
    /// Thousandths of a percent-based whole: 40 % is 400.
    Share(Milli),
    Unlimited,
}

/// GPUs in total and per model; what is not named does not bind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GpuQuota {
    pub total: Option<Amount<Milli>>,
    pub models: BTreeMap<Name, Amount<Milli>>,
}

/// Amounts per resource. Used for quota, limit, borrow and lend alike.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Quota {
    pub gpu: GpuQuota,
    pub cpu: Option<Amount<Cpu>>,
    pub memory: Option<Amount<Bytes>>,
}

impl Quota {
    pub fn is_empty(&self) -> bool {
        self.gpu.total.is_none()
            && self.gpu.models.is_empty()
            && self.cpu.is_none()
            && self.memory.is_none()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSpec {
    pub name: Name,
    pub parent: Option<Name>,
    pub quota: Quota,
    /// Thousandths; the default is 1000.
    pub weight: Milli,
    pub priority: i32,
    pub limit: Quota,
    pub borrow: Quota,
    pub lend: Quota,
    pub user_limit: Quota,
    /// `None`: the policy's.
    pub order: Option<QueueOrder>,
    pub min_runtime: Option<Span>,
    pub preempt_after: Option<Span>,
    pub time_sharing: Option<bool>,
    pub budget: Option<Budget>,
    /// It decides nothing here: who submits a job is held to it.
    #[serde(default, skip_serializing_if = "ClassLimit::is_empty")]
    pub class_limit: ClassLimit,
}

/// The highest priority class that people of a role may give their jobs in a queue and those below
/// it. A role that is left out may use what it may use everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassLimit {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub researcher: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_lead: Option<Name>,
}

impl ClassLimit {
    pub fn is_empty(&self) -> bool {
        self.researcher.is_none() && self.team_lead.is_none()
    }
}

impl QueueSpec {
    pub fn new(name: &str) -> QueueSpec {
        QueueSpec {
            name: Name::new(name),
            parent: None,
            quota: Quota::default(),
            weight: Milli::ONE,
            priority: 0,
            limit: Quota::default(),
            borrow: Quota::default(),
            lend: Quota::default(),
            user_limit: Quota::default(),
            order: None,
            min_runtime: None,
            preempt_after: None,
            time_sharing: None,
            budget: None,
            class_limit: ClassLimit::default(),
        }
    }
}

/// What happens when a budget is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BudgetAction {
    #[default]
    Notify,
    /// No new job starts.
    Block,
    /// Jobs of the queue go after all others.
    LowerPriority,
    /// Running jobs are checkpointed and stopped, and wait for the next period.
    Pause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BudgetPeriod {
    Day,
    Week,
    #[default]
    Month,
    /// Never starts anew.
    Once,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    pub limit: Micros,
    pub per: BudgetPeriod,
    pub action: BudgetAction,
    /// Thousandths of the limit at which an alert goes out; the limit itself always does.
    pub thresholds: Vec<Milli>,
}

/// Nodes kept for an owner for a time: maintenance, or an advance reservation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    pub name: Name,
    /// A queue whose jobs may use the nodes meanwhile; any other owner keeps them empty.
    pub owner: Name,
    pub nodes: Vec<Name>,
    pub from: Time,
    pub to: Time,
}
