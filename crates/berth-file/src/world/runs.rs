//! What has become of the jobs: their leases, progress and history, and the places kept for them.

use super::Context;
use super::allocations::{Allocations, price_of};
use super::jobs::{self, JOB, JobScript};
use super::queues::RESERVATION;
use super::refs::JobNames;
use super::words::causes;
use crate::error::{Error, Result};
use crate::fields::{Fields, boolean, choice, int, list, map, moment, moments, names, text, unit};
use crate::tree::Node;
use berth_model::{
    Cause, GpuAsk, GroupSpec, JobId, JobSnapshot, LeaseSnapshot, Micros, Name, NodeSpec, Place,
    Promise, Slice, Span, StopSnapshot, Time,
};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const TASK: &[&str] = &[
    "task", "node", "gpus", "state", "bound", "attempt", "price", "since", "billed", "cause",
    "for", "until",
];

const STATES: [(&str, State); 5] = [
    ("running", State::Running),
    ("starting", State::Starting),
    ("stopping", State::Stopping),
    ("failed", State::Failed),
    ("done", State::Done),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Starting,
    Stopping,
    Failed,
    Done,
}

/// A job whose tasks have not been given GPUs yet.
pub(crate) struct ReadJob<'a> {
    pub node: &'a Node,
    pub snapshot: JobSnapshot,
    pub script: JobScript,
    pub held: Vec<Held<'a>>,
}

/// A task that holds GPUs, as written.
pub(crate) struct Held<'a> {
    pub node: &'a Node,
    job: String,
    task: u32,
    state: State,
    group: GroupSpec,
}

/// The jobs of one entry.
pub(crate) fn read_entry<'a>(
    node: &'a Node,
    ids: &[JobId],
    context: &Context,
) -> Result<Vec<ReadJob<'a>>> {
    let Some(first) = ids.first() else { return Ok(Vec::new()) };
    let job = read(node, *first, context)?;
    if ids.len() == 1 {
        return Ok(vec![job]);
    }
    if let Some(held) = job.held.first() {
        let message = "tasks belong to one element of an array: say which by `element`";
        return Err(Error::new(held.node.at, message).within(&held.job));
    }
    let element = |id: &JobId| ReadJob {
        node,
        snapshot: JobSnapshot { element: id.element, ..job.snapshot.clone() },
        script: job.script.clone(),
        held: Vec::new(),
    };
    Ok(ids.iter().map(element).collect())
}

fn read<'a>(node: &'a Node, id: JobId, context: &Context) -> Result<ReadJob<'a>> {
    let fields = Fields::of(node, &jobs::title(node), JOB)?;
    let spec = jobs::read_spec(&fields, id, context)?;
    let time = |key| fields.read(key, |node| moment(node, context.now));
    let number = |key| Ok::<u32, Error>(fields.read(key, int)?.unwrap_or(0));
    let tasks = read_tasks(&fields, &spec.groups)?;
    let runs = tasks.iter().any(|held| !matches!(held.state, State::Failed | State::Done));
    let now = |wanted: bool| wanted.then_some(context.now);
    let started = fields.read_or_null("started", now(runs), |node| moment(node, context.now))?;
    let first = fields.read_or_null("first_start", started.or(now(!tasks.is_empty())), |node| {
        moment(node, context.now)
    })?;
    let (paused, pauses) = read_pauses(&fields, context.now)?;
    let mut snapshot = JobSnapshot {
        spec,
        element: id.element,
        leases: Vec::new(),
        done: fields.list("done")?.iter().map(int).collect::<Result<_>>()?,
        attempts: BTreeMap::new(),
        first_start: first,
        started,
        last_checkpoint: time("last_checkpoint")?,
        saved: fields.read("saved", unit)?.unwrap_or(Span::ZERO),
        estimate: fields.read("estimate", unit)?,
        stale_since: time("stale_since")?,
        displaced: number("displaced")?,
        moved: number("moved")?,
        pauses,
        paused,
        released: fields.flag("released")?,
        failed: fields.flag("failed")?,
        cancelled: fields.flag("cancelled")?,
        set_aside: fields.read("set_aside", |node| text(node, "a finding").map(str::to_owned))?,
        waits_turn: fields.flag("waits_turn")?,
        budgets: fields.read("budgets", names)?.unwrap_or_default(),
    };
    for held in &tasks {
        let fields = Fields::of(held.node, &held.job, TASK)?;
        let attempt = fields.read("attempt", int::<u32>)?.unwrap_or(0);
        snapshot.attempts.insert(held.task, attempt + 1);
        if held.state == State::Done && !snapshot.done.contains(&held.task) {
            snapshot.done.push(held.task);
        }
    }
    if let Some(attempts) = fields.read("attempts", read_attempts)? {
        snapshot.attempts = attempts;
    }
    let held = tasks
        .into_iter()
        .filter(|held| !matches!(held.state, State::Failed | State::Done))
        .collect();
    Ok(ReadJob { node, snapshot, script: jobs::read_script(&fields)?, held })
}

fn read_attempts(node: &Node) -> Result<BTreeMap<u32, u32>> {
    map(node)?
        .iter()
        .map(|entry| {
            let task = entry.key.parse().map_err(|_| {
                Error::expected(entry.at, &format!("`{}`", entry.key), "the number of a task")
            })?;
            Ok((task, int(&entry.value)?))
        })
        .collect()
}

/// `paused: true` says that it is paused now; a number, how often it was within the last day.
fn read_pauses(fields: &Fields<'_>, now: Time) -> Result<(bool, Vec<Time>)> {
    let mut pauses = fields.read("pauses", |node| moments(node, now))?.unwrap_or_default();
    let Some(node) = fields.get("paused") else { return Ok((false, pauses)) };
    match boolean(node) {
        Ok(paused) => Ok((paused, pauses)),
        Err(_) => {
            let times: u32 = fields.demand("paused", int)?;
            pauses.resize(pauses.len() + times as usize, now);
            Ok((false, pauses))
        }
    }
}

/// The tasks below the groups, numbered through all of them, and those beside the groups.
fn read_tasks<'a>(job: &Fields<'a>, groups: &[GroupSpec]) -> Result<Vec<Held<'a>>> {
    let leaves: Vec<&GroupSpec> = groups.iter().flat_map(GroupSpec::leaves).collect();
    let mut nodes = Vec::new();
    leaf_nodes(job.need("groups")?, &mut nodes)?;
    let mut tasks: Vec<Held<'a>> = Vec::new();
    let mut base = 0u32;
    for (leaf, node) in leaves.iter().zip(nodes) {
        let fields = Fields::of(
            node,
            &format!("group {} of {}", leaf.name, job.what),
            super::groups::GROUP,
        )?;
        let mut next = base;
        for item in fields.list("tasks")? {
            let held = read_task(item, next, leaf, &fields.what)?;
            if !(base..base.saturating_add(leaf.count)).contains(&held.task) {
                let message = format!(
                    "{} has the tasks {base} to {}; this is task {}",
                    fields.what,
                    i64::from(base) + i64::from(leaf.count) - 1,
                    held.task
                );
                return Err(Error::new(item.at, message));
            }
            next = held.task + 1;
            tasks.push(held);
        }
        base = base.saturating_add(leaf.count);
    }
    for item in job.list("leases")? {
        let number = Fields::of(item, &job.what, TASK)?.demand("task", int)?;
        tasks.push(read_task(item, number, leaf_of(&leaves, number), &job.what)?);
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = tasks.iter().find(|held| !seen.insert(held.task)) {
        let message = format!("task {} of {} is there twice", twice.task, job.what);
        return Err(Error::new(twice.node.at, message));
    }
    Ok(tasks)
}

fn leaf_nodes<'a>(groups: &'a Node, out: &mut Vec<&'a Node>) -> Result<()> {
    for node in list(groups)? {
        let below = map(node)?.iter().find(|entry| entry.key == "groups");
        match below.map(|entry| &entry.value) {
            Some(below) if !list(below)?.is_empty() => leaf_nodes(below, out)?,
            _ => out.push(node),
        }
    }
    Ok(())
}

/// The leaf group of a task by its number; the last one for a number beyond all of them.
pub(crate) fn leaf_of<'a>(leaves: &[&'a GroupSpec], task: u32) -> &'a GroupSpec {
    let mut base = 0u64;
    for leaf in leaves {
        base += u64::from(leaf.count);
        if u64::from(task) < base {
            return leaf;
        }
    }
    leaves[leaves.len() - 1]
}

fn read_task<'a>(item: &'a Node, default: u32, group: &GroupSpec, of: &str) -> Result<Held<'a>> {
    let fields = Fields::of(item, &format!("a task of {of}"), TASK)?;
    let task = fields.read("task", int)?.unwrap_or(default);
    let state = fields.read("state", |node| choice(node, &STATES))?.unwrap_or(State::Running);
    Ok(Held { node: item, job: of.to_owned(), task, state, group: group.clone() })
}

impl Held<'_> {
    fn fields(&self) -> Result<Fields<'_>> {
        Fields::of(self.node, &format!("a task of {}", self.job), TASK)
    }

    fn names_gpus(&self) -> Result<bool> {
        Ok(self.fields()?.get("gpus").is_some())
    }
}

/// Gives every task its GPUs: first those that name theirs, then the others in the order of the
/// file, so that no choice takes a GPU that is spoken for.
pub(crate) fn place(
    jobs: &mut [ReadJob<'_>],
    allocations: &mut Allocations<'_>,
    prices: &BTreeMap<Name, Micros>,
    names: &JobNames,
    context: &Context,
) -> Result<()> {
    let mut placed: Vec<Vec<(usize, LeaseSnapshot)>> = jobs.iter().map(|_| Vec::new()).collect();
    for named in [true, false] {
        for (job, placed) in jobs.iter().zip(&mut placed) {
            for (index, held) in job.held.iter().enumerate() {
                if held.names_gpus()? != named {
                    continue;
                }
                let (spec, slices) = hold(held, allocations)?;
                let lease = lease(held, spec, slices, &job.snapshot, prices, names, context)?;
                placed.push((index, lease));
            }
        }
    }
    for (job, mut placed) in jobs.iter_mut().zip(placed) {
        // Leases stay in the order of the file, whichever was placed first.
        placed.sort_by_key(|(index, _)| *index);
        job.snapshot.leases = placed.into_iter().map(|(_, lease)| lease).collect();
    }
    Ok(())
}

fn hold<'a>(
    held: &Held<'_>,
    allocations: &mut Allocations<'a>,
) -> Result<(&'a NodeSpec, Vec<Slice>)> {
    let fields = held.fields()?;
    let spec = fields.demand("node", |node| allocations.node(node))?;
    let slices =
        match fields.read("gpus", |node| allocations.named(node, spec, &held.group.gpus))? {
            Some(slices) => slices,
            None => allocations.first_fit(spec, &held.group).ok_or_else(|| {
                let message = format!(
                    "node {} has no room left for a task of {}: name other GPUs, or another node",
                    spec.name, held.job
                );
                Error::new(held.node.at, message)
            })?,
        };
    allocations.take(held.node, spec, &slices, &held.job)?;
    Ok((spec, slices))
}

fn lease(
    held: &Held<'_>,
    spec: &NodeSpec,
    slices: Vec<Slice>,
    job: &JobSnapshot,
    prices: &BTreeMap<Name, Micros>,
    names: &JobNames,
    context: &Context,
) -> Result<LeaseSnapshot> {
    let fields = held.fields()?;
    let time = |key| fields.read(key, |node| moment(node, context.now));
    let stopping = match held.state {
        State::Stopping => Some(StopSnapshot {
            cause: fields.read("cause", |node| choice(node, &causes()))?.unwrap_or(Cause::Preempt),
            for_job: fields.read("for", |node| names.find(node))?,
            until: time("until")?.unwrap_or(context.now + grace(job, context)),
        }),
        State::Running | State::Starting | State::Failed | State::Done => None,
    };
    if stopping.is_none() && (fields.get("cause").is_some() || fields.get("until").is_some()) {
        return Err(Error::new(held.node.at, "only a stopping task has a cause and an end")
            .within(&fields.what));
    }
    Ok(LeaseSnapshot {
        task: held.task,
        attempt: fields.read("attempt", int)?.unwrap_or(0),
        node: spec.name.clone(),
        price: fields
            .read("price", unit)?
            .unwrap_or_else(|| price_of(spec, &slices, held.group.cpu, prices)),
        slices,
        since: time("since")?.unwrap_or(job.started.unwrap_or(context.now)),
        billed: time("billed")?.unwrap_or(context.now),
        bound: fields.read("bound", boolean)?.unwrap_or(held.state != State::Starting),
        stopping,
    })
}

pub(crate) fn grace(job: &JobSnapshot, context: &Context) -> Span {
    job.spec.grace.map_or(context.grace, |grace| grace.min(context.grace))
}

/// A promise: places kept for a waiting job.
pub(crate) fn read_promise(
    fields: &Fields<'_>,
    jobs: &[ReadJob<'_>],
    allocations: &Allocations<'_>,
    names: &JobNames,
    now: Time,
) -> Result<Promise> {
    let job = fields.demand("job", |node| names.find(node))?;
    let known = jobs.iter().find(|known| known.snapshot.id() == job);
    let leaves: Vec<&GroupSpec> = known.map_or(Vec::new(), |known| {
        known.snapshot.spec.groups.iter().flat_map(GroupSpec::leaves).collect()
    });
    let place = |(index, node): (usize, &Node)| {
        let fields = Fields::of(node, "a reserved place", &["task", "node", "gpus"])?;
        let task = fields.read("task", int)?.unwrap_or(index as u32);
        let spec = fields.demand("node", |node| allocations.node(node))?;
        let whole = GpuAsk::Whole { count: 1 };
        let ask = if leaves.is_empty() { &whole } else { &leaf_of(&leaves, task).gpus };
        let slices = fields.read("gpus", |node| allocations.named(node, spec, ask))?;
        Ok(Place { task, node: spec.name.clone(), slices: slices.unwrap_or_default() })
    };
    Ok(Promise {
        job,
        at: fields.read("at", |node| moment(node, now))?.unwrap_or(now),
        places: fields.list("places")?.iter().enumerate().map(place).collect::<Result<_>>()?,
        firm: fields.flag("firm")?,
    })
}

/// Whether an entry of the reservations is a promise to a job.
pub(crate) fn is_promise(node: &Node) -> Result<bool> {
    Ok(Fields::of(node, "a reservation", RESERVATION)?.get("job").is_some())
}
