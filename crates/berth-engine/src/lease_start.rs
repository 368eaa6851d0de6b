//! What a site needs to start one lease.

use crate::live::{LiveJob, LiveLease};
use berth_model::{JobId, LeaseId, RunSpec, Slice, Time, Workload};
use std::sync::Arc;

/// What is needed to start one lease, but for the values of secrets.
#[derive(Debug, Clone)]
pub struct LeaseStart {
    pub lease: LeaseId,
    pub user: String,
    pub team: String,
    pub name: String,
    pub run: Arc<RunSpec>,
    pub slices: Vec<Slice>,
    pub node: String,
    pub tasks: u32,
    pub port: Option<u16>,
    pub cpu: Option<berth_model::Cpu>,
    pub memory: Option<berth_model::Bytes>,
    pub ends_at: Option<Time>,
    pub resume_from: Option<JobId>,
}

impl LeaseStart {
    /// An error fails this lease, and no other.
    pub fn of(job: &LiveJob, lease: &LiveLease, now: Time) -> Result<LeaseStart, StartError> {
        let detail = &job.detail;
        let id = lease.row.id;
        let Workload::Run(run) = &detail.workload else {
            return Err(StartError::Pods { lease: id });
        };
        let slices = serde_json::from_str(&lease.row.slices)
            .map_err(|why| StartError::Unreadable { lease: id, why })?;
        Ok(LeaseStart {
            lease: id,
            user: job.row.user.clone(),
            team: job.row.team.clone(),
            name: job.row.name.clone(),
            run: run.clone(),
            slices,
            node: lease.row.node.clone(),
            tasks: detail.nodes,
            port: detail.port,
            cpu: detail.cpu,
            memory: detail.memory,
            ends_at: detail.time_limit.map(|limit| now + limit),
            resume_from: detail.resume_from,
        })
    }

    /// Names of the secrets its environment holds.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.run.secrets.values().map(String::as_str)
    }
}

/// Why a lease cannot be started as processes of Berth's own.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the GPUs of lease {lease} cannot be read from the database: {why}")]
    Unreadable { lease: LeaseId, why: serde_json::Error },
    #[error("lease {lease} is of pods that others made, which run on their cluster only")]
    Pods { lease: LeaseId },
}
