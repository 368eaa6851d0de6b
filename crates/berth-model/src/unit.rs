//! Quantities with units. Everything is an integer, so orderings are exact and sums telescope.

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};
use std::str::FromStr;

/// Why a quantity could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct ParseUnit {
    pub text: String,
    pub expected: &'static str,
}

impl ParseUnit {
    fn new(text: &str, expected: &'static str) -> Self {
        ParseUnit { text: text.to_owned(), expected }
    }
}

/// Reads a decimal such as `12.25` or `1e3` exactly into units of 10^-`scale`, rounding half up.
fn decimal(text: &str, scale: u32) -> Option<i64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((m, e)) => (m, e.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value: i128 = 0;
    for c in whole.chars().chain(fraction.chars()) {
        let digit = c.to_digit(10)?;
        value = value.checked_mul(10)?.checked_add(i128::from(digit))?;
    }
    let places = i32::try_from(fraction.len()).ok()?;
    let shift = (scale as i32).checked_add(exponent)?.checked_sub(places)?;
    if shift >= 0 {
        value = value.checked_mul(10i128.checked_pow(shift as u32)?)?;
    } else {
        let divisor = 10i128.checked_pow(shift.unsigned_abs())?;
        value = (value + divisor / 2) / divisor;
    }
    i64::try_from(if negative { -value } else { value }).ok()
}

/// Writes an integer count of 10^-`scale` without trailing zeros.
fn write_decimal(f: &mut fmt::Formatter<'_>, value: i64, scale: u32) -> fmt::Result {
    let unit = 10u64.pow(scale);
    let magnitude = value.unsigned_abs();
    if value < 0 {
        f.write_str("-")?;
    }
    let fraction = magnitude % unit;
    if fraction == 0 {
        return write!(f, "{}", magnitude / unit);
    }
    let digits = format!("{fraction:0width$}", width = scale as usize);
    write!(f, "{}.{}", magnitude / unit, digits.trim_end_matches('0'))
}

macro_rules! quantity {
    ($name:ident) => {
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                $name(self.0.saturating_add(other.0))
            }
        }
        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                $name(self.0.saturating_sub(other.0))
            }
        }
        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }
        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }
        impl Neg for $name {
            type Output = Self;
            fn neg(self) -> Self {
                $name(-self.0)
            }
        }
        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold($name(0), |a, b| a + b)
            }
        }
        impl $name {
            pub const ZERO: $name = $name(0);
            pub fn is_zero(self) -> bool {
                self.0 == 0
            }
        }
    };
}

/// Reads a unit from a string, an integer or a decimal, whatever the text format offers.
macro_rules! text_unit {
    ($name:ident, $expected:literal) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                        f.write_str($expected)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_u64<E: de::Error>(self, n: u64) -> Result<$name, E> {
                        n.to_string().parse().map_err(E::custom)
                    }
                    fn visit_i64<E: de::Error>(self, n: i64) -> Result<$name, E> {
                        n.to_string().parse().map_err(E::custom)
                    }
                    fn visit_f64<E: de::Error>(self, n: f64) -> Result<$name, E> {
                        n.to_string().parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }
    };
}

/// A moment: milliseconds since 1970-01-01 00:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub i64);

/// A length of time in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub i64);

quantity!(Span);
text_unit!(Span, "a length of time such as 90s, 5m, 1h30m or 2d");
text_unit!(Time, "a moment such as 2026-11-15T09:00:00Z");

impl Span {
    pub const MAX: Span = Span(i64::MAX / 4);
    pub const fn ms(n: i64) -> Span {
        Span(n)
    }
    pub const fn secs(n: i64) -> Span {
        Span(n * 1_000)
    }
    pub const fn mins(n: i64) -> Span {
        Span(n * 60_000)
    }
    pub const fn hours(n: i64) -> Span {
        Span(n * 3_600_000)
    }
    /// The time limit of work that has none: pods of services, and pods that name no limit.
    pub const UNLIMITED: Span = Span::days(36_500);

    /// Whether a time limit is none that any job reaches: an end that far away tells no plan
    /// anything.
    pub const fn is_unlimited(self) -> bool {
        self.0 >= Span::days(3_650).0
    }

    pub const fn days(n: i64) -> Span {
        Span(n * 86_400_000)
    }
    /// Whole seconds, rounded towards zero.
    pub const fn as_secs(self) -> i64 {
        self.0 / 1_000
    }
}

impl Time {
    pub const MAX: Time = Time(i64::MAX / 4);

    /// Year, month and day in UTC.
    pub fn date(self) -> (i64, i64, i64) {
        civil_from_days(self.0.div_euclid(86_400_000))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0).min(Time::MAX.0))
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Sub for Time {
    type Output = Span;
    fn sub(self, other: Time) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

const SPAN: &str = "a length of time such as 90s, 5m, 1h30m or 2d";

impl FromStr for Span {
    type Err = ParseUnit;
    fn from_str(text: &str) -> Result<Span, ParseUnit> {
        let bad = || ParseUnit::new(text, SPAN);
        let trimmed = text.trim();
        if let Some(seconds) = decimal(trimmed, 3) {
            return Ok(Span(seconds));
        }
        let (negative, mut rest) = match trimmed.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, trimmed),
        };
        if rest.is_empty() {
            return Err(bad());
        }
        let mut total: i64 = 0;
        while !rest.is_empty() {
            let unit_at = rest.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(bad)?;
            let after = &rest[unit_at..];
            let unit_len = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
            let factor: i64 = match &after[..unit_len] {
                "ms" => 1,
                "s" => 1_000,
                "m" | "min" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                "w" => 604_800_000,
                _ => return Err(bad()),
            };
            let count = decimal(&rest[..unit_at], 3).ok_or_else(bad)?;
            let part = i128::from(count) * i128::from(factor) / 1_000;
            total = i64::try_from(i128::from(total) + part).map_err(|_| bad())?;
            rest = &after[unit_len..];
        }
        Ok(Span(if negative { -total } else { total }))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        if left == 0 {
            return f.write_str("0s");
        }
        for (unit, size) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)] {
            if left >= size {
                write!(f, "{}{unit}", left / size)?;
                left %= size;
            }
        }
        if left > 0 {
            write!(f, "{left}ms")?;
        }
        Ok(())
    }
}

/// Days since 1970-01-01 of a proleptic Gregorian date (Hinnant's algorithm).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let doy = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    era * 146_097 + doe - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    (year, month, doy - (153 * mp + 2) / 5 + 1)
}

const TIME: &str = "a moment such as 2026-11-15T09:00:00Z";

impl FromStr for Time {
    type Err = ParseUnit;
    fn from_str(text: &str) -> Result<Time, ParseUnit> {
        parse_time(text).ok_or_else(|| ParseUnit::new(text, TIME))
    }
}

fn parse_time(text: &str) -> Option<Time> {
    let number = |s: Option<&str>| -> Option<i64> {
        let s = s?;
        if s.is_empty() || !s.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        s.parse().ok()
    };
    // Four digits, or more for times so far off that they mean never.
    let (year, text) = text.split_at_checked(text.find('-')?.max(4))?;
    let year = number(Some(year)).filter(|year| *year < 100_000_000)?;
    let month = number(text.get(1..3))?;
    let day = number(text.get(4..6))?;
    let dashes = text.get(0..1)? == "-" && text.get(3..4)? == "-";
    let month_days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if !dashes || !(1..=month_days).contains(&day) {
        return None;
    }
    let date = days_from_civil(year, month, day) * 86_400_000;
    let Some(clock) = text.get(6..).filter(|rest| !rest.is_empty()) else {
        return Some(Time(date));
    };
    if !clock.starts_with(['T', 't', ' ']) {
        return None;
    }
    let zone_at = clock.find(['Z', 'z', '+']).or_else(|| clock.rfind('-'))?;
    let (hms, zone) = clock[1..].split_at(zone_at - 1);
    let (hms, millis) = match hms.split_once('.') {
        Some((hms, digits)) => (hms, decimal(&format!("0.{digits}"), 3)?),
        None => (hms, 0),
    };
    let mut parts = hms.split(':');
    let (h, m) = (number(parts.next())?, number(parts.next())?);
    let s = parts.next().map_or(Some(0), |s| number(Some(s)))?;
    if h > 23 || m > 59 || s > 60 || parts.next().is_some() {
        return None;
    }
    let offset = match zone {
        "Z" | "z" => 0,
        _ => {
            let sign = if zone.starts_with('-') { -1 } else { 1 };
            let (oh, om) = zone[1..].split_once(':')?;
            let (oh, om) = (number(Some(oh))?, number(Some(om))?);
            if !zone.starts_with(['+', '-']) || oh > 23 || om > 59 {
                return None;
            }
            sign * (oh * 60 + om) * 60_000
        }
    };
    Some(Time(date + ((h * 60 + m) * 60 + s) * 1_000 + millis - offset))
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (y, m, d) = civil_from_days(self.0.div_euclid(86_400_000));
        let ms = self.0.rem_euclid(86_400_000);
        let (h, min, s) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
        write!(f, "{y:04}-{m:02}-{d:02}T{h:02}:{min:02}:{s:02}")?;
        if ms % 1_000 != 0 {
            write!(f, ".{:03}", ms % 1_000)?;
        }
        f.write_str("Z")
    }
}

/// Memory in bytes. `GB` is 10^9, `GiB` is 2^30.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub i64);

quantity!(Bytes);
text_unit!(Bytes, "an amount of memory such as 64GiB or 40GB");

impl Bytes {
    pub const fn gb(n: i64) -> Bytes {
        Bytes(n * 1_000_000_000)
    }
    pub const fn gib(n: i64) -> Bytes {
        Bytes(n << 30)
    }
    pub const fn mib(n: i64) -> Bytes {
        Bytes(n << 20)
    }
}

const UNITS: [(&str, i64); 10] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
];

impl FromStr for Bytes {
    type Err = ParseUnit;
    fn from_str(text: &str) -> Result<Bytes, ParseUnit> {
        let bad = || ParseUnit::new(text, "an amount of memory such as 64GiB or 40GB");
        let trimmed = text.trim();
        let short = [("Ti", 1i64 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
        let (digits, factor) = UNITS
            .iter()
            .chain(short.iter())
            .find_map(|(unit, factor)| Some((trimmed.strip_suffix(unit)?, *factor)))
            .unwrap_or((trimmed, 1));
        let thousandths = decimal(digits.trim(), 3).ok_or_else(bad)?;
        i64::try_from(i128::from(thousandths) * i128::from(factor) / 1_000)
            .map(Bytes)
            .map_err(|_| bad())
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The unit that leaves the smallest number: 40GB is also 39062500KiB.
        let (unit, factor) = UNITS
            .iter()
            .filter(|(unit, factor)| *unit != "KB" && self.0 % factor == 0)
            .max_by_key(|(_, factor)| if self.0 == 0 { -factor } else { *factor })
            .unwrap_or(&("B", 1));
        write!(f, "{}{unit}", self.0 / factor)
    }
}

/// CPU in thousandths of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cpu(pub i64);

quantity!(Cpu);
text_unit!(Cpu, "a number of CPU cores such as 8, 0.5 or 500m");

impl Cpu {
    pub const fn cores(n: i64) -> Cpu {
        Cpu(n * 1_000)
    }
}

impl FromStr for Cpu {
    type Err = ParseUnit;
    fn from_str(text: &str) -> Result<Cpu, ParseUnit> {
        let trimmed = text.trim();
        match trimmed.strip_suffix('m') {
            Some(milli) => decimal(milli, 0),
            None => decimal(trimmed, 3),
        }
        .map(Cpu)
        .ok_or_else(|| ParseUnit::new(text, "a number of CPU cores such as 8, 0.5 or 500m"))
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, self.0, 3)
    }
}

/// Thousandths, of a GPU or of anything else that is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Milli(pub i64);

quantity!(Milli);
text_unit!(Milli, "a number such as 8 or 0.5");

impl Milli {
    pub const ONE: Milli = Milli(1_000);
    pub const fn whole(n: i64) -> Milli {
        Milli(n * 1_000)
    }
}

impl FromStr for Milli {
    type Err = ParseUnit;
    fn from_str(text: &str) -> Result<Milli, ParseUnit> {
        decimal(text.trim(), 3)
            .map(Milli)
            .ok_or_else(|| ParseUnit::new(text, "a number such as 8 or 0.5"))
    }
}

impl fmt::Display for Milli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, self.0, 3)
    }
}

/// Money in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Micros(pub i64);

quantity!(Micros);
text_unit!(Micros, "an amount of dollars such as 12.25");

impl Micros {
    pub const fn dollars(n: i64) -> Micros {
        Micros(n * 1_000_000)
    }
}

impl FromStr for Micros {
    type Err = ParseUnit;
    fn from_str(text: &str) -> Result<Micros, ParseUnit> {
        let trimmed = text.trim();
        decimal(trimmed.strip_prefix('$').unwrap_or(trimmed), 6)
            .map(Micros)
            .ok_or_else(|| ParseUnit::new(text, "an amount of dollars such as 12.25"))
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, self.0, 6)
    }
}

#[cfg(test)]
mod tests;
