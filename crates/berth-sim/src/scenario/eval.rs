//! Whether one thing is as expected, and what was there instead.

use crate::driver::Driver;
use crate::engine;
use crate::record::Recorder;
use crate::report::Labels;
use crate::world::{AmountRange, Check, Costs, Loaded, OfJob, When};
use berth_ledger::cost;
use berth_model::{
    JobId, JobSnapshot, LeaseSnapshot, Micros, Milli, Name, Outcome, Snapshot, Time,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// What was expected and what was there.
pub(super) struct Mismatch {
    pub expected: String,
    pub found: String,
}

type Verdict = Result<(), Mismatch>;

fn mismatch<T>(expected: impl Into<String>, found: impl Into<String>) -> Result<T, Mismatch> {
    Err(Mismatch { expected: expected.into(), found: found.into() })
}

/// The state at one moment, as expectations see it.
pub(super) struct View<'a> {
    driver: &'a mut Driver<Recorder>,
    snapshot: Snapshot,
    labels: Labels,
}

impl<'a> View<'a> {
    pub fn new(driver: &'a mut Driver<Recorder>, loaded: &Loaded) -> View<'a> {
        let snapshot = driver.state().snapshot();
        let mut labels = Labels::of([&loaded.snapshot, &snapshot]);
        for spec in &driver.observer.submitted {
            labels.add(spec.id, &spec.name);
        }
        View { driver, snapshot, labels }
    }

    /// The job, or all elements of the array.
    fn jobs(&self, id: JobId) -> impl Iterator<Item = &JobSnapshot> {
        self.snapshot.jobs.iter().filter(move |job| covers(id, job.id()))
    }

    fn leases(&self, id: JobId) -> impl Iterator<Item = &LeaseSnapshot> {
        self.jobs(id).flat_map(|job| &job.leases)
    }

    fn running(&self, id: JobId) -> i64 {
        self.leases(id).filter(|lease| lease.bound && lease.stopping.is_none()).count() as i64
    }

    fn stopping(&self, id: JobId) -> i64 {
        self.leases(id).filter(|lease| lease.stopping.is_some()).count() as i64
    }

    fn label(&self, id: JobId) -> String {
        self.labels.get(id)
    }

    fn codes(&mut self, id: JobId) -> Vec<&'static str> {
        let ids: Vec<JobId> =
            self.jobs(id).filter(|job| job.leases.is_empty()).map(JobSnapshot::id).collect();
        let mut codes = Vec::new();
        for id in ids {
            for reason in engine::reasons(self.driver.state_mut(), id) {
                if !codes.contains(&reason.code()) {
                    codes.push(reason.code());
                }
            }
        }
        codes
    }

    /// What the job does, in words.
    fn describe(&mut self, id: JobId) -> String {
        let job = self.label(id);
        let mut parts = Vec::new();
        let (running, stopping) = (self.running(id), self.stopping(id));
        if running > 0 {
            let nodes = self.nodes(id).into_iter().map(|n| n.to_string()).collect::<Vec<_>>();
            parts.push(format!("runs {} on {}", plural(running, "task"), nodes.join(", ")));
        }
        if stopping > 0 {
            parts.push(format!("is stopping {}", plural(stopping, "task")));
        }
        if self.jobs(id).any(|job| job.leases.is_empty()) {
            let codes = self.codes(id);
            parts.push(match codes.is_empty() {
                true => "waits".to_owned(),
                false => format!("waits ({})", codes.join(", ")),
            });
        }
        if parts.is_empty() && self.jobs(id).next().is_some() {
            parts.push("is starting".to_owned());
        }
        for (ended, outcome) in &self.driver.observer.ended {
            if covers(id, *ended) && ended.element.is_none() {
                parts.push(format!("is {}", outcome_word(*outcome)));
            }
        }
        if parts.is_empty() {
            parts.push("is not there".to_owned());
        }
        format!("{job} {}", parts.join(" and "))
    }

    fn nodes(&self, id: JobId) -> BTreeSet<Name> {
        let live = self.leases(id).filter(|lease| lease.stopping.is_none());
        live.map(|lease| lease.node.clone()).collect()
    }

    /// The queue and everything above it.
    fn path<'s>(&'s self, queue: &'s Name) -> impl Iterator<Item = &'s Name> {
        let parent = |name: &&'s Name| {
            let queue = self.snapshot.queues.iter().find(|queue| queue.spec.name == **name)?;
            queue.spec.parent.as_ref()
        };
        // A tree is no deeper than it has queues.
        std::iter::successors(Some(queue), parent).take(self.snapshot.queues.len() + 1)
    }
}

/// Whether an id is meant: the job itself, or an element of the array.
fn covers(wanted: JobId, id: JobId) -> bool {
    wanted == id || (wanted.element.is_none() && wanted.number == id.number)
}

fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::Failed => "failed",
        Outcome::Cancelled => "cancelled",
    }
}

fn plural(n: i64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// A range in words.
fn range<T: PartialOrd + Display>(wanted: &AmountRange<T>, least: &T, most: &T) -> String {
    match (wanted.least > *least, wanted.most < *most) {
        (true, true) if wanted.least == wanted.most => wanted.least.to_string(),
        (true, true) => format!("{} to {}", wanted.least, wanted.most),
        (true, false) => format!("at least {}", wanted.least),
        (false, true) => format!("at most {}", wanted.most),
        (false, false) => "anything".to_owned(),
    }
}

const ENDS: (i64, i64) = (i64::MIN, i64::MAX);

pub(super) fn holds(check: &Check, when: When, view: &mut View<'_>) -> Verdict {
    match check {
        Check::Running(jobs) => counted(jobs, "running", |view, job| view.running(job), view),
        Check::Stopping(jobs) => counted(jobs, "stopping", |view, job| view.stopping(job), view),
        Check::Waiting(jobs) => waiting(jobs, view),
        Check::Because(jobs) => {
            for (job, cause) in jobs {
                let found = last_cause(*job, view);
                if found != Some(*cause) {
                    let found = found.map_or("was never stopped".to_owned(), |cause| {
                        format!("was last stopped because of {cause}")
                    });
                    let job = view.label(*job);
                    return mismatch(
                        format!("{job} stopped because of {cause}"),
                        format!("{job} {found}"),
                    );
                }
            }
            Ok(())
        }
        Check::On(jobs) => {
            for (job, nodes) in jobs {
                if view.nodes(*job) != nodes.iter().cloned().collect() {
                    let names: Vec<&str> = nodes.iter().map(Name::as_str).collect();
                    let expected = format!("{} on {}", view.label(*job), names.join(", "));
                    return mismatch(expected, view.describe(*job));
                }
            }
            Ok(())
        }
        Check::Reserved(jobs) => reserved(jobs, view),
        Check::Done(jobs) => ended(jobs, Outcome::Done, view),
        Check::Failed(jobs) => ended(jobs, Outcome::Failed, view),
        Check::Cancelled(jobs) => ended(jobs, Outcome::Cancelled, view),
        Check::Claims(pools) => {
            for (pool, wanted) in pools {
                let all = |claim: &&Name| pool.is_empty() || *claim == pool;
                let found =
                    view.snapshot.claims.iter().map(|claim| &claim.pool).filter(all).count() as i64;
                if !wanted.holds(found) {
                    let wanted = range(wanted, &ENDS.0, &ENDS.1);
                    let of =
                        if pool.is_empty() { String::new() } else { format!(" of pool {pool}") };
                    return mismatch(format!("{wanted} claims{of}"), format!("there were {found}"));
                }
            }
            Ok(())
        }
        Check::Credits(queues) => credits(queues, view),
        Check::Using(queues) => using(queues, view),
        Check::Cost(costs) => costs_hold(costs, view),
        Check::Rejected(codes) => rejected(codes, when, view),
        Check::Never(checks) => {
            for check in checks {
                if holds(check, when, view).is_ok() {
                    return mismatch(
                        "never what is listed",
                        format!("it came about: {}", describe(check, view)),
                    );
                }
            }
            Ok(())
        }
        Check::Share { parts, within } => share(parts, *within, when, view),
    }
}

/// What a check is about, for one that should not have held.
fn describe(check: &Check, view: &mut View<'_>) -> String {
    let jobs: Vec<JobId> = match check {
        Check::Running(jobs) | Check::Stopping(jobs) => jobs.iter().map(|(job, _)| *job).collect(),
        Check::Waiting(jobs) => jobs.iter().map(|(job, _)| *job).collect(),
        Check::Because(jobs) => jobs.iter().map(|(job, _)| *job).collect(),
        Check::On(jobs) => jobs.iter().map(|(job, _)| *job).collect(),
        Check::Reserved(jobs) => jobs.iter().map(|(job, _)| *job).collect(),
        Check::Done(jobs) | Check::Failed(jobs) | Check::Cancelled(jobs) => jobs.clone(),
        Check::Claims(_)
        | Check::Credits(_)
        | Check::Using(_)
        | Check::Cost(_)
        | Check::Rejected(_)
        | Check::Never(_)
        | Check::Share { .. } => Vec::new(),
    };
    let described: Vec<String> = jobs.into_iter().map(|job| view.describe(job)).collect();
    if described.is_empty() { "it holds".to_owned() } else { described.join("; ") }
}

fn counted(
    jobs: &OfJob<AmountRange<i64>>,
    state: &str,
    count: impl Fn(&View<'_>, JobId) -> i64,
    view: &mut View<'_>,
) -> Verdict {
    for (job, wanted) in jobs {
        if !wanted.holds(count(view, *job)) {
            let wanted = range(wanted, &ENDS.0, &ENDS.1);
            let expected = format!("{} with {wanted} {state}", view.label(*job));
            return mismatch(expected, view.describe(*job));
        }
    }
    Ok(())
}

fn waiting(jobs: &OfJob<Vec<String>>, view: &mut View<'_>) -> Verdict {
    for (job, codes) in jobs {
        let waits = view.jobs(*job).any(|job| job.leases.is_empty());
        let found = view.codes(*job);
        if !waits || !codes.iter().all(|code| found.contains(&code.as_str())) {
            let why = match codes.is_empty() {
                true => String::new(),
                false => format!(" because of {}", codes.join(", ")),
            };
            return mismatch(format!("{} waiting{why}", view.label(*job)), view.describe(*job));
        }
    }
    Ok(())
}

fn last_cause(job: JobId, view: &View<'_>) -> Option<berth_model::Cause> {
    let causes = &view.driver.observer.causes;
    let found = causes.iter().find(|(id, _)| covers(job, **id));
    found.map(|(_, cause)| *cause)
}

fn reserved(jobs: &OfJob<Option<Time>>, view: &mut View<'_>) -> Verdict {
    for (job, at) in jobs {
        let found = view.snapshot.promises.iter().find(|promise| covers(*job, promise.job));
        let found = found.map(|promise| promise.at);
        if found.is_none() || at.is_some_and(|at| found != Some(at)) {
            let from = at.map_or(String::new(), |at| format!(" from {at}"));
            let found = match found {
                Some(at) => format!("it has one from {at}"),
                None => format!("it has none: {}", view.describe(*job)),
            };
            return mismatch(format!("a reservation for {}{from}", view.label(*job)), found);
        }
    }
    Ok(())
}

fn ended(jobs: &[JobId], wanted: Outcome, view: &mut View<'_>) -> Verdict {
    for job in jobs {
        let ended = view.driver.observer.ended.iter().filter(|(id, _)| covers(*job, **id));
        let remembered = view.snapshot.outcomes.iter().filter(|(id, ..)| covers(*job, *id));
        let outcomes: Vec<Outcome> = ended
            .map(|(_, outcome)| *outcome)
            .chain(remembered.map(|(.., outcome)| *outcome))
            .collect();
        let over = view.jobs(*job).next().is_none();
        if !over || outcomes.is_empty() || outcomes.iter().any(|outcome| *outcome != wanted) {
            let expected = format!("{} {}", view.label(*job), outcome_word(wanted));
            return mismatch(expected, view.describe(*job));
        }
    }
    Ok(())
}

fn credits(queues: &BTreeMap<Name, AmountRange<i64>>, view: &View<'_>) -> Verdict {
    for (name, wanted) in queues {
        let queue = view.snapshot.queues.iter().find(|queue| queue.spec.name == *name);
        let Some(found) = queue.map(|queue| queue.credits) else {
            return mismatch(format!("credits of queue {name}"), "there is no such queue");
        };
        if !wanted.holds(found) {
            let shown = AmountRange { least: Milli(wanted.least), most: Milli(wanted.most) };
            let wanted = range(&shown, &Milli(ENDS.0), &Milli(ENDS.1));
            let found = format!("it has {}", Milli(found));
            return mismatch(format!("{wanted} GPU-seconds of credit for queue {name}"), found);
        }
    }
    Ok(())
}

fn using(queues: &BTreeMap<Name, AmountRange<Milli>>, view: &View<'_>) -> Verdict {
    for (name, wanted) in queues {
        let mut found = Milli::ZERO;
        for job in &view.snapshot.jobs {
            if view.path(&job.spec.queue).any(|queue| queue == name) {
                found += job.leases.iter().map(|lease| held(lease, &view.snapshot)).sum();
            }
        }
        if !wanted.holds(found) {
            let wanted = range(wanted, &Milli(ENDS.0), &Milli(ENDS.1));
            return mismatch(
                format!("queue {name} using {wanted} GPUs"),
                format!("it uses {found}"),
            );
        }
    }
    Ok(())
}

fn held(lease: &LeaseSnapshot, snapshot: &Snapshot) -> Milli {
    let node = snapshot.nodes.iter().find(|node| node.spec.name == lease.node);
    let models: Vec<Name> = node
        .map_or(Vec::new(), |node| node.spec.gpus.iter().map(|gpu| gpu.model.clone()).collect());
    cost::lease_gpus(&lease.slices, &models)
}

fn costs_hold(costs: &Costs, view: &View<'_>) -> Verdict {
    let totals = &view.driver.observer.totals;
    let one = |what: String, wanted: &AmountRange<Micros>, found: Micros| match wanted.holds(found)
    {
        true => Ok(()),
        false => {
            let wanted = range(wanted, &Micros(ENDS.0), &Micros(ENDS.1));
            mismatch(format!("{what} to cost ${wanted}"), format!("it cost ${found}"))
        }
    };
    for (name, wanted) in &costs.queues {
        let below = totals.queues.iter().filter(|(queue, _)| view.path(queue).any(|q| q == name));
        let found = below.map(|(_, amounts)| amounts.attributed()).sum();
        one(format!("queue {name}"), wanted, found)?;
    }
    for (job, wanted) in &costs.jobs {
        let own = totals.jobs.iter().filter(|(id, _)| covers(*job, **id));
        one(view.label(*job), wanted, own.map(|(_, amounts)| amounts.attributed()).sum())?;
    }
    if let Some(wanted) = &costs.idle {
        one("idle machines".to_owned(), wanted, totals.sum.idle())?;
    }
    if let Some(wanted) = &costs.total {
        one("all".to_owned(), wanted, totals.sum.total())?;
    }
    Ok(())
}

fn rejected(codes: &[String], when: When, view: &View<'_>) -> Verdict {
    let refusals = view.driver.observer.refusals.iter().filter(|refusal| match when {
        When::At(at) => refusal.at == at,
        When::Between(from, to) => from <= refusal.at && refusal.at <= to,
    });
    let found: Vec<&str> = refusals.map(|refusal| refusal.code).collect();
    for code in codes {
        if !found.contains(&code.as_str()) {
            let found = match found.is_empty() {
                true => "nothing was refused".to_owned(),
                false => format!("refused was {}", found.join(", ")),
            };
            return mismatch(format!("an event refused as {code}"), found);
        }
    }
    Ok(())
}

fn share(parts: &BTreeMap<Name, Milli>, within: Milli, when: When, view: &View<'_>) -> Verdict {
    let (from, to) = match when {
        When::At(at) => (Time(i64::MIN), at),
        When::Between(from, to) => (from, to),
    };
    let inside = || {
        let holdings = view.driver.observer.holdings.iter();
        holdings.filter(move |holding| from <= holding.from && holding.to <= to)
    };
    let all: i128 = inside().map(|holding| holding.gpu_time).sum();
    for (name, part) in parts {
        let below = inside().filter(|holding| view.path(&holding.queue).any(|q| q == name));
        let own: i128 = below.map(|holding| holding.gpu_time).sum();
        let found = Milli((own * 1_000).checked_div(all).unwrap_or(0) as i64);
        if (found - *part).0.abs() > within.0 {
            let percent = |milli: Milli| format!("{}.{}%", milli.0 / 10, milli.0 % 10);
            return mismatch(
                format!(
                    "queue {name} to have {} of the GPU time within {}",
                    percent(*part),
                    percent(within)
                ),
                format!("it had {}", percent(found)),
            );
        }
    }
    Ok(())
}
