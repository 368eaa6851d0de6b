//! The program as the scheduler of a real API server. Nodes are simulated, everything else is real.

#[path = "cluster/adopt.rs"]
mod adopt;
#[path = "cluster/again.rs"]
mod again;
#[path = "cluster/apply.rs"]
mod apply;
#[path = "cluster/attach.rs"]
mod attach;
#[path = "cluster/binary.rs"]
mod binary;
#[path = "cluster/chart.rs"]
mod chart;
#[path = "cluster/claims.rs"]
mod claims;
#[path = "cluster/constraints.rs"]
mod constraints;
#[path = "cluster/crds.rs"]
mod crds;
#[path = "cluster/events.rs"]
mod events;
#[path = "cluster/faults.rs"]
mod faults;
#[path = "cluster/fractions.rs"]
mod fractions;
#[path = "cluster/gpus.rs"]
mod gpus;
#[path = "cluster/hook.rs"]
mod hook;
#[path = "cluster/hypernodes.rs"]
mod hypernodes;
#[path = "cluster/in_use.rs"]
mod in_use;
#[path = "cluster/jobs.rs"]
mod jobs;
#[path = "cluster/machine.rs"]
mod machine;
#[path = "cluster/marks.rs"]
mod marks;
#[path = "cluster/parts.rs"]
mod parts;
#[path = "cluster/peers.rs"]
mod peers;
#[path = "cluster/pods.rs"]
mod pods;
#[path = "cluster/rights.rs"]
mod rights;
#[path = "cluster/siege.rs"]
mod siege;
#[path = "cluster/signals.rs"]
mod signals;
#[path = "cluster/support.rs"]
mod support;
#[path = "cluster/suspended.rs"]
mod suspended;
#[path = "cluster/teams.rs"]
mod teams;
#[path = "cluster/vgpu.rs"]
mod vgpu;
#[path = "cluster/volumes.rs"]
mod volumes;
#[path = "cluster/whose.rs"]
mod whose;
#[path = "cluster/wishes.rs"]
mod wishes;
