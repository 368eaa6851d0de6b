//! Who got what, against what was promised.
//!
//! A team counts in a window of time only if it could have used its quota there: if its jobs that
//! were in the system would have filled it. One that asked for less was not treated unfairly by
//! getting less, and what it left may be used by others. A window in which *all* have demand is
//! told more strictly: each team could have used its quota in each of its hours, because what is
//! asked for on Monday cannot be given on Friday.

use super::usage::overlap;
use super::{GpuTime, gpu_time};
use crate::outcome::Outcome;
use berth_model::{Milli, Span, Time};
use serde::{Deserialize, Serialize};

/// Fairness over windows of a day and of a week, from the first submission to the last.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    pub daily: Shares,
    pub weekly: Shares,
}

/// Fairness over windows of one length.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Shares {
    /// Windows in which at least two teams could have used their quota.
    pub windows: u32,
    /// Jain's index of received / quota among those teams, as the mean over these windows: 1 if
    /// all got the same part of their quota, 1/n if one of n got everything.
    pub jain: f64,
    pub worst_jain: f64,
    /// Windows in which every team could have used its quota in every hour.
    pub contested: u32,
    /// Over these, the largest distance of a team's share of what was used from its share of the
    /// quotas.
    pub worst_gap: f64,
}

impl Fairness {
    pub(super) fn new(outcomes: &[Outcome], quotas: &[u64], gpus: u64) -> Fairness {
        let asked = Asked::new(outcomes, quotas, gpus);
        let of = |window| Shares::new(outcomes, quotas, gpus, window, &asked);
        Fairness { daily: of(Span::days(1)), weekly: of(Span::days(7)) }
    }
}

/// Hours in which every team could have used its quota.
struct Asked(Vec<bool>);

const HOUR: Span = Span::hours(1);

impl Asked {
    fn new(outcomes: &[Outcome], quotas: &[u64], gpus: u64) -> Asked {
        let submits = || outcomes.iter().map(|outcome| outcome.submit);
        let (Some(first), Some(last)) = (submits().min(), submits().max()) else {
            return Asked(Vec::new());
        };
        let hours = ((last - first).0 / HOUR.0) as usize;
        let until = first + Span(HOUR.0 * hours as i64);
        let mut wanted = vec![vec![0; quotas.len()]; hours];
        for outcome in outcomes.iter().filter(|outcome| (outcome.team as usize) < quotas.len()) {
            let end = outcome.end.unwrap_or(until).min(until);
            spread(outcome.submit, end, first, HOUR, |hour, time| {
                wanted[hour][outcome.team as usize] += gpu_time(outcome.gpus, time);
            });
        }
        let all: i128 = quotas.iter().map(|quota| i128::from(*quota)).sum::<i128>().max(1);
        let capacity = gpu_time(Milli::whole(gpus as i64), HOUR);
        let fills = |hour: &Vec<GpuTime>| {
            let mut teams = hour.iter().zip(quotas);
            teams.all(|(wanted, quota)| *wanted >= capacity * i128::from(*quota) / all)
        };
        Asked(wanted.iter().map(fills).collect())
    }

    /// Whether all could have used their quotas all through a window.
    fn throughout(&self, place: usize, window: Span) -> bool {
        let hours = (window.0 / HOUR.0) as usize;
        self.0.get(place * hours..(place + 1) * hours).is_some_and(|all| all.iter().all(|ask| *ask))
    }
}

/// What a team asked for and got in one window.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    wanted: GpuTime,
    got: GpuTime,
}

impl Shares {
    fn new(outcomes: &[Outcome], quotas: &[u64], gpus: u64, window: Span, asked: &Asked) -> Shares {
        let submits = || outcomes.iter().map(|outcome| outcome.submit);
        let (Some(first), Some(last)) = (submits().min(), submits().max()) else {
            return Shares::default();
        };
        // Only whole windows: half a day at the end is not a day.
        let count = ((last - first).0 / window.0) as usize;
        let until = first + Span(window.0 * count as i64);
        let mut cells = vec![vec![Cell::default(); quotas.len()]; count];
        for outcome in outcomes.iter().filter(|outcome| (outcome.team as usize) < quotas.len()) {
            let team = outcome.team as usize;
            let end = outcome.end.unwrap_or(until).min(until);
            spread(outcome.submit, end, first, window, |place, time| {
                cells[place][team].wanted += gpu_time(outcome.gpus, time);
            });
            for segment in &outcome.segments {
                spread(segment.from, segment.to.min(until), first, window, |place, time| {
                    cells[place][team].got += gpu_time(outcome.gpus, time);
                });
            }
        }
        let capacity = gpu_time(Milli::whole(gpus as i64), window);
        Shares::over(&cells, quotas, capacity, |place| asked.throughout(place, window))
    }

    fn over(
        cells: &[Vec<Cell>],
        quotas: &[u64],
        capacity: GpuTime,
        all_ask: impl Fn(usize) -> bool,
    ) -> Shares {
        let all: i128 = quotas.iter().map(|quota| i128::from(*quota)).sum();
        let mut shares = Shares { worst_jain: 1.0, ..Shares::default() };
        for (place, window) in cells.iter().enumerate() {
            let could_use: Vec<usize> = (0..quotas.len())
                .filter(|team| quotas[*team] > 0)
                .filter(|team| window[*team].wanted >= capacity / all * i128::from(quotas[*team]))
                .collect();
            if could_use.len() >= 2 {
                let parts =
                    could_use.iter().map(|team| window[*team].got as f64 / quotas[*team] as f64);
                let jain = jain(parts);
                shares.windows += 1;
                shares.jain += jain;
                shares.worst_jain = shares.worst_jain.min(jain);
            }
            if all_ask(place) {
                let used: i128 = window.iter().map(|cell| cell.got).sum();
                shares.contested += 1;
                for (cell, quota) in window.iter().zip(quotas) {
                    let part = cell.got as f64 / used.max(1) as f64;
                    let gap = (part - *quota as f64 / all as f64).abs();
                    shares.worst_gap = shares.worst_gap.max(gap);
                }
            }
        }
        shares.jain =
            if shares.windows > 0 { shares.jain / f64::from(shares.windows) } else { 1.0 };
        shares
    }
}

/// Calls `each` with every window that a stretch of time touches, and how long it is there.
fn spread(from: Time, to: Time, first: Time, window: Span, mut each: impl FnMut(usize, Span)) {
    let mut place = ((from - first).0.max(0) / window.0) as usize;
    loop {
        let start = first + Span(window.0 * place as i64);
        if start >= to {
            return;
        }
        each(place, overlap(from, to, start, start + window));
        place += 1;
    }
}

/// (Σx)² / (n Σx²).
fn jain(parts: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for part in parts {
        count += 1.0;
        sum += part;
        squares += part * part;
    }
    if squares > 0.0 { sum * sum / (count * squares) } else { 1.0 }
}
