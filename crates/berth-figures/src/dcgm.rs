//! The names that NVIDIA's DCGM has for figures, in exporters that Berth reads and in what it shows.

use crate::figure::Figure;

/// A metric of DCGM that means the same as a figure.
#[derive(Debug)]
pub struct Metric {
    /// What boards know, and all exporters so far.
    pub name: &'static str,
    /// What later releases call it.
    pub later_name: Option<&'static str>,
    pub help: &'static str,
    pub figure: Figure,
    /// How many units of the figure make one of DCGM's.
    pub units: i64,
}

const fn metric(
    name: &'static str,
    later_name: Option<&'static str>,
    help: &'static str,
    figure: Figure,
    units: i64,
) -> Metric {
    Metric { name, later_name, help, figure, units }
}

/// The metrics that stand for one figure each.
pub static METRICS: [Metric; 11] = [
    metric(
        "DCGM_FI_DEV_GPU_UTIL",
        // In percent, whatever its name says.
        Some("DCGM_FI_DEV_GPU_UTIL_RATIO"),
        "GPU utilization in percent",
        Figure::Utilization,
        10,
    ),
    metric("DCGM_FI_DEV_FB_USED", None, "Memory in use in MiB", Figure::GpuMemory, 1),
    metric(
        "DCGM_FI_DEV_POWER_USAGE",
        Some("DCGM_FI_DEV_BOARD_POWER_WATTS"),
        "Power in watts",
        Figure::Power,
        1_000,
    ),
    metric(
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        None,
        "Energy since the driver was loaded in mJ",
        Figure::Energy,
        1,
    ),
    metric("DCGM_FI_DEV_SM_CLOCK", None, "Clock of the multiprocessors in MHz", Figure::SmClock, 1),
    metric(
        "DCGM_FI_DEV_MAX_SM_CLOCK",
        None,
        "The largest clock that the multiprocessors can have in MHz",
        Figure::SmClockMax,
        1,
    ),
    metric(
        "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
        Some("DCGM_FI_DEV_CLOCKS_EVENT_REASONS"),
        "Why the clock is lower than it could be, as bits of NVML",
        Figure::ClockReasons,
        1,
    ),
    metric(
        "DCGM_FI_DEV_GPU_TEMP",
        Some("DCGM_FI_DEV_GPU_TEMP_CELSIUS"),
        "Temperature in degrees Celsius",
        Figure::Temperature,
        1,
    ),
    metric(
        "DCGM_FI_PROF_SM_ACTIVE",
        Some("DCGM_FI_PROF_SM_UTIL_RATIO"),
        "Share of time in which multiprocessors had work",
        Figure::SmActive,
        1_000,
    ),
    metric(
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        Some("DCGM_FI_PROF_TENSOR_UTIL_RATIO"),
        "Share of time in which tensor cores were busy",
        Figure::TensorActive,
        1_000,
    ),
    metric(
        "DCGM_FI_PROF_DRAM_ACTIVE",
        Some("DCGM_FI_PROF_DRAM_UTIL_RATIO"),
        "Share of time in which the memory interface was busy",
        Figure::DramActive,
        1_000,
    ),
];

/// Says nearly the same as the utilization. It is there for MIG instances, which have none.
pub static ENGINE: Metric = metric(
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    Some("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"),
    "Share of time in which anything was computed",
    Figure::Utilization,
    1_000,
);

impl Metric {
    /// By either of its names.
    pub fn of_name(name: &str) -> Option<&'static Metric> {
        let is_it = |metric: &&Metric| metric.name == name || metric.later_name == Some(name);
        METRICS.iter().chain([&ENGINE]).find(is_it)
    }

    /// Whether the figure counts from this only where nothing else gives it.
    pub fn is_stand_in(&self) -> bool {
        self.name == ENGINE.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_metric_is_found_by_both_names_and_stands_for_one_figure_of_a_gpu() {
        for metric in &METRICS {
            assert!(metric.figure.is_of_gpu() && metric.name.starts_with("DCGM_FI_"));
            for name in [Some(metric.name), metric.later_name].into_iter().flatten() {
                assert_eq!(Metric::of_name(name).map(|found| found.figure), Some(metric.figure));
            }
            assert!(!metric.is_stand_in());
        }
        let figures: BTreeSet<Figure> = METRICS.iter().map(|metric| metric.figure).collect();
        assert_eq!(figures.len(), METRICS.len());
        let engine = Metric::of_name("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO");
        assert!(engine.is_some_and(Metric::is_stand_in));
        assert!(Metric::of_name("DCGM_FI_DEV_XID_ERRORS").is_none());
    }
}
