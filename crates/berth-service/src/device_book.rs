//! Command lines that wait to be signed in by a code. What waits is in memory alone: a server that
//! starts anew has forgotten it, and the command line begins again.

use crate::approver::Approver;
use crate::fault::Fault;
use crate::refusals::network;
use crate::token;
use berth_api::{Code, wire};
use berth_model::{Span, Time};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How long a person has to approve.
pub(crate) const LASTS: Span = Span::mins(10);
/// Between two questions of a command line.
pub(crate) const INTERVAL: Span = Span::secs(2);
/// How much longer it has to wait after it asked too soon.
const SLOWER: Span = Span::secs(5);
/// Command lines that wait at once.
const MOST: usize = 1_000;
/// Of those, from one network: a stranger must not use up the places of all.
const MOST_OF_ONE: usize = 50;
/// A proxy on this machine brings everyone from loopback.
const MOST_OF_LOOPBACK: usize = 500;
/// No vowels, so that no words come of them, and nothing that looks like something else.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
pub(crate) const CODE_LETTERS: usize = 8;
/// Command lines that wait, by a digest of their secret.
#[derive(Default)]
pub struct Devices(Mutex<BTreeMap<Vec<u8>, Waiting>>);

struct Waiting {
    user_code: String,
    client: String,
    from: String,
    /// What its address counts as.
    place: String,
    created: Time,
    expires: Time,
    /// Before that a question comes too soon.
    next_poll: Time,
    interval: Span,
    answer: Answer,
}

pub(crate) enum Answer {
    None,
    Approved(Approver),
    Refused,
}

impl Devices {
    fn waiting(&self, now: Time) -> MutexGuard<'_, BTreeMap<Vec<u8>, Waiting>> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|_, one| one.expires > now);
        waiting
    }

    pub(crate) fn add(
        &self,
        client: &str,
        from: &str,
        now: Time,
    ) -> Result<(String, String), Fault> {
        let mut waiting = self.waiting(now);
        if waiting.len() >= MOST {
            let detail = "too many command lines wait to be approved";
            return Err(Fault::new(Code::TooManySignIns, detail));
        }
        let (place, most) = place(from);
        if waiting.values().filter(|one| one.place == place).count() >= most {
            let detail = "too many command lines of your network wait to be approved";
            let next = "approve one in the portal, or wait until they end: each waits ten minutes";
            return Err(Fault::new(Code::TooManySignIns, detail).next(next));
        }
        let device_code = token::random::<32>();
        let user_code = loop {
            let code = user_code();
            if !waiting.values().any(|one| one.user_code == code) {
                break code;
            }
        };
        let one = Waiting {
            user_code: user_code.clone(),
            client: client.to_owned(),
            from: from.to_owned(),
            place,
            created: now,
            expires: now + LASTS,
            next_poll: now,
            interval: INTERVAL,
            answer: Answer::None,
        };
        waiting.insert(hashed(&device_code), one);
        Ok((device_code, user_code))
    }

    /// How far it is. An approval is handed out once.
    pub(crate) fn look(&self, device_code: &str, now: Time) -> Look {
        let key = hashed(device_code);
        let mut waiting = self.waiting(now);
        let Some(one) = waiting.get_mut(&key) else { return Look::Unknown };
        match &one.answer {
            Answer::None if now < one.next_poll => {
                one.interval += SLOWER;
                one.next_poll = now + one.interval;
                Look::TooSoon
            }
            Answer::None => {
                one.next_poll = now + one.interval;
                Look::Waits
            }
            Answer::Refused => {
                waiting.remove(&key);
                Look::Refused
            }
            Answer::Approved(_) => match waiting.remove(&key) {
                Some(Waiting { answer: Answer::Approved(approver), client, .. }) => {
                    Look::Approved(approver, client)
                }
                _ => Look::Unknown,
            },
        }
    }

    pub(crate) fn ask(&self, user_code: &str, now: Time) -> Option<wire::DeviceAsk> {
        let wanted = normal(user_code);
        let waiting = self.waiting(now);
        let one = waiting
            .values()
            .find(|one| one.user_code == wanted && matches!(one.answer, Answer::None))?;
        Some(wire::DeviceAsk {
            client: one.client.clone(),
            from: one.from.clone(),
            created_at: one.created.into(),
            expires_at: one.expires.into(),
        })
    }

    /// Whether there was one to answer. A code is good for one answer.
    pub(crate) fn answer(&self, user_code: &str, answer: Answer, now: Time) -> bool {
        let wanted = normal(user_code);
        let mut waiting = self.waiting(now);
        let one = waiting
            .values_mut()
            .find(|one| one.user_code == wanted && matches!(one.answer, Answer::None));
        one.map(|one| one.answer = answer).is_some()
    }
}

pub(crate) enum Look {
    Unknown,
    Waits,
    TooSoon,
    Refused,
    Approved(Approver, String),
}

/// What an address counts as, and how many of it may wait.
fn place(from: &str) -> (String, usize) {
    match from.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback()) {
        true => ("loopback".to_owned(), MOST_OF_LOOPBACK),
        false => (network(from), MOST_OF_ONE),
    }
}

fn hashed(device_code: &str) -> Vec<u8> {
    digest(&SHA256, device_code.as_bytes()).as_ref().to_vec()
}

fn user_code() -> String {
    let mut code = String::new();
    while code.len() < CODE_LETTERS + 1 {
        let mut byte = [0];
        SystemRandom::new().fill(&mut byte).expect("the system gives random numbers");
        // 240 is the largest multiple of 20: above it some letters would come more often.
        if byte[0] >= 240 {
            continue;
        }
        code.push(char::from(LETTERS[usize::from(byte[0]) % LETTERS.len()]));
        if code.len() == CODE_LETTERS / 2 {
            code.push('-');
        }
    }
    code
}

/// As it is shown, however a person types it.
fn normal(typed: &str) -> String {
    let letters: String = typed
        .chars()
        .filter(char::is_ascii_alphabetic)
        .map(|letter| letter.to_ascii_uppercase())
        .take(CODE_LETTERS + 1)
        .collect();
    match letters.len() == CODE_LETTERS {
        true => format!("{}-{}", &letters[..CODE_LETTERS / 2], &letters[CODE_LETTERS / 2..]),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_000_000_000);

    #[test]
    fn codes_are_readable_and_typed_as_people_type() {
        for _ in 0..100 {
            let code = user_code();
            assert_eq!((code.len(), code.find('-')), (9, Some(4)), "{code}");
            assert_eq!(normal(&code), code);
            assert_eq!(normal(&code.to_lowercase().replace('-', " ")), code);
        }
        for odd in ["", "BCDF", "BCDF-GHJKL", "%00"] {
            assert_eq!(normal(odd), "", "{odd}");
        }
    }

    #[test]
    fn a_code_is_answered_once_and_its_answer_is_handed_out_once() {
        let devices = Devices::default();
        let (secret, code) = devices.add("laptop", "192.0.2.1", NOW).unwrap();
        assert!(matches!(devices.look("other", NOW), Look::Unknown));
        assert!(matches!(devices.look(&secret, NOW), Look::Waits));
        assert_eq!(devices.ask(&code, NOW).unwrap().client, "laptop");
        let approved = || Answer::Approved(Approver::nobody());
        assert!(!devices.answer("BCDF-GHJK", approved(), NOW));
        assert!(devices.answer(&code, approved(), NOW));
        assert!(!devices.answer(&code, Answer::Refused, NOW));
        assert!(devices.ask(&code, NOW).is_none());
        assert!(matches!(devices.look(&secret, NOW), Look::Approved(..)));
        assert!(matches!(devices.look(&secret, NOW), Look::Unknown));
    }

    #[test]
    fn a_code_ends_and_a_hasty_command_line_is_slowed_down() {
        let devices = Devices::default();
        let (secret, code) = devices.add("laptop", "", NOW).unwrap();
        assert!(matches!(devices.look(&secret, NOW), Look::Waits));
        assert!(matches!(devices.look(&secret, NOW + Span::secs(1)), Look::TooSoon));
        assert!(matches!(devices.look(&secret, NOW + Span::secs(3)), Look::TooSoon));
        assert!(matches!(devices.look(&secret, NOW + Span::secs(60)), Look::Waits));
        assert!(devices.ask(&code, NOW + LASTS).is_none());
        assert!(matches!(devices.look(&secret, NOW + LASTS), Look::Unknown));
    }

    #[test]
    fn no_more_wait_than_may() {
        let devices = Devices::default();
        for n in 0..MOST {
            devices.add("x", &format!("192.0.2.{}", n / MOST_OF_ONE), NOW).unwrap();
        }
        let fault = devices.add("x", "198.51.100.1", NOW).unwrap_err();
        assert_eq!(fault.0.known_code(), Some(Code::TooManySignIns));
        assert!(devices.add("x", "198.51.100.1", NOW + LASTS).is_ok());
    }

    #[test]
    fn one_network_cannot_use_up_the_command_lines_of_all() {
        for (one, same, most) in [
            ("192.0.2.1", "192.0.2.1", MOST_OF_ONE),
            ("2001:db8::1", "2001:db8::2", MOST_OF_ONE),
            ("127.0.0.1", "::1", MOST_OF_LOOPBACK),
        ] {
            let devices = Devices::default();
            let taken = (0..MOST).filter(|_| devices.add("x", one, NOW).is_ok()).count();
            assert_eq!(taken, most, "{one}");
            let fault = devices.add("x", same, NOW).unwrap_err();
            assert_eq!(fault.0.known_code(), Some(Code::TooManySignIns), "{same}");
            assert!(devices.add("x", "198.51.100.1", NOW).is_ok());
        }
    }
}
