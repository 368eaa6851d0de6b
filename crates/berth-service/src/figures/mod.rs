//! Figures of GPUs and tasks: gathered in a [`Book`](crate::Book), written once a minute, and read
//! from there and from the database.

mod advice;
mod cluster;
mod energy;
mod held;
mod keep;
mod points;
mod run;
mod show;
mod spark;
mod window;

pub use cluster::{cluster, idle_at_end, utilization_by_gpu};
pub use energy::{adopt, flush_energy};
pub use held::{bits, numbers};
pub use keep::flush;
pub use run::run;
pub use show::{job, node};
pub use spark::of as utilization;
