//! Why something waits: all blockers, with figures.

mod text;

use crate::{After, Bytes, Cpu, JobId, Micros, Milli, Name, Span, Time};
use serde::{Deserialize, Serialize};

/// Which resource is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shortage {
    /// Fewer GPUs are free than it asks for.
    Gpu,
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

/// A job that is waited for, and what it must come to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Awaited {
    pub job: Name,
    pub after: After,
}

/// Why nodes are ruled out for a pod, and how many.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RuledOut {
    pub nodes: u32,
    pub why: String,
    /// Whether it may pass while neither the pod nor the nodes are changed by people.
    #[serde(default)]
    pub passes: bool,
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
        on: Vec<Awaited>,
    },
    /// It waits for what can no longer happen.
    DependencyNever {
        on: Awaited,
    },
    /// An earlier job of its name and user has not ended.
    Singleton {
        first: JobId,
    },
    ArrayLimit {
        at_most: u32,
    },
    SetAside {
        finding: String,
    },
    /// A member of its gang was lost; it restarts whole.
    Stale {
        missing: u32,
        until: Time,
    },
    /// Time-shared: paused for shorter jobs.
    Paused {
        since: Time,
    },
    /// No node has a GPU model it accepts; none named: no node has a GPU.
    NoModel {
        models: Vec<Name>,
    },
    /// No GPU here can be cut into such instances.
    NoProfile {
        profile: Name,
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
        tasks: u32,
        fit: u32,
    },
    /// It would not fit any empty domain of the level it must lie in.
    TooLargeForDomain {
        level: Name,
        asks: Milli,
        largest: Milli,
        tasks: u32,
        fit: u32,
    },
    /// One task asks for more CPU than any suitable node has.
    TooLargeCpu {
        asks: Cpu,
        largest: Cpu,
    },
    TooLargeMemory {
        asks: Bytes,
        largest: Bytes,
    },
    /// The same of anything else that nodes count.
    TooLargeCounted {
        resource: Name,
        asks: i64,
        largest: i64,
    },
    /// None of the nodes it may lie on, by name, is there.
    NoNode,
    /// On Kubernetes: no node meets what its pods ask of a node. How many of the nodes each cause
    /// rules out.
    NodesRuledOut {
        nodes: u32,
        causes: Vec<RuledOut>,
    },
    /// On Kubernetes: what its pods wait for before they are in line, such as a volume.
    PodsWait {
        why: String,
    },
    /// On Kubernetes: pods of its gang do not exist yet.
    GangIncomplete {
        gang: Name,
        pods: u32,
        needed: u32,
    },
    /// A port, a disk or other resources of nodes are with pods of other schedulers.
    HeldByOthers {
        resource: Name,
        asks: String,
        nodes: u32,
    },
    /// Nodes that would make room for it take no work.
    Closed {
        nodes: u32,
    },
    Budget {
        queue: Name,
        limit: Micros,
        spent: Micros,
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
        /// What it is a quota of: GPUs where left out.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        resource: Name,
    },
    /// A job that cannot be stopped starts only within its queue's quota.
    OverQuota {
        queue: Name,
        used: Milli,
        quota: Milli,
        asks: Milli,
    },
    /// The head of a strict queue blocks it.
    Behind {
        job: JobId,
    },
    /// It does not fit what is free now.
    NoFit {
        short: Shortage,
        asks: Milli,
        free: Milli,
        tasks: u32,
        fit: u32,
    },
    /// What is free lies on GPUs of which other queues have shares, and the policy keeps queues
    /// apart. `free`: how much of them that is.
    BesideOthers {
        asks: Milli,
        free: Milli,
    },
    /// There are GPUs, but not CPU beside them. `free`: the most that is left on a node.
    NoFitCpu {
        asks: Cpu,
        free: Cpu,
        tasks: u32,
        fit: u32,
    },
    NoFitMemory {
        asks: Bytes,
        free: Bytes,
        tasks: u32,
        fit: u32,
    },
    /// The same of anything else that nodes count.
    NoFitCounted {
        resource: Name,
        asks: i64,
        free: i64,
        tasks: u32,
        fit: u32,
    },
    /// It asks for no GPU, and nodes that have CPU and memory left keep them for their free GPUs:
    /// one of these nodes, and how many there are.
    KeptForGpus {
        node: Name,
        cpu: Cpu,
        memory: Bytes,
        gpus: Milli,
        nodes: u32,
    },
    /// Every node that would do takes as many tasks as it may.
    NoFitTasks {
        tasks: u32,
        fit: u32,
    },
    /// No one domain has room for all that must lie together.
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
        tasks: u32,
        /// Domains with room for one at least.
        domains: u32,
    },
    Near {
        target: Name,
        level: Name,
        /// Whether it runs anywhere.
        runs: bool,
    },
    Away {
        target: Name,
        level: Name,
    },
    /// The tasks differ and the search for a packing was cut off.
    SearchBound {
        steps: u32,
    },
    /// Nodes that would do must be empty before it could end.
    Leaving {
        nodes: u32,
        within: Span,
    },
    /// Nodes that would do are kept for an owner, or for maintenance.
    ReservedByOperator {
        name: Name,
        nodes: u32,
        from: Time,
        to: Time,
    },
    /// Enough is free, but it is promised to earlier jobs.
    ReservedForOthers {
        from: Time,
        jobs: u32,
    },
    /// It has a reservation itself.
    Reserved {
        at: Time,
        gpus: Milli,
        tasks: u32,
    },
    /// Running jobs are being stopped for it.
    Stopping {
        jobs: u32,
        until: Time,
    },
    /// Running jobs are being stopped for it, more than these disruption budgets allow: no others
    /// would have made room.
    BudgetsExceeded {
        budgets: Vec<Name>,
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
    /// A pool could serve it, but its machines cannot be had before that time.
    NotOnOffer {
        pool: Name,
        until: Time,
    },
    /// The queue is over its fair share, and may not take from others.
    OverShare {
        queue: Name,
        used: Milli,
        share: Milli,
        asks: Milli,
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
    /// Nothing stands in its way: it starts in this plan or the next.
    Next,
}

impl Reason {
    /// A code that never changes its meaning.
    pub const fn code(&self) -> &'static str {
        match self {
            Reason::Held => "held",
            Reason::BeginTime { .. } => "begin-time",
            Reason::Dependency { .. } => "dependency",
            Reason::DependencyNever { .. } => "dependency-never",
            Reason::Singleton { .. } => "singleton",
            Reason::ArrayLimit { .. } => "array-limit",
            Reason::SetAside { .. } => "set-aside",
            Reason::Stale { .. } => "stale",
            Reason::Paused { .. } => "paused",
            Reason::NoModel { .. } => "no-model",
            Reason::NoProfile { .. } => "no-profile",
            Reason::GpuMemory { .. } => "gpu-memory",
            Reason::NoLabel { .. } => "no-label",
            Reason::Tainted { .. } => "tainted",
            Reason::NoLifecycle { .. } => "no-lifecycle",
            Reason::TooLarge { .. } => "too-large",
            Reason::TooLargeForDomain { .. } => "too-large-for-domain",
            Reason::TooLargeCpu { .. } => "too-large-cpu",
            Reason::TooLargeMemory { .. } => "too-large-memory",
            Reason::TooLargeCounted { .. } => "too-large-counted",
            Reason::NoNode => "no-node",
            Reason::NodesRuledOut { .. } => "nodes-ruled-out",
            Reason::PodsWait { .. } => "pods-wait",
            Reason::GangIncomplete { .. } => "gang-incomplete",
            Reason::HeldByOthers { .. } => "held-by-others",
            Reason::Closed { .. } => "closed",
            Reason::Budget { .. } => "budget",
            Reason::QueueBound { bound: Bound::Limit, .. } => "queue-limit",
            Reason::QueueBound { bound: Bound::Borrow, .. } => "borrow-limit",
            Reason::QueueBound { bound: Bound::UserLimit, .. } => "user-limit",
            Reason::NotLent { .. } => "not-lent",
            Reason::OverQuota { .. } => "over-quota",
            Reason::Behind { .. } => "behind",
            Reason::NoFit { .. } => "no-fit",
            Reason::BesideOthers { .. } => "beside-others",
            Reason::NoFitCpu { .. } => "no-fit-cpu",
            Reason::NoFitMemory { .. } => "no-fit-memory",
            Reason::NoFitCounted { .. } => "no-fit-counted",
            Reason::KeptForGpus { .. } => "kept-for-gpus",
            Reason::NoFitTasks { .. } => "no-fit-tasks",
            Reason::NoDomain { .. } => "no-domain",
            Reason::NoSegment { .. } => "no-segment",
            Reason::Spread { .. } => "spread",
            Reason::Near { .. } => "near",
            Reason::Away { .. } => "away",
            Reason::SearchBound { .. } => "search-bound",
            Reason::Leaving { .. } => "leaving",
            Reason::ReservedByOperator { .. } => "reserved-by-operator",
            Reason::ReservedForOthers { .. } => "reserved-for-others",
            Reason::Reserved { .. } => "reserved",
            Reason::Stopping { .. } => "stopping",
            Reason::BudgetsExceeded { .. } => "budgets-exceeded",
            Reason::Buying { .. } => "buying",
            Reason::PoolFull { .. } => "pool-full",
            Reason::NotOnOffer { .. } => "not-on-offer",
            Reason::OverShare { .. } => "over-share",
            Reason::VictimsProtected { .. } => "victims-protected",
            Reason::PreemptAfter { .. } => "preempt-after",
            Reason::Next => "next",
        }
    }
}
