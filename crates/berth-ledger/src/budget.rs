//! How much of its budget a queue has spent, and whom to tell.

use crate::calendar;
use crate::spending::Spending;
use berth_model::{Budget, BudgetAction, Micros, Milli, Name, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A threshold was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert {
    pub queue: Name,
    /// Thousandths of the limit.
    pub threshold: Milli,
    pub spent: Micros,
    pub limit: Micros,
    /// What happens now; nothing but this message below the limit.
    pub action: Option<BudgetAction>,
}

/// Where a queue stands with its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    Within,
    Spent(BudgetAction),
}

/// Counts what a queue spends in the current period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetMeter {
    pub queue: Name,
    pub budget: Budget,
    pub spent: Micros,
    pub period_start: Time,
    /// Thresholds already told in this period.
    pub fired: Vec<Milli>,
}

impl BudgetMeter {
    pub fn new(queue: Name, budget: Budget, at: Time) -> BudgetMeter {
        let period_start = calendar::start(budget.per, at).unwrap_or(at);
        BudgetMeter { queue, budget, spent: Micros::ZERO, period_start, fired: Vec::new() }
    }

    /// A meter that has counted this much in the period of `at`. What that amount has reached was
    /// told when it was reached, and is not told again.
    pub fn restore(queue: Name, budget: Budget, at: Time, spent: Micros) -> BudgetMeter {
        let mut meter = BudgetMeter { spent, ..BudgetMeter::new(queue, budget, at) };
        meter.fire();
        meter
    }

    /// Counts an amount whose spending began at `at`, and tells the thresholds it reaches.
    ///
    /// It counts for the period in which it began: a row that ends at midnight belongs to the day
    /// before. Whoever bills at [`BudgetMeter::next_period`] has no row in two periods.
    pub fn add(&mut self, at: Time, amount: Micros) -> Vec<Alert> {
        self.roll(at);
        if calendar::start(self.budget.per, at).is_some_and(|start| start < self.period_start) {
            return Vec::new();
        }
        self.spent += amount;
        self.fire()
    }

    /// Starts anew when a later period than the current one has begun; says whether it did.
    pub fn roll(&mut self, at: Time) -> bool {
        let begun = calendar::start(self.budget.per, at).filter(|t| *t > self.period_start);
        if let Some(start) = begun {
            self.period_start = start;
            self.spent = Micros::ZERO;
            self.fired.clear();
        }
        begun.is_some()
    }

    /// The first budget of a queue: what it has spent since the period began counts. A budget
    /// without a period counts from now on.
    pub fn begin(
        queue: Name,
        budget: Budget,
        at: Time,
        before: &Spending,
    ) -> (BudgetMeter, Vec<Alert>) {
        let mut meter = BudgetMeter::new(queue, budget, at);
        meter.count(at, before);
        let alerts = meter.fire();
        (meter, alerts)
    }

    fn count(&mut self, at: Time, before: &Spending) {
        let start = calendar::start(self.budget.per, at);
        self.spent = start.map_or(Micros::ZERO, |start| before.since(start));
    }

    /// A new budget for the queue. What was spent counts on; where the period is another one, what
    /// was spent in that. A threshold that the new limit puts out of reach again can be told again.
    pub fn set(&mut self, at: Time, budget: Budget, before: &Spending) -> Vec<Alert> {
        self.roll(at);
        if self.budget.per != budget.per {
            *self = BudgetMeter::new(self.queue.clone(), budget, at);
            self.count(at, before);
        } else {
            self.budget = budget;
        }
        let fired = std::mem::take(&mut self.fired);
        self.fired = fired.into_iter().filter(|threshold| self.reached(*threshold)).collect();
        self.fire()
    }

    pub fn standing(&self) -> Standing {
        if self.reached(Milli::ONE) {
            Standing::Spent(self.budget.action)
        } else {
            Standing::Within
        }
    }

    /// When the period after the one of `at` begins; never for a budget that does not start anew.
    pub fn next_period(&self, at: Time) -> Option<Time> {
        calendar::next(self.budget.per, at)
    }

    /// How much more is to be spent until a threshold is told that was not told yet.
    pub fn next_mark(&self) -> Option<Micros> {
        let thresholds = self.budget.thresholds.iter().copied().filter(|t| *t > Milli::ZERO);
        let left = thresholds.chain([Milli::ONE]).filter(|t| !self.fired.contains(t)).map(|t| {
            let amount = i128::from(self.budget.limit.0) * i128::from(t.0);
            let amount = amount.div_euclid(1_000) + i128::from(amount.rem_euclid(1_000) != 0);
            let left = (amount - i128::from(self.spent.0)).clamp(0, i128::from(i64::MAX));
            Micros(i64::try_from(left).unwrap_or(i64::MAX))
        });
        left.min()
    }

    fn reached(&self, threshold: Milli) -> bool {
        let spent = i128::from(self.spent.0) * 1_000;
        spent >= i128::from(self.budget.limit.0) * i128::from(threshold.0)
    }

    /// Tells the thresholds reached and not yet told, lowest first; the limit is always one.
    fn fire(&mut self) -> Vec<Alert> {
        let thresholds = self.budget.thresholds.iter().copied().filter(|t| *t > Milli::ZERO);
        let mut due: Vec<Milli> = thresholds.chain([Milli::ONE]).collect();
        due.retain(|threshold| self.reached(*threshold) && !self.fired.contains(threshold));
        due.sort();
        due.dedup();
        self.fired.extend(&due);
        due.into_iter().map(|threshold| self.alert(threshold)).collect()
    }

    fn alert(&self, threshold: Milli) -> Alert {
        Alert {
            queue: self.queue.clone(),
            threshold,
            spent: self.spent,
            limit: self.budget.limit,
            action: (threshold == Milli::ONE).then_some(self.budget.action),
        }
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Alert { queue, threshold, spent, limit, action } = self;
        let (spent, limit) = (spent.money(), limit.money());
        write!(f, "queue {queue} has spent {spent} of its budget of {limit}")?;
        match action {
            None => {
                let (percent, tenths) = (threshold.0 / 10, threshold.0 % 10);
                write!(f, ", {percent}")?;
                if tenths != 0 {
                    write!(f, ".{tenths}")?;
                }
                f.write_str(" % or more")
            }
            Some(BudgetAction::Notify) => f.write_str(", all of it"),
            Some(BudgetAction::Block) => f.write_str(": no new job of it starts"),
            Some(BudgetAction::LowerPriority) => f.write_str(": its jobs go after all others"),
            Some(BudgetAction::Pause) => f.write_str(": its running jobs are saved and stopped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::BudgetPeriod;

    fn budget(limit: &str, per: BudgetPeriod, action: BudgetAction) -> Budget {
        let thresholds = vec![Milli(800), Milli(500), Milli(500), Milli(1_200), Milli(0)];
        Budget { limit: limit.parse().unwrap(), per, action, thresholds }
    }

    fn meter(limit: &str, per: BudgetPeriod) -> BudgetMeter {
        let budget = budget(limit, per, BudgetAction::Block);
        BudgetMeter::new(Name::new("nlp"), budget, "2026-11-15T09:00:00Z".parse().unwrap())
    }

    /// Adds amounts at times, `day-of-November dollars`, and compares the thresholds told.
    fn check(meter: &mut BudgetMeter, amounts: &[(&str, i64)], expect: &[&[i64]]) {
        let found: Vec<Vec<i64>> = amounts
            .iter()
            .map(|(at, dollars)| {
                let alerts = meter.add(at.parse().unwrap(), Micros::dollars(*dollars));
                alerts.iter().map(|alert| alert.threshold.0).collect()
            })
            .collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn thresholds_are_told_once_a_period_and_the_limit_always() {
        let mut meter = meter("100", BudgetPeriod::Month);
        let day = "2026-11-16T00:00:00Z";
        check(
            &mut meter,
            &[(day, 49), (day, 1), (day, 0), (day, 55), (day, 10), (day, 10)],
            &[&[], &[500], &[], &[800, 1_000], &[], &[1_200]],
        );
        check(&mut meter, &[("2026-12-01T00:00:00Z", 50), (day, 0)], &[&[500], &[]]);
    }

    #[test]
    fn a_row_counts_for_the_period_in_which_it_began() {
        let mut meter = meter("100", BudgetPeriod::Day);
        check(&mut meter, &[("2026-11-15T23:59:59.999Z", 60)], &[&[500]]);
        assert!(meter.roll("2026-11-16T00:00:00Z".parse().unwrap()));
        assert!(!meter.roll("2026-11-16T09:00:00Z".parse().unwrap()));
        assert_eq!(meter.spent, Micros::ZERO);
        // The bill of the last evening is written after midnight.
        check(&mut meter, &[("2026-11-15T23:00:00Z", 60)], &[&[]]);
        assert_eq!(meter.spent, Micros::ZERO);
    }

    #[test]
    fn a_budget_for_once_never_starts_anew() {
        let mut meter = meter("100", BudgetPeriod::Once);
        check(
            &mut meter,
            &[("2026-11-15T10:00:00Z", 50), ("2030-01-01T00:00:00Z", 49)],
            &[&[500], &[800]],
        );
        assert_eq!(meter.standing(), Standing::Within);
        assert_eq!(meter.next_period(Time(0)), None);
        check(&mut meter, &[("2031-01-01T00:00:00Z", 1)], &[&[1_000]]);
        assert_eq!(meter.standing(), Standing::Spent(BudgetAction::Block));
    }

    #[test]
    fn a_budget_of_nothing_is_spent_from_the_start() {
        assert_eq!(meter("0", BudgetPeriod::Day).standing(), Standing::Spent(BudgetAction::Block));
    }

    #[test]
    fn a_restored_meter_does_not_tell_again() {
        let at: Time = "2026-11-20T00:00:00Z".parse().unwrap();
        let budget = budget("100", BudgetPeriod::Month, BudgetAction::Notify);
        let mut meter = BudgetMeter::restore(Name::new("nlp"), budget, at, Micros::dollars(60));
        check(
            &mut meter,
            &[("2026-11-20T01:00:00Z", 1), ("2026-11-20T02:00:00Z", 20)],
            &[&[], &[800]],
        );
    }

    #[test]
    fn a_raised_limit_puts_a_queue_within_its_budget_and_arms_the_alerts_again() {
        let at: Time = "2026-11-20T00:00:00Z".parse().unwrap();
        let mut meter = meter("100", BudgetPeriod::Month);
        meter.add(at, Micros::dollars(100));
        let raised = budget("150", BudgetPeriod::Month, BudgetAction::Block);
        let before = Spending::default();
        assert_eq!(meter.set(at, raised, &before), []);
        assert_eq!((meter.standing(), &meter.fired[..]), (Standing::Within, &[Milli(500)][..]));
        let lowered = budget("50", BudgetPeriod::Month, BudgetAction::Block);
        assert_eq!(meter.set(at, lowered, &before).len(), 3);
        let daily = budget("50", BudgetPeriod::Day, BudgetAction::Block);
        assert_eq!(meter.set(at, daily, &before), []);
        assert_eq!(meter.spent, Micros::ZERO);
    }

    #[test]
    fn a_budget_that_is_set_in_the_middle_of_the_month_counts_the_month() {
        let at: Time = "2026-11-20T09:00:00Z".parse().unwrap();
        let mut before = Spending::default();
        for day in ["2026-10-31T09:00:00Z", "2026-11-02T09:00:00Z", "2026-11-20T08:00:00Z"] {
            before.add(day.parse().unwrap(), Micros::dollars(30));
        }
        let begin = |per| {
            BudgetMeter::begin(
                Name::new("nlp"),
                budget("100", per, BudgetAction::Block),
                at,
                &before,
            )
        };
        let (mut meter, alerts) = begin(BudgetPeriod::Month);
        assert_eq!((meter.spent, alerts.len()), (Micros::dollars(60), 1));
        assert_eq!(meter.next_mark(), Some(Micros::dollars(20)), "80 % come next");
        assert_eq!(begin(BudgetPeriod::Week).0.spent, Micros::dollars(30));
        assert_eq!(begin(BudgetPeriod::Once).0.spent, Micros::ZERO);
        meter.set(at, budget("100", BudgetPeriod::Day, BudgetAction::Block), &before);
        assert_eq!(meter.spent, Micros::dollars(30));
    }

    #[test]
    fn an_alert_reads_as_a_sentence() {
        let mut meter = meter("100", BudgetPeriod::Month);
        let alerts = meter.add(meter.period_start, "100.5".parse().unwrap());
        let text: Vec<String> = alerts.iter().map(Alert::to_string).collect();
        assert_eq!(
            text,
            [
                "queue nlp has spent $100.50 of its budget of $100.00, 50 % or more",
                "queue nlp has spent $100.50 of its budget of $100.00, 80 % or more",
                "queue nlp has spent $100.50 of its budget of $100.00: no new job of it starts",
            ]
        );
    }
}
