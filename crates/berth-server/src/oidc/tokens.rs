//! What a provider has signed: whether it is for us and of now, and what it says.

use super::client::{Claims, OidcClient, SignedClaims, SignedToken};
use openidconnect::core::CoreJwsSigningAlgorithm as Algorithm;
use openidconnect::{ClaimsVerificationError, Nonce};
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// How far two clocks may be apart.
const SKEW: Duration = Duration::from_secs(60);
/// Groups of one person that are looked at.
const MOST_GROUPS: usize = 10_000;

/// Only what the provider signs with a key that nobody else has: not `none`, and not the secret that
/// it shares with us.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RsaSsaPkcs1V15Sha256,
    Algorithm::RsaSsaPkcs1V15Sha384,
    Algorithm::RsaSsaPkcs1V15Sha512,
    Algorithm::RsaSsaPssSha256,
    Algorithm::RsaSsaPssSha384,
    Algorithm::RsaSsaPssSha512,
    Algorithm::EcdsaP256Sha256,
    Algorithm::EcdsaP384Sha384,
    Algorithm::EdDsa,
];

/// The claims of a token that was made for us, in answer to this very sign-in.
pub fn verified(
    client: &OidcClient,
    token: &SignedToken,
    nonce: &str,
) -> Result<SignedClaims, ClaimsVerificationError> {
    let now = SystemTime::now();
    let verifier = client
        .id_token_verifier()
        .set_allowed_algs(ALGORITHMS)
        .set_time_fn(move || (now - SKEW).into())
        .set_issue_time_verifier_fn(move |issued| match SystemTime::from(issued) > now + SKEW {
            true => Err("it was issued in the future".to_owned()),
            false => Ok(()),
        });
    token.claims(&verifier, &Nonce::new(nonce.to_owned())).cloned()
}

/// Whether the keys of the provider may have changed since they were read.
pub fn may_be_rotated(error: &ClaimsVerificationError) -> bool {
    matches!(error, ClaimsVerificationError::SignatureVerification(_))
}

/// A claim by its name, or by names with dots between where it lies in others.
pub fn claim<'c>(claims: &'c Claims, name: &str) -> Option<&'c Value> {
    let Claims(map) = claims;
    if let Some(value) = map.get(name) {
        return Some(value);
    }
    let mut parts = name.split('.');
    let first = map.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

/// A list of names, or one name; nothing where the claim is not there.
pub fn groups(claims: &Claims, name: &str) -> Option<Vec<String>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match claim(claims, name)? {
        Value::Array(all) => Some(all.iter().take(MOST_GROUPS).filter_map(text).collect()),
        one => text(one).map(|one| vec![one]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn groups_are_found_wherever_a_provider_puts_them() {
        let Value::Object(map) = json!({
            "groups": ["ml", 7, "ops"], "role": "dev", "a.b": ["dotted"],
            "realm_access": { "roles": ["inner"] },
        }) else {
            unreachable!("it is an object")
        };
        let claims = Claims(map);
        for (name, expect) in [
            ("groups", Some(vec!["ml", "ops"])),
            ("role", Some(vec!["dev"])),
            ("a.b", Some(vec!["dotted"])),
            ("realm_access.roles", Some(vec!["inner"])),
            ("realm_access.nothing", None),
            ("nothing", None),
        ] {
            let found = groups(&claims, name);
            let found =
                found.as_ref().map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(found, expect, "{name}");
        }
    }
}
