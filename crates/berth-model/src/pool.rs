//! Machines that can be bought.

use crate::{Bytes, Cpu, JobId, Lifecycle, Micros, Name, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSpec {
    pub name: Name,
    pub min: u32,
    pub max: u32,
    pub offerings: Vec<Offering>,
    pub labels: BTreeMap<Name, Name>,
}

/// An instance type in one zone, spot or on-demand, at a price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offering {
    pub instance: Name,
    pub gpus: u32,
    pub model: Name,
    pub memory_per_gpu: Bytes,
    pub cpu: Option<Cpu>,
    pub memory: Option<Bytes>,
    pub zone: Name,
    pub lifecycle: Lifecycle,
    /// Dollars an hour for the whole machine.
    pub price: Micros,
    /// From the claim to a node that takes work.
    pub boot: Span,
    /// Expected interruptions in a thousand hours of running.
    pub interruptions: i64,
    /// Not on offer before that time (it could not be had a moment ago).
    pub unavailable_until: Option<Time>,
}

/// A machine being bought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimSpec {
    pub name: Name,
    pub pool: Name,
    pub instance: Name,
    pub zone: Name,
    pub lifecycle: Lifecycle,
    pub for_job: Option<JobId>,
    pub since: Time,
}
