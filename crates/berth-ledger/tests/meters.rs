//! Budgets tell each threshold once; credits and past use never come from nothing.

use berth_ledger::BudgetMeter;
use berth_ledger::credit::{accrue, decay, earn, gpu_time, lasts, pay, spend};
use berth_model::{Budget, BudgetAction, BudgetPeriod, Micros, Milli, Name, Span, Time};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![Just(0), 1..1_000i64, 1..100_000_000i64, 1..10_000_000_000i64].prop_map(Span)
}

fn half_life() -> impl Strategy<Value = Span> {
    prop_oneof![1..10i64, 1..1_000_000i64, 1..10_000_000_000i64].prop_map(Span)
}

fn gpus() -> impl Strategy<Value = Milli> {
    prop_oneof![Just(0), 1..1_000i64, (1..10_000i64).prop_map(|n| n * 1_000)].prop_map(Milli)
}

fn period() -> impl Strategy<Value = BudgetPeriod> {
    prop_oneof![
        Just(BudgetPeriod::Day),
        Just(BudgetPeriod::Week),
        Just(BudgetPeriod::Month),
        Just(BudgetPeriod::Once),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_budget_tells_each_threshold_once_a_period(
        per in period(),
        limit in 1..1_000_000i64,
        thresholds in prop::collection::vec(1..1_500i64, 0..5),
        amounts in prop::collection::vec((span(), 0..300_000i64), 1..60),
    ) {
        let thresholds: Vec<Milli> = thresholds.into_iter().map(Milli).collect();
        let budget = Budget { limit: Micros(limit), per, action: BudgetAction::Block, thresholds };
        let mut now = Time(1_763_200_000_000);
        let mut meter = BudgetMeter::new(Name::new("q"), budget.clone(), now);
        let mut alerted = BTreeSet::new();
        let mut start = meter.period_start;
        for (step, amount) in amounts {
            now = now + step;
            let alerts = meter.add(now, Micros(amount));
            if meter.period_start > start {
                prop_assert!(per != BudgetPeriod::Once && meter.spent == Micros(amount));
                start = meter.period_start;
                alerted.clear();
            }
            for alert in alerts {
                prop_assert!(alerted.insert(alert.threshold), "{alert} was told twice");
            }
            for threshold in budget.thresholds.iter().chain([&Milli::ONE]) {
                let reached = meter.spent.0 * 1_000 >= limit * threshold.0;
                prop_assert_eq!(reached, alerted.contains(threshold));
            }
            if let Some(next) = meter.next_period(now) {
                prop_assert!(meter.period_start <= now && now < next);
                prop_assert!(!meter.clone().roll(Time(next.0 - 1)) && meter.clone().roll(next));
            }
        }
    }

    #[test]
    fn past_use_never_grows_by_waiting_and_less_is_left_later(
        past in 0..i64::MAX, a in span(), b in span(), half in half_life(),
    ) {
        let (early, late) = (a.min(b), a.max(b));
        prop_assert!(decay(past, early, half) <= past);
        prop_assert!(decay(past, late, half) <= decay(past, early, half));
        prop_assert!(decay(past / 2, late, half) <= decay(past, late, half));
    }

    #[test]
    fn past_use_halves_in_each_half_life(past in 0..i64::MAX, half in half_life(), n in 0..70i64) {
        prop_assert_eq!(decay(past, half, half), past / 2);
        let expect = if n >= 63 { 0 } else { past >> n };
        prop_assert_eq!(decay(past, Span(half.0 * n), half), expect);
    }

    #[test]
    fn two_waits_are_one_long_wait(
        past in 0..1_000_000_000_000i64, a in span(), b in span(), half in half_life(),
    ) {
        let steps = decay(decay(past, a, half), b, half);
        prop_assert!((steps - decay(past, a + b, half)).abs() <= 1);
    }

    #[test]
    fn two_times_of_use_are_one_long_time_of_use(
        past in 0..1_000_000_000_000i64, used in gpus(), a in span(), b in span(),
    ) {
        let half = Span::days(7);
        let steps = accrue(accrue(past, used, a, half), used, b, half);
        prop_assert!((steps - accrue(past, used, a + b, half)).abs() <= 2);
    }

    #[test]
    fn use_counts_at_most_in_full_and_more_use_counts_more(
        past in 0..1_000_000_000_000i64, used in gpus(), span in span(), half in half_life(),
    ) {
        let after = accrue(past, used, span, half);
        prop_assert!(after >= decay(past, span, half) - 1);
        prop_assert!(i128::from(after) <= i128::from(past) + i128::from(gpu_time(used, span)) + 2);
        prop_assert!(accrue(past, used + Milli::ONE, span, half) >= after);
    }

    #[test]
    fn credit_is_neither_negative_nor_above_what_was_earned(
        credits in 0..i64::MAX, gpus in gpus(), span in span(), cap in 0..i64::MAX,
    ) {
        let earned = earn(credits, gpus, span, cap);
        prop_assert!(earned >= credits && earned <= credits.max(cap));
        prop_assert!(earned - credits <= gpu_time(gpus, span));
        prop_assert!(pay(credits, gpus, span) >= credits);
        let left = spend(credits, gpus, span);
        prop_assert!((0..=credits).contains(&left));
        prop_assert!(spend(pay(0, gpus, span), gpus, span) == 0);
    }

    #[test]
    fn a_balance_is_gone_after_the_time_it_lasts_and_not_before(
        credits in 0..1_000_000_000_000i64, gpus in 1..100_000i64,
    ) {
        let span = lasts(credits, Milli(gpus));
        prop_assert_eq!(spend(credits, Milli(gpus), span), 0);
        prop_assert_eq!(span == Span::ZERO, credits == 0);
        prop_assert!(credits == 0 || gpus * (span.0 - 1) < credits * 1_000);
    }
}
