//! A typed client of the server.
//!
//! Reads are tried again while there is time, and so is a submission, which carries a key that lets
//! the server recognise it. Other writes are sent once.

mod artifacts;
mod call;
mod calls;
mod error;
mod objects;
mod shell;
mod stream;
mod tracked;

pub use artifacts::ArtifactPieces;
pub use calls::{Events, Logs};
pub use error::{Error, Result};
pub use shell::{Shell, ShellOutput};
pub use stream::Pieces;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use call::Call;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::time::Duration;

/// How to reach a server.
#[derive(Clone)]
pub struct Options {
    /// Such as `http://127.0.0.1:7070`.
    pub url: String,
    pub token: Option<String>,
    /// Sends the token as the password of this user, for servers without bearer tokens.
    pub user: Option<String>,
    /// Certificates to trust besides those of the system, as PEM.
    pub ca_pem: Option<Vec<u8>>,
    /// The longest one request may take, streams aside.
    pub timeout: Duration,
    /// How long to try again what failed on the way.
    pub patience: Duration,
}

impl Options {
    pub fn new(url: impl Into<String>) -> Options {
        Options {
            url: url.into(),
            token: None,
            user: None,
            ca_pem: None,
            timeout: Duration::from_secs(30),
            patience: Duration::from_secs(2),
        }
    }

    pub fn token(mut self, token: impl Into<String>) -> Options {
        self.token = Some(token.into());
        self
    }
}

/// The token stays out of what is printed.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { url, token, timeout, patience, .. } = self;
        f.debug_struct("Options")
            .field("url", url)
            .field("token", &token.as_ref().map(|_| "(hidden)"))
            .field("timeout", timeout)
            .field("patience", patience)
            .finish_non_exhaustive()
    }
}

/// A server of Berth, as its users see it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    timeout: Duration,
    patience: Duration,
}

/// A connection is there quickly or not at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A stream says something at least every quarter of a minute.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

impl Client {
    pub fn new(options: Options) -> Result<Client> {
        let Options { url, token, user, ca_pem, timeout, patience } = options;
        let base = base(&url)?;
        // An error says that there is a provider already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("berth/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .default_headers(headers(user.as_deref(), token.as_deref())?);
        if let Some(pem) = ca_pem {
            let all = reqwest::Certificate::from_pem_bundle(&pem)
                .map_err(|source| Error::Certificate { source })?;
            builder = all.into_iter().fold(builder, reqwest::ClientBuilder::add_root_certificate);
        }
        let http = builder.build().map_err(|source| Error::Setup { source })?;
        Ok(Client { http, base, timeout, patience })
    }

    /// The address of the server.
    pub fn url(&self) -> &Url {
        &self.base
    }

    fn call(&self, id: &'static str, parts: &[&str]) -> Call<'_> {
        Call::new(self, id, parts)
    }
}

fn base(url: &str) -> Result<Url> {
    let bad = |why: String| Error::BadUrl { url: url.to_owned(), why };
    let parsed = Url::parse(url).map_err(|error| bad(error.to_string()))?;
    match matches!(parsed.scheme(), "http" | "https") && !parsed.cannot_be_a_base() {
        true => Ok(parsed),
        false => Err(bad("it does not begin with http:// or https://".to_owned())),
    }
}

fn headers(user: Option<&str>, token: Option<&str>) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    let said = match (user, token) {
        (Some(user), token) => {
            let pair = format!("{user}:{}", token.unwrap_or_default());
            Some(format!("Basic {}", BASE64_STANDARD.encode(pair)))
        }
        (None, token) => token.map(|token| format!("Bearer {token}")),
    };
    if let Some(said) = said {
        let mut value = HeaderValue::from_str(&said).map_err(|_| Error::BadToken)?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

/// A key that no other submission has.
pub fn idempotency_key() -> Result<String> {
    let mut bytes = [0u8; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Error::NoRandomness)?;
    Ok(hex::encode(bytes))
}
