//! What a queue spent on each of the last days. A budget that is set later counts from the start of
//! its period, and one that is taken away and set again goes on where it was.

use berth_model::{Micros, Span, Time};
use std::collections::BTreeMap;

const DAY: Span = Span::days(1);
/// The longest period is a month of 31 days.
const DAYS_KEPT: i64 = 32;

/// Amounts by the day in which their spending began, each under the start of its day.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spending(BTreeMap<Time, Micros>);

impl Spending {
    pub fn restore(days: &[(Time, Micros)]) -> Spending {
        Spending(days.iter().copied().collect())
    }

    pub fn add(&mut self, at: Time, amount: Micros) {
        if amount.is_zero() {
            return;
        }
        let day = Time(at.0.div_euclid(DAY.0) * DAY.0);
        *self.0.entry(day).or_default() += amount;
        let newest = self.0.keys().next_back().copied().unwrap_or(day);
        let oldest = Time(newest.0 - DAYS_KEPT * DAY.0);
        self.0.retain(|day, _| *day > oldest);
    }

    /// What was spent from the start of that day on.
    pub fn since(&self, start: Time) -> Micros {
        self.0.range(start..).fold(Micros::ZERO, |sum, (_, amount)| sum + *amount)
    }

    pub fn days(&self) -> Vec<(Time, Micros)> {
        self.0.iter().map(|(day, amount)| (*day, *amount)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Time {
        text.parse().unwrap()
    }

    #[test]
    fn days_are_summed_from_a_midnight_on_and_forgotten_after_a_month() {
        let mut spending = Spending::default();
        for (when, dollars) in [
            ("2026-10-31T23:59:59Z", 1),
            ("2026-11-01T00:00:00Z", 2),
            ("2026-11-15T12:00:00Z", 4),
            ("2026-11-15T13:00:00Z", 8),
        ] {
            spending.add(at(when), Micros::dollars(dollars));
        }
        assert_eq!(spending.since(at("2026-11-01T00:00:00Z")), Micros::dollars(14));
        assert_eq!(spending.since(at("2026-11-15T00:00:00Z")), Micros::dollars(12));
        assert_eq!(Spending::restore(&spending.days()), spending);
        spending.add(at("2026-12-03T00:00:00Z"), Micros::dollars(16));
        assert_eq!(spending.days().len(), 2, "{spending:?}");
        assert_eq!(spending.since(at("2026-11-15T00:00:00Z")), Micros::dollars(28));
    }
}
