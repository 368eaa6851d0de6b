//! Which nodes a pod may have: by labels and taints, by devices, by other pods and by volumes.

pub mod devices;
pub mod dynamic;
pub mod hypernodes;
mod labels;
pub mod native;
pub mod predicates;
pub mod vgpu;

pub use labels::{YES, is_there, need};
