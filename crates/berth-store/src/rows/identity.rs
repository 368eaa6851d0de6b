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
        };
        assert!(!format!("{token:?}").contains("c0ffee"));
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
