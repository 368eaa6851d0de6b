//! Quantities as Kubernetes writes them, read exactly.

use std::iter::Sum;
use std::ops::Add;
use std::str::FromStr;

const NANO: i128 = 1_000_000_000;
const MAX: i128 = i64::MAX as i128 * NANO;

/// An exact amount, in billionths: the finest that Kubernetes tells apart. What is finer still is
/// rounded up, so that who asks for something gets something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Quantity(i128);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("`{text}` is not a quantity; write a number such as 500m, 2, 1.5Gi or 1e3")]
    NotAQuantity { text: String },
    /// The largest amount there is stands in `instead`, for who would rather go on with it.
    #[error("`{text}` is more than can be counted; write an amount up to {instead}")]
    TooLarge { text: String, instead: i64 },
}

impl Quantity {
    pub const ZERO: Quantity = Quantity(0);

    /// Thousandths, rounded up.
    pub fn milli(self) -> Result<i64, Error> {
        self.in_units_of(NANO / 1_000)
    }

    /// Whole units, rounded up: bytes of memory, pieces of a device.
    pub fn whole(self) -> Result<i64, Error> {
        self.in_units_of(NANO)
    }

    /// Whole units, where there is no fraction of one.
    pub fn exactly(self) -> Option<i64> {
        if self.0 % NANO == 0 { self.whole().ok() } else { None }
    }

    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    fn in_units_of(self, unit: i128) -> Result<i64, Error> {
        let count = ceil_div(self.0, unit);
        i64::try_from(count).map_err(|_| Error::TooLarge {
            text: format!("{count}"),
            instead: if count < 0 { i64::MIN } else { i64::MAX },
        })
    }
}

impl Add for Quantity {
    type Output = Quantity;
    fn add(self, other: Quantity) -> Quantity {
        // Each is below 2^93, so that no sum of parts of one pod comes near the limit.
        Quantity(self.0.saturating_add(other.0))
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Quantity>>(parts: I) -> Quantity {
        parts.fold(Quantity::ZERO, Add::add)
    }
}

impl FromStr for Quantity {
    type Err = Error;
    fn from_str(text: &str) -> Result<Quantity, Error> {
        let bad = || Error::NotAQuantity { text: text.to_owned() };
        let written = Written::read(text).ok_or_else(bad)?;
        let magnitude = match written.magnitude() {
            Some(magnitude) if magnitude.floor <= MAX => magnitude,
            _ => {
                let instead = if written.negative { -i64::MAX } else { i64::MAX };
                return Err(Error::TooLarge { text: text.to_owned(), instead });
            }
        };
        Ok(Quantity(match (written.negative, magnitude.exact) {
            (true, _) => -magnitude.floor,
            (false, true) => magnitude.floor,
            (false, false) => magnitude.floor + 1,
        }))
    }
}

/// The parts of a quantity: `digits × 10^ten × 2^two`.
struct Written {
    negative: bool,
    digits: i128,
    ten: i32,
    two: u32,
}

/// Billionths, rounded down, and whether nothing was left over.
struct Magnitude {
    floor: i128,
    exact: bool,
}

impl Written {
    fn read(text: &str) -> Option<Written> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let (exponent, two) = suffix_of(suffix)?;
        let digits = digits_of(whole.trim_start_matches('0'), fraction)?;
        let ten = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        Some(Written { negative, digits, ten, two })
    }

    /// `None`: far beyond what can be counted.
    fn magnitude(&self) -> Option<Magnitude> {
        if self.digits == 0 {
            return Some(Magnitude { floor: 0, exact: true });
        }
        let ten = self.ten.saturating_add(9);
        if ten >= 0 {
            let factor = 10i128.checked_pow(ten.unsigned_abs())?.checked_mul(1 << self.two)?;
            return Some(Magnitude { floor: self.digits.checked_mul(factor)?, exact: true });
        }
        // digits × 2^two / (2^n × 5^n): the twos cancel, which keeps every product in range.
        let n = ten.unsigned_abs();
        let cancelled = n.min(self.two);
        let divisor = 5i128
            .checked_pow(n)
            .zip(1i128.checked_shl(n - cancelled).filter(|twos| *twos > 0))
            .and_then(|(fives, twos)| fives.checked_mul(twos));
        let Some(divisor) = divisor else {
            // More than 10^38 below at most 10^30 × 2^5: something, but less than one.
            return Some(Magnitude { floor: 0, exact: false });
        };
        let factor = 1i128 << (self.two - cancelled);
        let (quotient, rest) = (self.digits / divisor, self.digits % divisor);
        let scaled = rest.checked_mul(factor)?;
        let floor = quotient.checked_mul(factor)?.checked_add(scaled / divisor)?;
        Some(Magnitude { floor, exact: scaled % divisor == 0 })
    }
}

/// More significant digits than 30 are refused: no machine has a use for them.
fn digits_of(whole: &str, fraction: &str) -> Option<i128> {
    let mut digits: i128 = 0;
    for c in whole.chars().chain(fraction.chars()) {
        digits = digits * 10 + i128::from(c.to_digit(10)?);
        if digits >= 10i128.pow(30) {
            return None;
        }
    }
    Some(digits)
}

/// The power of ten and the power of two a suffix stands for.
fn suffix_of(suffix: &str) -> Option<(i32, u32)> {
    Some(match suffix {
        "" => (0, 0),
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        _ => (suffix.strip_prefix(['e', 'E'])?.parse().ok()?, 0),
    })
}

fn ceil_div(amount: i128, unit: i128) -> i128 {
    amount.div_euclid(unit) + i128::from(amount.rem_euclid(unit) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn milli(text: &str) -> i64 {
        text.parse::<Quantity>().unwrap().milli().unwrap()
    }

    fn bytes(text: &str) -> i64 {
        text.parse::<Quantity>().unwrap().whole().unwrap()
    }

    #[test]
    fn every_kind_of_suffix_is_read() {
        for (text, expected) in
            [("500m", 500), ("2", 2_000), ("0.1", 100), ("1e3", 1_000_000), ("1E-1", 100)]
        {
            assert_eq!(milli(text), expected, "{text}");
        }
        for (text, expected) in [
            ("64Gi", 64 << 30),
            ("1.5Gi", 3 << 29),
            ("100k", 100_000),
            ("1E", 1_000_000_000_000_000_000),
            ("7Ei", 7 << 60),
            (".5Ki", 512),
            ("1.", 1),
            ("+3M", 3_000_000),
            ("128974848", 128_974_848),
            ("129e6", 129_000_000),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_finer_than_can_be_counted_is_rounded_up() {
        assert_eq!(milli("0.0001"), 1);
        assert_eq!(milli("1n"), 1);
        assert_eq!(milli("1000001n"), 2);
        assert_eq!(bytes("1500m"), 2);
        assert_eq!("1e-40".parse::<Quantity>().unwrap(), Quantity(1));
        assert_eq!(
            "0.00000000000000000000000000000000000000000000000001Ei".parse(),
            Ok(Quantity(1))
        );
        assert_eq!(milli("-0.0001"), 0);
    }

    #[test]
    fn sums_are_exact_before_they_are_rounded() {
        let third: Quantity = "333333u".parse().unwrap();
        assert_eq!([third; 3].into_iter().sum::<Quantity>().milli(), Ok(1_000));
    }

    #[test]
    fn too_much_is_an_error_that_tells_the_most_there_is() {
        for text in ["8Ei", "1e19", "9223372036854775808", "1e400", "99999999999999999999Ei"] {
            assert!(
                matches!(text.parse::<Quantity>(), Err(Error::TooLarge { instead: i64::MAX, .. })),
                "{text}"
            );
        }
        let much: Quantity = "9223372036854775807".parse().unwrap();
        assert_eq!(much.whole(), Ok(i64::MAX));
        assert!(matches!(much.milli(), Err(Error::TooLarge { instead: i64::MAX, .. })));
    }

    #[test]
    fn what_is_not_a_quantity_is_refused() {
        for text in
            ["", "lots", "1.2.3", "1 Gi", "1gi", "--1", "e3", "1e", "1e1.5", ".", "5KiB", "0x10"]
        {
            assert!(matches!(text.parse::<Quantity>(), Err(Error::NotAQuantity { .. })), "{text}");
        }
    }

    /// The same by long multiplication on decimal digits, the last first.
    fn naive(digits: &str, fraction: &str, ten: i32, two: u32, unit: i32) -> Option<i64> {
        let mut number: Vec<u8> =
            digits.chars().chain(fraction.chars()).rev().map(|c| c as u8 - b'0').collect();
        for _ in 0..two {
            let mut carry = 0;
            for digit in &mut number {
                let doubled = *digit * 2 + carry;
                (*digit, carry) = (doubled % 10, doubled / 10);
            }
            number.push(carry);
        }
        let rounded = |mut number: Vec<u8>, shift: i32| {
            let mut left = false;
            for _ in 0..-shift.min(0) {
                left |= !number.is_empty() && number.remove(0) != 0;
            }
            for _ in 0..shift {
                number.insert(0, 0);
            }
            let mut at = 0;
            while left {
                if at == number.len() {
                    number.push(0);
                }
                number[at] += 1;
                left = number[at] == 10;
                number[at] %= 10;
                at += 1;
            }
            number
        };
        // To billionths first, as Kubernetes does, then to the unit.
        let nanos = rounded(number, ten + 9 - fraction.len() as i32);
        let number = rounded(nanos, unit - 9);
        number
            .iter()
            .rev()
            .try_fold(0i64, |sum, digit| sum.checked_mul(10)?.checked_add(i64::from(*digit)))
    }

    proptest! {
        #[test]
        fn a_quantity_is_what_long_multiplication_makes_of_it(
            digits in "[0-9]{1,12}",
            fraction in "[0-9]{0,12}",
            suffix in prop::sample::select(vec![
                ("", 0, 0), ("n", -9, 0), ("u", -6, 0), ("m", -3, 0), ("k", 3, 0), ("M", 6, 0),
                ("G", 9, 0), ("T", 12, 0), ("P", 15, 0), ("E", 18, 0), ("Ki", 0, 10),
                ("Mi", 0, 20), ("Gi", 0, 30), ("Ti", 0, 40), ("Pi", 0, 50), ("Ei", 0, 60),
                ("e-30", -30, 0), ("E5", 5, 0), ("e+2", 2, 0),
            ]),
        ) {
            let (suffix, ten, two) = suffix;
            let read = format!("{digits}.{fraction}{suffix}").parse::<Quantity>();
            let whole = naive(&digits, &fraction, ten, two, 0);
            let milli = naive(&digits, &fraction, ten, two, 3);
            prop_assert_eq!(read.clone().ok().and_then(|q| q.whole().ok()), whole);
            prop_assert_eq!(read.ok().and_then(|q| q.milli().ok()), milli);
        }
    }
}
