//! What GPUs do, for figures that are kept. How busy their parts were is worked out from two looks,
//! so the last one is remembered.

mod nvidia;
mod player;

pub use nvidia::Nvidia;
pub use player::{Player, RecordedGpu};

use berth_model::Bytes;
use std::collections::BTreeMap;

/// What a GPU does. A figure that it does not give is missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GpuFigures {
    pub index: u32,
    pub utilization_percent: Option<u32>,
    /// Thousandths of the time since the last look.
    pub sm_active: Option<i64>,
    pub tensor_active: Option<i64>,
    pub dram_active: Option<i64>,
    pub memory_used: Option<Bytes>,
    pub power_milliwatts: Option<u32>,
    /// Since the driver was loaded.
    pub energy_millijoules: Option<u64>,
    pub sm_clock_mhz: Option<u32>,
    pub sm_clock_max_mhz: Option<u32>,
    /// As bits of NVML.
    pub clock_reasons: Option<u64>,
    pub temperature_celsius: Option<u32>,
}

/// Shares of the time between two samples, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Activity {
    pub sm: Option<f64>,
    pub tensor: Option<f64>,
    pub dram: Option<f64>,
}

/// The questions that figures need answered. What a driver does not answer is missing.
pub trait GpuQuery: Send {
    /// What counters stood at.
    type Sample: Send;

    fn count(&self) -> u32;

    /// All but the activity.
    fn figures(&self, gpu: u32) -> GpuFigures;

    /// Nothing where the device does not count.
    fn sample(&self, gpu: u32) -> Option<Self::Sample>;

    fn activity(&self, before: &Self::Sample, after: &Self::Sample) -> Activity;
}

/// Looks at all GPUs, again and again.
pub trait ReadGpus: Send {
    /// This blocks: the driver waits for the device.
    fn read(&mut self) -> Vec<GpuFigures>;
}

pub struct GpuReader<Q: GpuQuery> {
    query: Q,
    last: BTreeMap<u32, Q::Sample>,
}

impl<Q: GpuQuery> GpuReader<Q> {
    pub fn new(query: Q) -> GpuReader<Q> {
        GpuReader { query, last: BTreeMap::new() }
    }
}

impl<Q: GpuQuery> ReadGpus for GpuReader<Q> {
    fn read(&mut self) -> Vec<GpuFigures> {
        let mut all = Vec::new();
        for gpu in 0..self.query.count() {
            let mut figures = GpuFigures { index: gpu, ..self.query.figures(gpu) };
            // A device that fails once begins anew: the time in between is not known.
            let before = self.last.remove(&gpu);
            if let Some(now) = self.query.sample(gpu) {
                let activity = before.map(|before| self.query.activity(&before, &now));
                let activity = activity.unwrap_or_default();
                figures.sm_active = activity.sm.and_then(thousandths);
                figures.tensor_active = activity.tensor.and_then(thousandths);
                figures.dram_active = activity.dram.and_then(thousandths);
                self.last.insert(gpu, now);
            }
            all.push(figures);
        }
        all
    }
}

/// Drivers have answered with more than there is, and with no number at all.
fn thousandths(percent: f64) -> Option<i64> {
    percent.is_finite().then(|| (percent.clamp(0.0, 100.0) * 10.0).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(sm: f64) -> Activity {
        Activity { sm: Some(sm), tensor: Some(f64::NAN), dram: None }
    }

    #[test]
    fn activity_is_known_from_the_second_look_on_and_not_across_a_failure() {
        let gpu = RecordedGpu {
            figures: GpuFigures { power_milliwatts: Some(650_000), ..GpuFigures::default() },
            activity: vec![
                Some(busy(0.0)),
                Some(busy(87.04)),
                None,
                Some(busy(50.0)),
                Some(busy(400.0)),
            ],
        };
        let mut reader = GpuReader::new(Player::new(vec![gpu]));
        let mut seen = Vec::new();
        for _ in 0..5 {
            let all = reader.read();
            assert_eq!((all.len(), all[0].power_milliwatts), (1, Some(650_000)));
            assert_eq!((all[0].tensor_active, all[0].dram_active), (None, None));
            seen.push(all[0].sm_active);
        }
        assert_eq!(seen, [None, Some(870), None, None, Some(1_000)]);
    }

    #[test]
    fn a_gpu_that_vanishes_is_not_there_any_more() {
        let gpus = vec![RecordedGpu::default(), RecordedGpu::default()];
        let player = Player::new(gpus).losing(1, 2);
        let mut reader = GpuReader::new(player);
        let counts: Vec<usize> = (0..3).map(|_| reader.read().len()).collect();
        assert_eq!(counts, [2, 2, 1]);
    }

    #[test]
    fn a_machine_without_gpus_has_no_figures() {
        assert!(Nvidia::load().is_none_or(|nvidia| nvidia.count() > 0));
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn a_real_gpu_tells_its_figures() {
        let mut reader = GpuReader::new(Nvidia::load().expect("a GPU"));
        reader.read();
        std::thread::sleep(std::time::Duration::from_secs(1));
        let begun = std::time::Instant::now();
        let all = reader.read();
        println!("{:?} in {:?}", all, begun.elapsed());
        for figures in all {
            assert!(figures.energy_millijoules.is_some() && figures.sm_clock_max_mhz.is_some());
            assert!(figures.clock_reasons.is_some() && figures.memory_used.is_some());
        }
    }
}
