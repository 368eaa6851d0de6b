//! Whether one GPU does what its model does: a check of its memory, of the way to it, and of a matrix
//! product, before the GPU takes work.
//!
//! [`check`] starts a helper process, which comes to [`helper`]. The helper alone talks to the CUDA
//! driver, so a driver that crashes or hangs takes nobody with it: whoever asked kills it when its
//! time is over. The driver is loaded when the helper runs. No toolkit is needed to build this crate
//! or to run it: the kernels are PTX (`kernels/`), of which the driver makes code for its GPU.
//!
//! Deliberately absent: any knowledge of nodes, jobs and servers, and the choice of what follows
//! from a check. `unsafe` is in [`cuda`](cuda) alone, where kernels are started.

mod ask;
mod board;
mod cuda;
mod helper;
mod link;
mod measured;
mod memory;
mod models;
mod product;
mod verdict;

pub use ask::{Helper, Subject, check};
pub use helper::helper;
pub use measured::{Link, Measured, Memory, Played, Product};
pub use verdict::{Check, Figure, Quantity, judge};
