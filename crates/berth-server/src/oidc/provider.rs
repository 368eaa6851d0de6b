//! A provider: found out about when it is first needed, and its keys read again when they change.

use super::client::{Claims, OidcClient, SignedClaims, Tokens, UserInfo};
use super::http::Http;
use super::tokens;
use super::used::Used;
use super::{Begun, Failed, Kept, OidcError, OidcOptions};
use berth_engine::clock;
use berth_model::Span;
use berth_service::sign_in::{OidcRules, Provided};
use openidconnect::core::{CoreClientAuthMethod, CoreResponseType};
use openidconnect::{
    AuthType, AuthenticationFlow, AuthorizationCode, ClientId, ClientSecret, CsrfToken, IssuerUrl,
    Nonce, OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, ProviderMetadataWithLogout,
    RedirectUrl, RequestTokenError, Scope, TokenResponse,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use url::Url;

/// How long a browser may be at the provider.
pub const SIGN_IN_LASTS: Span = Span::mins(10);
/// How long what the provider says of itself counts.
const FRESH: Duration = Duration::from_secs(3_600);
/// Between two looks at its keys: a token with an unknown key costs us a request.
const KEYS_EVERY: Duration = Duration::from_secs(5);
/// Between two tries to reach a provider that is away.
const RETRY_EVERY: Duration = Duration::from_secs(2);

pub struct Oidc {
    options: OidcOptions,
    issuer: IssuerUrl,
    secret: Option<ClientSecret>,
    redirect: RedirectUrl,
    http: Http,
    found: Mutex<Found>,
    used: Used,
}

#[derive(Default)]
struct Found {
    known: Option<Arc<Known>>,
    failed: Option<Instant>,
}

/// What the provider says of itself.
struct Known {
    client: OidcClient,
    end_session: Option<Url>,
    at: Instant,
}

impl Oidc {
    pub fn open(options: &OidcOptions, public_url: Option<&Url>) -> Result<Oidc, OidcError> {
        let wrong = || OidcError::Issuer(options.issuer.clone());
        let issuer = IssuerUrl::new(options.issuer.clone()).map_err(|_| wrong())?;
        if !is_private(issuer.url()) {
            return Err(wrong());
        }
        let public = public_url.ok_or(OidcError::NoPublicUrl)?;
        if !is_private(public) {
            return Err(OidcError::PublicUrl(public.to_string()));
        }
        let base = public.as_str().trim_end_matches('/');
        let redirect = RedirectUrl::new(format!("{base}/v1/session/oidc/callback"))
            .map_err(|_| OidcError::PublicUrl(public.to_string()))?;
        let secret = options.client_secret.as_ref().map(|path| {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|source| OidcError::Secret { path: path.clone(), source })?;
            Ok(ClientSecret::new(text.trim().to_owned()))
        });
        Ok(Oidc {
            options: options.clone(),
            issuer,
            secret: secret.transpose()?,
            redirect,
            http: Http::new().map_err(OidcError::Client)?,
            found: Mutex::default(),
            used: Used::default(),
        })
    }

    pub fn name(&self) -> &str {
        &self.options.name
    }

    pub fn rules(&self) -> &OidcRules {
        &self.options.rules
    }

    /// Where a browser goes to sign in, and what it keeps meanwhile.
    pub async fn begin(&self, next: String) -> Result<Begun, Failed> {
        let known = self.known().await?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let flow = AuthenticationFlow::<CoreResponseType>::AuthorizationCode;
        let request = known.client.authorize_url(flow, CsrfToken::new_random, Nonce::new_random);
        let scopes = self.options.scopes.iter().cloned().map(Scope::new);
        let (url, state, nonce) = request.add_scopes(scopes).set_pkce_challenge(challenge).url();
        let kept = Kept {
            state: state.secret().clone(),
            nonce: nonce.secret().clone(),
            verifier: verifier.secret().clone(),
            next,
            until: (clock::now() + SIGN_IN_LASTS).0,
        };
        Ok(Begun { url: url.to_string(), kept })
    }

    /// Who the person is that came back with a code. A sign-in asks the provider once: after that the
    /// browser has to begin again, whatever the provider said.
    pub async fn finish(&self, code: &str, kept: Kept) -> Result<Provided, Failed> {
        self.used.take(&kept.state, kept.until, clock::now().0)?;
        let known = self.known().await?;
        let exchange = known.client.exchange_code(AuthorizationCode::new(code.to_owned()));
        let exchange = exchange.map_err(|why| down("it names no token endpoint", &why))?;
        let exchange = exchange.set_pkce_verifier(PkceCodeVerifier::new(kept.verifier));
        let answer: Tokens =
            exchange.request_async(&self.http).await.map_err(|why| match &why {
                RequestTokenError::ServerResponse(said) => {
                    tracing::info!(%said, "the provider gave nothing for a code");
                    Failed::Wrong("the provider did not accept the code")
                }
                _ => down("it gave no token", &why),
            })?;
        let token = answer.id_token().ok_or(Failed::Wrong("the provider gave no ID token"))?;
        let claims = match tokens::verified(&known.client, token, &kept.nonce) {
            Err(why) if tokens::may_be_rotated(&why) => {
                let known = self.with_newer_keys(&known).await?;
                tokens::verified(&known.client, token, &kept.nonce)
            }
            verified => verified,
        };
        let claims = claims.map_err(|error| {
            tracing::warn!(error = chain(&error), "an ID token of the provider is not good");
            Failed::Wrong("what the provider signed is not good")
        })?;
        let more = self.user_info(&known, &answer, &claims).await?;
        Ok(self.provided(&claims, more.as_ref(), token.to_string()))
    }

    /// What the provider says about the person apart from the token, if the token lacks something.
    async fn user_info(
        &self,
        known: &Known,
        answer: &Tokens,
        claims: &SignedClaims,
    ) -> Result<Option<UserInfo>, Failed> {
        let OidcOptions { name_claim, groups_claim, rules, .. } = &self.options;
        let has_name = name_of(claims, name_claim).is_some();
        let has_groups = tokens::groups(claims.additional_claims(), groups_claim).is_some();
        if (has_name && (has_groups || rules.groups.is_empty()))
            || known.client.user_info_url().is_none()
        {
            return Ok(None);
        }
        let subject = Some(claims.subject().clone());
        let request = known.client.user_info(answer.access_token().clone(), subject);
        let request = request.map_err(|why| down("it has no user info", &why))?;
        let told: Result<UserInfo, _> = request.request_async(&self.http).await;
        told.map(Some).map_err(|why| down("it tells nothing of the user", &why))
    }

    fn provided(
        &self,
        claims: &SignedClaims,
        more: Option<&UserInfo>,
        id_token: String,
    ) -> Provided {
        let OidcOptions { name_claim, groups_claim, .. } = &self.options;
        let told = more.map(|more| more.additional_claims());
        let groups = |claims: &Claims| tokens::groups(claims, groups_claim);
        let name = name_of(claims, name_claim).or_else(|| name_told(more?, name_claim));
        let has_email = claims.email().is_some() || more.is_some_and(|more| more.email().is_some());
        Provided {
            issuer: claims.issuer().to_string(),
            subject: claims.subject().to_string(),
            // An address without a proof may be anyone's, so it is no name.
            is_unverified_email: name.is_none() && name_claim == "email" && has_email,
            name,
            full_name: full_name(claims),
            groups: groups(claims.additional_claims())
                .or_else(|| groups(told?))
                .unwrap_or_default(),
            id_token,
        }
    }

    /// Where a browser goes to leave the provider, too, and comes back to us.
    pub async fn logout_url(&self, hint: &str, base: &str) -> Option<String> {
        let mut url = self.known().await.ok()?.end_session.clone()?;
        url.query_pairs_mut()
            .append_pair("id_token_hint", hint)
            .append_pair("client_id", &self.options.client_id)
            .append_pair("post_logout_redirect_uri", &format!("{base}/"));
        Some(url.into())
    }

    async fn known(&self) -> Result<Arc<Known>, Failed> {
        let mut found = self.found.lock().await;
        if let Some(known) = found.known.as_ref().filter(|known| known.at.elapsed() < FRESH) {
            return Ok(known.clone());
        }
        match self.discover(&mut found).await {
            // What it said an hour ago is better than nothing.
            Err(_) if found.known.is_some() => Ok(found.known.clone().expect("it is there")),
            discovered => discovered,
        }
    }

    /// The same with its keys as they are now, unless they were read a moment ago.
    async fn with_newer_keys(&self, seen: &Arc<Known>) -> Result<Arc<Known>, Failed> {
        let mut found = self.found.lock().await;
        match &found.known {
            // Another request has asked meanwhile.
            Some(known) if !Arc::ptr_eq(known, seen) => Ok(known.clone()),
            Some(known) if known.at.elapsed() < KEYS_EVERY => Ok(known.clone()),
            _ => self.discover(&mut found).await,
        }
    }

    async fn discover(&self, found: &mut Found) -> Result<Arc<Known>, Failed> {
        if found.failed.is_some_and(|at| at.elapsed() < RETRY_EVERY) {
            return Err(Failed::Down);
        }
        let metadata =
            ProviderMetadataWithLogout::discover_async(self.issuer.clone(), &self.http).await;
        let metadata = metadata.map_err(|why| {
            found.failed = Some(Instant::now());
            down("it cannot be discovered", &why)
        })?;
        let end_session = metadata.additional_metadata().end_session_endpoint.as_ref();
        let end_session = end_session.map(|url| url.url().clone());
        let methods = metadata.token_endpoint_auth_methods_supported().cloned();
        // Without a word of it, the first is what every provider has to know.
        let knows_basic =
            methods.is_none_or(|all| all.contains(&CoreClientAuthMethod::ClientSecretBasic));
        let id = ClientId::new(self.options.client_id.clone());
        let client = OidcClient::from_provider_metadata(metadata, id, self.secret.clone())
            .set_redirect_uri(self.redirect.clone())
            .set_auth_type(if knows_basic { AuthType::BasicAuth } else { AuthType::RequestBody });
        let known = Arc::new(Known { client, end_session, at: Instant::now() });
        *found = Found { known: Some(known.clone()), failed: None };
        Ok(known)
    }
}

/// Whether the way to an address is private: by TLS, or on this machine.
fn is_private(url: &Url) -> bool {
    let is_here = match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && is_here)
}

fn down(what: &'static str, why: &dyn std::error::Error) -> Failed {
    tracing::warn!(
        error = chain(why),
        what,
        "the provider of identities does not answer as it should"
    );
    Failed::Down
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// The standard claims are no part of the others.
fn name_of(claims: &SignedClaims, name: &str) -> Option<String> {
    match name {
        "sub" => Some(claims.subject().to_string()),
        "preferred_username" => claims.preferred_username().map(|name| name.to_string()),
        // The provider has to say that the address is this person's.
        "email" if claims.email_verified() != Some(true) => None,
        "email" => claims.email().map(|email| email.to_string()),
        other => tokens::claim(claims.additional_claims(), other)?.as_str().map(str::to_owned),
    }
}

fn name_told(more: &UserInfo, name: &str) -> Option<String> {
    match name {
        "preferred_username" => more.preferred_username().map(|name| name.to_string()),
        "email" if more.email_verified() != Some(true) => None,
        "email" => more.email().map(|email| email.to_string()),
        other => tokens::claim(more.additional_claims(), other)?.as_str().map(str::to_owned),
    }
}

fn full_name(claims: &SignedClaims) -> String {
    let name = claims.name().and_then(|names| names.get(None)).map(|name| name.to_string());
    name.unwrap_or_default().chars().filter(|c| !c.is_control()).take(200).collect()
}
