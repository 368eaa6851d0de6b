//! What a scenario expects to see.

use super::refs::JobNames;
use super::words::causes;
use crate::error::{Error, Position, Result, or_list};
use crate::fields::{Fields, choice, int, list, map, moment, named, names, percent, text, unit};
use crate::tree::{Node, Value};
use berth_model::{Cause, JobId, Micros, Milli, Name, Snapshot, Time};
use std::collections::BTreeMap;

/// Checks that hold at a time, after everything that happens then, or all the time between two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    pub when: When,
    pub checks: Vec<Check>,
    pub position: Position,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    At(Time),
    Between(Time, Time),
}

/// An amount that may lie from `least` to `most`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AmountRange<T> {
    pub least: T,
    pub most: T,
}

impl<T: PartialOrd> AmountRange<T> {
    pub fn holds(&self, found: T) -> bool {
        self.least <= found && found <= self.most
    }
}

/// A job with what is expected of it.
pub type OfJob<T> = Vec<(JobId, T)>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// How many of its tasks run; without a number, at least one.
    Running(OfJob<AmountRange<i64>>),
    Stopping(OfJob<AmountRange<i64>>),
    /// It waits, with these codes among its reasons.
    Waiting(OfJob<Vec<String>>),
    /// Why it was last stopped.
    Because(OfJob<Cause>),
    /// Exactly the nodes where it runs.
    On(OfJob<Vec<Name>>),
    /// It holds a reservation, from that time on where one is named.
    Reserved(OfJob<Option<Time>>),
    Done(Vec<JobId>),
    Failed(Vec<JobId>),
    Cancelled(Vec<JobId>),
    /// Machines being bought, by pool; under the empty name in all.
    Claims(BTreeMap<Name, AmountRange<i64>>),
    /// GPU-milliseconds by queue.
    Credits(BTreeMap<Name, AmountRange<i64>>),
    /// GPUs in use by queue.
    Using(BTreeMap<Name, AmountRange<Milli>>),
    Cost(Box<Costs>),
    /// Codes of events that were refused.
    Rejected(Vec<String>),
    /// None of these holds at any time.
    Never(Vec<Check>),
    /// Parts of all GPU time that queues used, each to within so much.
    Share {
        parts: BTreeMap<Name, Milli>,
        within: Milli,
    },
}

impl Check {
    /// One check for each job: of two jobs that must never run, neither may.
    fn split(self) -> Vec<Check> {
        fn each<T>(of: OfJob<T>, check: impl Fn(OfJob<T>) -> Check) -> Vec<Check> {
            of.into_iter().map(|one| check(vec![one])).collect()
        }
        let ids = |jobs: Vec<JobId>, check: fn(Vec<JobId>) -> Check| {
            jobs.into_iter().map(|job| check(vec![job])).collect()
        };
        match self {
            Check::Running(jobs) => each(jobs, Check::Running),
            Check::Stopping(jobs) => each(jobs, Check::Stopping),
            Check::Waiting(jobs) => each(jobs, Check::Waiting),
            Check::Because(jobs) => each(jobs, Check::Because),
            Check::On(jobs) => each(jobs, Check::On),
            Check::Reserved(jobs) => each(jobs, Check::Reserved),
            Check::Done(jobs) => ids(jobs, Check::Done),
            Check::Failed(jobs) => ids(jobs, Check::Failed),
            Check::Cancelled(jobs) => ids(jobs, Check::Cancelled),
            other @ (Check::Claims(_)
            | Check::Credits(_)
            | Check::Using(_)
            | Check::Cost(_)
            | Check::Rejected(_)
            | Check::Never(_)
            | Check::Share { .. }) => vec![other],
        }
    }
}

/// Dollars since the world began.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Costs {
    pub queues: BTreeMap<Name, AmountRange<Micros>>,
    pub jobs: OfJob<AmountRange<Micros>>,
    pub idle: Option<AmountRange<Micros>>,
    pub total: Option<AmountRange<Micros>>,
}

pub(crate) const CHECKS: &[&str] = &[
    "at",
    "between",
    "running",
    "stopping",
    "waiting",
    "because",
    "on",
    "reserved",
    "done",
    "failed",
    "cancelled",
    "claims",
    "credits",
    "using",
    "cost",
    "rejected",
    "never",
    "share",
];

pub(crate) fn read(
    nodes: &[Node],
    snapshot: &Snapshot,
    jobs: &JobNames,
) -> Result<Vec<Expectation>> {
    let reader = Reader { now: snapshot.now, jobs };
    nodes.iter().map(|node| reader.expectation(node)).collect()
}

struct Reader<'a> {
    now: Time,
    jobs: &'a JobNames,
}

impl Reader<'_> {
    fn expectation(&self, node: &Node) -> Result<Expectation> {
        let fields = Fields::of(node, "an expectation", CHECKS)?;
        let at = fields.read("at", |node| moment(node, self.now))?;
        let between = fields.read("between", |node| match list(node)? {
            [from, to] => Ok((moment(from, self.now)?, moment(to, self.now)?)),
            _ => Err(Error::expected(node.at, &node.found(), "two times such as [1h, 25h]")),
        })?;
        let when = match (at, between) {
            (Some(at), None) => When::At(at),
            (None, Some((from, to))) if from <= to => When::Between(from, to),
            (None, Some(_)) => {
                return Err(Error::new(node.at, "`between` ends before it begins"));
            }
            _ => {
                return Err(Error::new(
                    node.at,
                    "an expectation has `at` or `between`, one of them",
                ));
            }
        };
        let checks = self.checks(&fields)?;
        if checks.is_empty() {
            let message =
                format!("nothing is expected here; say {}", or_list(CHECKS[2..].iter().copied()));
            return Err(Error::new(node.at, message));
        }
        Ok(Expectation { when, checks, position: node.at })
    }

    fn checks(&self, fields: &Fields<'_>) -> Result<Vec<Check>> {
        let counts =
            |key| fields.read(key, |node| self.of_jobs(node, some(), |node| wanted(node, whole)));
        let jobs = |key| fields.read(key, |node| self.list_of_jobs(node));
        let found = [
            counts("running")?.map(Check::Running),
            counts("stopping")?.map(Check::Stopping),
            fields
                .read("waiting", |node| self.of_jobs(node, Vec::new(), codes))?
                .map(Check::Waiting),
            fields
                .read("because", |node| self.map_of_jobs(node, |node| choice(node, &causes())))?
                .map(Check::Because),
            fields.read("on", |node| self.map_of_jobs(node, names))?.map(Check::On),
            fields
                .read("reserved", |node| {
                    self.of_jobs(node, None, |node| moment(node, self.now).map(Some))
                })?
                .map(Check::Reserved),
            jobs("done")?.map(Check::Done),
            jobs("failed")?.map(Check::Failed),
            jobs("cancelled")?.map(Check::Cancelled),
            fields.read("claims", read_claims)?.map(Check::Claims),
            fields
                .read("credits", |node| named(node, |node| wanted(node, gpu_seconds)))?
                .map(Check::Credits),
            fields.read("using", |node| named(node, |node| wanted(node, unit)))?.map(Check::Using),
            fields.read("cost", |node| self.costs(node))?.map(|costs| Check::Cost(Box::new(costs))),
            fields.read("rejected", codes)?.map(Check::Rejected),
            fields.read("never", |node| self.never(node))?.map(Check::Never),
            fields.read("share", read_share)?,
        ];
        Ok(found.into_iter().flatten().collect())
    }

    fn never(&self, node: &Node) -> Result<Vec<Check>> {
        let fields = Fields::of(node, "what never happens", CHECKS)?;
        if fields.get("at").is_some() || fields.get("between").is_some() {
            return Err(Error::new(node.at, "the time stands beside `never`, not in it"));
        }
        Ok(self.checks(&fields)?.into_iter().flat_map(Check::split).collect())
    }

    fn list_of_jobs(&self, node: &Node) -> Result<Vec<JobId>> {
        list(node)?.iter().map(|node| self.jobs.find(node)).collect()
    }

    fn map_of_jobs<T>(&self, node: &Node, read: impl Fn(&Node) -> Result<T>) -> Result<OfJob<T>> {
        map(node)?
            .iter()
            .map(|entry| {
                let key = Node {
                    at: entry.at,
                    value: Value::Scalar { text: entry.key.clone(), plain: true },
                };
                Ok((self.jobs.find(&key)?, read(&entry.value)?))
            })
            .collect()
    }

    /// A list of jobs, or a map that says more about each.
    fn of_jobs<T: Clone>(
        &self,
        node: &Node,
        default: T,
        read: impl Fn(&Node) -> Result<T>,
    ) -> Result<OfJob<T>> {
        match &node.value {
            Value::Map(_) => self.map_of_jobs(node, read),
            Value::List(_) | Value::Null | Value::Scalar { .. } => {
                Ok(self.list_of_jobs(node)?.into_iter().map(|job| (job, default.clone())).collect())
            }
        }
    }

    fn costs(&self, node: &Node) -> Result<Costs> {
        let fields = Fields::of(node, "a cost", &["queues", "jobs", "idle", "total"])?;
        let dollars = |node: &Node| wanted(node, unit);
        Ok(Costs {
            queues: fields.read("queues", |node| named(node, dollars))?.unwrap_or_default(),
            jobs: fields.read("jobs", |node| self.map_of_jobs(node, dollars))?.unwrap_or_default(),
            idle: fields.read("idle", dollars)?,
            total: fields.read("total", dollars)?,
        })
    }
}

/// At least one.
fn some() -> AmountRange<i64> {
    AmountRange { least: 1, most: i64::MAX }
}

fn whole(node: &Node) -> Result<i64> {
    int(node)
}

fn gpu_seconds(node: &Node) -> Result<i64> {
    unit::<Milli>(node).map(|milli| milli.0)
}

/// The ends of what an amount can be.
trait Ends: Copy {
    const LEAST: Self;
    const MOST: Self;
}

impl Ends for i64 {
    const LEAST: i64 = i64::MIN;
    const MOST: i64 = i64::MAX;
}

impl Ends for Milli {
    const LEAST: Milli = Milli(i64::MIN);
    const MOST: Milli = Milli(i64::MAX);
}

impl Ends for Micros {
    const LEAST: Micros = Micros(i64::MIN);
    const MOST: Micros = Micros(i64::MAX);
}

/// An exact amount, or `{at_least: …, at_most: …}`.
fn wanted<T: Ends>(node: &Node, read: impl Fn(&Node) -> Result<T>) -> Result<AmountRange<T>> {
    if !matches!(node.value, Value::Map(_)) {
        let exact = read(node)?;
        return Ok(AmountRange { least: exact, most: exact });
    }
    let fields = Fields::of(node, "an amount", &["at_least", "at_most"])?;
    Ok(AmountRange {
        least: fields.read("at_least", &read)?.unwrap_or(T::LEAST),
        most: fields.read("at_most", &read)?.unwrap_or(T::MOST),
    })
}

/// One code or several.
fn codes(node: &Node) -> Result<Vec<String>> {
    crate::fields::one_or_more(node)
        .iter()
        .map(|item| text(item, "the code of a reason").map(str::to_owned))
        .collect()
}

fn read_claims(node: &Node) -> Result<BTreeMap<Name, AmountRange<i64>>> {
    let number = |node: &Node| wanted(node, whole);
    match &node.value {
        Value::Map(entries) if entries.iter().all(|entry| !entry.key.starts_with("at_")) => {
            named(node, number)
        }
        _ => Ok([(Name::default(), number(node)?)].into()),
    }
}

fn read_share(node: &Node) -> Result<Check> {
    let mut parts: BTreeMap<Name, Milli> = named(node, percent)?;
    let within = parts.remove("within").unwrap_or(Milli(10));
    Ok(Check::Share { parts, within })
}

impl Check {
    /// Whether it is about a stretch of time rather than a moment.
    pub fn is_summary(&self) -> bool {
        match self {
            Check::Share { .. } | Check::Rejected(_) => true,
            Check::Running(_)
            | Check::Stopping(_)
            | Check::Waiting(_)
            | Check::Because(_)
            | Check::On(_)
            | Check::Reserved(_)
            | Check::Done(_)
            | Check::Failed(_)
            | Check::Cancelled(_)
            | Check::Claims(_)
            | Check::Credits(_)
            | Check::Using(_)
            | Check::Cost(_)
            | Check::Never(_) => false,
        }
    }
}
