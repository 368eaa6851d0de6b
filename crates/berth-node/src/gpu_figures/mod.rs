//! What GPUs do, for figures that are kept. How busy their parts were is worked out from two looks,
//! so the last one is remembered.

mod nvidia;
mod player;

pub use nvidia::Nvidia;
pub(crate) use nvidia::library;
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

/// A MIG instance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MigPart {
    pub gpu: u32,
    /// The number of the instance on its GPU.
    pub instance: u32,
    pub uuid: String,
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

    /// The same of a MIG instance.
    fn part_sample(&self, part: &MigPart) -> Option<Self::Sample>;

    fn part_memory(&self, part: &MigPart) -> Option<Bytes>;

    fn activity(&self, before: &Self::Sample, after: &Self::Sample) -> Activity;
}

/// Looks at all GPUs, again and again.
pub trait ReadGpus: Send {
    /// This blocks: the driver waits for the device.
    fn read(&mut self) -> Vec<GpuFigures>;

    /// What MIG instances do, in their order. It blocks, too.
    fn read_parts(&mut self, parts: &[MigPart]) -> Vec<GpuFigures>;
}

/// What GPUs have used since their driver was loaded.
pub trait EnergyCounters: Send + Sync {
    /// It blocks for some milliseconds.
    fn energy_millijoules(&self, gpu: u32) -> Option<u64>;
}

pub struct GpuReader<Q: GpuQuery> {
    query: Q,
    last: BTreeMap<u32, Q::Sample>,
    last_parts: BTreeMap<MigPart, Q::Sample>,
}

impl<Q: GpuQuery> GpuReader<Q> {
    pub fn new(query: Q) -> GpuReader<Q> {
        GpuReader { query, last: BTreeMap::new(), last_parts: BTreeMap::new() }
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
                figures.add_activity(before.map(|before| self.query.activity(&before, &now)));
                self.last.insert(gpu, now);
            }
            all.push(figures);
        }
        all
    }

    fn read_parts(&mut self, parts: &[MigPart]) -> Vec<GpuFigures> {
        let mut last = std::mem::take(&mut self.last_parts);
        let mut all = Vec::new();
        for part in parts {
            let memory_used = self.query.part_memory(part);
            let mut figures = GpuFigures { index: part.gpu, memory_used, ..GpuFigures::default() };
            let before = last.remove(part);
            if let Some(now) = self.query.part_sample(part) {
                figures.add_activity(before.map(|before| self.query.activity(&before, &now)));
                self.last_parts.insert(part.clone(), now);
            }
            all.push(figures);
        }
        all
    }
}

impl GpuFigures {
    fn add_activity(&mut self, activity: Option<Activity>) {
        let activity = activity.unwrap_or_default();
        self.sm_active = activity.sm.and_then(thousandths);
        self.tensor_active = activity.tensor.and_then(thousandths);
        self.dram_active = activity.dram.and_then(thousandths);
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
    fn a_mig_instance_has_figures_of_its_own_for_as_long_as_somebody_has_it() {
        let gpu = RecordedGpu { activity: vec![Some(busy(40.0))], ..RecordedGpu::default() };
        let mut reader = GpuReader::new(Player::new(vec![gpu]));
        let part = |instance| MigPart { gpu: 0, instance, uuid: format!("MIG-{instance}") };
        let mut look = |parts: &[MigPart]| -> Vec<Option<i64>> {
            reader.read_parts(parts).iter().map(|figures| figures.sm_active).collect()
        };
        assert_eq!(look(&[part(1)]), [None]);
        assert_eq!(look(&[part(1), part(2)]), [Some(400), None]);
        assert_eq!(look(&[part(2)]), [Some(400)]);
        assert_eq!(look(&[part(1)]), [None], "nobody had it in between");
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
