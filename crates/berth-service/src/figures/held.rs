//! Which GPUs a task had, by the numbers that their figures have.

use crate::live;
use berth_figures::{Figure, Points};
use berth_model::{Share, Slice, Time};
use std::collections::BTreeMap;

/// A GPU that a task had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldGpu {
    /// As its figures have it.
    pub number: u32,
    /// As the node of the core has it: another one where the device plugin chose the GPU.
    pub slot: u32,
    pub share: Share,
    /// Since when it is known to have had it.
    pub from: Time,
}

/// Those that were decided, where these are the ones that a task gets.
pub fn as_decided(slices: &str, opened: Time) -> Vec<HeldGpu> {
    let each = live::slices(slices).into_iter();
    each.map(|Slice { gpu, share }| HeldGpu { number: gpu, slot: gpu, share, from: opened })
        .collect()
}

/// Those that the figures of the task name. The time before they do so may be another task's.
pub fn as_measured(slices: &str, opened: Time, task: &Points) -> Vec<HeldGpu> {
    let slices = live::slices(slices);
    let Some(last) = slices.last() else { return Vec::new() };
    let mut since: BTreeMap<u32, Time> = BTreeMap::new();
    for (at, bits) in task.values(Figure::Gpus) {
        for number in numbers(bits) {
            since.entry(number).or_insert(at);
        }
    }
    let each = since.into_iter().enumerate();
    each.map(|(at, (number, since))| {
        let Slice { gpu, share } = slices.get(at).unwrap_or(last).clone();
        HeldGpu { number, slot: gpu, share, from: since.max(opened) }
    })
    .collect()
}

/// The GPUs that the figure [`Figure::Gpus`] names.
pub fn numbers(bits: i64) -> impl Iterator<Item = u32> {
    (0..i64::BITS - 1).filter(move |number| bits >> number & 1 == 1)
}

/// What the figure [`Figure::Gpus`] is for these; a number that has no bit is left out.
pub fn bits(numbers: impl IntoIterator<Item = u32>) -> i64 {
    let there = numbers.into_iter().filter(|number| *number < i64::BITS - 1);
    there.fold(0, |bits, number| bits | 1 << number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_figures::Sample;

    #[test]
    fn a_task_has_the_gpus_that_are_measured_as_its_own_and_not_those_that_were_counted() {
        let whole = |gpu| Slice { gpu, share: Share::Whole };
        let slices = serde_json::to_string(&[whole(0), whole(1)]).unwrap();
        let mut points = Points::default();
        for (at, gpus) in [(5, vec![3]), (9, vec![3, 6])] {
            let values = [(Figure::Gpus, bits(gpus))].into();
            points.push(&Sample { at: Time(at), values });
        }
        let found = as_measured(&slices, Time(1), &points);
        let found: Vec<_> = found.iter().map(|gpu| (gpu.number, gpu.slot, gpu.from.0)).collect();
        assert_eq!(found, [(3, 0, 5), (6, 1, 9)]);
        assert_eq!(as_measured(&slices, Time(1), &Points::default()), []);
        assert_eq!(as_measured("[]", Time(1), &points), [], "it asked for none");
        let decided = as_decided(&slices, Time(1));
        assert_eq!(decided.iter().map(|gpu| gpu.number).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn numbers_come_back_from_bits() {
        assert_eq!(numbers(bits([0, 7, 62])).collect::<Vec<_>>(), [0, 7, 62]);
        assert_eq!((bits([63, 64, u32::MAX]), bits([])), (0, 0));
    }
}
