//! What can be wrong with a plan.

use std::fmt;

/// A rule that a transaction breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its place in the plan.
    pub transaction: usize,
    pub code: FindingCode,
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.code(), self.text)
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal,)*) => {
        /// Which rule.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FindingCode {
            $($(#[doc = $doc])+ $name,)*
        }

        impl FindingCode {
            /// A code that never changes its meaning.
            pub const fn code(self) -> &'static str {
                match self {
                    $(FindingCode::$name => $code,)*
                }
            }
        }
    };
}

codes! {
    /// A job, task, node, lease or pool that is not there.
    Unknown = "unknown",
    /// A start for another job than the transaction's.
    Stray = "stray",
    /// The job may not start now: held, before its time, after another, put aside.
    NotInLine = "not-in-line",
    /// Not the next attempt of its task, or a task that runs or has ended.
    Attempt = "attempt",
    /// A job that resumes without a checkpoint, or the reverse.
    Resume = "resume",
    /// The price is not what the slices cost.
    Price = "price",
    /// The node takes no work, or not for that long.
    NodeClosed = "node-closed",
    /// An operator's reservation is in the way.
    NodeReserved = "node-reserved",
    /// A label the group needs is missing.
    Label = "label",
    /// A taint the group does not tolerate.
    Taint = "taint",
    /// Spot, on-demand or reserved, and not what was asked for.
    Lifecycle = "lifecycle",
    /// Slices of another number, size or model than the group asks for.
    Slices = "slices",
    /// A GPU that failed, or would be held beyond its capacity.
    Capacity = "capacity",
    /// Shares of a GPU that belong to queues which the policy keeps apart.
    Tenants = "tenants",
    /// More CPU than the node has.
    Cpu = "cpu",
    /// More memory than the node has.
    Memory = "memory",
    /// More of something counted than the node has.
    Counted = "counted",
    /// More tasks than the node takes.
    Tasks = "tasks",
    /// A node that the group may not lie on.
    Node = "node",
    /// A gang below its minimum.
    Minimum = "minimum",
    /// Tasks that must lie in one domain do not.
    Topology = "topology",
    /// A segment that is split up.
    Segment = "segment",
    /// Too many tasks in one domain.
    Spread = "spread",
    /// Near or away from other jobs is not kept.
    Near = "near",
    /// The limit of a queue.
    Limit = "limit",
    /// What a queue may borrow.
    Borrow = "borrow",
    /// The limit of a user in a queue.
    UserLimit = "user-limit",
    /// Quota that its owner does not lend.
    NotLent = "not-lent",
    /// A job that cannot be stopped, outside its queue's quota.
    OverQuota = "over-quota",
    /// The budget is spent.
    Budget = "budget",
    /// A lease that is being stopped already.
    Stopping = "stopping",
    /// More grace than the policy allows, or less than a job that gives way has.
    Grace = "grace",
    /// The cause of a stop is not true.
    Cause = "cause",
    /// A job that cannot be a victim.
    Victim = "victim",
    /// A victim that gives its claimant nothing.
    Needless = "needless",
    /// A victim before its minimum run time.
    MinRuntime = "min-runtime",
    /// The claimant may not take from this victim.
    Right = "right",
    /// The claimant may not displace others yet.
    TooSoon = "too-soon",
    /// A task is taken as surplus and is none.
    Surplus = "surplus",
    /// A job is left with a part of its gang.
    HalfStopped = "half-stopped",
    /// The plan preempts jobs, and no job gets their GPUs.
    NoClaimant = "no-claimant",
    /// More jobs moved than the policy allows.
    Moves = "moves",
    /// A GPU that is promised to another job meanwhile.
    Promised = "promised",
    /// A place that is not free at the promised time.
    NotFree = "not-free",
    /// A promise with no places, or in the past.
    Promise = "promise",
    /// A promise that is moved to a later time.
    PromiseMoved = "promise-moved",
    /// A claim of a name that exists, or of what is not on offer.
    Claim = "claim",
    /// A pool beyond its maximum.
    PoolFull = "pool-full",
    /// A pool below its minimum.
    PoolShort = "pool-short",
    /// A node that cannot be given back.
    Return = "return",
}
