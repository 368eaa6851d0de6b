//! What a site needs to start one lease.

use crate::clock;
use crate::live::{LiveJob, LiveLease};
use berth_model::{JobId, LeaseId, RunSpec, Slice, Span, Time, Workload};
use std::sync::Arc;

/// What is needed to start one lease, but for the values of secrets.
#[derive(Debug, Clone)]
pub struct LeaseStart {
    pub lease: LeaseId,
    pub user: String,
    pub team: String,
    pub name: String,
    pub project: String,
    pub experiment: String,
    pub submitted: Time,
    pub run: Arc<RunSpec>,
    pub slices: Vec<Slice>,
    pub node: String,
    pub tasks: u32,
    pub port: Option<u16>,
    pub cpu: Option<berth_model::Cpu>,
    pub memory: Option<berth_model::Bytes>,
    /// When it reaches its time limit, as the clock on the wall will show it.
    pub ends_at: Option<Time>,
    /// How long it may run.
    pub runs_for: Option<Span>,
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
            project: job.row.project.clone(),
            experiment: job.row.experiment.clone(),
            submitted: job.row.submitted,
            run: run.clone(),
            slices,
            node: lease.row.node.clone(),
            tasks: detail.nodes,
            port: detail.port,
            cpu: detail.cpu,
            memory: detail.memory,
            ends_at: detail.time_limit.map(|limit| clock::to_wall(now + limit)),
            runs_for: detail.time_limit,
            resume_from: detail.resume_from,
        })
    }

    /// Has it end when the core says: a job that goes on from a checkpoint has less time left than
    /// its limit.
    #[must_use]
    pub fn until(self, ends: Option<Time>, now: Time) -> LeaseStart {
        let Some(ends) = ends else { return self };
        let left = (ends - now).max(Span::ZERO);
        LeaseStart { ends_at: Some(clock::to_wall(now + left)), runs_for: Some(left), ..self }
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
