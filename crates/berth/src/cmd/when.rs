//! Moments on the command line: local time unless said otherwise, or a time from now.

use crate::fail::BadValue;
use crate::show::Look;
use berth_api::wire::At;
use berth_model::{Span, Time};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// A moment, or a time ago such as `2h`.
pub fn past(text: &str) -> Result<At, BadValue> {
    let look = Look::here(false);
    moment(text, look.now, &look.zone)
}

fn moment(text: &str, now: Time, zone: &TimeZone) -> Result<At, BadValue> {
    let local = || {
        let civil: DateTime = text.parse().ok()?;
        let stamp = civil.to_zoned(zone.clone()).ok()?.timestamp();
        Some(Time(stamp.as_millisecond()))
    };
    let ago = || text.parse::<Span>().ok().filter(|span| span.0 >= 0).map(|span| now - span);
    // A date alone reads as a moment in UTC too, and is not meant so.
    let exact = || text.parse().ok().filter(|_| text.contains(':'));
    let at = exact().or_else(local).or_else(ago);
    at.map(At).ok_or_else(|| {
        BadValue::new(
            "expected a time ago such as 2h, or a time such as 2026-11-15, 2026-11-15T09:00 or \
             2026-11-15T09:00:00Z",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        let look = Look::fixed();
        match moment(text, look.now, &look.zone) {
            Ok(at) => at.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn times_are_local_unless_they_say_otherwise() {
        assert_eq!(read("2h"), "2026-11-15T12:00:00Z");
        assert_eq!(read("2026-11-15"), "2026-11-14T23:00:00Z");
        assert_eq!(read("2026-11-15T09:00"), "2026-11-15T08:00:00Z");
        assert_eq!(read("2026-11-15T09:00:00Z"), "2026-11-15T09:00:00Z");
        assert_eq!(read("2026-11-15T09:00:00+03:00"), "2026-11-15T06:00:00Z");
        assert!(read("yesterday").starts_with("expected a time ago"));
        assert!(read("-2h").starts_with("expected a time ago"));
    }
}
