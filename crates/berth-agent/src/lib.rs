//! The agent of a node: tells what its GPUs do and which pods have them, as NVIDIA's dcgm-exporter
//! does, where that does not run.
//!
//! Deliberately absent: the API server, and anything that changes the node. Whoever reaches the
//! agent learns what its GPUs do and the names of pods.

mod gpu;
mod owners;
mod page;
mod sampler;
mod serve;

pub use sampler::Sampler;
pub use serve::{Error, Options, serve};
