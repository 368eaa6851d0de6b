//! Values over time.

use crate::figure::{Column, Figure};
use berth_model::{Span, Time};
use std::collections::BTreeMap;

/// What was measured at one moment. A figure that was not given is missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sample {
    pub at: Time,
    pub values: BTreeMap<Figure, i64>,
}

/// Values over time, by column. All columns are as long as the times, which grow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Points {
    pub times: Vec<Time>,
    pub columns: BTreeMap<Column, Vec<Option<i64>>>,
}

impl Points {
    pub fn len(&self) -> usize {
        self.times.len()
    }

    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Adds a sample. One that is not later than the last is left out: a clock may have been set.
    pub fn push(&mut self, sample: &Sample) {
        let values = sample.values.iter().map(|(figure, value)| (Column::value(*figure), *value));
        self.push_row(sample.at, values);
    }

    pub(crate) fn push_row(&mut self, at: Time, values: impl IntoIterator<Item = (Column, i64)>) {
        if self.times.last().is_some_and(|last| *last >= at) {
            return;
        }
        let before = self.times.len();
        self.times.push(at);
        for (column, value) in values {
            let column = self.columns.entry(column).or_default();
            column.resize(before, None);
            column.push(Some(value));
        }
        for column in self.columns.values_mut() {
            column.resize(before + 1, None);
        }
    }

    /// Adds what comes later.
    pub fn extend(&mut self, other: &Points) {
        for (at, time) in other.times.iter().enumerate() {
            let row = other.columns.iter().filter_map(|(column, all)| Some((*column, all[at]?)));
            self.push_row(*time, row);
        }
    }

    /// How far apart most points are.
    pub fn pace(&self) -> Span {
        let mut counts: BTreeMap<Span, u32> = BTreeMap::new();
        for pair in self.times.windows(2) {
            *counts.entry(pair[1] - pair[0]).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map_or(Span(0), |(span, _)| span)
    }

    /// A moment after the last point, and after nothing else.
    pub fn end(&self) -> Option<Time> {
        self.times.last().map(|last| *last + Span(1))
    }

    /// These points, with what is newer where both have something: `newer` counts from its first
    /// point to its last, and these before and after.
    pub fn overlaid(&self, newer: &Points) -> Points {
        let (Some(first), Some(end)) = (newer.times.first(), newer.end()) else {
            return self.clone();
        };
        let mut all = self.between(Time(i64::MIN), *first);
        all.extend(newer);
        all.extend(&self.between(end, Time(i64::MAX)));
        all
    }

    /// Only the columns of some figures.
    pub fn only(&self, wanted: impl Fn(Figure) -> bool) -> Points {
        let columns = self.columns.iter().filter(|(column, _)| wanted(column.figure));
        let columns = columns.map(|(column, values)| (*column, values.clone())).collect();
        Points { times: self.times.clone(), columns }
    }

    /// Those in `[from, to)`.
    pub fn between(&self, from: Time, to: Time) -> Points {
        let first = self.times.partition_point(|time| *time < from);
        let last = self.times.partition_point(|time| *time < to).max(first);
        let columns = self.columns.iter();
        Points {
            times: self.times[first..last].to_vec(),
            columns: columns.map(|(column, all)| (*column, all[first..last].to_vec())).collect(),
        }
    }

    /// The values of a figure that are there, with their times.
    pub fn values(&self, figure: Figure) -> impl Iterator<Item = (Time, i64)> + '_ {
        let column = self.columns.get(&Column::value(figure)).map_or(&[][..], Vec::as_slice);
        self.times.iter().zip(column).filter_map(|(time, value)| Some((*time, (*value)?)))
    }

    /// How long each point stands for: until the next one, but not beyond `most`, since nothing is
    /// known of a gap.
    pub(crate) fn spans(&self, most: Span) -> impl Iterator<Item = Span> + '_ {
        let next = self.times.iter().skip(1).map(Some).chain([None]);
        self.times.iter().zip(next).map(move |(time, next)| match next {
            Some(next) => (*next - *time).min(most),
            None => most,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: i64, values: &[(Figure, i64)]) -> Sample {
        Sample { at: Time(at), values: values.iter().copied().collect() }
    }

    #[test]
    fn columns_are_as_long_as_the_times_whatever_is_missing() {
        let mut points = Points::default();
        points.push(&sample(1, &[(Figure::Power, 5)]));
        points.push(&sample(2, &[(Figure::Temperature, 40)]));
        points.push(&sample(2, &[(Figure::Power, 9)]));
        points.push(&sample(3, &[(Figure::Power, 7)]));
        assert_eq!(points.columns[&Column::value(Figure::Power)], [Some(5), None, Some(7)]);
        assert_eq!(points.columns[&Column::value(Figure::Temperature)], [None, Some(40), None]);
        let part = points.between(Time(2), Time(3));
        assert_eq!((part.len(), part.values(Figure::Temperature).next()), (1, Some((Time(2), 40))));
        assert!(points.between(Time(5), Time(4)).is_empty());
    }
}
