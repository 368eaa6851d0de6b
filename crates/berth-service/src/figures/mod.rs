//! Figures of GPUs and tasks: gathered in a [`Book`](crate::Book), written once a minute, and read
//! from there and from the database.

mod advice;
mod energy;
mod held;
mod keep;
mod points;
mod run;
mod show;
mod window;

pub use energy::{adopt, flush_energy};
pub use held::{bits, numbers};
pub use keep::flush;
pub use run::run;
pub use show::{job, node};
