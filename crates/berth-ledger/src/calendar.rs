//! Days, weeks and months, in UTC. A budget starts anew on the calendar, the way people plan one.

use berth_model::{BudgetPeriod, Time};

const DAY_MS: i64 = 86_400_000;
/// 1970-01-01 was a Thursday: Mondays are the days with this remainder by seven.
const MONDAY: i64 = 4;

/// When the period that contains this moment began; `None` where there is only one.
pub fn start(per: BudgetPeriod, at: Time) -> Option<Time> {
    let day = at.0.div_euclid(DAY_MS);
    let first = match per {
        BudgetPeriod::Day => day,
        BudgetPeriod::Week => day - (day - MONDAY).rem_euclid(7),
        BudgetPeriod::Month => {
            let (year, month) = month_of(day);
            first_of(year, month)
        }
        BudgetPeriod::Once => return None,
    };
    Some(Time(first * DAY_MS))
}

/// When the next period begins, after this moment.
pub fn next(per: BudgetPeriod, at: Time) -> Option<Time> {
    let day = at.0.div_euclid(DAY_MS);
    let first = match per {
        BudgetPeriod::Day => day + 1,
        BudgetPeriod::Week => day - (day - MONDAY).rem_euclid(7) + 7,
        BudgetPeriod::Month => {
            let (year, month) = month_of(day);
            if month == 12 { first_of(year + 1, 1) } else { first_of(year, month + 1) }
        }
        BudgetPeriod::Once => return None,
    };
    Some(Time(first * DAY_MS))
}

/// Days from 1970-01-01 to the first of a month. Years are counted from March, so that the leap
/// day comes last and months have the lengths of a straight line, rounded.
fn first_of(year: i64, month: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year
        - 719_468
}

/// The year and month of a day counted from 1970-01-01, by the same years from March.
fn month_of(day: i64) -> (i64, i64) {
    let day = day + 719_468;
    // Within the 400 years after which the calendar repeats.
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + i64::from(month <= 2), month)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(per: BudgetPeriod, at: &str, expect: &str) {
        let at: Time = at.parse().unwrap();
        let found =
            [start(per, at), next(per, at)].map(|t| t.unwrap().to_string()[..10].to_owned());
        assert_eq!(found.join(" "), expect, "{per:?} of {at}");
    }

    #[test]
    fn a_day_begins_at_midnight_utc() {
        check(BudgetPeriod::Day, "2026-11-15T09:00:00Z", "2026-11-15 2026-11-16");
        check(BudgetPeriod::Day, "2026-11-15T00:00:00Z", "2026-11-15 2026-11-16");
    }

    #[test]
    fn a_week_begins_on_monday() {
        check(BudgetPeriod::Week, "2026-11-15T23:59:59Z", "2026-11-09 2026-11-16");
        check(BudgetPeriod::Week, "2026-11-16T00:00:00Z", "2026-11-16 2026-11-23");
    }

    #[test]
    fn a_month_begins_on_its_first_day_in_leap_years_too() {
        check(BudgetPeriod::Month, "2024-02-29T12:00:00Z", "2024-02-01 2024-03-01");
        check(BudgetPeriod::Month, "2026-02-28T23:59:59Z", "2026-02-01 2026-03-01");
        check(BudgetPeriod::Month, "2026-12-31T23:59:59Z", "2026-12-01 2027-01-01");
        check(BudgetPeriod::Month, "2100-03-01T00:00:00Z", "2100-03-01 2100-04-01");
    }

    #[test]
    fn every_day_of_three_centuries_lies_in_its_month() {
        for day in -36_525..73_050 {
            let at = Time(day * DAY_MS);
            let text = at.to_string();
            assert_eq!(start(BudgetPeriod::Month, at).unwrap().to_string()[..7], text[..7]);
            assert!(next(BudgetPeriod::Month, at).unwrap() > at);
        }
    }

    #[test]
    fn a_budget_for_once_has_no_next_period() {
        assert_eq!(next(BudgetPeriod::Once, Time(0)), None);
    }
}
