//! An identity provider, by OpenID Connect: another server that says who a person is.

#[cfg(not(feature = "oidc"))]
mod absent;
#[cfg(feature = "oidc")]
mod client;
#[cfg(feature = "oidc")]
mod http;
#[cfg(feature = "oidc")]
mod provider;
#[cfg(feature = "oidc")]
mod tokens;
#[cfg(feature = "oidc")]
mod used;

#[cfg(not(feature = "oidc"))]
pub use absent::Oidc;
#[cfg(feature = "oidc")]
pub use provider::Oidc;

use berth_service::sign_in::OidcRules;
use std::path::PathBuf;

/// How a provider is reached, and what follows from what it says.
#[derive(Debug, Clone)]
pub struct OidcOptions {
    /// Its address, as it stands in what it signs.
    pub issuer: String,
    pub client_id: String,
    /// A file; a client without a secret proves itself by PKCE alone.
    pub client_secret: Option<PathBuf>,
    /// Besides `openid`.
    pub scopes: Vec<String>,
    /// What the button says.
    pub name: String,
    /// The claim with the name of a user.
    pub name_claim: String,
    /// The claim with the groups.
    pub groups_claim: String,
    pub rules: OidcRules,
}

/// Why a provider cannot be used as it was named.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    #[error("--oidc-issuer: `{0}` is no address that begins with https://")]
    Issuer(String),
    #[error("--oidc-issuer needs --public-url: the provider sends browsers back there")]
    NoPublicUrl,
    #[error(
        "--public-url: `{0}` has to begin with https://, or http:// and a name of this machine"
    )]
    PublicUrl(String),
    #[error("cannot read the secret of --oidc-client-secret from {path}: {source}")]
    Secret { path: PathBuf, source: std::io::Error },
    #[error("the HTTP client for the provider could not be set up")]
    Client(#[source] reqwest::Error),
    #[error("this program was built without the feature `oidc`")]
    Absent,
}

/// What a browser takes along to the provider, and brings back.
#[derive(Debug)]
pub struct Begun {
    /// Where it goes.
    pub url: String,
    /// What the browser has to bring back, sealed.
    pub kept: Kept,
}

/// What a sign-in was begun with. Only the browser that began it has this.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Kept {
    pub state: String,
    pub nonce: String,
    pub verifier: String,
    pub next: String,
    /// When it ends, in milliseconds.
    pub until: i64,
}

/// Why a sign-in by a provider failed.
#[derive(Debug)]
pub enum Failed {
    /// It does not answer, or not as it should.
    Down,
    /// What it says does not fit what was asked.
    Wrong(&'static str),
    /// Too many people sign in at this moment.
    Busy,
}
