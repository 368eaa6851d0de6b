//! Time banking and past use, in GPU-milliseconds.
//!
//! A queue earns what it leaves unused of its quota and spends it for GPUs beyond its share; past
//! use fades with a half-life. All of it ranks queues, so all of it is integers.

use berth_model::{Milli, Span};

fn narrow(value: i128) -> i64 {
    i64::try_from(value.max(0)).unwrap_or(i64::MAX)
}

fn product(gpus: Milli, span: Span) -> i128 {
    i128::from(gpus.0.max(0)) * i128::from(span.0.max(0))
}

/// GPUs × time in GPU-milliseconds, rounded down.
pub fn gpu_time(gpus: Milli, span: Span) -> i64 {
    narrow(product(gpus, span) / 1_000)
}

/// The balance after a time with unused quota, up to the cap. A balance that is above it already
/// (the cap was lowered, or more was paid) stays. Rounded down: credit never comes from nothing.
pub fn earn(credits: i64, unused_quota: Milli, span: Span, cap: i64) -> i64 {
    let credits = credits.max(0);
    credits.saturating_add(gpu_time(unused_quota, span)).min(cap).max(credits)
}

/// The balance after a time of holding GPUs on credit; never below zero. Rounded up: a share of a
/// GPU for a moment is not free, however often the moments are counted.
pub fn spend(credits: i64, borrowed_on_credit: Milli, span: Span) -> i64 {
    let cost = narrow((product(borrowed_on_credit, span) + 999) / 1_000);
    credits.saturating_sub(cost).max(0)
}

/// The balance after GPUs of the queue's quota were taken for that time by a class that reaches
/// across queues. What is owed is owed: there is no cap.
pub fn pay(credits: i64, taken: Milli, span: Span) -> i64 {
    credits.max(0).saturating_add(gpu_time(taken, span))
}

/// How long a balance lasts for GPUs held on credit: when to look again. Rounded up, so that
/// whoever looks again finds it spent, and never has to look again at once.
pub fn lasts(credits: i64, borrowed_on_credit: Milli) -> Span {
    if borrowed_on_credit <= Milli::ZERO {
        return Span::MAX;
    }
    let (credits, gpus) = (i128::from(credits.max(0)), i128::from(borrowed_on_credit.0));
    Span(narrow((credits * 1_000 + gpus - 1) / gpus)).min(Span::MAX)
}

/// Binary digits of the exponent that count. The error of a product of so many factors in Q64 is
/// far smaller than the step of the last digit, which keeps the decay monotone.
const DIGITS: usize = 48;

/// 2^(-1/2), 2^(-1/4), 2^(-1/8) … in Q64, each the square root of the one before.
const ROOTS: [u128; DIGITS] = {
    let mut roots = [0; DIGITS];
    let mut last: u128 = 1 << 63;
    let mut index = 0;
    while index < DIGITS {
        last = (last << 64).isqrt();
        roots[index] = last;
        index += 1;
    }
    roots
};

/// 1 / ln 2 in Q60, rounded down.
const PER_LN_2: i128 = 1_663_314_137_230_540_311;

/// 2^(-span / half_life) as a factor in Q64 and a number of halvings, both at least zero.
fn power(span: Span, half_life: Span) -> (u128, u32) {
    let (span, half_life) = (span.0.unsigned_abs(), half_life.0.unsigned_abs());
    let halvings = u32::try_from(span / half_life).unwrap_or(u32::MAX);
    let mut rest = u128::from(span % half_life);
    let mut factor: u128 = 1 << 64;
    for root in ROOTS {
        rest *= 2;
        if rest >= u128::from(half_life) {
            rest -= u128::from(half_life);
            factor = (factor * root) >> 64;
        }
    }
    (factor, halvings)
}

/// Past use after a time in which nothing was used, rounded down so that it ends at zero.
///
/// Each call may round away up to one GPU-millisecond. A caller that decays once per tick, not
/// once per event, loses nothing that shows.
pub fn decay(past_use: i64, span: Span, half_life: Span) -> i64 {
    let past_use = past_use.max(0);
    if span <= Span::ZERO {
        return past_use;
    }
    if half_life <= Span::ZERO {
        return 0;
    }
    let (factor, halvings) = power(span, half_life);
    if halvings >= 63 {
        return 0;
    }
    // 63 bits times 65: the product fits exactly.
    ((past_use.unsigned_abs() as u128 * factor) >> 64 >> halvings) as i64
}

/// The past use of that many GPUs in use for ever: as much fades as is added.
pub fn steady(used: Milli, half_life: Span) -> i64 {
    narrow((i128::from(gpu_time(used, half_life)) * PER_LN_2) >> 60)
}

/// Past use after a time in which so many GPUs were used throughout.
///
/// Use fades while it is added, so that one long step and many short ones agree: past use moves
/// towards the level at which as much fades as is added.
pub fn accrue(past_use: i64, used: Milli, span: Span, half_life: Span) -> i64 {
    if used <= Milli::ZERO || span <= Span::ZERO || half_life <= Span::ZERO {
        return decay(past_use, span, half_life);
    }
    let level = i128::from(steady(used, half_life));
    let past_use = i128::from(past_use.max(0));
    let (factor, halvings) = power(span, half_life);
    let away = (past_use - level).unsigned_abs();
    let remaining = if halvings >= 63 { 0 } else { nearest(away * factor, 64 + halvings) as i128 };
    narrow(if past_use >= level { level + remaining } else { level - remaining })
}

/// A shift to the right that rounds to the nearest: rounding down would turn the small gain of a
/// short step into none at all.
fn nearest(value: u128, shift: u32) -> u128 {
    (value >> shift) + ((value >> (shift - 1)) & 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK: Span = Span::days(7);

    #[test]
    fn unused_quota_earns_up_to_the_cap_and_what_is_above_it_stays() {
        assert_eq!(earn(0, Milli::whole(2), Span::secs(3), 10_000), 6_000);
        assert_eq!(earn(6_000, Milli::whole(2), Span::secs(3), 10_000), 10_000);
        assert_eq!(earn(20_000, Milli::whole(2), Span::secs(3), 10_000), 20_000);
        assert_eq!(earn(0, Milli(-5), Span::secs(3), 10_000), 0);
    }

    #[test]
    fn credit_is_spent_down_to_nothing_and_never_below() {
        assert_eq!(spend(6_000, Milli(1_500), Span::secs(2)), 3_000);
        assert_eq!(spend(6_000, Milli::whole(9), Span::secs(2)), 0);
        assert_eq!(spend(1, Milli(1), Span::ms(1)), 0);
        assert_eq!(spend(6_000, Milli::ZERO, Span::secs(2)), 6_000);
    }

    #[test]
    fn what_was_taken_is_paid_without_a_cap() {
        assert_eq!(pay(5, Milli::whole(8), Span::hours(1)), 5 + 8 * 3_600_000);
        assert_eq!(pay(i64::MAX, Milli::whole(8), Span::hours(1)), i64::MAX);
        assert_eq!(pay(0, Milli(i64::MAX), Span::MAX), i64::MAX);
    }

    #[test]
    fn a_balance_lasts_until_it_is_spent() {
        assert_eq!(lasts(6_000, Milli::whole(2)), Span::secs(3));
        assert_eq!(spend(6_000, Milli::whole(2), lasts(6_000, Milli::whole(2))), 0);
        assert_eq!(lasts(6_000, Milli::ZERO), Span::MAX);
    }

    #[test]
    fn use_halves_in_a_half_life_and_is_gone_after_many() {
        assert_eq!(decay(1_000_000, WEEK, WEEK), 500_000);
        assert_eq!(decay(1_000_000, Span::days(21), WEEK), 125_000);
        assert_eq!(decay(i64::MAX, Span::days(7 * 63), WEEK), 0);
        assert_eq!(decay(7, Span::ZERO, WEEK), 7);
        assert_eq!(decay(7, Span::secs(1), Span::ZERO), 0);
    }

    #[test]
    fn half_a_half_life_leaves_one_over_the_square_root_of_two() {
        // 10^18 / sqrt 2 = 707106781186547524.4
        let found = decay(1_000_000_000_000_000_000, Span::days(7), Span::days(14));
        assert!((found - 707_106_781_186_547_524).abs() <= 4, "{found}");
        // 10^15 × 2^(-1/3) = 793700525984099.7; a third has no end in binary.
        let found = decay(1_000_000_000_000_000, Span::days(7), Span::days(21));
        assert!((found - 793_700_525_984_100).abs() <= 4, "{found}");
    }

    #[test]
    fn a_short_time_of_use_counts_in_full() {
        assert_eq!(accrue(0, Milli::whole(8), Span::secs(1), WEEK), 8_000);
        assert_eq!(accrue(0, Milli(500), Span::mins(1), WEEK), 30_000 - 1);
        assert_eq!(accrue(5, Milli::whole(8), Span::ZERO, WEEK), 5);
    }

    #[test]
    fn steady_use_settles_where_as_much_fades_as_is_added() {
        // 1 GPU × 7 days / ln 2 = 872541960.7 GPU-milliseconds.
        assert_eq!(accrue(0, Milli::ONE, Span::days(7 * 70), WEEK), 872_541_960);
        assert_eq!(accrue(872_541_960, Milli::ONE, Span::days(3), WEEK), 872_541_960);
        assert_eq!(accrue(i64::MAX, Milli(i64::MAX), Span::MAX, Span::MAX), i64::MAX);
    }
}
