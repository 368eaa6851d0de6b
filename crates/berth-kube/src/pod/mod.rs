//! What a pod asks of the cluster: [`requests`] for resources, [`node_constraint`] by node labels
//! and taints, [`interpod`] constraints that depend on other pods and on volumes, and
//! [`gpu_sharing`] for fractions of GPUs.

pub mod gpu_sharing;
pub mod interpod;
pub mod node_constraint;
pub mod requests;
