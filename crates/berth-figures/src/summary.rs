//! What a time in figures comes to.

use crate::energy::energy_joules;
use crate::figure::{Column, Figure, Kind};
use crate::points::Points;
use berth_model::Span;
use serde::{Deserialize, Serialize};

/// An idle GPU stays below this activity, in thousandths.
const IDLE_BELOW: i64 = 10;

/// What a job or a GPU did in a time. Shares are in thousandths; what was not measured is missing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    pub points: u64,
    pub utilization: Option<i64>,
    pub sm_active: Option<i64>,
    pub sm_active_p95: Option<i64>,
    pub tensor_active: Option<i64>,
    pub dram_active: Option<i64>,
    /// MiB.
    pub gpu_memory: Option<i64>,
    pub gpu_memory_p95: Option<i64>,
    pub gpu_memory_max: Option<i64>,
    pub power_milliwatts: Option<i64>,
    pub energy_joules: Option<i64>,
    /// An estimate of the share of the largest throughput in dense matrix products.
    pub mfu: Option<i64>,
    /// The time in which nothing was computed.
    pub idle_ms: i64,
    /// How long that has been so at the end.
    pub idle_at_end_ms: i64,
}

impl Summary {
    /// A point stands for at most `step`.
    pub fn of(points: &Points, step: Span) -> Summary {
        let max_clock = points.values(Figure::SmClockMax).map(|(_, value)| value).max();
        let mean = |figure| mean(points.values(figure).map(|(_, value)| value));
        let (idle_ms, idle_at_end_ms) = idle(points, step);
        Summary {
            points: points.len() as u64,
            utilization: mean(Figure::Utilization),
            sm_active: mean(Figure::SmActive),
            sm_active_p95: percentile(points, Figure::SmActive, 95),
            tensor_active: mean(Figure::TensorActive),
            dram_active: mean(Figure::DramActive),
            gpu_memory: mean(Figure::GpuMemory),
            gpu_memory_p95: percentile(points, Figure::GpuMemory, 95),
            gpu_memory_max: percentile(points, Figure::GpuMemory, 100),
            power_milliwatts: mean(Figure::Power),
            energy_joules: energy_joules(points, step),
            mfu: max_clock.and_then(|max_clock| mfu(points, max_clock)),
            idle_ms,
            idle_at_end_ms,
        }
    }
}

/// One figure over a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub mean: i64,
    /// 95 of 100 points are not above it.
    pub p95: i64,
    pub max: i64,
}

impl Stat {
    /// Nothing for a figure that was not measured, and for one that has no mean.
    pub fn of(points: &Points, figure: Figure) -> Option<Stat> {
        if figure.kind() != Kind::Gauge {
            return None;
        }
        let largest = points.columns.get(&Column::max(figure)).into_iter().flatten();
        let p95 = percentile(points, figure, 95)?;
        let max = percentile(points, figure, 100)?;
        Some(Stat {
            mean: mean(points.values(figure).map(|(_, value)| value))?,
            p95,
            max: largest.flatten().copied().fold(max, i64::max),
        })
    }
}

/// The share of the largest throughput, in thousandths: tensor cores do as much as they are busy, at
/// the clock they have. Tiles that are not full count as work, so small products seem to do more than
/// they do; work outside of tensor cores is not counted at all.
pub fn mfu_milli(tensor_active: i64, clock: i64, max_clock: i64) -> Option<i64> {
    (max_clock > 0).then(|| tensor_active * clock.min(max_clock) / max_clock)
}

fn mfu(points: &Points, max_clock: i64) -> Option<i64> {
    let tensor = points.columns.get(&Column::value(Figure::TensorActive))?;
    let clock = points.columns.get(&Column::value(Figure::SmClock))?;
    let each = tensor.iter().zip(clock);
    mean(each.filter_map(|(tensor, clock)| mfu_milli((*tensor)?, (*clock)?, max_clock)))
}

fn mean(values: impl Iterator<Item = i64>) -> Option<i64> {
    let (mut sum, mut count) = (0_i128, 0_i128);
    for value in values {
        sum += i128::from(value);
        count += 1;
    }
    (count > 0).then(|| i64::try_from(sum.div_euclid(count)).expect("it lies between its values"))
}

/// The value that so many of a hundred are not above.
fn percentile(points: &Points, figure: Figure, percent: usize) -> Option<i64> {
    let mut values: Vec<i64> = points.values(figure).map(|(_, value)| value).collect();
    values.sort_unstable();
    let at = (values.len() * percent).div_ceil(100).checked_sub(1)?;
    values.get(at).copied()
}

/// How long nothing was computed, in all and at the end. What is not known is not idle.
fn idle(points: &Points, step: Span) -> (i64, i64) {
    let column = |figure| points.columns.get(&Column::value(figure));
    let busy = column(Figure::SmActive).or_else(|| column(Figure::Utilization));
    let Some(busy) = busy else { return (0, 0) };
    let (mut all, mut at_end) = (0, 0);
    for (value, span) in busy.iter().zip(points.spans(step)) {
        match value {
            Some(value) if *value < IDLE_BELOW => {
                all += span.0;
                at_end += span.0;
            }
            Some(_) => at_end = 0,
            None => {}
        }
    }
    (all, at_end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::Sample;
    use berth_model::Time;

    fn points(values: &[&[(Figure, i64)]]) -> Points {
        let mut points = Points::default();
        for (number, values) in (0..).zip(values) {
            let values = values.iter().copied().collect();
            points.push(&Sample { at: Time(number * 5_000), values });
        }
        points
    }

    #[test]
    fn tensor_activity_counts_by_the_clock_at_which_it_is_done() {
        // Measured on an H200: a large product at 1,527 of 1,980 MHz has 67.9 % of the peak.
        assert_eq!(mfu_milli(870, 1_527, 1_980), Some(670));
        assert_eq!(mfu_milli(870, 2_100, 1_980), Some(870));
        assert_eq!(mfu_milli(870, 1_527, 0), None);
    }

    #[test]
    fn a_gpu_is_idle_while_nothing_is_computed_and_not_while_nothing_is_known() {
        let busy = |value| vec![(Figure::SmActive, value)];
        let all = [busy(0), busy(500), busy(3), vec![], busy(0)];
        let all: Vec<&[(Figure, i64)]> = all.iter().map(Vec::as_slice).collect();
        let summary = Summary::of(&points(&all), Span::secs(5));
        assert_eq!((summary.idle_ms, summary.idle_at_end_ms), (15_000, 10_000));
        assert_eq!((summary.points, summary.sm_active), (5, Some(125)));
        assert_eq!(summary.mfu, None);
    }

    #[test]
    fn the_estimate_takes_the_largest_clock_that_was_told() {
        let busy =
            [(Figure::TensorActive, 500), (Figure::SmClock, 1_485), (Figure::SmClockMax, 1_980)];
        let summary = Summary::of(&points(&[&busy, &busy]), Span::secs(5));
        assert_eq!(summary.mfu, Some(375));
        let summary = Summary::of(&points(&[&busy[..2]]), Span::secs(5));
        assert_eq!(summary.mfu, None);
    }

    #[test]
    fn percentiles_leave_out_the_rare_peaks() {
        let all: Vec<[(Figure, i64); 1]> = (0..100)
            .map(|number| [(Figure::GpuMemory, if number < 95 { 100 } else { 900 })])
            .collect();
        let all: Vec<&[(Figure, i64)]> = all.iter().map(|one| &one[..]).collect();
        let summary = Summary::of(&points(&all), Span::secs(5));
        assert_eq!((summary.gpu_memory_p95, summary.gpu_memory_max), (Some(100), Some(900)));
        assert_eq!(summary.sm_active_p95, None);
    }
}
