//! Why something waits: all blockers, with figures.

use crate::{Bytes, Cpu, JobId, Milli, Name, Span, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which resource is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shortage {
    Gpu,
    Cpu,
    Memory,
    /// Free GPUs are there, but no node (or GPU, for a share) has enough of them together.
    Fragments,
}

/// Which bound of a queue (or of a user in it) stands in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    Limit,
    Borrow,
    UserLimit,
}

/// One thing that keeps a job from starting now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "code")]
pub enum Reason {
    Held,
    BeginTime {
        at: Time,
    },
    Dependency {
        on: Vec<Name>,
    },
    DependencyNever {
        on: Name,
    },
    Singleton {
        running: JobId,
    },
    ArrayLimit {
        at_most: u32,
    },
    /// No node has a GPU model it accepts.
    NoModel {
        models: Vec<Name>,
    },
    GpuMemory {
        needs: Bytes,
        largest: Bytes,
    },
    /// No node has the labels it needs.
    NoLabel {
        labels: Vec<String>,
    },
    /// Every node that would do has a taint it does not tolerate.
    Tainted {
        taints: Vec<String>,
        nodes: u32,
    },
    NoLifecycle {
        asks: String,
    },
    /// It would not fit the empty cluster.
    TooLarge {
        asks: Milli,
        has: Milli,
    },
    /// It would not fit any empty domain of the level it must lie in.
    TooLargeForDomain {
        level: Name,
        asks: Milli,
        largest: Milli,
    },
    /// It does not fit what is free now.
    NoFit {
        short: Shortage,
        asks: Milli,
        free: Milli,
        tasks: u32,
        fit: u32,
    },
    NoFitCpu {
        asks: Cpu,
        free: Cpu,
    },
    NoFitMemory {
        asks: Bytes,
        free: Bytes,
    },
    /// Enough is free, but not inside one domain.
    NoDomain {
        level: Name,
        tasks: u32,
        best: Name,
        fit: u32,
    },
    NoSegment {
        level: Name,
        size: u32,
        segments: u32,
        fit: u32,
    },
    Spread {
        level: Name,
        at_most: u32,
        domains: u32,
    },
    Near {
        target: Name,
        level: Name,
    },
    Away {
        target: Name,
        level: Name,
    },
    /// The tasks differ and the search for a packing was cut off.
    SearchBound {
        steps: u32,
    },
    /// Enough is free, but it is promised to earlier jobs.
    ReservedForOthers {
        until: Time,
        jobs: u32,
    },
    /// It has a reservation itself.
    Reserved {
        at: Time,
        gpus: Milli,
    },
    /// Running jobs are being stopped for it.
    Stopping {
        jobs: u32,
        until: Time,
    },
    /// A machine is being bought for it.
    Buying {
        claims: u32,
        ready: Time,
    },
    /// A pool could serve it but is at its size limit.
    PoolFull {
        pool: Name,
        max: u32,
    },
    QueueBound {
        queue: Name,
        bound: Bound,
        resource: Name,
        used: Milli,
        allowed: Milli,
        asks: Milli,
    },
    /// What is free is a quota its owner does not lend.
    NotLent {
        queue: Name,
        kept: Milli,
    },
    /// A job that cannot be stopped starts only within its queue's quota.
    OverQuota {
        queue: Name,
        used: Milli,
        quota: Milli,
        asks: Milli,
    },
    /// The queue is over its fair share, and may not take from others.
    OverShare {
        queue: Name,
        used: Milli,
        share: Milli,
    },
    /// Jobs that it could displace are protected by their minimum run time.
    VictimsProtected {
        jobs: u32,
        until: Time,
    },
    /// It may displace others, but not yet.
    PreemptAfter {
        at: Time,
    },
    Budget {
        queue: Name,
        limit: crate::Micros,
        spent: crate::Micros,
    },
    /// The head of a strict queue blocks it.
    Behind {
        job: JobId,
    },
    /// Time-shared: paused for shorter jobs.
    Paused {
        since: Time,
    },
    SetAside {
        finding: String,
    },
    /// Nothing stands in its way: it starts in this plan or the next.
    Next,
    /// A member of its gang was lost; it restarts whole.
    Stale {
        missing: u32,
        until: Time,
    },
    /// Its node must end empty before that time, so longer jobs do not start there.
    Leaving {
        nodes: u32,
        within: Span,
    },
}

impl Reason {
    pub const fn code(&self) -> &'static str {
        match self {
            Reason::Held => "held",
            Reason::BeginTime { .. } => "begin-time",
            Reason::Dependency { .. } => "dependency",
            Reason::DependencyNever { .. } => "dependency-never",
            Reason::Singleton { .. } => "singleton",
            Reason::ArrayLimit { .. } => "array-limit",
            Reason::NoModel { .. } => "no-model",
            Reason::GpuMemory { .. } => "gpu-memory",
            Reason::NoLabel { .. } => "no-label",
            Reason::Tainted { .. } => "tainted",
            Reason::NoLifecycle { .. } => "no-lifecycle",
            Reason::TooLarge { .. } => "too-large",
            Reason::TooLargeForDomain { .. } => "too-large-for-domain",
            Reason::NoFit { .. } => "no-fit",
            Reason::NoFitCpu { .. } => "no-fit-cpu",
            Reason::NoFitMemory { .. } => "no-fit-memory",
            Reason::NoDomain { .. } => "no-domain",
            Reason::NoSegment { .. } => "no-segment",
            Reason::Spread { .. } => "spread",
            Reason::Near { .. } => "near",
            Reason::Away { .. } => "away",
            Reason::SearchBound { .. } => "search-bound",
            Reason::ReservedForOthers { .. } => "reserved-for-others",
            Reason::Reserved { .. } => "reserved",
            Reason::Stopping { .. } => "stopping",
            Reason::Buying { .. } => "buying",
            Reason::PoolFull { .. } => "pool-full",
            Reason::QueueBound { bound: Bound::Limit, .. } => "queue-limit",
            Reason::QueueBound { bound: Bound::Borrow, .. } => "borrow-limit",
            Reason::QueueBound { bound: Bound::UserLimit, .. } => "user-limit",
            Reason::NotLent { .. } => "not-lent",
            Reason::OverQuota { .. } => "over-quota",
            Reason::OverShare { .. } => "over-share",
            Reason::VictimsProtected { .. } => "victims-protected",
            Reason::PreemptAfter { .. } => "preempt-after",
            Reason::Budget { .. } => "budget",
            Reason::Behind { .. } => "behind",
            Reason::Paused { .. } => "paused",
            Reason::SetAside { .. } => "set-aside",
            Reason::Next => "next",
            Reason::Stale { .. } => "stale",
            Reason::Leaving { .. } => "leaving",
        }
    }
}

fn join(names: &[Name]) -> String {
    names.iter().map(Name::as_str).collect::<Vec<_>>().join(" or ")
}

fn plural(n: u32, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

fn gpus(n: Milli) -> String {
    if n == Milli::ONE { "1 GPU".to_owned() } else { format!("{n} GPUs") }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Held => write!(f, "it is on hold; release it to let it start"),
            Reason::BeginTime { at } => write!(f, "it was asked to begin no earlier than {at}"),
            Reason::Dependency { on } => write!(
                f,
                "it waits for {} to get there first",
                on.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
            ),
            Reason::DependencyNever { on } => write!(
                f,
                "it waits for {on} to end in a way that can no longer happen; cancel it or change the dependency"
            ),
            Reason::Singleton { running } => write!(
                f,
                "another job of the same name and user is running (job {running}), and it is marked singleton"
            ),
            Reason::ArrayLimit { at_most } => {
                write!(f, "its array runs at most {} at once", plural(*at_most, "element"))
            }
            Reason::NoModel { models } => write!(f, "no node here has {} GPUs", join(models)),
            Reason::GpuMemory { needs, largest } => write!(
                f,
                "it needs GPUs with {needs} of memory; the largest suitable one here has {largest}"
            ),
            Reason::NoLabel { labels } => {
                write!(f, "no node carries the labels it needs: {}", labels.join(", "))
            }
            Reason::Tainted { taints, nodes } => write!(
                f,
                "{} would do but {} tainted {}, which it does not tolerate",
                plural(*nodes, "node"),
                if *nodes == 1 { "is" } else { "are" },
                taints.join(", ")
            ),
            Reason::NoLifecycle { asks } => {
                write!(f, "it asks for {asks} machines and there are none")
            }
            Reason::TooLarge { asks, has } => write!(
                f,
                "it asks for {} at once; even the empty cluster could give it only {has} in that form",
                gpus(*asks)
            ),
            Reason::TooLargeForDomain { level, asks, largest } => write!(
                f,
                "it asks for {} inside one {level}; the largest {level} could hold {largest} of that form",
                gpus(*asks)
            ),
            Reason::NoFit { short: Shortage::Fragments, asks, free, tasks, fit } => write!(
                f,
                "it asks for {}; {free} are free, but scattered: only {fit} of its {} would fit",
                gpus(*asks),
                plural(*tasks, "task")
            ),
            Reason::NoFit { asks, free, .. } => write!(
                f,
                "it asks for {}; {free} suitable {} free",
                gpus(*asks),
                if *free == Milli::ONE { "is" } else { "are" }
            ),
            Reason::NoFitCpu { asks, free } => write!(
                f,
                "its tasks ask for {asks} CPU cores each; no node with suitable GPUs has more than {free} left"
            ),
            Reason::NoFitMemory { asks, free } => write!(
                f,
                "its tasks ask for {asks} of memory each; no node with suitable GPUs has more than {free} left"
            ),
            Reason::NoDomain { level, tasks, best, fit } => write!(
                f,
                "all {} must lie in one {level}; the best one, {best}, has room for {fit} now",
                plural(*tasks, "task")
            ),
            Reason::NoSegment { level, size, segments, fit } => write!(
                f,
                "it needs {} of {size} tasks, each inside one {level}; {fit} would fit now",
                plural(*segments, "segment")
            ),
            Reason::Spread { level, at_most, domains } => write!(
                f,
                "at most {} may share one {level}, and only {} has room",
                plural(*at_most, "task"),
                plural(*domains, level)
            ),
            Reason::Near { target, level } => {
                write!(f, "it must run in the same {level} as {target}, and there is no room there")
            }
            Reason::Away { target, level } => write!(
                f,
                "it must not run in a {level} where {target} runs, and there is no room elsewhere"
            ),
            Reason::SearchBound { steps } => write!(
                f,
                "its tasks differ; no packing was found in {steps} tries, so it may fit all the same"
            ),
            Reason::ReservedForOthers { until, jobs } => write!(
                f,
                "enough GPUs are free, but they are reserved for {} ahead of it from {until}, and it could run longer than that",
                plural(*jobs, "job")
            ),
            Reason::Reserved { at, gpus: n } => {
                write!(f, "{} are reserved for it from {at}", gpus(*n))
            }
            Reason::Stopping { jobs, until } => write!(
                f,
                "{} being stopped for it; their GPUs are free by {until}",
                if *jobs == 1 { "1 job is".to_owned() } else { format!("{jobs} jobs are") }
            ),
            Reason::Buying { claims, ready } => write!(
                f,
                "{} being bought for it, expected at {ready}",
                if *claims == 1 {
                    "1 machine is".to_owned()
                } else {
                    format!("{claims} machines are")
                }
            ),
            Reason::PoolFull { pool, max } => write!(
                f,
                "pool {pool} could serve it but is at its limit of {}",
                plural(*max, "machine")
            ),
            Reason::QueueBound { queue, bound, resource, used, allowed, asks } => {
                let what = match bound {
                    Bound::Limit => format!("queue {queue} is limited to {allowed}"),
                    Bound::Borrow => format!(
                        "queue {queue} may use its quota and what it may borrow, {allowed} in all,"
                    ),
                    Bound::UserLimit => {
                        format!("each user of queue {queue} is limited to {allowed}")
                    }
                };
                write!(f, "{what} {resource}: {used} in use, {asks} more asked")
            }
            Reason::NotLent { queue, kept } => write!(
                f,
                "{} free, but queue {queue} does not lend them",
                if *kept == Milli::ONE {
                    "1 GPU is".to_owned()
                } else {
                    format!("{kept} GPUs are")
                }
            ),
            Reason::OverQuota { queue, used, quota, asks } => write!(
                f,
                "it cannot be stopped once started, so it needs room in the quota of queue {queue}: {used} of {quota} in use, {asks} more asked"
            ),
            Reason::OverShare { queue, used, share } => write!(
                f,
                "queue {queue} uses {used} of its fair share of {share}, so it may not take GPUs from others"
            ),
            Reason::VictimsProtected { jobs, until } => write!(
                f,
                "{} could make room but may not be stopped before {until}",
                plural(*jobs, "running job")
            ),
            Reason::PreemptAfter { at } => {
                write!(f, "it may take GPUs from other jobs from {at} on")
            }
            Reason::Budget { queue, limit, spent } => {
                write!(f, "the budget of queue {queue} is spent: ${spent} of ${limit}")
            }
            Reason::Behind { job } => {
                write!(f, "job {job} is ahead of it in a queue that keeps strict order")
            }
            Reason::Paused { since } => {
                write!(f, "it was paused at {since} for shorter jobs of its queue")
            }
            Reason::SetAside { finding } => write!(
                f,
                "its placement failed the safety check ({finding}); it is tried again when the job or the cluster changes"
            ),
            Reason::Next => write!(f, "nothing stands in its way; it starts next"),
            Reason::Stale { missing, until } => write!(
                f,
                "{} of its gang was lost; unless replaced by {until} it restarts from its checkpoint",
                plural(*missing, "task")
            ),
            Reason::Leaving { nodes, within } => write!(
                f,
                "{} would do but leaves within {within}, before it could end",
                plural(*nodes, "node")
            ),
        }
    }
}
