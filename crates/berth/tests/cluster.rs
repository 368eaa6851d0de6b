//! The program as the scheduler of a real API server. Nodes are simulated, everything else is real.

#[path = "cluster/faults.rs"]
mod faults;
#[path = "cluster/pods.rs"]
mod pods;
#[path = "cluster/support.rs"]
mod support;
