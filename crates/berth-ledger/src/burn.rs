//! What the open leases of a queue cost an hour, and when that will have come to an amount.

use berth_model::{Micros, Time};

const HOUR_MS: i128 = 3_600_000;

/// Sums over open leases. What they cost beyond their rows grows by the price; a lease that was
/// billed later begins later, which is what `weighted` takes off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Burn {
    leases: i128,
    /// Millionths of a dollar per hour.
    price: i128,
    /// Sum of price × the time up to which rows exist.
    weighted: i128,
}

impl Burn {
    /// A lease with this price that has rows up to then.
    pub(crate) fn add(&mut self, price: Micros, billed: Time) {
        self.count(price, billed, 1);
    }

    pub(crate) fn remove(&mut self, price: Micros, billed: Time) {
        self.count(price, billed, -1);
    }

    fn count(&mut self, price: Micros, billed: Time, sign: i128) {
        let price = i128::from(price.0);
        self.leases += sign;
        self.price += sign * price;
        self.weighted += sign * price * i128::from(billed.0);
    }

    #[must_use]
    pub fn plus(self, other: Burn) -> Burn {
        Burn {
            leases: self.leases + other.leases,
            price: self.price + other.price,
            weighted: self.weighted + other.weighted,
        }
    }

    pub fn is_nothing(self) -> bool {
        self.leases == 0
    }

    /// What it has come to beyond the rows. Rows are rounded down each, so they may come to less by
    /// a millionth for each lease.
    pub fn amount(self, at: Time) -> Micros {
        let amount = (self.price * i128::from(at.0) - self.weighted).div_euclid(HOUR_MS);
        Micros(i64::try_from(amount.max(0)).unwrap_or(i64::MAX))
    }

    /// The first moment at which rows that are cut then may come to this amount. Each is rounded
    /// down, so they can fall short by less than a millionth for each lease.
    pub fn reaches(self, amount: Micros) -> Option<Time> {
        if self.price <= 0 {
            return None;
        }
        let cost = i128::from(amount.0) * HOUR_MS + self.weighted;
        let at = cost.div_euclid(self.price) + i128::from(cost.rem_euclid(self.price) != 0);
        i64::try_from(at).ok().map(Time)
    }
}
