//! Answers of NVIDIA's management library.

use super::{Activity, EnergyCounters, GpuFigures, GpuQuery, MigPart};
use berth_model::Bytes;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::gpm::gpm_metrics_get;
use nvml_wrapper::{Device, GpmSample, Nvml};
use std::sync::OnceLock;

/// Samples borrow from the library, so it stays loaded.
static NVML: OnceLock<Option<Nvml>> = OnceLock::new();

const METRICS: [GpmMetricId; 3] =
    [GpmMetricId::SmUtil, GpmMetricId::AnyTensorUtil, GpmMetricId::DramBwUtil];

#[derive(Debug, Clone, Copy)]
pub struct Nvidia {
    nvml: &'static Nvml,
}

pub(crate) fn library() -> Option<&'static Nvml> {
    NVML.get_or_init(|| Nvml::init().ok()).as_ref()
}

impl Nvidia {
    /// Nothing where the library is not there, or finds no GPU.
    pub fn load() -> Option<Nvidia> {
        let nvml = library()?;
        nvml.device_count().is_ok_and(|count| count > 0).then_some(Nvidia { nvml })
    }

    fn device(&self, gpu: u32) -> Option<Device<'static>> {
        self.nvml.device_by_index(gpu).ok()
    }
}

impl EnergyCounters for Nvidia {
    fn energy_millijoules(&self, gpu: u32) -> Option<u64> {
        self.device(gpu)?.total_energy_consumption().ok()
    }
}

impl GpuQuery for Nvidia {
    type Sample = GpmSample<'static>;

    fn count(&self) -> u32 {
        self.nvml.device_count().unwrap_or(0)
    }

    fn figures(&self, gpu: u32) -> GpuFigures {
        let Some(device) = self.device(gpu) else { return GpuFigures::default() };
        let used = device.memory_info().ok().map(|info| info.used);
        GpuFigures {
            utilization_percent: device.utilization_rates().ok().map(|rates| rates.gpu),
            memory_used: used.map(|used| Bytes(i64::try_from(used).unwrap_or(i64::MAX))),
            power_milliwatts: device.power_usage().ok(),
            energy_millijoules: device.total_energy_consumption().ok(),
            sm_clock_mhz: device.clock_info(Clock::SM).ok(),
            sm_clock_max_mhz: device.max_clock_info(Clock::SM).ok(),
            clock_reasons: device.current_throttle_reasons().ok().map(|bits| bits.bits()),
            temperature_celsius: device.temperature(TemperatureSensor::Gpu).ok(),
            ..GpuFigures::default()
        }
    }

    fn sample(&self, gpu: u32) -> Option<GpmSample<'static>> {
        let device = self.device(gpu)?;
        // A GPU that is divided counts for each instance alone.
        if !device.gpm_support().unwrap_or(false) {
            return None;
        }
        device.gpm_sample().ok()
    }

    fn part_sample(&self, part: &MigPart) -> Option<GpmSample<'static>> {
        self.device(part.gpu)?.gpm_mig_sample(part.instance).ok()
    }

    fn part_memory(&self, part: &MigPart) -> Option<Bytes> {
        let device = self.nvml.device_by_uuid(part.uuid.as_str()).ok()?;
        let used = device.memory_info().ok()?.used;
        Some(Bytes(i64::try_from(used).unwrap_or(i64::MAX)))
    }

    fn activity(&self, before: &GpmSample<'static>, after: &GpmSample<'static>) -> Activity {
        let found = gpm_metrics_get(self.nvml, before, after, &METRICS).unwrap_or_default();
        let value = |at: usize| found.get(at)?.as_ref().ok().map(|metric| metric.value);
        Activity { sm: value(0), tensor: value(1), dram: value(2) }
    }
}
