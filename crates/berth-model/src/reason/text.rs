//! Reasons as sentences: what is short, by how much, and what can be done about it.

use super::{Awaited, Bound, Reason, Shortage};
use crate::{After, Milli, Name};
use std::fmt::{self, Display, Formatter};

fn listed<T: AsRef<str>>(names: &[T], last: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [init @ .., end] => {
            let init: Vec<&str> = init.iter().map(AsRef::as_ref).collect();
            format!("{} {last} {}", init.join(", "), end.as_ref())
        }
    }
}

fn plural(n: u32, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

fn verb(n: u32) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

fn gpus(n: Milli) -> String {
    match n.0 {
        1_000 => "1 GPU".to_owned(),
        1..1_000 => format!("{n} of a GPU"),
        _ => format!("{n} GPUs"),
    }
}

fn are(n: Milli) -> &'static str {
    if n.0 > 0 && n <= Milli::ONE { "is" } else { "are" }
}

/// What a level of topology is called in a sentence.
fn place(level: &Name) -> &str {
    if level.as_str() == "nvlink" { "NVLink island" } else { level }
}

/// What it asks for at once: GPUs, or, where it asks for none, tasks.
fn asked(asks: Milli, tasks: u32) -> String {
    if asks.0 > 0 { gpus(asks) } else { format!("room for {}", plural(tasks, "task")) }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Display for Awaited {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let job = &self.job;
        match self.after {
            After::Ok => write!(f, "{job} to succeed"),
            After::Any => write!(f, "{job} to end"),
            After::NotOk => write!(f, "{job} to fail"),
            After::Start => write!(f, "{job} to start"),
        }
    }
}

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Held
            | Reason::BeginTime { .. }
            | Reason::Dependency { .. }
            | Reason::DependencyNever { .. }
            | Reason::Singleton { .. }
            | Reason::ArrayLimit { .. }
            | Reason::SetAside { .. }
            | Reason::Stale { .. }
            | Reason::Paused { .. }
            | Reason::PodsWait { .. }
            | Reason::GangIncomplete { .. } => parked(self, f),
            Reason::NoModel { .. }
            | Reason::NoProfile { .. }
            | Reason::GpuMemory { .. }
            | Reason::NoLabel { .. }
            | Reason::Tainted { .. }
            | Reason::NoLifecycle { .. }
            | Reason::TooLarge { .. }
            | Reason::TooLargeForDomain { .. }
            | Reason::TooLargeCpu { .. }
            | Reason::TooLargeMemory { .. }
            | Reason::TooLargeCounted { .. }
            | Reason::NoNode
            | Reason::NodesRuledOut { .. }
            | Reason::HeldByOthers { .. }
            | Reason::Closed { .. } => never(self, f),
            Reason::Budget { .. }
            | Reason::QueueBound { .. }
            | Reason::NotLent { .. }
            | Reason::OverQuota { .. }
            | Reason::Behind { .. }
            | Reason::OverShare { .. } => queue(self, f),
            Reason::NoFit { .. }
            | Reason::BesideOthers { .. }
            | Reason::NoFitCpu { .. }
            | Reason::NoFitMemory { .. }
            | Reason::NoFitCounted { .. }
            | Reason::KeptForGpus { .. }
            | Reason::NoFitTasks { .. }
            | Reason::NoDomain { .. }
            | Reason::NoSegment { .. }
            | Reason::Spread { .. }
            | Reason::Near { .. }
            | Reason::Away { .. }
            | Reason::SearchBound { .. } => fit(self, f),
            Reason::Leaving { .. }
            | Reason::ReservedByOperator { .. }
            | Reason::ReservedForOthers { .. }
            | Reason::Reserved { .. }
            | Reason::Stopping { .. }
            | Reason::BudgetsExceeded { .. }
            | Reason::Buying { .. }
            | Reason::PoolFull { .. }
            | Reason::NotOnOffer { .. }
            | Reason::VictimsProtected { .. }
            | Reason::PreemptAfter { .. }
            | Reason::Next => coming(self, f),
        }
    }
}

fn parked(reason: &Reason, f: &mut Formatter<'_>) -> fmt::Result {
    match reason {
        Reason::Held => write!(f, "on hold; `berth resume` lets it start"),
        Reason::BeginTime { at } => write!(f, "it was asked to begin no earlier than {at}"),
        Reason::Dependency { on } => {
            let each: Vec<String> = on.iter().map(|one| format!("for {one}")).collect();
            write!(f, "waiting {}", listed(&each, "and"))
        }
        Reason::DependencyNever { on } => write!(
            f,
            "waiting for {on}, which can no longer happen; stop it, or submit it without that dependency"
        ),
        Reason::Singleton { first } => write!(
            f,
            "only one job of its name and user may run at a time, and job {first} comes first"
        ),
        Reason::ArrayLimit { at_most } => {
            write!(
                f,
                "its array may run {} at a time, and that many are ahead of it",
                plural(*at_most, "element")
            )
        }
        Reason::SetAside { finding } => write!(
            f,
            "its placement failed the safety check ({finding}); it is tried again when the job or the cluster changes"
        ),
        Reason::Stale { missing, until } => write!(
            f,
            "{} of its gang {} lost; if not back by {until}, it restarts from its checkpoint",
            plural(*missing, "task"),
            if *missing == 1 { "is" } else { "are" }
        ),
        Reason::PodsWait { why } => f.write_str(why),
        Reason::GangIncomplete { gang, pods, needed } => write!(
            f,
            "{pods} of {} of gang {gang} exist; it starts when the others exist too",
            plural(*needed, "pod")
        ),
        Reason::Paused { since } => {
            write!(f, "it was paused at {since} for shorter jobs of its queue, and goes on after")
        }
        _ => Ok(()),
    }
}

fn never(reason: &Reason, f: &mut Formatter<'_>) -> fmt::Result {
    match reason {
        Reason::NoModel { models } if models.is_empty() => write!(f, "no node here has a GPU"),
        Reason::NoModel { models } => {
            write!(f, "no node here has {} GPUs; name another model", listed(models, "or"))
        }
        Reason::NoProfile { profile } => {
            write!(f, "no GPU here can be cut into {profile} instances; name another profile")
        }
        Reason::GpuMemory { needs, largest } => write!(
            f,
            "it needs GPUs with {needs} of memory; the largest suitable one here has {largest}"
        ),
        Reason::NoLabel { labels } => {
            write!(f, "no node carries the labels it needs: {}", labels.join(", "))
        }
        Reason::Tainted { taints, nodes } => write!(
            f,
            "{} would do but {} tainted {}; only jobs that tolerate that run there",
            plural(*nodes, "node"),
            verb(*nodes),
            taints.join(", ")
        ),
        Reason::NoLifecycle { asks } => {
            write!(f, "it asks for {asks} machines and there are none")
        }
        Reason::TooLarge { asks, has, tasks, fit } => write!(
            f,
            "it asks for {} at once; even the empty cluster has room for {}",
            asked(*asks, *tasks),
            if asks.0 > 0 {
                format!("{has}, {fit} of its {}", plural(*tasks, "task"))
            } else {
                fit.to_string()
            }
        ),
        Reason::TooLargeForDomain { level, asks, largest, tasks, fit } => write!(
            f,
            "it asks for {} in one {level}; the largest {level} has room for {}",
            asked(*asks, *tasks),
            if asks.0 > 0 { largest.to_string() } else { fit.to_string() },
            level = place(level)
        ),
        Reason::TooLargeCpu { asks, largest } => write!(
            f,
            "each task asks for {asks} CPU cores; the largest suitable node has {largest}"
        ),
        Reason::TooLargeMemory { asks, largest } => write!(
            f,
            "each task asks for {asks} of memory; the largest suitable node has {largest}"
        ),
        Reason::TooLargeCounted { resource, asks, largest: 0 } => {
            write!(f, "each task asks for {asks} {resource}; no suitable node has any")
        }
        Reason::TooLargeCounted { resource, asks, largest } => write!(
            f,
            "each task asks for {asks} {resource}; the largest suitable node has {largest}"
        ),
        Reason::NodesRuledOut { nodes, causes } => {
            let each: Vec<String> =
                causes.iter().map(|cause| format!("{} {}", cause.nodes, cause.why)).collect();
            write!(f, "none of {} will do: {}", plural(*nodes, "node"), each.join(", "))
        }
        Reason::HeldByOthers { resource, asks, nodes } => write!(
            f,
            "it asks for {asks} {resource}; {} {} enough, but pods of other schedulers hold it",
            plural(*nodes, "node"),
            if *nodes == 1 { "has" } else { "have" }
        ),
        Reason::NoNode => f.write_str("none of the nodes it may run on is there"),
        Reason::Closed { nodes } => write!(
            f,
            "{} that would make room {} closed to new work: cordoned, draining, in trouble or failed",
            plural(*nodes, "node"),
            verb(*nodes)
        ),
        _ => Ok(()),
    }
}

fn queue(reason: &Reason, f: &mut Formatter<'_>) -> fmt::Result {
    match reason {
        Reason::Budget { queue, limit, spent } => {
            let (spent, limit) = (spent.money(), limit.money());
            write!(f, "the budget of queue {queue} is spent: {spent} of {limit}")
        }
        Reason::QueueBound { queue, bound, resource, used, allowed, asks } => {
            match bound {
                Bound::Limit => write!(f, "queue {queue} is limited to {allowed} {resource}")?,
                Bound::Borrow => write!(
                    f,
                    "queue {queue} may use {allowed} {resource}, its quota and what it may borrow"
                )?,
                Bound::UserLimit => {
                    write!(f, "each user of queue {queue} is limited to {allowed} {resource}")?;
                }
            }
            write!(f, ": {used} in use, {asks} more asked for")
        }
        Reason::NotLent { queue, kept, resource } => {
            let (what, verb) = match resource.as_str() {
                "" => (gpus(*kept), are(*kept)),
                resource => (format!("{kept} {resource}"), "are"),
            };
            let lent = "which does not lend that much of its quota";
            match kept.0 {
                ..=0 => write!(f, "what becomes free is kept for queue {queue}, {lent}"),
                _ => write!(f, "{what} {verb} free, but kept for queue {queue}, {lent}"),
            }
        }
        Reason::OverQuota { queue, used, quota, asks } => write!(
            f,
            "a job that may not be stopped needs room in the quota of queue {queue}: {used} of {quota} in use, {asks} more asked for; one that may be stopped does not"
        ),
        Reason::Behind { job } => {
            write!(f, "job {job} is ahead of it in a queue that keeps strict order")
        }
        Reason::OverShare { queue, used, share, asks } => write!(
            f,
            "queue {queue} has a fair share of {} now and uses {used}; {asks} more would exceed it, so it may not take GPUs from other queues",
            gpus(*share)
        ),
        _ => Ok(()),
    }
}

fn fit(reason: &Reason, f: &mut Formatter<'_>) -> fmt::Result {
    match reason {
        Reason::NoFit { short: Shortage::Gpu, asks, free: Milli(0), .. } => {
            write!(f, "it asks for {}; none that suits it is free", gpus(*asks))
        }
        Reason::NoFit { short: Shortage::Gpu, asks, free, .. } => {
            write!(f, "it asks for {}; {free} that would suit {} free", gpus(*asks), are(*free))
        }
        Reason::NoFit { short: Shortage::Fragments, asks, free, tasks: 1, .. } => {
            write!(f, "it asks for {}; {free} {} free, but not together", gpus(*asks), are(*free))
        }
        Reason::NoFit { short: Shortage::Fragments, asks, free, tasks, fit } => write!(
            f,
            "it asks for {}; {free} {} free, but scattered: {fit} of its {} would fit",
            gpus(*asks),
            are(*free),
            plural(*tasks, "task")
        ),
        Reason::BesideOthers { asks, free } => write!(
            f,
            "it asks for {}; there is room, {free}, only on GPUs that other queues have shares of, and queues are kept apart there",
            gpus(*asks)
        ),
        Reason::NoFitCpu { asks, free, fit: 0, .. } => write!(
            f,
            "each task asks for {asks} CPU cores; no node that otherwise has room has more than {free} left"
        ),
        Reason::NoFitCpu { asks, tasks, fit, .. } => write!(
            f,
            "each task asks for {asks} CPU cores; {fit} of its {} would find them",
            plural(*tasks, "task")
        ),
        Reason::NoFitMemory { asks, free, fit: 0, .. } => write!(
            f,
            "each task asks for {asks} of memory; no node that otherwise has room has more than {free} left"
        ),
        Reason::NoFitMemory { asks, tasks, fit, .. } => write!(
            f,
            "each task asks for {asks} of memory; {fit} of its {} would find it",
            plural(*tasks, "task")
        ),
        Reason::NoFitCounted { resource, asks, free, fit: 0, .. } => write!(
            f,
            "each task asks for {asks} {resource}; no node that otherwise has room has more than {free} left"
        ),
        Reason::NoFitCounted { resource, asks, tasks, fit, .. } => write!(
            f,
            "each task asks for {asks} {resource}; {fit} of its {} would find that",
            plural(*tasks, "task")
        ),
        Reason::KeptForGpus { node, cpu, memory, gpus: free, nodes } => {
            let kept = match (cpu.0, memory.0) {
                (_, 0) => format!("{cpu} CPU cores"),
                (0, _) => format!("{memory} of memory"),
                _ => format!("{cpu} CPU cores and {memory} of memory"),
            };
            let many = if *free == Milli::ONE { "GPU" } else { "GPUs" };
            write!(f, "{node} keeps {kept} for its {free} free {many}")?;
            match nodes {
                0 | 1 => Ok(()),
                2 => f.write_str(", and another node does the same"),
                nodes => write!(f, ", and {} other nodes do the same", nodes - 1),
            }
        }
        Reason::NoFitTasks { fit: 0, .. } => {
            f.write_str("every node that otherwise has room runs as many tasks as it may")
        }
        Reason::NoFitTasks { tasks, fit } => write!(
            f,
            "nodes run only so many tasks each; {fit} of its {} would find a place",
            plural(*tasks, "task")
        ),
        Reason::NoDomain { level, tasks, fit: 0, .. } => write!(
            f,
            "its {} must lie in one {level}, and no {level} has room for any now",
            plural(*tasks, "task"),
            level = place(level)
        ),
        Reason::NoDomain { level, tasks, best, fit } => write!(
            f,
            "its {} must lie in one {level}; the best one, {best}, has room for {fit} now",
            plural(*tasks, "task"),
            level = place(level)
        ),
        Reason::NoSegment { level, size, segments, fit } => write!(
            f,
            "it needs {} of {}, each in one {level}; {fit} would fit now",
            plural(*segments, "segment"),
            plural(*size, "task"),
            level = place(level)
        ),
        Reason::Spread { level, at_most, tasks, domains } => write!(
            f,
            "its {} must be spread, at most {at_most} to a {level}; {} {} room now",
            plural(*tasks, "task"),
            plural(*domains, place(level)),
            if *domains == 1 { "has" } else { "have" },
            level = place(level)
        ),
        Reason::Near { target, level, runs: true } => {
            write!(f, "it must run in the same {level} as {target}, and there is no room there")
        }
        Reason::Near { target, level, runs: false } => {
            write!(f, "it must run in the same {level} as {target}, which does not run")
        }
        Reason::Away { target, level } => write!(
            f,
            "it must not run in a {level} where {target} runs, and there is no room elsewhere"
        ),
        Reason::SearchBound { steps } => write!(
            f,
            "its tasks differ, and no packing of them was found in {}; it may fit all the same",
            plural(*steps, "step")
        ),
        _ => Ok(()),
    }
}

fn coming(reason: &Reason, f: &mut Formatter<'_>) -> fmt::Result {
    match reason {
        Reason::Leaving { nodes, within } => write!(
            f,
            "{} with room {} within {within}, before it could end; a shorter time limit may let it start",
            plural(*nodes, "node"),
            if *nodes == 1 { "leaves" } else { "leave" }
        ),
        Reason::ReservedByOperator { name, nodes, from, to } => write!(
            f,
            "{} that would do {} reserved from {from} to {to} ({name})",
            plural(*nodes, "node"),
            verb(*nodes)
        ),
        Reason::ReservedForOthers { from, jobs } => write!(
            f,
            "enough is free, but reserved for {} ahead of it from {from}, and it could run longer; a shorter time limit may let it start",
            plural(*jobs, "job")
        ),
        Reason::Reserved { at, gpus: n, tasks } => {
            let what = asked(*n, *tasks);
            let verb = if n.0 > 0 { are(*n) } else { "is" };
            write!(f, "{what} {verb} reserved for it from {at}, or sooner if it fits sooner")
        }
        Reason::Stopping { jobs, until } => write!(
            f,
            "{} {} being stopped for it and will be gone by {until}",
            plural(*jobs, "job"),
            verb(*jobs)
        ),
        Reason::BudgetsExceeded { budgets } => write!(
            f,
            "no jobs within their disruption budgets would make room for it; those being stopped exceed {}",
            listed(&budgets.iter().map(Name::as_str).collect::<Vec<&str>>(), "and")
        ),
        Reason::Buying { claims, ready } => write!(
            f,
            "{} {} being bought for it, expected at {ready}",
            plural(*claims, "machine"),
            verb(*claims)
        ),
        Reason::PoolFull { pool, max } => write!(
            f,
            "pool {pool} could serve it but may not grow beyond {}",
            plural(*max, "machine")
        ),
        Reason::NotOnOffer { pool, until } => write!(
            f,
            "pool {pool} could serve it, but its machines could not be had; it is asked again at {until}"
        ),
        Reason::VictimsProtected { jobs, until } => write!(
            f,
            "it may take the GPUs of {}, but not before {until}: until then they have a minimum run time",
            plural(*jobs, "running job")
        ),
        Reason::PreemptAfter { at } => {
            write!(f, "it may take GPUs from other jobs, but only from {at} on")
        }
        Reason::Next => write!(f, "nothing stands in its way; it starts next"),
        _ => Ok(()),
    }
}
