//! How often one may fail to sign in: from one address, and all together. A good token or an approved
//! code is accepted however many fail: a job shares its address with all users of its machine. The code
//! of a provider is different: only the provider can tell whether it is good, so the limit comes first.

use crate::refusals::{Allowance, Rate, network};
use berth_model::{Span, Time};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Addresses that are told apart at one moment. The others count as one.
const MOST_ADDRESSES: usize = 4_096;

/// What is looked at in one moment. A look is short, so nobody waits long for those before.
const LOOKS_AT_ONCE: usize = 8;
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// What is tried. Each has an allowance of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Door {
    /// Showing a token or the code of a device; only failures count.
    Secret,
    /// Coming back from a provider with an answer that this browser has not asked for.
    Provider,
    /// Asking the provider about the code that a browser brings. Every try counts, and one that signs
    /// the browser in is given back.
    Exchange,
    /// Beginning a sign-in by a code, which is kept.
    Begin,
    /// Naming the code that a command line shows; only wrong ones count. Here the address is the
    /// name of a user.
    UserCode,
}

impl Door {
    const fn each(self) -> Rate {
        match self {
            Door::Secret | Door::Provider | Door::Exchange => {
                Rate { burst: 10, every: Span::secs(15) }
            }
            Door::Begin => Rate { burst: 30, every: Span::secs(5) },
            Door::UserCode => Rate { burst: 10, every: Span::secs(60) },
        }
    }

    /// A proxy on this machine brings everybody from one address.
    const fn loopback(self) -> Rate {
        match self {
            Door::Secret | Door::Provider | Door::Exchange => {
                Rate { burst: 40, every: Span::secs(4) }
            }
            Door::Begin => Rate { burst: 120, every: Span::secs(1) },
            Door::UserCode => self.each(),
        }
    }

    const fn all(self) -> Rate {
        match self {
            Door::Secret | Door::Provider => Rate { burst: 200, every: Span::secs(1) },
            Door::Begin | Door::Exchange => Rate { burst: 300, every: Span::ms(500) },
            Door::UserCode => Rate { burst: 100, every: Span::secs(6) },
        }
    }
}

/// Too many tries: when the next one may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limited {
    pub after: Span,
}

/// What each address has left, and how many are looked at in this moment.
#[derive(Debug)]
pub struct SignInLimits {
    counts: Mutex<Counts>,
    secrets: Semaphore,
    /// A provider may take seconds: a user who shows a token does not wait for that.
    answers: Semaphore,
    longest_wait: Duration,
}

impl Default for SignInLimits {
    fn default() -> SignInLimits {
        SignInLimits::waiting_for(LONGEST_WAIT)
    }
}

#[derive(Debug, Default)]
struct Counts {
    each: BTreeMap<(Door, String), Allowance>,
    all: BTreeMap<Door, Allowance>,
    limited: u64,
}

impl SignInLimits {
    fn waiting_for(longest_wait: Duration) -> SignInLimits {
        let looks = || Semaphore::new(LOOKS_AT_ONCE);
        SignInLimits { counts: Mutex::default(), secrets: looks(), answers: looks(), longest_wait }
    }

    /// Waits until what a visitor shows may be looked at. First come, first served.
    pub async fn look(&self, door: Door) -> Result<SemaphorePermit<'_>, Limited> {
        let looks = match door {
            Door::Exchange => &self.answers,
            Door::Secret | Door::Provider | Door::Begin | Door::UserCode => &self.secrets,
        };
        match tokio::time::timeout(self.longest_wait, looks.acquire()).await {
            Ok(Ok(look)) => Ok(look),
            _ => {
                self.counts().limited += 1;
                Err(Limited { after: Span::secs(1) })
            }
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a try.
    pub fn enter(&self, door: Door, address: &str, now: Time) -> Result<(), Limited> {
        let counts = &mut *self.counts();
        let (key, rate) = counts.known(door, address, now);
        let all = counts.all.entry(door).or_insert_with(|| Allowance::full(door.all(), now));
        all.refill(door.all(), now);
        let own = counts.each.entry(key).or_insert_with(|| Allowance::full(rate, now));
        own.refill(rate, now);
        if own.left > 0 && all.left > 0 {
            own.left -= 1;
            all.left -= 1;
            return Ok(());
        }
        counts.limited += 1;
        let after = if own.left == 0 { rate.every } else { door.all().every };
        Err(Limited { after: after.max(Span::secs(1)) })
    }

    /// Gives a try back that was no failure.
    pub fn give_back(&self, door: Door, address: &str, now: Time) {
        let counts = &mut *self.counts();
        let (key, rate) = counts.known(door, address, now);
        if let Some(all) = counts.all.get_mut(&door) {
            all.left = (all.left + 1).min(door.all().burst);
        }
        if let Some(own) = counts.each.get_mut(&key) {
            own.left = (own.left + 1).min(rate.burst);
        }
    }

    /// Tries that were refused since the start.
    pub fn limited(&self) -> u64 {
        self.counts().limited
    }
}

impl Counts {
    /// What an address counts as, and at which rate.
    fn known(&mut self, door: Door, address: &str, now: Time) -> ((Door, String), Rate) {
        let is_loopback =
            address.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback());
        if is_loopback {
            return ((door, "loopback".to_owned()), door.loopback());
        }
        let rate = door.each();
        let key = (door, network(address));
        if self.each.len() < MOST_ADDRESSES || self.each.contains_key(&key) {
            return (key, rate);
        }
        self.each.retain(|(door, address), own| {
            let rate = if address == "loopback" { door.loopback() } else { door.each() };
            own.refill(rate, now);
            own.left < rate.burst
        });
        match self.each.len() < MOST_ADDRESSES {
            true => (key, rate),
            false => ((door, String::new()), rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_000_000_000);

    fn taken(limits: &SignInLimits, address: &str, tries: usize, now: Time) -> usize {
        (0..tries).filter(|_| limits.enter(Door::Secret, address, now).is_ok()).count()
    }

    #[test]
    fn one_address_fails_a_few_times_and_then_waits() {
        let limits = SignInLimits::default();
        assert_eq!(taken(&limits, "192.0.2.1", 100, NOW), 10);
        assert_eq!(
            limits.enter(Door::Secret, "192.0.2.1", NOW),
            Err(Limited { after: Span::secs(15) })
        );
        assert_eq!(limits.limited(), 91);
        assert_eq!(taken(&limits, "192.0.2.2", 1, NOW), 1);
        assert_eq!(taken(&limits, "192.0.2.1", 5, NOW + Span::secs(30)), 2);
        assert!(limits.enter(Door::Begin, "192.0.2.1", NOW).is_ok());
    }

    #[test]
    fn a_right_code_and_a_good_answer_of_the_provider_use_up_no_turn() {
        for (door, from) in [(Door::UserCode, "kim"), (Door::Exchange, "192.0.2.1")] {
            let limits = SignInLimits::default();
            for _ in 0..1_000 {
                limits.enter(door, from, NOW).unwrap();
                limits.give_back(door, from, NOW);
            }
            assert!((0..10).all(|_| limits.enter(door, from, NOW).is_ok()));
            assert!(limits.enter(door, from, NOW).is_err());
        }
    }

    #[test]
    fn answers_that_no_browser_asked_for_keep_none_from_asking_the_provider() {
        let limits = SignInLimits::default();
        while limits.enter(Door::Provider, "192.0.2.1", NOW).is_ok() {}
        assert!(limits.enter(Door::Exchange, "192.0.2.1", NOW).is_ok());
    }

    #[tokio::test]
    async fn no_more_is_looked_at_in_one_moment_than_may_and_a_provider_keeps_no_token_waiting() {
        let limits = SignInLimits::waiting_for(Duration::ZERO);
        let mut looks = Vec::new();
        for _ in 0..LOOKS_AT_ONCE {
            looks.push(limits.look(Door::Exchange).await.unwrap());
        }
        assert!(limits.look(Door::Exchange).await.is_err());
        assert!(limits.look(Door::Secret).await.is_ok());
        looks.pop();
        assert!(limits.look(Door::Exchange).await.is_ok());
        assert_eq!(limits.limited(), 1);
    }

    #[test]
    fn all_addresses_together_have_a_limit_and_memory_is_bounded() {
        let limits = SignInLimits::default();
        let mut entered = 0;
        for n in 0..3 * MOST_ADDRESSES {
            entered += taken(&limits, &format!("2001:db8:{n:x}::1"), 1, NOW);
        }
        assert_eq!(entered, 200);
        assert!(limits.counts().each.len() <= MOST_ADDRESSES + 1);
    }

    #[test]
    fn addresses_of_one_network_count_as_one_and_this_machine_has_more() {
        let limits = SignInLimits::default();
        assert_eq!(taken(&limits, "2001:db8::1", 10, NOW), 10);
        assert_eq!(taken(&limits, "2001:db8::2", 10, NOW), 0);
        assert_eq!(taken(&limits, "127.0.0.1", 100, NOW), 40);
        assert_eq!(taken(&limits, "::1", 1, NOW), 0);
    }
}
