//! From what the core says to what is stored.

use crate::live::{Detail, LiveJob};
use berth_ledger::CostRow;
use berth_model::JobState;
use berth_model::{GpuAsk, JobId, JobRequest, JobSpec, Micros, Milli, Name, Span, Time};
use berth_store::{CostRecord, JobRow};
use std::collections::BTreeMap;

const HOUR: i64 = Span::hours(1).0;

/// The row, in parts that do not pass a full hour, so that every hour and day has exactly its own.
/// The parts sum to the row.
pub(crate) fn costs(row: &CostRow) -> impl Iterator<Item = CostRecord> {
    let whole = cost(row);
    let (from, to) = (row.from, row.to);
    let length = i128::from((to - from).0.max(1));
    let until = move |at: Time| {
        let amount = i128::from(whole.amount.0) * i128::from((at - from).0) / length;
        i64::try_from(amount).expect("a part is no larger than the whole")
    };
    let after = move |at: Time| Some(Time((at.0.div_euclid(HOUR) + 1) * HOUR).min(to));
    let starts = std::iter::successors(Some(from), move |at| after(*at).filter(|next| *next < to));
    starts.map(move |start| {
        let end = after(start).unwrap_or(to);
        let amount = Micros(until(end) - until(start));
        CostRecord { from: start, to: end, amount, ..whole.clone() }
    })
}

fn cost(row: &CostRow) -> CostRecord {
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

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::CostKind;

    fn row(from: &str, to: &str, amount: i64) -> CostRow {
        CostRow {
            lease: None,
            job: None,
            queue: None,
            project: None,
            experiment: None,
            user: None,
            node: Name::new("n1"),
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            gpus: Milli::ZERO,
            amount: Micros(amount),
            kind: CostKind::Unallocated,
        }
    }

    fn parts(from: &str, to: &str, amount: i64) -> Vec<(String, i64)> {
        let parts: Vec<CostRecord> = costs(&row(from, to, amount)).collect();
        assert!(parts.windows(2).all(|two| two[0].to == two[1].from), "{parts:?}");
        assert_eq!(parts.last().map(|part| part.to.to_string()).as_deref(), Some(to));
        parts.iter().map(|part| (part.from.to_string(), part.amount.0)).collect()
    }

    #[test]
    fn a_row_is_cut_at_full_hours_and_its_parts_sum_to_it() {
        let part = |at: &str, amount: i64| (format!("2026-11-15T{at}:00Z"), amount);
        assert_eq!(
            parts("2026-11-15T09:30:00Z", "2026-11-15T11:15:00Z", 8),
            [part("09:30", 2), part("10:00", 4), part("11:00", 2)]
        );
        assert_eq!(parts("2026-11-15T09:00:00Z", "2026-11-15T10:00:00Z", 7), [part("09:00", 7)]);
        assert_eq!(
            parts("2026-11-15T09:20:00Z", "2026-11-15T10:40:00Z", -5),
            [part("09:20", -2), part("10:00", -3)]
        );
    }
}
