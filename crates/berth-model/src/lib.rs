//! The nouns of Berth: ids, quantities with units, specs, [`Event`], [`Decision`] and [`Reason`].
//!
//! Nothing here decides or does anything: this crate is arithmetic and parsing. It has no clock, no
//! I/O and no randomness but what a seed determines, so every crate may depend on it.

// Integers only, so that a plan and a bill come out the same on every machine. The ban of types in
// clippy.toml catches a float that is named; this catches one that is inferred.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

mod code;
mod cost;
mod data;
mod decision;
mod event;
mod gpu;
mod id;
mod job;
mod job_state;
mod mig;
mod money;
mod node;
mod pod;
mod policy;
mod pool;
mod queue;
mod random;
mod reason;
mod reject;
mod request;
pub mod run;
mod snapshot;
mod task_end;
mod unit;

pub use code::{CodeId, ParseCodeId};
pub use cost::CostKind;
pub use data::{DataHash, DataRef, DataVersion, ParseDataHash, ParseDataVersion};
pub use decision::{Cause, Decision, Place};
pub use event::{Event, JobChange, LeaseOutcome, Stamped};
pub use gpu::{Division, GpuAsk, GpuInfo, Share, Slice, catalog, catalog_models};
pub use id::{JobId, LeaseId, Name, TaskId};
pub use job::{
    After, ArraySpec, Dependency, GroupSpec, JobRef, JobSpec, JobTarget, LabelAsk, ModelAsk, Near,
    NodeAsk, Outcome, Segment, Spread, Toleration, TopologyAsk,
};
pub use job_state::{Exit, ExitKind, JobKind, JobState, UnknownWord};
pub use mig::{MigLayout, MigProfile, MigSlot};
pub use node::{Effect, GpuSpec, Health, Lifecycle, NodeSpec, NodeState, Taint};
pub use pod::PodRef;
pub use policy::{BackfillEnds, Pass, Policy, PriorityClass, QueueOrder, ShareGpus, Strategy};
pub use pool::{ClaimSpec, Offering, PoolSpec};
pub use queue::{
    Amount, Budget, BudgetAction, BudgetPeriod, ClassLimit, GpuQuota, QueueSpec, Quota, Reservation,
};
pub use random::SplitMix64;
pub use reason::{Awaited, Bound, Reason, RuledOut, Shortage};
pub use reject::Rejected;
pub use request::{JobRequest, PodWorkload, Workload};
pub use run::RunSpec;
pub use snapshot::{
    History, JobSnapshot, LeaseSnapshot, NodeSnapshot, Promise, QueueSnapshot, RecentAsk, Snapshot,
    StopSnapshot,
};
pub use task_end::{Ended, Observed, TaskEnd, Usage};
pub use unit::{Bytes, Cpu, Micros, Milli, ParseUnit, Span, Time};
