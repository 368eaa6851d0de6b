//! People, teams and what belongs to them.

use super::At;
use crate::access::{Role, Scope};
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::{IntoParams, ToSchema};

/// A token as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    pub id: String,
    pub user: String,
    pub name: String,
    pub scope: Scope,
    pub created: At,
    pub expires: Option<At>,
    pub revoked: Option<At>,
    pub last_used: Option<At>,
    /// The token that it was made with, also in a browser that is signed in with that token. It is
    /// revoked with it.
    #[serde(default)]
    pub parent: Option<String>,
    /// The session of the browser that it was made in. It is revoked with it.
    #[serde(default)]
    pub session: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenCreate {
    /// What it is for.
    pub name: String,
    /// Oneself where left out; only an admin makes tokens for others.
    #[serde(default)]
    pub user: Option<String>,
    pub scope: Scope,
    /// Such as `30d`; it never expires where left out.
    #[serde(default)]
    pub expires_in: Option<String>,
}

/// A new token. Its secret is in this answer and nowhere else.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenCreated {
    pub token: Token,
    pub secret: String,
}

impl fmt::Debug for TokenCreated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCreated").field("token", &self.token).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct User {
    pub name: String,
    pub created: At,
    /// The role for the whole cluster.
    pub cluster_role: Option<Role>,
    pub teams: Vec<Membership>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserCreate {
    pub name: String,
    #[serde(default)]
    pub cluster_role: Option<Role>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Membership {
    pub team: String,
    pub role: Role,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Team {
    pub name: String,
    /// The team above it.
    #[serde(default)]
    pub parent: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Member {
    pub team: String,
    pub user: String,
    pub role: Role,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberSet {
    pub role: Role,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Project {
    pub name: String,
    pub team: String,
}

/// A secret's name. Its value is never given back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Secret {
    pub team: String,
    pub name: String,
    pub created: At,
    pub by: String,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretSet {
    pub value: String,
}

impl fmt::Debug for SecretSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretSet").finish_non_exhaustive()
    }
}

/// Who one is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    pub user: String,
    pub cluster_role: Option<Role>,
    pub teams: Vec<Membership>,
    /// The team of jobs that name none.
    pub default_team: Option<String>,
    pub default_project: Option<String>,
    /// The token that was used.
    pub token: Token,
    /// Where jobs are processes of the server's machine: which machine that is, as the programs on it
    /// tell it. Only a client on the same machine finds the same.
    pub machine: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown_by_accident() {
        let set = SecretSet { value: "hush".into() };
        assert!(!format!("{set:?}").contains("hush"));
        let token = Token {
            id: "t1".into(),
            user: "kim".into(),
            name: "laptop".into(),
            scope: Scope::All,
            created: At(berth_model::Time(0)),
            expires: None,
            revoked: None,
            last_used: None,
            parent: None,
            session: None,
        };
        let created = TokenCreated { token, secret: "hush".into() };
        assert!(!format!("{created:?}").contains("hush"));
    }
}

/// How a user or project is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct Removal {
    /// Also while jobs or schedules use it. Jobs go on and keep the name; schedules are paused.
    pub force: Option<bool>,
}
