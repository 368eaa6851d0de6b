//! When tokens were last used, to the minute: enough to find those that are not needed any more,
//! without a write for every request.

use berth_model::{Span, Time};
use berth_store::TokenRow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

const COARSE: Span = Span::mins(1);
/// Tokens that are remembered; beyond that the oldest uses are forgotten, and noted once more.
const MOST: usize = 10_000;

/// When each token was noted last.
#[derive(Default)]
pub struct TokenUse(Mutex<BTreeMap<String, Time>>);

impl TokenUse {
    /// Whether this use is to be written down.
    pub fn is_news(&self, token: &TokenRow, now: Time) -> bool {
        self.is_news_of(&token.id, token.last_used, now)
    }

    /// The same for whatever has an id that no token has.
    pub fn is_news_of(&self, id: &str, last_used: Option<Time>, now: Time) -> bool {
        let old = |at: Time| at + COARSE <= now;
        if !last_used.is_none_or(old) {
            return false;
        }
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.get(id).is_some_and(|at| !old(*at)) {
            return false;
        }
        if noted.len() >= MOST {
            noted.retain(|_, at| !old(*at));
        }
        noted.insert(id.to_owned(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(last_used: Option<Time>) -> TokenRow {
        TokenRow {
            id: "t1".into(),
            user: "ada".into(),
            name: "laptop".into(),
            hash: String::new(),
            scopes: "all".into(),
            created: Time(0),
            expires: None,
            revoked: None,
            last_used,
            parent: None,
            session: None,
        }
    }

    #[test]
    fn a_token_in_use_is_noted_once_a_minute() {
        let (uses, start) = (TokenUse::default(), Time(1_000_000));
        assert!(uses.is_news(&token(None), start));
        assert!(!uses.is_news(&token(None), start + Span::secs(59)));
        assert!(uses.is_news(&token(None), start + Span::mins(1)));
        let noted_elsewhere = token(Some(start + Span::mins(2)));
        assert!(!uses.is_news(&noted_elsewhere, start + Span::mins(2)));
    }
}
