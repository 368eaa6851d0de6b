//! Schedules in the form of cron: five fields, or a word such as `@daily`.
//!
//! Times are in UTC or at a fixed offset from it. There are no named time zones: their rules
//! change and live in files, and a schedule in one would skip or repeat an hour twice a year.

use crate::error::did_you_mean;
use berth_model::{Span, Time};
use std::fmt;
use std::str::FromStr;

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;

/// The longest wait there is: 29 February over a century that has none.
const DAYS_AHEAD: i64 = 8 * 366 + 2;

/// When something is due, by the calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    minutes: Set,
    hours: Set,
    days: Set,
    months: Set,
    weekdays: Set,
    /// A day of the month and a day of the week are both named: one of them is enough.
    either_day: bool,
}

/// Small numbers, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Set(u64);

impl Set {
    fn has(self, number: i64) -> bool {
        self.0 >> number & 1 == 1
    }

    /// The smallest member that is not below.
    fn from(self, number: i64) -> Option<i64> {
        let rest = self.0.checked_shr(u32::try_from(number).ok()?)?;
        (rest != 0).then(|| number + i64::from(rest.trailing_zeros()))
    }
}

/// Why a schedule could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseCron(String);

struct Field {
    what: &'static str,
    least: u32,
    most: u32,
    /// Words for the numbers from `least` on.
    words: &'static [&'static str],
}

const MONTHS: &[&str] =
    &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const FIELDS: [Field; 5] = [
    Field { what: "minute", least: 0, most: 59, words: &[] },
    Field { what: "hour", least: 0, most: 23, words: &[] },
    Field { what: "day of the month", least: 1, most: 31, words: &[] },
    Field { what: "month", least: 1, most: 12, words: MONTHS },
    // 7 is Sunday too.
    Field { what: "day of the week", least: 0, most: 7, words: WEEKDAYS },
];

const SHORT: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

impl Cron {
    /// The first moment after `after` that is due, where clocks are `offset` ahead of UTC.
    pub fn next(&self, after: Time, offset: Span) -> Time {
        self.find(after, offset).expect("a schedule that is never due is refused when it is read")
    }

    fn find(&self, after: Time, offset: Span) -> Option<Time> {
        let local = after.0.saturating_add(offset.0);
        // Minutes are whole: the next candidate is the start of the next one.
        let start = local.div_euclid(MINUTE_MS) + 1;
        let first = start.div_euclid(DAY_MS / MINUTE_MS);
        for day in first..first + DAYS_AHEAD {
            if !self.is_due_on(day) {
                continue;
            }
            let from = if day == first { start.rem_euclid(DAY_MS / MINUTE_MS) } else { 0 };
            if let Some(minute) = self.minute_from(from) {
                return Some(Time(day * DAY_MS + minute * MINUTE_MS - offset.0));
            }
        }
        None
    }

    fn is_due_on(&self, day: i64) -> bool {
        let (_, month, of_month) = Time(day * DAY_MS).date();
        // 1970-01-01 was a Thursday.
        let of_week = (day + 4).rem_euclid(7);
        let (by_month, by_week) = (self.days.has(of_month), self.weekdays.has(of_week));
        let due = if self.either_day { by_month || by_week } else { by_month && by_week };
        due && self.months.has(month)
    }

    /// The first minute of a day that is due, from this one on.
    fn minute_from(&self, minute: i64) -> Option<i64> {
        let (hour, of_hour) = (minute / 60, minute % 60);
        let in_this_hour = || {
            let minute = self.minutes.from(of_hour).filter(|_| self.hours.has(hour))?;
            Some(hour * 60 + minute)
        };
        in_this_hour().or_else(|| Some(self.hours.from(hour + 1)? * 60 + self.minutes.from(0)?))
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Cron {
    type Err = ParseCron;

    fn from_str(text: &str) -> Result<Cron, ParseCron> {
        let text = text.trim();
        let long = match text.starts_with('@') {
            true => word(text)?,
            false => text,
        };
        let parts: Vec<&str> = long.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = parts[..] else {
            return Err(ParseCron(format!(
                "found {} fields in `{text}`, expected five: minute, hour, day of the month, \
                 month, day of the week; or a word such as @daily",
                parts.len()
            )));
        };
        let read = |index: usize, part: &str| FIELDS[index].read(part);
        let mut of_week = read(4, weekdays)?;
        of_week.0 |= of_week.0 >> 7 & 1;
        let cron = Cron {
            text: text.to_owned(),
            minutes: read(0, minutes)?,
            hours: read(1, hours)?,
            days: read(2, days)?,
            months: read(3, months)?,
            weekdays: of_week,
            either_day: !days.starts_with('*') && !weekdays.starts_with('*'),
        };
        match cron.find(Time(0), Span::ZERO) {
            Some(_) => Ok(cron),
            None => Err(ParseCron(format!("`{text}` names a day that no year has"))),
        }
    }
}

fn word(text: &str) -> Result<&'static str, ParseCron> {
    let found = SHORT.iter().find(|(word, _)| *word == text);
    found.map(|(_, long)| *long).ok_or_else(|| {
        let hint = did_you_mean(text, SHORT.iter().map(|(word, _)| *word));
        ParseCron(format!("found `{text}`, expected five fields or a word such as @daily{hint}"))
    })
}

impl Field {
    fn read(&self, text: &str) -> Result<Set, ParseCron> {
        let mut set = Set::default();
        for part in text.split(',') {
            set.0 |= self.part(part)?.0;
        }
        Ok(set)
    }

    /// `*`, `5`, `1-5`, each but a single number with a step if wanted: `*/15`.
    fn part(&self, part: &str) -> Result<Set, ParseCron> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (self.least, self.most),
            Some((from, to)) => (self.number(from, part)?, self.number(to, part)?),
            None if step.is_some() => return Err(self.bad(part)),
            None => (self.number(range, part)?, self.number(range, part)?),
        };
        let step: usize = match step {
            None => 1,
            Some(text) => text.parse().ok().filter(|n| *n > 0).ok_or_else(|| self.bad(part))?,
        };
        if from > to {
            return Err(self.bad(part));
        }
        Ok(Set((from..=to).step_by(step).fold(0, |set, number| set | 1 << number)))
    }

    fn number(&self, text: &str, part: &str) -> Result<u32, ParseCron> {
        let word = self.words.iter().position(|word| text.eq_ignore_ascii_case(word));
        let number = match word {
            Some(index) => Some(self.least + index as u32),
            None => text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit())),
        };
        number
            .filter(|number| (self.least..=self.most).contains(number))
            .ok_or_else(|| self.bad(part))
    }

    fn bad(&self, part: &str) -> ParseCron {
        let Field { what, least, most, words } = self;
        let named = match words.first() {
            Some(first) => format!(" or names such as {first}"),
            None => String::new(),
        };
        ParseCron(format!(
            "found `{part}` as the {what}, expected numbers from {least} to {most}{named}, \
             a range such as {least}-{most}, * or */2"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next moments after a Sunday morning, one after another.
    fn check(cron: &str, offset: Span, expect: &[&str]) {
        let cron: Cron = cron.parse().unwrap();
        let mut at: Time = "2026-11-15T09:30:20Z".parse().unwrap();
        for expected in expect {
            at = cron.next(at, offset);
            assert_eq!(at.to_string(), *expected, "{cron}");
        }
    }

    #[test]
    fn the_next_moment_is_the_first_that_every_field_allows() {
        let utc = Span::ZERO;
        check("* * * * *", utc, &["2026-11-15T09:31:00Z", "2026-11-15T09:32:00Z"]);
        check("*/20 * * * *", utc, &["2026-11-15T09:40:00Z", "2026-11-15T10:00:00Z"]);
        check("30 9 * * *", utc, &["2026-11-16T09:30:00Z", "2026-11-17T09:30:00Z"]);
        check("0 8-18/5 * * *", utc, &["2026-11-15T13:00:00Z", "2026-11-15T18:00:00Z"]);
        check("15,45 22 31 * *", utc, &["2026-12-31T22:15:00Z", "2026-12-31T22:45:00Z"]);
        check("0 0 29 feb *", utc, &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]);
        check("@monthly", utc, &["2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"]);
        check("@hourly", utc, &["2026-11-15T10:00:00Z"]);
    }

    #[test]
    fn days_of_the_week_go_by_number_or_name_and_sunday_is_0_and_7() {
        for cron in ["0 6 * * 1-5", "0 6 * * Mon-FRI"] {
            check(cron, Span::ZERO, &["2026-11-16T06:00:00Z", "2026-11-17T06:00:00Z"]);
        }
        for cron in ["0 12 * * 0", "0 12 * * 7", "0 12 * * sun"] {
            check(cron, Span::ZERO, &["2026-11-15T12:00:00Z", "2026-11-22T12:00:00Z"]);
        }
    }

    #[test]
    fn a_day_of_the_month_or_one_of_the_week_is_enough_when_both_are_named() {
        check("0 0 13 * 5", Span::ZERO, &["2026-11-20T00:00:00Z", "2026-11-27T00:00:00Z"]);
        check("0 0 20 * 1", Span::ZERO, &["2026-11-16T00:00:00Z", "2026-11-20T00:00:00Z"]);
    }

    #[test]
    fn an_offset_moves_the_clock_that_is_read() {
        check("0 0 * * *", Span::hours(2), &["2026-11-15T22:00:00Z", "2026-11-16T22:00:00Z"]);
        check("0 20 * * *", Span::hours(-8), &["2026-11-16T04:00:00Z"]);
    }

    #[test]
    fn a_mistake_is_named_with_its_field_and_what_was_expected() {
        for (cron, says) in [
            ("0 3 * *", "found 4 fields"),
            ("60 * * * *", "found `60` as the minute, expected numbers from 0 to 59"),
            ("0 5/2 * * *", "found `5/2` as the hour"),
            ("0 9-5 * * *", "found `9-5` as the hour"),
            (
                "0 0 * march *",
                "found `march` as the month, expected numbers from 1 to 12 or names such as jan",
            ),
            ("*/0 * * * *", "found `*/0` as the minute"),
            ("0 0 +1 * *", "found `+1` as the day of the month"),
            ("@dayly", "did you mean `@daily`?"),
            ("0 0 30 2 *", "names a day that no year has"),
            ("", "found 0 fields"),
        ] {
            let error = cron.parse::<Cron>().unwrap_err().to_string();
            assert!(error.contains(says), "{cron}: {error}");
        }
    }
}
