//! Figures of GPUs and of jobs: how they are kept compactly, made coarser with age, and what follows
//! from them.
//!
//! Deliberately absent: clocks, devices and databases.

#![forbid(unsafe_code)]

mod advice;
mod chunk;
pub mod dcgm;
mod energy;
mod figure;
mod meter;
mod points;
mod recorder;
mod series;
mod summary;
mod thin;

pub use advice::{Advice, Held, Part, advise};
pub use chunk::{Chunk, DecodeError};
pub use energy::energy_joules;
pub use figure::{Aspect, Column, Figure, Kind};
pub use meter::{HeldGpu, Meter, Used};
pub use points::{Points, Sample};
pub use recorder::{Piece, Recorder};
pub use series::Series;
pub use summary::{Stat, Summary, mfu_milli};
pub use thin::{Level, thin};
