//! Requests with a key that were carried out lately. The store knows the older ones.

use crate::input::Written;
use berth_model::Time;
use std::collections::{BTreeMap, VecDeque};

/// Who asked, and under which key.
pub(crate) type Key = (String, String);

#[derive(Debug, Default)]
pub(crate) struct RecentRequests {
    /// What was asked, as a fingerprint, and what came of it.
    by_key: BTreeMap<Key, (String, Written)>,
    /// The oldest first, so that forgetting looks at nothing that stays.
    by_age: VecDeque<(Time, Key)>,
}

impl RecentRequests {
    pub fn get(&self, key: &Key) -> Option<&(String, Written)> {
        self.by_key.get(key)
    }

    pub fn insert(&mut self, key: Key, fingerprint: String, written: Written) {
        self.by_age.push_back((written.at, key.clone()));
        self.by_key.insert(key, (fingerprint, written));
    }

    /// Forgets what was carried out then or before.
    pub fn forget(&mut self, until: Time) {
        while let Some((at, key)) = self.by_age.pop_front() {
            if at > until {
                self.by_age.push_front((at, key));
                return;
            }
            self.by_key.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(at: i64) -> Written {
        Written { job: None, at: Time(at), seq: 0, repeated: false }
    }

    #[test]
    fn what_is_old_is_forgotten_and_what_is_new_stays() {
        let key = |name: &str| ("ada".to_owned(), name.to_owned());
        let mut recent = RecentRequests::default();
        for (name, at) in [("a", 1), ("b", 2), ("c", 3)] {
            recent.insert(key(name), String::new(), written(at));
        }
        recent.forget(Time(2));
        let kept = ["a", "b", "c"].map(|name| recent.get(&key(name)).is_some());
        assert_eq!(kept, [false, false, true]);
    }
}
