//! What a browser has of its session: a cookie that scripts cannot read, and a key that the portal keeps
//! for its own origin. Browsers send the cookie to every port of a host, and so to jobs that listen
//! there, but no page of another port reads the key: neither is good for anything without the other.

use crate::token::{self, Minted};

/// The name of the cookie.
pub const COOKIE: &str = "berth_session";
/// The same where connections are encrypted: browsers let nobody set it who is not, and for no part of
/// the paths alone.
pub const SECURE_COOKIE: &str = "__Host-berth_session";
/// Where a request by the cookie carries the key.
pub const KEY_HEADER: &str = "x-berth-session-key";
/// What a terminal speaks. A browser sets no headers for one, so the key stands beside it.
pub const SHELL_PROTOCOL: &str = "berth.shell";
pub const KEY_PROTOCOL: &str = "berth.key.";
/// What the key is called after the `#` of the address that a browser lands at.
pub const KEY_FRAGMENT: &str = "session-key";

/// What a request by a session shows.
#[derive(Clone, Default)]
pub struct Shown {
    /// All cookies of the name. Another server of the host can add some, so none counts by its place.
    pub cookies: Vec<String>,
    pub key: Option<String>,
}

impl Shown {
    /// The session that the key is of, and the secret in it.
    pub(super) fn key(&self) -> Option<(&str, &str)> {
        parse(self.key.as_deref()?)
    }

    /// Whether one of the cookies is that of a session.
    pub(super) fn has_cookie_of(&self, id: &str, hash: &str) -> bool {
        let mut secrets = self.cookies.iter().filter_map(|cookie| parse(cookie));
        secrets.any(|(of, secret)| of == id && token::matches(secret, hash))
    }
}

/// A cookie and a key for a new session, whose id is that of the cookie's secret.
pub(super) struct Halves {
    pub cookie: String,
    pub key: String,
    pub key_hash: String,
}

impl Halves {
    pub fn of(minted: &Minted) -> Halves {
        let secret = |minted: &Minted| {
            token::parse(&minted.token).expect("a new token can be read").1.to_owned()
        };
        let other = token::mint();
        Halves {
            cookie: format!("{}_{}", minted.id, secret(minted)),
            key: format!("{}_{}", minted.id, secret(&other)),
            key_hash: other.hash,
        }
    }
}

/// The id and the secret in a cookie or a key.
fn parse(half: &str) -> Option<(&str, &str)> {
    half.split_once('_').filter(|(id, secret)| !id.is_empty() && !secret.is_empty())
}

/// Where what a provider gave belongs, for the seal. No secret of a team is there: its name has
/// no space.
pub(super) fn place(id: &str) -> String {
    format!("session {id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_shown_by_its_own_key_and_its_own_cookie_wherever_that_stands() {
        let (minted, other) = (token::mint(), token::mint());
        let (halves, others) = (Halves::of(&minted), Halves::of(&other));
        let shown = |cookies: &[&str], key: &str| Shown {
            cookies: cookies.iter().map(|cookie| (*cookie).to_owned()).collect(),
            key: Some(key.to_owned()),
        };
        for cookies in [
            vec![halves.cookie.as_str()],
            vec![&others.cookie, "x", "", &halves.cookie],
            vec![&halves.cookie, &others.cookie],
        ] {
            let shown = shown(&cookies, &halves.key);
            let (id, secret) = shown.key().unwrap();
            assert_eq!(id, minted.id);
            assert!(token::matches(secret, &halves.key_hash));
            assert!(shown.has_cookie_of(id, &minted.hash), "{cookies:?}");
        }
        // Neither half stands for the other.
        let swapped = shown(&[&halves.key], &halves.cookie);
        assert!(!swapped.has_cookie_of(&minted.id, &minted.hash));
        assert!(!token::matches(swapped.key().unwrap().1, &halves.key_hash));
        assert!(!shown(&[&others.cookie], &halves.key).has_cookie_of(&minted.id, &minted.hash));
        for odd in ["", "_", "00ff", "00ff_", "_secret"] {
            assert!(shown(&[], odd).key().is_none(), "{odd}");
        }
        assert!(Shown::default().key().is_none());
    }
}
