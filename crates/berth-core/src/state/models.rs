//! Prices, speeds and power of GPU models.

use berth_model::{Micros, Milli, Name, catalog};
use std::collections::BTreeMap;

/// What is known of a GPU model here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Models {
    pub prices: BTreeMap<Name, Micros>,
    pub speeds: BTreeMap<Name, Milli>,
    pub watts: BTreeMap<Name, i64>,
}

impl Models {
    /// Speed in thousandths of an H100; an unknown model counts as an H100.
    pub fn speed(&self, model: &str) -> i64 {
        let known = self.speeds.get(model).map(|speed| speed.0);
        known.or_else(|| catalog(model).map(|info| info.speed)).unwrap_or(1_000).max(1)
    }

    pub fn watts(&self, model: &str) -> i64 {
        let known = self.watts.get(model).copied();
        known.or_else(|| catalog(model).map(|info| info.watts)).unwrap_or(400).max(1)
    }

    /// Work per watt in thousandths of an H100's.
    pub fn efficiency(&self, model: &str) -> i64 {
        self.speed(model) * 700 / self.watts(model)
    }
}
