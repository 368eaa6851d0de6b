//! What every contender does: it places one pod after another.

use anyhow::Result;
use berth_sim::packing::Progress;
use std::time::Duration;

pub trait Placer {
    /// Places the next pod of the list, or drops it. Returns how long the decision took.
    fn arrive(&mut self, at: usize) -> Result<Duration>;
    fn progress(&self) -> Progress;
    fn fragmented_milli(&self) -> i64;
}
