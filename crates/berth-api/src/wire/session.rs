//! Signing in: browsers with their sessions, and command lines by a code.

use super::{At, TokenCreated};
use crate::access::Scope;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// How one can sign in with a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionOptions {
    /// With a token of Berth.
    pub token: bool,
    /// By a provider of identities, where there is one.
    pub oidc: Option<OidcOption>,
}

/// A provider of identities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OidcOption {
    /// What its button says.
    pub name: String,
    /// Where a browser goes to sign in; `next` of its query is where it lands.
    pub start: String,
}

/// How somebody signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignInMeans {
    Token,
    Oidc,
}

impl SignInMeans {
    pub const fn word(self) -> &'static str {
        match self {
            SignInMeans::Token => "token",
            SignInMeans::Oidc => "oidc",
        }
    }
}

/// Who is signed in with this browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    pub id: String,
    pub user: String,
    pub means: SignInMeans,
    /// The latest moment; a session that is not used ends before.
    pub expires_at: At,
}

/// A browser that has just signed in. The cookie of this answer is half of what that takes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignedIn {
    pub session: Session,
    /// The other half: what each request carries as `x-berth-session-key`. It is in this answer and
    /// nowhere else.
    pub key: String,
}

impl fmt::Debug for SignedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedIn").field("session", &self.session).finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    pub token: String,
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIn").finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignedOut {
    /// Where the browser goes to leave the provider of identities, too.
    pub logout_url: Option<String>,
}

/// A browser that is signed in, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenSession {
    pub id: String,
    pub user: String,
    pub means: SignInMeans,
    pub scope: Scope,
    pub created: At,
    pub expires: At,
    pub last_used: At,
    /// The address that it was signed in from.
    pub from: String,
    /// What the browser calls itself.
    pub agent: String,
    /// Whether it is the one that asks.
    pub current: bool,
}

/// A command line that wants to sign in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceStart {
    /// What it is, for whoever approves: the name of the machine.
    pub client: String,
}

/// What a command line shows, and by what it asks whether somebody has approved.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceStarted {
    /// A secret of the command line.
    pub device_code: String,
    /// What a person compares, or types.
    pub user_code: String,
    pub verification_uri: String,
    /// The same with the code in it.
    pub verification_uri_complete: String,
    /// Seconds between two questions.
    pub interval: u32,
    /// Seconds until the code ends.
    pub expires_in: u32,
}

impl fmt::Debug for DeviceStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceStarted").field("uri", &self.verification_uri).finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DevicePoll {
    pub device_code: String,
}

impl fmt::Debug for DevicePoll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevicePoll").finish_non_exhaustive()
    }
}

/// How far a sign-in by code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceState {
    /// Nobody has answered yet.
    Waiting,
    /// The same, and the question came too soon: wait five seconds longer each time from now on.
    SlowDown,
    Approved,
    Refused,
    /// The time is over, or there was no such code.
    Expired,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceToken {
    pub state: DeviceState,
    /// In one answer after it was approved, and never again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenCreated>,
}

/// Which command line asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceAsk {
    pub client: String,
    /// The address that it asks from.
    pub from: String,
    pub created_at: At,
    pub expires_at: At,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceAnswer {
    pub approve: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_signs_in_is_not_shown_by_accident() {
        let text = "hush".to_owned();
        let session = Session {
            id: "s1".into(),
            user: "kim".into(),
            means: SignInMeans::Token,
            expires_at: At(berth_model::Time(0)),
        };
        let session = SignedIn { session, key: text.clone() };
        let started = DeviceStarted {
            device_code: text.clone(),
            user_code: text.clone(),
            verification_uri: "/device".into(),
            verification_uri_complete: format!("/device?code={text}"),
            interval: 5,
            expires_in: 600,
        };
        let shown = format!(
            "{session:?}{started:?}{:?}{:?}",
            SignIn { token: text.clone() },
            DevicePoll { device_code: text }
        );
        assert!(!shown.contains("hush"), "{shown}");
    }
}
