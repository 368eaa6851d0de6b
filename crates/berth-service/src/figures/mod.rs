//! Figures of GPUs and tasks: gathered in a [`Book`](crate::Book), written once a minute, and read
//! from there and from the database.

mod advice;
mod energy;
mod keep;
mod points;
mod show;
mod window;

pub use energy::{adopt, flush_energy};
pub use keep::{TIDY_EVERY, flush, recover, tidy};
pub use show::{job, node};
