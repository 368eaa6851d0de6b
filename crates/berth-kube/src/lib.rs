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
//! | [`node`] | a node with its GPUs |
//! | [`mark`] | which gang a pod belongs to, and how it is to be treated |
//! | [`queue`] | queues written for KAI, Kueue and Volcano |

mod bad;
mod bind;
mod client;
pub mod constraint;
pub mod dynamic;
mod error;
pub mod mark;
pub mod need;
pub mod node;
pub mod object;
pub mod quantity;
pub mod queue;
mod watch;

pub use bad::BadMark;
pub use bind::PodRef;
pub use client::{Api, Listed, Patch, escape};
pub use error::{Error, Result};
pub use watch::{Change, Seen, follow};
