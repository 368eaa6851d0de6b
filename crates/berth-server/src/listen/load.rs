//! The memory of answers that are under way. An answer is made as a whole, and stays until its client
//! has taken it: with the streams of HTTP/2, somebody with a token can ask for thousands.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Answers of everybody together.
const MOST: u64 = 512 << 20;
/// Answers of one user, with all jobs of theirs.
const MOST_PER_USER: u64 = 128 << 20;
/// Not counted: the connection itself takes more.
const SMALL: u64 = 4 << 10;
/// What an answer counts for that is made while it is read: what the connection keeps of it.
pub(super) const STREAMED: usize = 64 << 10;

/// What users have under way. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Loads(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    all: u64,
    users: BTreeMap<String, u64>,
}

/// The part of one answer, given back when this is dropped.
#[derive(Debug)]
pub(super) struct Load {
    loads: Loads,
    user: String,
    bytes: u64,
}

impl Loads {
    /// Room for one more answer; nothing where there is none. Without others a user has room for
    /// an answer of any size.
    pub fn take(&self, user: &str, bytes: Option<u64>) -> Option<Load> {
        let bytes = match bytes.unwrap_or(STREAMED as u64) {
            small if small <= SMALL => 0,
            bytes => bytes.min(MOST_PER_USER),
        };
        let mut table = self.table();
        let own = table.users.get(user).copied().unwrap_or(0);
        if bytes > 0 && (own + bytes > MOST_PER_USER || table.all + bytes > MOST) {
            return None;
        }
        if bytes > 0 {
            table.all += bytes;
            table.users.insert(user.to_owned(), own + bytes);
        }
        Some(Load { loads: self.clone(), user: user.to_owned(), bytes })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut table = self.loads.table();
        table.all -= self.bytes;
        if let Some(own) = table.users.get_mut(&self.user) {
            *own -= self.bytes;
            if *own == 0 {
                table.users.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_room_for_so_much_and_leaves_the_rest_to_others() {
        let loads = Loads::default();
        let part = Some(MOST_PER_USER / 4);
        let kims: Vec<Load> = (0..4).filter_map(|_| loads.take("kim", part)).collect();
        assert_eq!(kims.len(), 4);
        assert!(loads.take("kim", part).is_none() && loads.take("kim", None).is_none());
        assert!(loads.take("kim", Some(SMALL)).is_some(), "what is small is not counted");
        assert!(loads.take("lea", part).is_some());
        drop(kims);
        assert!(loads.take("kim", part).is_some());
        assert_eq!(loads.table().all, 0);
        assert!(loads.table().users.is_empty(), "nothing is kept of who is gone");
    }

    #[test]
    fn an_answer_of_any_size_is_given_to_whoever_has_no_other() {
        let loads = Loads::default();
        let large = loads.take("kim", Some(u64::MAX));
        assert!(large.is_some() && loads.take("kim", part()).is_none());
        let others: Vec<Load> =
            ["a", "b", "c"].iter().filter_map(|user| loads.take(user, Some(u64::MAX))).collect();
        assert_eq!(others.len(), 3);
        assert!(loads.take("lea", part()).is_none(), "there is an end for all together");
    }

    fn part() -> Option<u64> {
        Some(SMALL + 1)
    }
}
