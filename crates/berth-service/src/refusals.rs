//! Requests that were refused, in the audit log. Whoever guesses tokens or tries doors leaves a
//! trace, but nobody can fill the database with refusals: so many are recorded for each caller and
//! in all, and of the rest the number.

use crate::token;
use berth_api::routes::Route;
use berth_model::{Span, Time};
use berth_store::AuditEntry;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

/// Callers that are told apart at one moment. The others count as one.
const MOST_CALLERS: usize = 4_096;
/// Callers that a summary names.
const NAMED_IN_SUMMARY: usize = 20;
/// How much of a text from outside is kept.
const MOST_CHARS: usize = 300;

/// So many at once, and one more each time that the span has passed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub burst: u32,
    pub every: Span,
}

const EACH_CALLER: Rate = Rate { burst: 20, every: Span::secs(30) };
const ALL_USERS: Rate = Rate { burst: 200, every: Span::secs(6) };
/// Anybody who reaches the server can cause these: at most 1,440 rows a day.
const ALL_STRANGERS: Rate = Rate { burst: 100, every: Span::mins(1) };

/// A request that was refused.
#[derive(Debug, Clone, Default)]
pub struct Refusal {
    /// The user, where the token was good.
    pub who: Option<String>,
    /// The id of that token.
    pub token: String,
    /// The id of a token that was not good: whoever sent it may have made it up.
    pub claimed_token: Option<String>,
    pub from: String,
    pub method: String,
    pub what: String,
    pub target: String,
    pub status: u16,
    pub code: String,
    pub why: String,
}

impl Refusal {
    /// A request for a route, with that token.
    pub fn of(route: &Route, given: Option<&str>) -> Refusal {
        let is_id = |id: &&str| id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let claimed = given.and_then(token::parse).map(|(id, _)| id).filter(is_id);
        Refusal {
            claimed_token: claimed.map(str::to_owned),
            method: route.method.to_string(),
            what: route.id.to_owned(),
            ..Refusal::default()
        }
    }

    /// The token was good, so it is known who sent it.
    pub fn by(&mut self, user: &str, token: &str) {
        self.who = Some(user.to_owned());
        self.token = token.to_owned();
        self.claimed_token = None;
    }
}

/// Whom a refusal counts for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    User(String),
    Address(String),
    Others,
}

impl Who {
    fn of(refusal: &Refusal) -> Who {
        match &refusal.who {
            Some(user) => Who::User(user.clone()),
            None => Who::Address(network(&refusal.from)),
        }
    }

    fn shown(&self) -> String {
        match self {
            Who::User(user) => format!("user {user}"),
            Who::Address(address) => format!("address {address}"),
            Who::Others => "others".to_owned(),
        }
    }
}

/// One person has a whole network of IPv6 addresses, so these are told apart by their network.
pub(crate) fn network(address: &str) -> String {
    match address.parse::<IpAddr>() {
        Ok(IpAddr::V6(v6)) if v6.to_ipv4_mapped().is_none() => {
            let [a, b, c, d, ..] = v6.segments();
            format!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        _ => address.to_owned(),
    }
}

/// What is left of a [`Rate`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    pub left: u32,
    /// Since when the next one grows.
    at: Time,
}

impl Allowance {
    pub fn full(rate: Rate, now: Time) -> Allowance {
        Allowance { left: rate.burst, at: now }
    }

    pub fn refill(&mut self, rate: Rate, now: Time) {
        // A clock that was set back must not stop it for good.
        if now < self.at {
            self.at = now;
        }
        let grown = (now.0 - self.at.0) / rate.every.0;
        self.left =
            self.left.saturating_add(u32::try_from(grown).unwrap_or(u32::MAX)).min(rate.burst);
        self.at = Time(self.at.0 + grown * rate.every.0);
    }
}

#[derive(Debug, Default)]
struct Counts {
    callers: BTreeMap<Who, Allowance>,
    users: Option<Allowance>,
    strangers: Option<Allowance>,
    /// Refusals that were not recorded, since the last row that tells their number.
    suppressed: BTreeMap<Who, u64>,
    being_written: usize,
    refused_total: u64,
    suppressed_total: u64,
}

/// How many refusals there were.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<Counts>);

impl Refusals {
    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All refusals, and those that were not recorded, since the server started.
    pub fn totals(&self) -> (u64, u64) {
        let counts = self.counts();
        (counts.refused_total, counts.suppressed_total)
    }

    /// Whether to record it.
    pub(crate) fn admit(&self, refusal: &Refusal, now: Time) -> bool {
        let counts = &mut *self.counts();
        counts.refused_total += 1;
        let who = counts.known(Who::of(refusal), now);
        let (all, rate) = match refusal.who {
            Some(_) => (&mut counts.users, ALL_USERS),
            None => (&mut counts.strangers, ALL_STRANGERS),
        };
        let all = all.get_or_insert_with(|| Allowance::full(rate, now));
        all.refill(rate, now);
        let own = counts.callers.entry(who.clone());
        let own = own.or_insert_with(|| Allowance::full(EACH_CALLER, now));
        own.refill(EACH_CALLER, now);
        if own.left > 0 && all.left > 0 {
            own.left -= 1;
            all.left -= 1;
            counts.being_written += 1;
            return true;
        }
        counts.suppress(who, 1);
        false
    }

    /// What was not recorded, to be recorded as a number. It counts as told from now on.
    pub(crate) fn take_suppressed(&self) -> BTreeMap<Who, u64> {
        std::mem::take(&mut self.counts().suppressed)
    }

    /// They could not be recorded after all.
    pub(crate) fn put_back(&self, suppressed: BTreeMap<Who, u64>) {
        let mut counts = self.counts();
        for (who, number) in suppressed {
            *counts.suppressed.entry(who).or_default() += number;
        }
    }

    /// One that was to be recorded was written, or could not be.
    pub(crate) fn written(&self, refusal: &Refusal, written: bool, now: Time) {
        let counts = &mut *self.counts();
        counts.being_written = counts.being_written.saturating_sub(1);
        if !written {
            let who = counts.known(Who::of(refusal), now);
            counts.suppress(who, 1);
        }
    }

    pub(crate) fn are_being_written(&self) -> bool {
        self.counts().being_written > 0
    }
}

impl Counts {
    /// The caller, or the one that stands for all others when there are too many.
    fn known(&mut self, who: Who, now: Time) -> Who {
        if self.callers.len() >= MOST_CALLERS && !self.callers.contains_key(&who) {
            self.callers.retain(|_, own| {
                own.refill(EACH_CALLER, now);
                own.left < EACH_CALLER.burst
            });
            if self.callers.len() >= MOST_CALLERS {
                return Who::Others;
            }
        }
        who
    }

    fn suppress(&mut self, who: Who, number: u64) {
        self.suppressed_total += number;
        let full = self.suppressed.len() >= MOST_CALLERS && !self.suppressed.contains_key(&who);
        *self.suppressed.entry(if full { Who::Others } else { who }).or_default() += number;
    }
}

/// What the audit log says of it.
pub(crate) fn entry(refusal: &Refusal) -> AuditEntry {
    let mut detail = json!({ "status": refusal.status, "why": plain(&refusal.why) });
    if let Some(claimed) = &refusal.claimed_token {
        detail["claimed_token"] = json!(plain(claimed));
    }
    AuditEntry {
        at: Time(0),
        who: refusal.who.clone().unwrap_or_default(),
        token: refusal.token.clone(),
        from: refusal.from.clone(),
        method: refusal.method.clone(),
        what: refusal.what.clone(),
        target: plain(&refusal.target),
        outcome: format!("refused {}", refusal.code).trim_end().to_owned(),
        detail: detail.to_string(),
    }
}

/// Short, and without characters that move a cursor or that a database does not keep.
pub(crate) fn plain(text: &str) -> String {
    let shown = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let mut short: String = shown.take(MOST_CHARS).collect();
    if text.chars().nth(MOST_CHARS).is_some() {
        short.push('…');
    }
    short
}

/// What the audit log says of those that were not recorded.
pub(crate) fn summary(suppressed: &BTreeMap<Who, u64>) -> serde_json::Value {
    let mut most: Vec<(&Who, u64)> = suppressed.iter().map(|(who, n)| (who, *n)).collect();
    most.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let named: BTreeMap<String, u64> =
        most.iter().take(NAMED_IN_SUMMARY).map(|(who, n)| (who.shown(), *n)).collect();
    let count: u64 = suppressed.values().sum();
    let told: u64 = named.values().sum();
    json!({ "count": count, "by": named, "from_others": count - told })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger(address: &str) -> Refusal {
        Refusal { from: address.to_owned(), ..Refusal::default() }
    }

    fn user(name: &str) -> Refusal {
        Refusal { who: Some(name.to_owned()), ..stranger("10.0.0.1") }
    }

    fn admitted(refusals: &Refusals, refusal: &Refusal, times: usize, now: Time) -> usize {
        (0..times).filter(|_| refusals.admit(refusal, now)).count()
    }

    const NOW: Time = Time(1_000_000_000);

    #[test]
    fn one_caller_is_recorded_a_few_times_and_the_rest_is_counted() {
        let refusals = Refusals::default();
        assert_eq!(admitted(&refusals, &stranger("192.0.2.1"), 1_000, NOW), 20);
        assert_eq!(admitted(&refusals, &stranger("192.0.2.2"), 1, NOW), 1);
        let told = summary(&refusals.take_suppressed());
        assert_eq!(told["count"], 980);
        assert_eq!(told["by"]["address 192.0.2.1"], 980);
        assert_eq!(refusals.totals(), (1_001, 980));
        assert!(refusals.take_suppressed().is_empty());
        let later = NOW + Span::mins(1);
        assert_eq!(admitted(&refusals, &stranger("192.0.2.1"), 10, later), 2);
    }

    #[test]
    fn strangers_from_many_addresses_hide_no_refusal_of_a_user() {
        let refusals = Refusals::default();
        let day = Span::days(1);
        let mut rows = 0;
        for n in 0..20_000_i64 {
            let now = Time(NOW.0 + n * day.0 / 20_000);
            let address = format!("10.{}.{}.{}", n % 250, n / 250 % 250, n / 62_500);
            rows += admitted(&refusals, &stranger(&address), 1, now);
        }
        assert!(rows <= 100 + 1_440, "{rows}");
        assert_eq!(admitted(&refusals, &user("eve"), 1, NOW + day), 1);
        assert_eq!(refusals.totals(), (20_001, 20_000 - rows as u64));
        let told = summary(&refusals.take_suppressed());
        assert_eq!(told["count"], 20_000 - rows as u64);
        assert_eq!(told["by"].as_object().unwrap().len(), NAMED_IN_SUMMARY);
    }

    #[test]
    fn memory_is_bounded_whatever_addresses_come() {
        let refusals = Refusals::default();
        for n in 0..3 * MOST_CALLERS {
            refusals.admit(&stranger(&format!("2001:db8:{:x}::1", n)), NOW);
        }
        let counts = refusals.counts();
        assert!(
            counts.callers.len() <= MOST_CALLERS + 1 && counts.suppressed.len() <= MOST_CALLERS + 1
        );
    }

    #[test]
    fn a_network_of_addresses_counts_as_one_caller() {
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("192.0.2.1"), "192.0.2.1");
    }

    #[test]
    fn a_clock_that_is_set_back_stops_nothing() {
        let refusals = Refusals::default();
        assert_eq!(admitted(&refusals, &user("eve"), 30, NOW), 20);
        let before = Time(NOW.0 - Span::days(2).0);
        assert_eq!(admitted(&refusals, &user("eve"), 1, before), 0);
        assert_eq!(admitted(&refusals, &user("eve"), 1, before + Span::mins(1)), 1);
    }

    #[test]
    fn text_from_outside_is_cut_and_moves_no_cursor() {
        let long = format!("\u{1b}[2J\0{}", "x".repeat(5_000));
        let entry = entry(&Refusal { target: long.clone(), why: long, ..Refusal::default() });
        assert!(entry.target.chars().count() <= MOST_CHARS + 1);
        assert!(!entry.target.contains('\u{1b}') && !entry.target.contains('\0'));
        assert!(entry.detail.len() < 2_000);
    }
}
