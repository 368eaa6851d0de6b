//! Whether a job may start at all: nothing it waits for is still to come.

use crate::check::finding::FindingCode;
use crate::check::overlay::{Overlay, Stand};
use crate::check::place::Fault;
use crate::ix::JobIx;
use berth_model::{After, JobId, JobRef, Name, Outcome};
use std::collections::BTreeMap;

/// Elements of arrays that run, by the array's number.
#[derive(Debug, Default)]
pub(super) struct Arrays(BTreeMap<u64, u32>);

impl Arrays {
    /// How many elements of the job's array hold leases, counted once.
    fn running(&mut self, view: &Overlay<'_>, ix: JobIx) -> &mut u32 {
        let id = view.base(ix).id;
        self.0.entry(id.number).or_insert_with(|| {
            let all = id.array().element(0)..=id.array().element(u32::MAX);
            let jobs = view.state.jobs.by_id.range(all).map(|(_, ix)| view.base(*ix));
            jobs.filter(|job| job.open > 0).count() as u32
        })
    }

    /// An element of an array starts.
    pub fn start(&mut self, view: &Overlay<'_>, ix: JobIx) {
        // What was never counted has no limit.
        if let Some(running) = self.0.get_mut(&view.base(ix).id.number) {
            *running += 1;
        }
    }
}

/// What keeps a job from starting now.
pub(super) fn faults(view: &Overlay<'_>, arrays: &mut Arrays, ix: JobIx) -> Vec<Fault> {
    let (job, now) = (view.base(ix), view.job(ix));
    let spec = &job.spec;
    let mut found = Vec::new();
    let mut fault = |text: String| found.push((FindingCode::NotInLine, text));
    if now.aside || job.set_aside.is_some() {
        fault(format!("job {} is put aside", job.id));
    }
    if job.hold {
        fault(format!("job {} is on hold", job.id));
    }
    if job.cancelled || job.failed {
        fault(format!("job {} has been cancelled or has failed", job.id));
    }
    if let Some(begin) = spec.begin.filter(|begin| *begin > view.state.now) {
        fault(format!("job {} begins at {begin}", job.id));
    }
    if now.stand != Stand::Waiting {
        fault(format!("job {} does not wait", job.id));
    }
    for dependency in &spec.after {
        if let Some(text) = unmet(view, ix, dependency.after, &dependency.job) {
            fault(text);
        }
    }
    if spec.singleton {
        let same = view.state.named.get(&(spec.name.clone(), spec.user.clone()));
        let earlier = same.into_iter().flatten().take_while(|id| **id < job.id);
        let runs = |id: &&JobId| {
            id.number != job.id.number
                && view.state.jobs.find(**id).is_some_and(|other| view.has_leases(other))
        };
        if let Some(other) = { earlier }.find(runs) {
            fault(format!("job {other} of the same name runs, and it is a singleton"));
        }
    }
    if let Some(most) = spec.array.as_ref().and_then(|array| array.at_most)
        && *arrays.running(view, ix) >= most
    {
        fault(format!("{most} elements of array {} run already", job.id.number));
    }
    found
}

/// Why a dependency is surely not met. An outcome may have been forgotten since the job came into
/// line, so one that is not known is taken as met.
fn unmet(view: &Overlay<'_>, ix: JobIx, after: After, on: &JobRef) -> Option<String> {
    let state = view.state;
    let job = view.base(ix);
    let right = |outcome: &Outcome| match after {
        After::Ok => *outcome == Outcome::Done,
        After::NotOk => *outcome != Outcome::Done,
        After::Any | After::Start => true,
    };
    let pending = |other: JobIx| match after {
        After::Start => state.jobs.get(other).first_start.is_none() && !view.has_leases(other),
        After::Ok | After::NotOk | After::Any => true,
    };
    match on {
        JobRef::Id(id) => {
            let all = match id.element {
                Some(_) => *id..=*id,
                None => *id..=id.element(u32::MAX),
            };
            let alive = state.jobs.by_id.range(all.clone()).find(|(_, other)| pending(**other));
            if let Some((other, _)) = alive {
                return Some(format!("job {other}, which it comes after, is not there yet"));
            }
            let mut known = state.outcomes.range(all).peekable();
            let wrong = match after {
                // Of an array, one element that failed is enough.
                After::NotOk => {
                    let first = known.peek().copied();
                    first.filter(|_| !known.any(|(_, (_, outcome))| right(outcome)))
                }
                After::Ok | After::Any | After::Start => {
                    known.find(|(_, (_, outcome))| !right(outcome))
                }
            };
            wrong.map(|(other, _)| format!("job {other}, which it comes after, ended otherwise"))
        }
        JobRef::Name(name) => {
            let from = (name.clone(), Name::default());
            let named = state.named.range(from..).take_while(|((other, _), _)| other == name);
            // A job of that name submitted later does not send it back out of line.
            let before = |id: &&JobId| **id < job.id && id.number != job.id.number;
            let mut alive = named.flat_map(|(_, ids)| ids).filter(before);
            let found = alive.find(|id| state.jobs.find(**id).is_some_and(pending));
            if let Some(other) = found {
                return Some(format!(
                    "job {other} ({name}), which it comes after, is not there yet"
                ));
            }
            let mut ended = state.outcomes.values().filter(|(other, _)| other == name).peekable();
            (ended.peek().is_some() && !ended.any(|(_, outcome)| right(outcome)))
                .then(|| format!("{name}, which it comes after, ended otherwise"))
        }
    }
}
