//! Sign-ins that have asked the provider already. Each asks once, so that one sign-in cannot be used to
//! try many codes.

use super::Failed;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Sign-ins of ten minutes. The limits of tries let through fewer, unless they succeed.
const MOST: usize = 20_000;

/// The states of sign-ins, and until when they would count.
#[derive(Default)]
pub struct Used(Mutex<BTreeMap<String, i64>>);

impl Used {
    /// Notes that the sign-in of a state, which ends at a moment, asks the provider now.
    pub fn take(&self, state: &str, until: i64, now: i64) -> Result<(), Failed> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if used.contains_key(state) {
            return Err(Failed::Wrong("this sign-in was used already; begin again"));
        }
        if used.len() >= MOST {
            used.retain(|_, until| *until > now);
        }
        if used.len() >= MOST {
            return Err(Failed::Busy);
        }
        used.insert(state.to_owned(), until);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_asks_the_provider_once() {
        let used = Used::default();
        assert!(used.take("a", 600, 0).is_ok());
        assert!(matches!(used.take("a", 600, 1), Err(Failed::Wrong(why)) if why.contains("again")));
        assert!(used.take("b", 600, 1).is_ok());
    }

    #[test]
    fn no_more_are_remembered_than_may_and_those_that_are_over_make_room() {
        let used = Used::default();
        for n in 0..MOST {
            used.take(&n.to_string(), 600, 0).unwrap();
        }
        assert!(matches!(used.take("one more", 600, 599), Err(Failed::Busy)));
        assert!(used.take("one more", 1_200, 600).is_ok());
        assert_eq!(used.0.lock().unwrap().len(), 1);
    }
}
