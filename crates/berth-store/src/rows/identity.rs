//! Who may do what. What a role or a scope means is not known here.

use crate::table::table;
use berth_model::Time;
use std::fmt;

table! {
    #[derive(Debug)]
    UserRow in "users", 1 of the columns are its key: &'k str;
    name: String = "name",
    full_name: String = "full_name",
    /// A role that holds in every team.
    role: Option<String> = "role",
    created: Time = "created",
    disabled: Option<Time> = "disabled",
}

table! {
    #[derive(Debug)]
    TeamRow in "teams", 1 of the columns are its key: &'k str;
    name: String = "name",
    queue: String = "queue",
    created: Time = "created",
    /// JSON.
    detail: String = "detail",
}

table! {
    /// Goes when its team or its user goes.
    #[derive(Debug)]
    MemberRow in "members", 2 of the columns are its key: (&'k str, &'k str);
    team: String = "team",
    user: String = "user",
    role: String = "role",
    created: Time = "created",
}

table! {
    /// Goes when its team goes.
    #[derive(Debug)]
    ProjectRow in "projects", 2 of the columns are its key: (&'k str, &'k str);
    team: String = "team",
    name: String = "name",
    created: Time = "created",
}

table! {
    /// Goes when its user goes. Of the token itself only a hash is kept.
    TokenRow in "tokens", 1 of the columns are its key: &'k str;
    id: String = "id",
    user: String = "user",
    name: String = "name",
    /// Hexadecimal.
    hash: String = "hash",
    scopes: String = "scopes",
    created: Time = "created",
    expires: Option<Time> = "expires",
    revoked: Option<Time> = "revoked",
    last_used: Option<Time> = "last_used",
    /// The token it was made by, also where a browser had signed in with that.
    parent: Option<String> = "parent",
    /// The session it was made by.
    session: Option<String> = "session",
}

table! {
    /// Goes when its team goes. Only the sealed form is ever seen here.
    SecretRow in "secrets", 2 of the columns are its key: (&'k str, &'k str);
    team: String = "team",
    name: String = "name",
    sealed: Vec<u8> = "sealed",
    created: Time = "created",
    by: String = "by",
}

table! {
    /// A browser that is signed in. Goes when its user goes. Of the secret in its cookie and of the
    /// key of its pages only hashes are kept.
    SessionRow in "sessions", 1 of the columns are its key: &'k str;
    id: String = "id",
    user: String = "user",
    /// Hexadecimal.
    hash: String = "hash",
    scopes: String = "scopes",
    /// How it was signed in.
    means: String = "means",
    /// The token it was signed in with, where it was one.
    token: Option<String> = "token",
    created: Time = "created",
    expires: Time = "expires",
    last_used: Time = "last_used",
    /// The address that it was signed in from.
    from: String = "from",
    /// What the browser calls itself.
    agent: String = "agent",
    /// What the provider of identities gave, sealed; empty for a token.
    hint: Vec<u8> = "hint",
    /// Of the key that goes with the cookie. Without one nobody is signed in by it.
    key_hash: Option<String> = "key_hash",
}

table! {
    /// Which user somebody is whom a provider of identities knows. Goes when the user goes.
    #[derive(Debug)]
    IdentityRow in "identities", 1 of the columns are its key: &'k str;
    /// A digest of the two columns below.
    id: String = "id",
    user: String = "user",
    issuer: String = "issuer",
    subject: String = "subject",
    created: Time = "created",
}

impl fmt::Debug for TokenRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenRow")
            .field("id", &self.id)
            .field("user", &self.user)
            .field("name", &self.name)
            .field("scopes", &self.scopes)
            .field("expires", &self.expires)
            .field("revoked", &self.revoked)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SessionRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRow")
            .field("id", &self.id)
            .field("user", &self.user)
            .field("scopes", &self.scopes)
            .field("means", &self.means)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SecretRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretRow")
            .field("team", &self.team)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_hash_nor_a_sealed_secret_reaches_a_log() {
        let token = TokenRow {
            id: "t1".into(),
            user: "ada".into(),
            name: "laptop".into(),
            hash: "c0ffee".into(),
            scopes: "read".into(),
            created: Time(0),
            expires: None,
            revoked: None,
            last_used: None,
            parent: None,
            session: None,
        };
        assert!(!format!("{token:?}").contains("c0ffee"));
        let session = SessionRow {
            id: "s1".into(),
            user: "ada".into(),
            hash: "c0ffee".into(),
            scopes: "read".into(),
            means: "oidc".into(),
            token: None,
            created: Time(0),
            expires: Time(1),
            last_used: Time(0),
            from: String::new(),
            agent: String::new(),
            hint: vec![201, 202],
            key_hash: Some("c0ffee".into()),
        };
        let shown = format!("{session:?}");
        assert!(!shown.contains("c0ffee") && !shown.contains("201"), "{shown}");
        let secret = SecretRow {
            team: "vision".into(),
            name: "key".into(),
            sealed: vec![201, 202],
            created: Time(0),
            by: "ada".into(),
        };
        assert!(!format!("{secret:?}").contains("201"));
    }
}
