//! What became of a job over time: its attempts as segments without holes.

use super::find;
use crate::caller::Caller;
use crate::fault::Fault;
use crate::live;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::wire::{JobRef, Segment, SegmentState, Timeline};
use berth_api::{Code, wire};
use berth_engine::{Stopped, clock, shown_state, stop_message};
use berth_ledger::cost::cumulative;
use berth_model::{Cause, JobId, Micros, Span, Time};
use berth_store::{JobRow, LeaseRow};
use std::collections::BTreeMap;

/// Attempts that one answer tells of: the newest.
const MOST_ATTEMPTS: usize = 500;
/// Other jobs whose names are looked up.
const MOST_OTHERS: usize = 50;

pub async fn timeline(service: &Service, caller: &Caller, job: &str) -> Result<Timeline, Fault> {
    let found = find::job(service, caller, job, Permission::JobsRead).await?;
    if found.is_array() {
        let next = format!("name one, such as {}", found.first().id);
        let detail = format!("job {} is an array; each element has its own time", found.id);
        return Err(Fault::new(Code::WrongState, detail).next(next));
    }
    let row = found.first();
    let mut leases = service.store.leases_of(row.id).await?;
    live::add_unbilled(service, &mut leases);
    let now = clock::now();
    let (state, waits_as) = {
        let core = service.engine.core();
        let live = core.jobs.get(&row.id);
        let state = live.map_or(row.state, shown_state);
        (state, live.filter(|live| live.detail.held).map(|_| SegmentState::Paused))
    };
    let mut attempts = Attempt::of_all(&leases);
    let left_out = attempts.len().saturating_sub(MOST_ATTEMPTS);
    attempts.drain(..left_out);
    let mut segments = segments(row, &attempts, waits_as);
    let others = others(service, caller, &segments).await?;
    let shown: Vec<Segment> = segments.drain(..).map(|part| part.shown(&others)).collect();
    let sum = |states: &[SegmentState]| -> i64 {
        let of = shown.iter().filter(|part| states.contains(&part.state));
        of.map(|part| (part.to.map_or(now, |to| to.0) - part.from.0).0.max(0)).sum()
    };
    use SegmentState::{Paused, Preempted, Running, Saving, Waiting};
    let (waited_ms, ran_ms) = (sum(&[Waiting, Preempted, Paused]), sum(&[Running, Saving]));
    Ok(Timeline {
        job: row.id.into(),
        state,
        waited_ms,
        ran_ms,
        cost_micros: shown.iter().map(|part| part.cost_micros).sum(),
        segments: shown,
        exit: leases.last().and_then(|lease| serde_json::from_str(lease.exit.as_deref()?).ok()),
        notes: notes(row, &leases, left_out),
    })
}

fn notes(row: &JobRow, leases: &[LeaseRow], left_out: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if left_out > 0 {
        notes.push(format!("{left_out} older attempts are left out"));
    }
    if leases.is_empty() && row.started.is_some() {
        notes.push("where it ran is not kept any more".to_owned());
    }
    notes
}

/// One time that all tasks of a job had places.
#[derive(Debug, Clone)]
struct Attempt {
    number: u32,
    opened: Time,
    /// When all ran.
    started: Option<Time>,
    /// When the first was told to end.
    stop: Option<(Time, Option<Stopped>)>,
    closed: Option<Time>,
    cost: Micros,
    price: Micros,
}

impl Attempt {
    fn of_all(leases: &[LeaseRow]) -> Vec<Attempt> {
        let mut by_number: BTreeMap<u32, Vec<&LeaseRow>> = BTreeMap::new();
        for lease in leases {
            by_number.entry(lease.id.attempt).or_default().push(lease);
        }
        let mut all: Vec<Attempt> =
            by_number.into_iter().map(|(number, rows)| Attempt::of(number, &rows)).collect();
        all.sort_by_key(|attempt| attempt.opened);
        all
    }

    fn of(number: u32, rows: &[&LeaseRow]) -> Attempt {
        let all_started = rows.iter().all(|row| row.started.is_some());
        let all_closed = rows.iter().all(|row| row.closed.is_some());
        // A task whose peer failed was told to end because of that; the other cause says more.
        let told = |row: &&&LeaseRow| row.stop_at.is_some();
        let first = rows.iter().filter(told).min_by_key(|row| row.stop_at);
        let stop = first.and_then(|row| {
            let told = row.stop.as_deref().and_then(|stop| serde_json::from_str(stop).ok());
            Some((row.stop_at?, told))
        });
        Attempt {
            number,
            opened: rows.iter().map(|row| row.opened).min().unwrap_or_default(),
            started: rows.iter().filter_map(|row| row.started).max().filter(|_| all_started),
            stop,
            closed: rows.iter().filter_map(|row| row.closed).max().filter(|_| all_closed),
            cost: rows.iter().map(|row| row.cost).sum(),
            price: rows.iter().map(|row| row.price).sum(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    state: SegmentState,
    attempt: Option<u32>,
    from: Time,
    to: Option<Time>,
    cause: Option<Cause>,
    text: Option<String>,
    by: Option<JobId>,
    cost: Micros,
}

impl Part {
    fn waits(state: SegmentState, from: Time, to: Option<Time>) -> Part {
        let (attempt, cause, text, by) = (None, None, None, None);
        Part { state, attempt, from, to, cause, text, by, cost: Micros::ZERO }
    }

    fn shown(self, others: &BTreeMap<JobId, JobRef>) -> Segment {
        Segment {
            state: self.state,
            attempt: self.attempt,
            from: self.from.into(),
            to: self.to.map(wire::At),
            cause: self.cause.map(|cause| cause.code().to_owned()),
            text: self.text.or_else(|| self.cause.map(|cause| words(cause).to_owned())),
            by: self.by.map(|id| others.get(&id).cloned().unwrap_or_else(|| unnamed(id))),
            cost_micros: self.cost.0,
        }
    }
}

/// Why the whole job was stopped: one of its tasks failed.
fn words(cause: Cause) -> &'static str {
    match cause {
        Cause::PeerFailed => "one of its tasks failed, so Berth stopped the others",
        cause => stop_message(cause),
    }
}

fn unnamed(id: JobId) -> JobRef {
    JobRef { job: id.into(), name: None, user: None, team: None }
}

fn segments(row: &JobRow, attempts: &[Attempt], waits_as: Option<SegmentState>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut from = row.submitted;
    let mut last: Option<Stopped> = None;
    for attempt in attempts {
        let opened = attempt.opened.max(from);
        if opened > from {
            parts.push(wait(from, Some(opened), last, None));
        }
        parts.extend(of_attempt(attempt, opened));
        last = attempt.stop.and_then(|(_, told)| told);
        from = match attempt.closed {
            Some(closed) => closed.max(opened),
            // It goes on.
            None => return parts,
        };
    }
    if row.state.is_final() {
        let ended = row.ended.unwrap_or(from).max(from);
        if ended > from {
            parts.push(wait(from, Some(ended), last, None));
        }
        let text = Some(row.reason.clone()).filter(|reason| !reason.is_empty());
        let end = Part::waits(SegmentState::Ended, ended, Some(ended));
        parts.push(Part { text: text.or_else(|| Some(row.state.as_str().to_owned())), ..end });
    } else {
        parts.push(wait(from, None, last, waits_as));
    }
    parts
}

/// The time after an attempt, or before the first.
fn wait(
    from: Time,
    to: Option<Time>,
    last: Option<Stopped>,
    waits_as: Option<SegmentState>,
) -> Part {
    let state = waits_as.unwrap_or(match last.map(|told| told.cause) {
        Some(cause) if cause.displaces() => SegmentState::Preempted,
        Some(Cause::Held | Cause::Budget) => SegmentState::Paused,
        _ => SegmentState::Waiting,
    });
    let (cause, by) = (last.map(|told| told.cause), last.and_then(|told| told.for_job));
    Part { cause, by, ..Part::waits(state, from, to) }
}

/// The parts of an attempt, which together cost what it has cost.
fn of_attempt(attempt: &Attempt, opened: Time) -> Vec<Part> {
    let mut cuts = vec![(SegmentState::Starting, opened)];
    if let Some(started) = attempt.started {
        cuts.push((SegmentState::Running, started.max(opened)));
    }
    let told = attempt.stop.and_then(|(_, told)| told);
    if let Some((at, told)) = attempt.stop {
        let saves = told.is_some_and(|told| told.cause.requeues());
        let state = if saves { SegmentState::Saving } else { SegmentState::Stopping };
        cuts.push((state, at.max(opened)));
    }
    cuts.sort_by_key(|(_, at)| *at);
    let mut left = attempt.cost;
    let mut parts = Vec::new();
    for (at, (state, from)) in cuts.iter().enumerate() {
        let next = cuts.get(at + 1).map(|(_, next)| *next);
        let to = next.or(attempt.closed.map(|closed| closed.max(*from)));
        let cost = match next {
            Some(next) => cumulative(attempt.price, (next - *from).max(Span::ZERO)).min(left),
            None => left,
        };
        left -= cost;
        let ends = matches!(state, SegmentState::Saving | SegmentState::Stopping);
        let told = told.filter(|_| ends);
        parts.push(Part {
            attempt: Some(attempt.number),
            cause: told.map(|told| told.cause),
            by: told.and_then(|told| told.for_job),
            cost,
            ..Part::waits(*state, *from, to)
        });
    }
    parts.retain(|part| part.to != Some(part.from) || part.cost != Micros::ZERO);
    parts
}

/// The jobs that others gave way to, as far as the caller may know them.
async fn others(
    service: &Service,
    caller: &Caller,
    parts: &[Part],
) -> Result<BTreeMap<JobId, JobRef>, Fault> {
    let mut others = BTreeMap::new();
    for id in parts.iter().rev().filter_map(|part| part.by) {
        if others.len() >= MOST_OTHERS || others.contains_key(&id) {
            continue;
        }
        if let Some(row) = service.store.job(id).await? {
            others.insert(id, job_ref(caller, id, &row.name, &row.user, &row.team));
        }
    }
    Ok(others)
}

/// Everybody may know which team has GPUs; the rest is for those who may read the job.
pub fn job_ref(caller: &Caller, id: JobId, name: &str, user: &str, team: &str) -> JobRef {
    let named = caller.may(Permission::JobsRead, Some(team), Some(user));
    JobRef {
        job: id.into(),
        name: named.then(|| name.to_owned()),
        user: named.then(|| user.to_owned()),
        team: Some(team.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(state: berth_model::JobState, ended: Option<i64>) -> JobRow {
        JobRow {
            id: JobId::new(1),
            name: "a".into(),
            kind: berth_model::JobKind::Job,
            user: "kim".into(),
            team: "nlp".into(),
            project: String::new(),
            experiment: String::new(),
            state,
            priority: 0,
            submitted: Time(0),
            started: Some(Time(20)),
            ended: ended.map(Time),
            attempt: 1,
            gpus: berth_model::Milli(1_000),
            cost: Micros(100),
            file: String::new(),
            detail: String::new(),
            reason: String::new(),
        }
    }

    fn attempt(
        number: u32,
        opened: i64,
        stop: Option<(i64, Cause)>,
        closed: Option<i64>,
    ) -> Attempt {
        let told = |cause| Some(Stopped { cause, for_job: Some(JobId::new(9)) });
        Attempt {
            number,
            opened: Time(opened),
            started: Some(Time(opened + 10)),
            stop: stop.map(|(at, cause)| (Time(at), told(cause))),
            closed: closed.map(Time),
            cost: Micros(50),
            price: Micros::ZERO,
        }
    }

    fn told(parts: &[Part]) -> Vec<String> {
        let each = parts.iter().map(|part| {
            let to = part.to.map_or_else(|| "-".to_owned(), |to| to.0.to_string());
            let by = part.by.map_or_else(String::new, |by| format!(" by {by}"));
            format!("{} {}-{to}{by}", part.state.word(), part.from.0)
        });
        each.collect()
    }

    #[test]
    fn a_job_that_gave_way_says_to_whom_and_has_no_hole_in_its_time() {
        let attempts =
            [attempt(0, 10, Some((100, Cause::Reclaim)), Some(120)), attempt(1, 200, None, None)];
        let parts = segments(&row(berth_model::JobState::Running, None), &attempts, None);
        let expect = [
            "waiting 0-10",
            "starting 10-20",
            "running 20-100",
            "saving 100-120 by 9",
            "preempted 120-200 by 9",
            "starting 200-210",
            "running 210--",
        ];
        assert_eq!(told(&parts), expect);
        let cost: i64 = parts.iter().map(|part| part.cost.0).sum();
        assert_eq!(cost, 100, "each part is a share of what the attempts have cost");
        for pair in parts.windows(2) {
            assert_eq!(pair[0].to, Some(pair[1].from));
        }
    }

    #[test]
    fn one_that_was_held_is_paused_and_one_that_has_ended_says_when() {
        let held = [attempt(0, 10, Some((50, Cause::Held)), Some(60))];
        let parts = segments(&row(berth_model::JobState::Paused, None), &held, None);
        assert_eq!(told(&parts).last().unwrap(), "paused 60-- by 9");
        let done = [attempt(0, 10, None, Some(60))];
        let parts = segments(&row(berth_model::JobState::Done, Some(60)), &done, None);
        assert_eq!(told(&parts)[1..], ["starting 10-20", "running 20-60", "ended 60-60"]);
    }
}
