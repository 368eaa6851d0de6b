//! Tokens: `brt_<id>_<secret>`. The secret is random enough that a plain hash of it is safe to
//! keep, and nothing else is kept.

use berth_api::access::Scope;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

const PREFIX: &str = "brt_";

/// A new token, its id and the hash of its secret.
pub struct Minted {
    pub id: String,
    pub token: String,
    pub hash: String,
}

pub fn mint() -> Minted {
    let (id, secret) = (random::<8>(), random::<32>());
    let token = format!("{PREFIX}{id}_{secret}");
    Minted { id, hash: hash(&secret), token }
}

/// Its id and its secret.
pub fn parse(token: &str) -> Option<(&str, &str)> {
    token.strip_prefix(PREFIX)?.split_once('_')
}

/// Takes as long for a wrong secret as for the right one.
pub fn matches(secret: &str, expected: &str) -> bool {
    let found = hash(secret);
    let differ = found.bytes().zip(expected.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    differ == 0 && found.len() == expected.len()
}

fn hash(secret: &str) -> String {
    hex::encode(digest(&SHA256, secret.as_bytes()).as_ref())
}

pub fn random<const N: usize>() -> String {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system gives random numbers");
    hex::encode(bytes)
}

/// What is kept of a scope.
pub const fn scope_word(scope: Scope) -> &'static str {
    match scope {
        Scope::Read => "read",
        Scope::Jobs => "jobs",
        Scope::All => "all",
    }
}

/// An unknown word gives the smallest scope.
pub fn scope(word: &str) -> Scope {
    match word {
        "all" => Scope::All,
        "jobs" => Scope::Jobs,
        _ => Scope::Read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_secret_and_by_nothing_else() {
        let (one, other) = (mint(), mint());
        let (id, secret) = parse(&one.token).unwrap();
        assert_eq!(id, one.id);
        assert!(matches(secret, &one.hash));
        assert!(!matches(secret, &other.hash));
        assert!(!matches("", &one.hash) && !matches(secret, ""));
        assert!(!one.token.contains(&one.hash));
    }

    #[test]
    fn what_does_not_look_like_a_token_is_none() {
        for text in ["", "brt_", "brt_x", "sk_1_2"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
