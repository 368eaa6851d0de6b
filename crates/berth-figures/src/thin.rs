//! Coarser figures for older times.

use crate::figure::{Aspect, Column, Kind};
use crate::points::Points;
use berth_model::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How fine figures are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As they were measured.
    Raw,
    Minutes,
    Hours,
}

impl Level {
    pub const ALL: [Level; 3] = [Level::Raw, Level::Minutes, Level::Hours];

    pub const fn number(self) -> u32 {
        match self {
            Level::Raw => 0,
            Level::Minutes => 1,
            Level::Hours => 2,
        }
    }

    pub fn of_number(number: u32) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.number() == number)
    }

    /// The beginning of the chunk that a moment belongs to.
    pub fn chunk_start(self, at: Time) -> Time {
        floor(at, self.chunk())
    }

    /// What one point stands for; nothing where that is the pace of the measurement.
    pub const fn step(self) -> Option<Span> {
        match self {
            Level::Raw => None,
            Level::Minutes => Some(Span::mins(1)),
            Level::Hours => Some(Span::hours(1)),
        }
    }

    /// How much one chunk covers.
    pub const fn chunk(self) -> Span {
        match self {
            // The open one is written anew each minute, so it is short.
            Level::Raw => Span::mins(15),
            Level::Minutes => Span::days(1),
            Level::Hours => Span::days(30),
        }
    }
}

/// The last multiple of the span before the moment, or the moment itself.
pub(crate) fn floor(at: Time, span: Span) -> Time {
    Time(at.0.div_euclid(span.0) * span.0)
}

/// One point for each span of `step`, at its beginning.
pub fn thin(points: &Points, step: Span) -> Points {
    let mut thinned = Points::default();
    let mut at = 0;
    while at < points.len() {
        let begin = floor(points.times[at], step);
        let end = at + points.times[at..].partition_point(|time| *time < begin + step);
        let mut row: BTreeMap<Column, i64> = BTreeMap::new();
        for (column, values) in &points.columns {
            join(*column, &values[at..end], &mut row);
        }
        thinned.push_row(begin, row);
        at = end;
    }
    thinned
}

fn join(column: Column, values: &[Option<i64>], row: &mut BTreeMap<Column, i64>) {
    let there = || values.iter().flatten().copied();
    let Some(last) = there().last() else { return };
    match (column.figure.kind(), column.aspect) {
        (Kind::Counter, _) => drop(row.insert(column, last)),
        (Kind::Bits, _) => drop(row.insert(column, there().fold(0, |all, bits| all | bits))),
        (Kind::Gauge, Aspect::Max) => {
            let most = there().fold(last, i64::max);
            let known = row.entry(column).or_insert(most);
            *known = most.max(*known);
        }
        (Kind::Gauge, Aspect::Value) => {
            let sum: i128 = there().map(i128::from).sum();
            let count = there().count() as i128;
            let mean = (sum + count / 2).div_euclid(count);
            row.insert(column, i64::try_from(mean).expect("a mean lies between its values"));
            // What was measured has no largest yet.
            let most = there().fold(last, i64::max);
            let known = row.entry(Column::max(column.figure)).or_insert(most);
            *known = most.max(*known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Figure;
    use crate::points::Sample;

    fn points(values: &[(i64, &[(Figure, i64)])]) -> Points {
        let mut points = Points::default();
        for (at, values) in values {
            points.push(&Sample { at: Time(*at), values: values.iter().copied().collect() });
        }
        points
    }

    #[test]
    fn a_minute_has_the_mean_and_the_largest_the_last_count_and_every_flag() {
        use Figure::{ClockReasons, Energy, Power};
        let points = points(&[
            (61_000, &[(Power, 100), (Energy, 5), (ClockReasons, 1)]),
            (66_000, &[(Power, 300), (Energy, 9), (ClockReasons, 4)]),
            (119_999, &[(Power, 201)]),
            (120_000, &[(Power, 7)]),
            (240_000, &[(Energy, 12)]),
        ]);
        let thinned = thin(&points, Span::mins(1));
        assert_eq!(thinned.times, [Time(60_000), Time(120_000), Time(240_000)]);
        let column = |column| thinned.columns[&column].clone();
        assert_eq!(column(Column::value(Power)), [Some(200), Some(7), None]);
        assert_eq!(column(Column::max(Power)), [Some(300), Some(7), None]);
        assert_eq!(column(Column::value(Energy)), [Some(9), None, Some(12)]);
        assert_eq!(column(Column::value(ClockReasons)), [Some(5), None, None]);
        assert!(!thinned.columns.contains_key(&Column::max(Energy)));
    }

    #[test]
    fn the_largest_of_a_minute_is_still_known_in_the_hour() {
        let values: Vec<(i64, Vec<(Figure, i64)>)> = (0..720)
            .map(|number| {
                (number * 5_000, vec![(Figure::Power, if number == 300 { 9 } else { 1 })])
            })
            .collect();
        let values: Vec<(i64, &[(Figure, i64)])> =
            values.iter().map(|(at, values)| (*at, values.as_slice())).collect();
        let hour = thin(&thin(&points(&values), Span::mins(1)), Span::hours(1));
        assert_eq!(hour.columns[&Column::max(Figure::Power)], [Some(9)]);
        assert_eq!(hour.columns[&Column::value(Figure::Power)], [Some(1)]);
    }
}
