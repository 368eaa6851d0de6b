//! Text as a snapshot and a scenario.

use super::allocations::Allocations;
use super::classes::read_classes;
use super::nodes::{self, ReadNode};
use super::refs::{JobNames, read_id};
use super::runs::{self, ReadJob};
use super::topology::read_topologies;
use super::words::OUTCOMES;
use super::{
    Context, DriverScript, Lines, Loaded, default_classes, events, expect, jobs, policy, pools,
    queues,
};
use crate::error::{Error, Result, did_you_mean};
use crate::fields::{
    Fields, absolute, choice, int, map, moments, name, named, unit, unit_from_zero,
};
use crate::tree::{Limits, Node, parse};
use berth_model::{
    Bytes, ClaimSpec, Cpu, JobId, Name, NodeSnapshot, Outcome, Policy, PoolSpec, Promise,
    QueueSnapshot, QueueSpec, RecentAsk, Reservation, Snapshot, Span, Time,
};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const WORLD: &[&str] = &[
    "now",
    "seq",
    "topology",
    "policy",
    "classes",
    "prices",
    "speeds",
    "watts",
    "nodes",
    "pools",
    "claims",
    "claims_made",
    "queues",
    "history",
    "jobs",
    "outcomes",
    "reservations",
    "moves",
    "recent",
    "disruptions",
    // Of scenarios.
    "name",
    "driver",
    "events",
    "expect",
];

pub(crate) fn read(text: &str) -> Result<Loaded> {
    let tree = parse(text, Limits::WORLD)?;
    let top = Fields::of(&tree, "the world", WORLD)?;
    let mut lines = Lines::default();
    let now = top.read("now", absolute)?.unwrap_or(Time(0));
    let policy = match top.get("policy") {
        Some(node) => policy::read(node, Policy::default())?,
        None => Policy::default(),
    };
    let classes = top.read("classes", read_classes)?.unwrap_or_else(default_classes);
    let context = Context { now, classes, grace: policy.grace };
    let topologies = top.read("topology", read_topologies)?;
    let prices = top.read("prices", |node| named(node, unit))?.unwrap_or_default();

    let mut machines = read_nodes(&top, now, &mut lines)?;
    let heads = read_heads(&top)?;
    let mut jobs_read: Vec<ReadJob<'_>> = Vec::new();
    for (node, ids) in top.list("jobs")?.iter().zip(&heads.ids) {
        jobs_read.extend(runs::read_entry(node, ids, &context)?);
    }
    for (index, job) in jobs_read.iter().enumerate() {
        lines.note(format!("jobs[{index}]"), job.node.at);
    }
    let specs: Vec<_> = machines.iter().map(|machine| machine.snapshot.spec.clone()).collect();
    let mut allocations = Allocations::new(specs.iter());
    runs::place(&mut jobs_read, &mut allocations, &prices, &heads.names, &context)?;
    note_leases(&jobs_read, &mut lines);
    set_idle(&mut machines, &jobs_read, now);

    let (pools, claims) = read_pools(&top, &heads.names, now, &mut lines)?;
    let queues = read_queues(&top, &mut lines)?;
    check_queues_of_jobs(&jobs_read, &queues)?;
    // Promises are about GPUs that others may hold now.
    let empty = Allocations::new(specs.iter());
    let (reservations, promises) =
        read_reservations(&top, &jobs_read, &empty, &heads.names, now, &mut lines)?;
    let snapshot = Snapshot {
        now,
        seq: top.read("seq", int)?.unwrap_or(0),
        topologies: topologies.unwrap_or_else(|| [(Name::new("default"), Vec::new())].into()),
        policy,
        classes: context.classes.clone(),
        prices,
        speeds: top.read("speeds", |node| named(node, unit_from_zero))?.unwrap_or_default(),
        watts: top.read("watts", |node| named(node, int))?.unwrap_or_default(),
        nodes: machines.into_iter().map(|machine| machine.snapshot).collect(),
        pools,
        claims_made: top.read("claims_made", int)?.unwrap_or(claims.len() as u64),
        claims,
        queues,
        history: top.list("history")?.iter().map(queues::read_history).collect::<Result<_>>()?,
        jobs: jobs_read.iter().map(|job| job.snapshot.clone()).collect(),
        outcomes: top.list("outcomes")?.iter().map(read_outcome).collect::<Result<_>>()?,
        reservations,
        promises,
        moves: top.read("moves", |node| moments(node, now))?.unwrap_or_default(),
        recent: top.list("recent")?.iter().map(read_recent).collect::<Result<_>>()?,
        disruptions: top.read("disruptions", |node| named(node, int))?.unwrap_or_default(),
    };
    let mut scripts: BTreeMap<_, _> = jobs_read
        .iter()
        .filter(|job| job.script != jobs::JobScript::default())
        .map(|job| (job.snapshot.id(), job.script.clone()))
        .collect();
    let script = events::Script { snapshot: &snapshot, context: &context, names: &heads.names };
    let (events, submitted) = script.read(top.list("events")?, &heads.submitted)?;
    scripts.extend(submitted);
    let expect = expect::read(top.list("expect")?, &snapshot, &heads.names)?;
    let driver = top.read("driver", read_driver)?.unwrap_or_default();
    let title = top.read("name", |node| name(node).map(|name| name.to_string()))?;
    Ok(Loaded { name: title, snapshot, events, expect, scripts, driver, names: heads.names, lines })
}

fn read_driver(node: &Node) -> Result<DriverScript> {
    let fields = Fields::of(node, "the driver", &["stop_after", "start_after"])?;
    Ok(DriverScript {
        stop_after: fields.read("stop_after", unit_from_zero)?,
        start_after: fields.read("start_after", unit_from_zero)?.unwrap_or(Span::ZERO),
    })
}

fn read_nodes(top: &Fields<'_>, now: Time, lines: &mut Lines) -> Result<Vec<ReadNode>> {
    let mut machines: Vec<ReadNode> = Vec::new();
    let mut seen: BTreeMap<Name, usize> = BTreeMap::new();
    for node in top.list("nodes")? {
        for machine in nodes::read(node, now)? {
            let name = &machine.snapshot.spec.name;
            if let Some(line) = seen.insert(name.clone(), node.at.line) {
                let message =
                    format!("there are two nodes called `{name}`, the first at line {line}");
                return Err(Error::new(node.at, message));
            }
            lines.note(format!("nodes[{}]", machines.len()), node.at);
            machines.push(machine);
        }
    }
    Ok(machines)
}

/// Ids and names of all jobs, also of those that events submit, before anyone refers to them.
struct JobHeads {
    /// By entry of the file.
    ids: Vec<Vec<JobId>>,
    submitted: Vec<JobId>,
    names: JobNames,
}

fn read_heads(top: &Fields<'_>) -> Result<JobHeads> {
    let mut seen: BTreeMap<JobId, usize> = BTreeMap::new();
    let mut names = JobNames::default();
    let mut add = |node: &Node, default: u64| -> Result<jobs::Head> {
        let head = jobs::read_head(node, default)?;
        for id in &head.ids {
            if let Some(line) = seen.insert(*id, node.at.line) {
                let message = format!(
                    "job {} has the id {id}, which the job at line {line} has; ids left out are \
                     positions in the file",
                    head.name
                );
                return Err(Error::new(node.at, message));
            }
        }
        names.add(&head.name, head.id);
        Ok(head)
    };
    let mut ids = Vec::new();
    let mut next = 1;
    for (default, node) in (1..).zip(top.list("jobs")?) {
        let head = add(node, default)?;
        next = next.max(head.id.number + 1);
        ids.push(head.ids);
    }
    for node in top.list("outcomes")? {
        next = next.max(read_outcome(node)?.0.number + 1);
    }
    let mut submitted = Vec::new();
    for node in top.list("events")? {
        if let Some(job) = events::submitted(node)? {
            let head = add(job, next)?;
            next = next.max(head.id.number + 1);
            submitted.push(head.id);
        }
    }
    Ok(JobHeads { ids, submitted, names })
}

fn note_leases(jobs: &[ReadJob<'_>], lines: &mut Lines) {
    for (index, job) in jobs.iter().enumerate() {
        for (lease, held) in job.held.iter().enumerate() {
            lines.note(format!("jobs[{index}].leases[{lease}]"), held.node.at);
        }
    }
}

/// A node without tasks has been idle since now, unless the world says otherwise.
fn set_idle(machines: &mut [ReadNode], jobs: &[ReadJob<'_>], now: Time) {
    let held: BTreeSet<&Name> =
        jobs.iter().flat_map(|job| &job.snapshot.leases).map(|lease| &lease.node).collect();
    for ReadNode { snapshot, idle_said } in machines {
        let NodeSnapshot { spec, idle_since, .. } = snapshot;
        if !*idle_said && !held.contains(&spec.name) {
            *idle_since = Some(now);
        }
    }
}

fn read_pools(
    top: &Fields<'_>,
    jobs: &JobNames,
    now: Time,
    lines: &mut Lines,
) -> Result<(Vec<PoolSpec>, Vec<ClaimSpec>)> {
    let mut shops: Vec<PoolSpec> = Vec::new();
    for (index, node) in top.list("pools")?.iter().enumerate() {
        let pool = pools::read_pool(node, now)?;
        if shops.iter().any(|other| other.name == pool.name) {
            return Err(Error::new(node.at, format!("there are two pools called `{}`", pool.name)));
        }
        lines.note(format!("pools[{index}]"), node.at);
        shops.push(pool);
    }
    let mut claims: Vec<ClaimSpec> = Vec::new();
    let mut add = |node: &Node, below: Option<&PoolSpec>| -> Result<()> {
        let claim = pools::read_claim(node, &shops, below, jobs, now)?;
        if claims.iter().any(|other| other.name == claim.name) {
            let message = format!("there are two claims called `{}`", claim.name);
            return Err(Error::new(node.at, message));
        }
        lines.note(format!("claims[{}]", claims.len()), node.at);
        claims.push(claim);
        Ok(())
    };
    for (pool, node) in shops.iter().zip(top.list("pools")?) {
        for claim in pools::claims_of(node)? {
            add(claim, Some(pool))?;
        }
    }
    for claim in top.list("claims")? {
        add(claim, None)?;
    }
    Ok((shops, claims))
}

fn read_queues(top: &Fields<'_>, lines: &mut Lines) -> Result<Vec<QueueSnapshot>> {
    if top.raw("queues").is_none() {
        let spec = QueueSpec::new("default");
        return Ok(vec![QueueSnapshot {
            spec,
            credits: 0,
            past_use: 0,
            spent: Default::default(),
            daily: Vec::new(),
        }]);
    }
    let mut all = Vec::new();
    for (index, node) in top.list("queues")?.iter().enumerate() {
        all.push((node, queues::read(node, None)?));
        lines.note(format!("queues[{index}]"), node.at);
    }
    queues::check(&all)?;
    Ok(all.into_iter().map(|(_, queue)| queue).collect())
}

fn check_queues_of_jobs(jobs: &[ReadJob<'_>], queues: &[QueueSnapshot]) -> Result<()> {
    let known: BTreeSet<&str> = queues.iter().map(|queue| queue.spec.name.as_str()).collect();
    for job in jobs {
        let spec = &job.snapshot.spec;
        if !known.contains(spec.queue.as_str()) {
            let at = map(job.node)?.iter().find(|entry| entry.key == "queue");
            let hint = did_you_mean(&spec.queue, known.iter().copied());
            let message = format!(
                "job {} waits in the queue `{}`, which is not there{hint}",
                spec.name, spec.queue
            );
            return Err(Error::new(at.map_or(job.node.at, |entry| entry.value.at), message));
        }
    }
    Ok(())
}

fn read_reservations(
    top: &Fields<'_>,
    jobs: &[ReadJob<'_>],
    allocations: &Allocations<'_>,
    names: &JobNames,
    now: Time,
    lines: &mut Lines,
) -> Result<(Vec<Reservation>, Vec<Promise>)> {
    let (mut reservations, mut promised) = (Vec::new(), Vec::new());
    for node in top.list("reservations")? {
        let fields = Fields::of(node, "a reservation", queues::RESERVATION)?;
        if runs::is_promise(node)? {
            lines.note(format!("promises[{}]", promised.len()), node.at);
            promised.push(runs::read_promise(&fields, jobs, allocations, names, now)?);
        } else {
            lines.note(format!("reservations[{}]", reservations.len()), node.at);
            let reservation = queues::read_reservation(&fields, now)?;
            for item in fields.list("nodes")? {
                allocations.node(item).map_err(|e| e.within(&fields.what))?;
            }
            reservations.push(reservation);
        }
    }
    Ok((reservations, promised))
}

fn read_outcome(node: &Node) -> Result<(JobId, Name, Outcome)> {
    let fields = Fields::of(node, "an outcome", &["id", "name", "outcome"])?;
    Ok((
        fields.demand("id", read_id)?,
        fields.read("name", name)?.unwrap_or_default(),
        fields.demand("outcome", |node| choice(node, &OUTCOMES))?,
    ))
}

fn read_recent(node: &Node) -> Result<RecentAsk> {
    let fields = Fields::of(node, "a recent start", &["gpus", "cpu", "memory"])?;
    Ok(RecentAsk {
        gpus: fields.demand("gpus", unit)?,
        cpu: fields.read("cpu", unit)?.unwrap_or(Cpu::ZERO),
        memory: fields.read("memory", unit)?.unwrap_or(Bytes::ZERO),
    })
}
