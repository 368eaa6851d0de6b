//! From what the core says to what is stored.

use crate::live::{Detail, LiveJob};
use berth_ledger::CostRow;
use berth_model::JobState;
use berth_model::{GpuAsk, JobId, JobRequest, JobSpec, Micros, Milli, Name};
use berth_store::{CostRecord, JobRow};
use std::collections::BTreeMap;

pub(crate) fn cost(row: &CostRow) -> CostRecord {
    let name = |name: &Option<Name>| name.clone().unwrap_or_default();
    CostRecord {
        id: 0,
        lease: row.lease,
        team: name(&row.queue),
        project: name(&row.project),
        experiment: name(&row.experiment),
        user: name(&row.user),
        node: row.node.clone(),
        kind: row.kind,
        from: row.from,
        to: row.to,
        gpus: row.gpus,
        amount: row.amount,
    }
}

/// The job, or the elements of its array, as they are shown from now on.
pub(crate) fn submitted(spec: &JobSpec, request: JobRequest) -> Vec<LiveJob> {
    let ids: Vec<JobId> = match &spec.array {
        None => vec![spec.id],
        Some(array) => array.elements.iter().map(|element| spec.id.element(*element)).collect(),
    };
    let JobRequest { kind, workload, file, asks, resume_from, .. } = request;
    let mut detail = Detail::new(spec, workload, asks);
    detail.resume_from = resume_from;
    let gpus = spec.groups.iter().map(|group| milli(&group.gpus) * i64::from(group.count)).sum();
    let live = |id: JobId| LiveJob {
        row: JobRow {
            id,
            name: spec.name.to_string(),
            kind,
            user: spec.user.to_string(),
            team: spec.queue.to_string(),
            project: spec.project.to_string(),
            experiment: spec.experiment.to_string(),
            state: JobState::Pending,
            priority: spec.priority,
            submitted: spec.submitted,
            started: None,
            ended: None,
            attempt: 0,
            gpus: Milli(gpus),
            cost: Micros::ZERO,
            file: file.clone(),
            detail: String::new(),
            reason: String::new(),
        },
        detail: detail.clone(),
        leases: BTreeMap::new(),
        kill: false,
    };
    ids.into_iter().map(live).collect()
}

/// How much of GPUs a task asks for, as far as that can be told before it is placed.
fn milli(ask: &GpuAsk) -> i64 {
    let one = match ask {
        GpuAsk::None => 0,
        GpuAsk::Whole { .. } => 1_000,
        GpuAsk::Fraction { milli, .. } => milli.0,
        GpuAsk::Mps { percent, .. } => i64::from(*percent) * 10,
        GpuAsk::TimeSlice { of, .. } => 1_000 / i64::from((*of).max(1)),
        // Of seven compute slices, as many as the profile begins with.
        GpuAsk::Mig { profile, .. } => {
            let slices = profile.split_once('g').and_then(|(slices, _)| slices.parse::<i64>().ok());
            slices.unwrap_or(0) * 1_000 / 7
        }
        GpuAsk::Memory { .. } => 0,
    };
    one * i64::from(ask.count())
}
