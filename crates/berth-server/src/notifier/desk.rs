//! Which messages are on their way, and which host has a place for another one.

use super::send::Answer;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use url::Url;

/// Messages on their way at once.
const MOST: usize = 256;
/// Of these, messages to hosts that no operator has named.
const MOST_UNNAMED: usize = 192;
/// Of these, messages to hosts that did not answer the last time.
const MOST_SILENT: usize = 64;
/// To one host.
const MOST_PER_HOST: usize = 4;
/// To one that did not answer the last time.
const MOST_PER_SILENT_HOST: usize = 1;
/// Hosts that are remembered as silent. Beyond that some are forgotten, and given a try like new ones.
const MOST_REMEMBERED: usize = 10_000;

/// Who gets a message, as far as places are concerned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host {
    name: String,
    /// An operator has named the target.
    named: bool,
}

impl Host {
    pub fn of(url: &Url, named: bool) -> Host {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        Host { name: format!("{host}:{port}"), named }
    }
}

#[derive(Debug, Default)]
pub struct Desk {
    /// Notices that are on their way, or whose row is not written yet.
    busy: BTreeSet<String>,
    /// How many are on their way to each host.
    hosts: BTreeMap<Host, usize>,
    silent: BTreeSet<String>,
}

impl Desk {
    pub fn under_way(&self) -> BTreeSet<String> {
        self.busy.clone()
    }

    pub fn has_place(&self) -> bool {
        self.sum(|_| true) < MOST
    }

    /// Takes a place for a message to a host, if there is one.
    pub fn take(&mut self, notice: &str, host: &Host) -> bool {
        let is_silent = self.silent.contains(&host.name);
        let here = self.hosts.get(host).copied().unwrap_or(0);
        let most_here = if is_silent { MOST_PER_SILENT_HOST } else { MOST_PER_HOST };
        let silent = |host: &Host| !host.named && self.silent.contains(&host.name);
        let has_place = self.has_place()
            && here < most_here
            && (host.named || self.sum(|host| !host.named) < MOST_UNNAMED)
            && (host.named || !is_silent || self.sum(silent) < MOST_SILENT);
        if has_place {
            *self.hosts.entry(host.clone()).or_default() += 1;
            self.busy.insert(notice.to_owned());
        }
        has_place
    }

    /// Nothing is sent, but its row is not written yet.
    pub fn hold(&mut self, notice: &str) {
        self.busy.insert(notice.to_owned());
    }

    /// The try is over.
    pub fn give_back(&mut self, host: &Host, answer: &Answer) {
        if let Some(count) = self.hosts.get_mut(host) {
            *count -= 1;
            if *count == 0 {
                self.hosts.remove(host);
            }
        }
        if matches!(answer, Answer::Silent(_)) {
            if self.silent.len() >= MOST_REMEMBERED {
                self.silent.pop_first();
            }
            self.silent.insert(host.name.clone());
        } else {
            self.silent.remove(&host.name);
        }
    }

    /// Its row is written.
    pub fn release(&mut self, notice: &str) {
        self.busy.remove(notice);
    }

    fn sum(&self, of: impl Fn(&Host) -> bool) -> usize {
        self.hosts.iter().filter(|(host, _)| of(host)).map(|(_, count)| count).sum()
    }
}

/// How many messages were sent, and were not, since the server started.
#[derive(Debug, Default)]
pub struct NoticeFigures {
    sent: AtomicU64,
    failed: AtomicU64,
    refused: AtomicU64,
    given_up: AtomicU64,
}

impl NoticeFigures {
    pub fn sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    pub fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub fn given_up(&self) {
        self.given_up.fetch_add(1, Ordering::Relaxed);
    }

    /// By what became of a try.
    pub fn totals(&self) -> [(&'static str, u64); 4] {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("sent", read(&self.sent)),
            ("failed", read(&self.failed)),
            ("refused", read(&self.refused)),
            ("given_up", read(&self.given_up)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, named: bool) -> Host {
        Host { name: name.to_owned(), named }
    }

    fn taken(desk: &mut Desk, host: &Host, wanted: usize) -> usize {
        (0..wanted).filter(|n| desk.take(&format!("{host:?} {n}"), host)).count()
    }

    #[test]
    fn one_host_has_few_places_and_leaves_the_others_theirs() {
        let mut desk = Desk::default();
        assert_eq!(taken(&mut desk, &host("a:443", false), 1_000), MOST_PER_HOST);
        assert_eq!(taken(&mut desk, &host("b:443", false), 1), 1);
    }

    #[test]
    fn a_host_that_did_not_answer_has_one_place_until_it_answers() {
        let mut desk = Desk::default();
        let slow = host("slow:443", false);
        assert!(desk.take("1", &slow));
        desk.give_back(&slow, &Answer::Silent(String::new()));
        assert_eq!(taken(&mut desk, &slow, 9), MOST_PER_SILENT_HOST);
        desk.give_back(&slow, &Answer::Taken(200));
        assert_eq!(taken(&mut desk, &slow, 9), MOST_PER_HOST);
    }

    #[test]
    fn silent_hosts_leave_places_for_others_and_users_leave_some_for_operators() {
        let mut desk = Desk::default();
        for n in 0..500 {
            let slow = host(&format!("slow{n}:443"), false);
            desk.silent.insert(slow.name.clone());
            taken(&mut desk, &slow, 1);
        }
        assert_eq!(desk.sum(|_| true), MOST_SILENT);
        for n in 0..500 {
            taken(&mut desk, &host(&format!("new{n}:443"), false), 1);
        }
        assert_eq!(desk.sum(|_| true), MOST_UNNAMED);
        assert_eq!(taken(&mut desk, &host("alerts:443", true), 1), 1);
    }
}
