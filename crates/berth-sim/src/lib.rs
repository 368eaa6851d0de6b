//! Worlds as text, and the loop that plays them: the same scheduling code as in production, with
//! a driver that only pretends.
//!
//! There is no file, clock or thread here: callers hand over text and get reports back, so that a
//! run can be repeated exactly anywhere.

pub mod calibration;
pub mod driver;
pub mod engine;
pub mod estimate;
pub mod faults;
pub mod fleet;
pub mod metrics;
pub mod outcome;
pub mod packing;
pub mod page;
pub mod peers;
pub mod play;
pub mod prices;
pub mod random;
pub mod record;
pub mod replay;
pub mod report;
pub mod scenario;
pub mod site;
pub mod spot;
pub mod synthetic;
pub mod trace;
pub mod workload;

pub use berth_file::world;
