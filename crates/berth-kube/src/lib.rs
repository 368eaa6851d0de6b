//! Kubernetes, as Berth reads it and writes to it: objects of the API server become the nouns of
//! `berth-model`, and what was decided elsewhere becomes bindings and evictions.
//!
//! Nothing here chooses: a pod's need, its constraint and its mark are what the manifest says, and
//! what the manifest says in a way we do not understand is an error value with words, never
//! ignored. A pod that carries one waits and tells why.
//!
//! | module | what it reads |
//! | --- | --- |
//! | [`object`] | the few fields of pods, nodes, owners and groups that matter here |
//! | [`quantity`] | `500m`, `64Gi`, `1e3` |
//! | [`need`] | what one pod asks for: CPU, memory, GPUs |
//! | [`constraint`] | which nodes a pod accepts: selector, affinity, tolerations |
//! | [`dynamic`] | what depends on other pods: affinity to them, spread, ports, volumes |
//! | [`dra`] | devices that are claimed, and who was given which |
//! | [`node`] | a node with its GPUs |
//! | [`hypernode`] | which nodes are close to each other, as Volcano has it |
//! | [`mark`] | which gang a pod belongs to, and how it is to be treated |
//! | [`admission`] | pods that are about to be made, and which scheduler they should have |
//! | [`shares`] | fractions of GPUs, and the pods that hold those |
//! | [`queue`] | queues written for KAI, Kueue and Volcano |
//!
//! [`event`] says on objects what is wrong with them, once.

pub mod admission;
mod bad;
mod bind;
mod client;
pub mod constraint;
mod discover;
pub mod dra;
pub mod dynamic;
mod error;
pub mod event;
mod exec;
mod figures;
pub mod hypernode;
mod lead;
mod log;
pub mod mark;
pub mod need;
pub mod node;
pub mod object;
pub mod quantity;
pub mod queue;
mod rights;
pub mod shares;
mod watch;
mod wire;

pub use bad::BadMark;
pub use client::{Api, Listed, Patch, escape};
pub use discover::Wanted;
pub use error::{Error, Result};
pub use exec::{Exec, Said};
pub use figures::{Figures, Outcome, Watched};
pub use lead::{Election, Kept, Term};
pub use log::{LogLine, LogStream};
pub use rights::{Right, Rules};
pub use watch::{Change, Seen, follow, follow_in_binary};
