//! What a browser has of its session: a cookie that scripts cannot read, and a value that only they
//! can send. A page of another origin can make a browser send the one and not the other.

use ring::hmac;

/// The name of the cookie.
pub const COOKIE: &str = "berth_session";
/// Where requests that change something carry the other value.
pub const CSRF_HEADER: &str = "x-berth-csrf";

/// What the key is for, so that no other use of the secret gives the same value.
const PURPOSE: &[u8] = b"berth: requests of a session, 1";

/// The id and the secret in a cookie.
pub(super) fn parse(cookie: &str) -> Option<(&str, &str)> {
    cookie.split_once('_').filter(|(id, secret)| !id.is_empty() && !secret.is_empty())
}

/// Where what a provider gave belongs, for the seal. No secret of a team is there: its name has
/// no space.
pub(super) fn place(id: &str) -> String {
    format!("session {id}")
}

/// The value that goes with a secret. It follows from the secret, so nothing of it is kept, and the
/// secret does not follow from it.
pub fn csrf(secret: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    hex::encode(&hmac::sign(&key, PURPOSE).as_ref()[..16])
}

/// Whether a value goes with the cookie; it takes as long whatever differs.
pub fn csrf_matches(cookie: &str, given: &str) -> bool {
    let Some((_, secret)) = parse(cookie) else { return false };
    let expected = csrf(secret);
    let differ = expected.bytes().zip(given.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    differ == 0 && expected.len() == given.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_request_goes_with_one_session_and_tells_nothing_of_its_secret() {
        let cookie = "00ff_secret";
        let value = csrf("secret");
        assert!(csrf_matches(cookie, &value));
        assert!(!value.contains("secret"));
        for other in ["", "x", &csrf("other"), &value[1..], &format!("{value}0")] {
            assert!(!csrf_matches(cookie, other), "{other}");
        }
        for odd in ["", "_", "00ff", "00ff_", "_secret"] {
            assert!(!csrf_matches(odd, &value), "{odd}");
        }
    }
}
