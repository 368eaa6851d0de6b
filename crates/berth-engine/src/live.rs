//! What the server knows of a job beyond the core's view: how it is run, and what people are shown.

use berth_model::JobState;
use berth_model::run::Times;
use berth_model::{
    Bytes, Cause, Cpu, GroupSpec, JobId, JobSpec, LeaseId, Micros, Span, Time, Workload,
};
use berth_store::{JobRow, LeaseRow};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A job that has not ended, or one element of an array.
#[derive(Debug, Clone)]
pub struct LiveJob {
    /// Without its detail, which is made anew for each row that is written.
    pub row: JobRow,
    pub detail: Detail,
    pub leases: BTreeMap<LeaseId, LiveLease>,
    /// It is to be killed without its grace.
    pub kill: bool,
}

/// A lease that has not been closed.
#[derive(Debug, Clone)]
pub struct LiveLease {
    pub row: LeaseRow,
    pub stopping: Option<Cause>,
}

/// Why a lease was told to end, as its row keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    pub cause: Cause,
    /// The job that gets what it held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_job: Option<JobId>,
}

/// What a job's row keeps as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    #[serde(flatten)]
    pub workload: Workload,
    /// What it asks for, in the words of its file.
    pub asks: String,
    pub nodes: u32,
    /// Of each task.
    #[serde(default)]
    pub cpu: Option<Cpu>,
    #[serde(default)]
    pub memory: Option<Bytes>,
    #[serde(default)]
    pub time_limit: Option<Span>,
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub tries: Tries,
    /// The reason of an early end by a rule of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early: Option<String>,
    /// A user put it on hold, or its own budget did.
    #[serde(default)]
    pub held: bool,
    /// It misses pods it is made of.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parked: bool,
    /// It failed and is tried again then.
    #[serde(default)]
    pub again_at: Option<Time>,
    #[serde(default)]
    pub exit: Option<berth_model::Exit>,
    #[serde(default)]
    pub port: Option<u16>,
    #[serde(default)]
    pub ready: bool,
    /// It goes on from what another job saved.
    #[serde(default)]
    pub resume_from: Option<JobId>,
    /// Tasks of its pods that ended well, which no controller makes pods for again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<u32>,
    /// Who makes another pod in the place of its only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<MadeBy>,
}

/// The controller of a job's only pod. What it makes after that goes on with the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeBy {
    pub owner: String,
    /// What its pods have in common, as a number.
    pub like: u64,
    /// The pod is gone, and the next one is to come.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaited: bool,
}

/// How often a job was run again, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tries {
    pub infra: u32,
    pub error: u32,
    pub oom: u32,
    /// How often in a row the machine could not start it. These are no tries of the job: they only
    /// make the next pause longer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trouble: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Detail {
    pub fn new(spec: &JobSpec, workload: Workload, asks: String) -> Detail {
        let text = |map: &BTreeMap<berth_model::Name, berth_model::Name>| {
            map.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
        };
        let groups: Vec<&GroupSpec> = spec.groups.iter().flat_map(GroupSpec::leaves).collect();
        Detail {
            workload,
            asks,
            nodes: groups.iter().map(|group| group.count).sum(),
            cpu: groups.first().map(|group| group.cpu).filter(|cpu| *cpu > Cpu::ZERO),
            memory: groups.first().map(|group| group.memory).filter(|m| *m > Bytes::ZERO),
            time_limit: spec.time_limit,
            labels: text(&spec.labels),
            tries: Tries::default(),
            early: None,
            held: spec.hold,
            parked: false,
            again_at: None,
            exit: None,
            port: None,
            ready: false,
            resume_from: None,
            done: Vec::new(),
            made_by: None,
        }
    }
}

/// Whether one more try is allowed after so many.
pub fn allows(times: Times, tried: u32) -> bool {
    match times {
        Times::Forever => true,
        Times::At(most) => tried < most,
    }
}

impl LiveJob {
    /// What its owner said it may cost.
    pub fn budget(&self) -> Option<Micros> {
        self.detail.workload.run().and_then(|run| run.budget)
    }

    /// The state as people see it. What has ended keeps the state it ended with.
    pub fn state(&self) -> JobState {
        if self.row.state.is_final() {
            return self.row.state;
        }
        if self.leases.is_empty() {
            return if self.detail.held { JobState::Paused } else { JobState::Pending };
        }
        let stopping = self.leases.values().all(|lease| lease.stopping.is_some());
        if stopping { JobState::Stopping } else { JobState::Running }
    }

    /// The row with everything that follows from the rest.
    pub fn refreshed(&mut self) -> JobRow {
        self.row.state = self.state();
        let detail = serde_json::to_string(&self.detail).expect("it is plain data");
        JobRow { detail, ..self.row.clone() }
    }

    /// What it costs an hour as it runs now.
    pub fn price(&self) -> Micros {
        Micros(self.leases.values().map(|lease| lease.row.price.0).sum())
    }

    /// Whether all its tasks run.
    pub fn is_started(&self) -> bool {
        !self.leases.is_empty() && self.leases.values().all(|lease| lease.row.started.is_some())
    }
}
