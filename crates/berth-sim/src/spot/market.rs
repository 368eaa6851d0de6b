//! When spot machines can be had, and what a job is to be done on.

/// Spot machines of some zones, looked at every so many seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Market {
    pub step_s: i64,
    /// By zone and sample: whether a machine is there until the next sample.
    pub zones: Vec<Vec<bool>>,
}

impl Market {
    /// The part that begins at this sample and covers so many seconds.
    pub fn window(&self, start: usize, seconds: i64) -> Market {
        let samples = (seconds + self.step_s - 1) / self.step_s;
        let part = |zone: &Vec<bool>| {
            let end = zone.len().min(start + samples as usize);
            zone[start.min(end)..end].to_vec()
        };
        Market { step_s: self.step_s, zones: self.zones.iter().map(part).collect() }
    }

    pub fn samples(&self) -> usize {
        self.zones.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// Whether a zone has a machine at this sample; none has after the end of the record.
    pub fn is_up(&self, zone: usize, sample: usize) -> bool {
        self.zones[zone].get(sample).copied().unwrap_or(false)
    }
}

/// The job, and what machines cost. A machine on demand costs 1,000 a second, so that costs are in
/// thousandths of a second of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    pub work_s: i64,
    pub deadline_s: i64,
    pub overhead_s: i64,
    /// What a second on spot costs, in thousandths of one on demand.
    pub spot_milli: i64,
}

impl Terms {
    /// What the work alone would cost on demand.
    pub fn on_demand_cost(&self) -> i64 {
        self.work_s * 1_000
    }
}
