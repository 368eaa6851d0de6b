//! Browsers that are signed in. A session has a secret in a cookie and another one, its key, that the
//! portal's own pages know; only hashes of both are kept. It
//! gives the rights of its user, and no more than those of the token that was signed in with. It ends
//! after a time, when it is not used, with its token and with its user.

mod cookie;
mod keep;

pub use cookie::{
    COOKIE, KEY_FRAGMENT, KEY_HEADER, KEY_PROTOCOL, SECURE_COOKIE, SHELL_PROTOCOL, Shown,
};
pub use keep::{begin, close_all_of};

use cookie::Halves;

pub use crate::session_book::{SessionLimits, Sessions};

use crate::checks;
use crate::credentials;
use crate::fault::Fault;
use crate::refusals::plain;
use crate::service::Service;
use crate::token;
use berth_api::Code;
use berth_api::access::Scope;
use berth_api::routes::Route;
use berth_api::wire::{self, SignInMeans};
use berth_engine::{Write, clock};
use berth_model::{Span, Time};
use berth_store::{AuditEntry, Batch, SessionRow, Store, TokenRow};
use serde_json::json;

/// Where a request comes from that signs in.
#[derive(Debug, Clone)]
pub struct Origin {
    pub address: String,
    /// What the browser calls itself.
    pub agent: String,
    pub route: &'static Route,
}

/// Somebody who has shown who they are.
pub struct Known {
    pub user: String,
    pub scope: Scope,
    pub means: SignInMeans,
    /// The token they came with.
    pub token: Option<String>,
    /// What the provider of identities gave.
    pub hint: Option<String>,
}

/// A session that was just opened.
pub struct Opened {
    /// What the cookie holds.
    pub cookie: String,
    /// What the portal keeps.
    pub key: String,
    pub session: wire::Session,
    /// How long the browser keeps the cookie.
    pub lasts: Span,
}

/// Opens a session for a browser that brought a token.
pub async fn open_by_token(
    service: &Service,
    given: &str,
    origin: &Origin,
) -> Result<Opened, Fault> {
    if service.vault.job_tokens().read(given).is_some() {
        let fault = Fault::new(Code::NoToken, "the token of a job cannot sign in");
        return Err(fault.next("use a token of your own: `berth token create`"));
    }
    let token = credentials::valid(&service.store, given).await?;
    let known = Known {
        user: token.user.clone(),
        scope: token::scope(&token.scopes),
        means: SignInMeans::Token,
        token: Some(token.id),
        hint: None,
    };
    open(service, known, origin).await
}

/// Opens a session, and ends the user's least used one where there are too many.
pub async fn open(service: &Service, known: Known, origin: &Origin) -> Result<Opened, Fault> {
    let Some(user) = credentials::user(service, &known.user).await? else {
        return Err(Fault::new(Code::TokenEnded, "the owner of this token is gone"));
    };
    let limits = service.sessions.limits;
    let (now, minted) = (clock::now(), token::mint());
    let Halves { cookie, key, key_hash } = Halves::of(&minted);
    let sealed = |hint: String| service.vault.seal("", &cookie::place(&minted.id), &hint);
    let row = SessionRow {
        id: minted.id.clone(),
        user: user.name.clone(),
        hash: minted.hash.clone(),
        scopes: token::scope_word(known.scope).to_owned(),
        means: known.means.word().to_owned(),
        token: known.token.clone(),
        created: now,
        expires: now + limits.longest,
        last_used: now,
        from: origin.address.clone(),
        agent: plain(&origin.agent),
        hint: known.hint.map(sealed).unwrap_or_default(),
        key_hash: Some(key_hash),
    };
    let displaced = displaced(service, &user.name, limits.most_per_user).await?;
    let detail = json!({
        "means": row.means, "token": row.token, "agent": row.agent, "expires": wire::At(row.expires),
        "ended": displaced,
    });
    let entry = AuditEntry {
        at: Time(0),
        who: user.name.clone(),
        token: known.token.clone().unwrap_or_default(),
        from: origin.address.clone(),
        method: origin.route.method.to_string(),
        what: "sign_in".to_owned(),
        target: format!("session {}", row.id),
        outcome: "ok".to_owned(),
        detail: detail.to_string(),
    };
    let mut documents = Batch::default();
    documents.put(&row);
    displaced.iter().for_each(|id| documents.delete::<SessionRow>(id));
    let (name, token) = (user.name.clone(), known.token.clone());
    let write = Write::documents(documents, entry).only_if(async move |store| {
        checks::all(async {
            checks::user(&store, &name).await?;
            // It may have been revoked a moment ago.
            if let Some(id) = &token {
                let ended = || Fault::new(Code::TokenEnded, "the token is gone");
                credentials::good(store.get::<TokenRow>(id).await?.ok_or_else(ended)?)?;
            }
            Ok(())
        })
        .await
    });
    service.engine.write(write).await?;
    service.sessions.note_opened(known.means);
    Ok(Opened { cookie, key, session: shown(&row), lasts: limits.longest })
}

/// Sessions that have to go before one more is opened.
async fn displaced(service: &Service, user: &str, most: usize) -> Result<Vec<String>, Fault> {
    let mut all = service.store.sessions_of(user).await?;
    all.sort_by_key(|row| (row.last_used, row.created));
    let too_many = (all.len() + 1).saturating_sub(most.max(1));
    Ok(all.into_iter().take(too_many).map(|row| row.id).collect())
}

/// As whoever has it sees it.
pub fn shown(row: &SessionRow) -> wire::Session {
    wire::Session {
        id: row.id.clone(),
        user: row.user.clone(),
        means: means(row),
        expires_at: row.expires.into(),
    }
}

pub(crate) fn means(row: &SessionRow) -> SignInMeans {
    match row.means == SignInMeans::Oidc.word() {
        true => SignInMeans::Oidc,
        false => SignInMeans::Token,
    }
}

/// The session of a cookie and a key, if it is good.
pub(crate) async fn valid(service: &Service, given: &Shown) -> Result<SessionRow, Fault> {
    let unknown = || not_signed_in("this browser is not signed in, or was signed out");
    if given.key.is_none() {
        let detail = format!("a cookie alone cannot sign in: the header `{KEY_HEADER}` is missing");
        return Err(not_signed_in(&detail));
    }
    let (id, secret) = given.key().ok_or_else(unknown)?;
    let row = service.store.get::<SessionRow>(id).await?.ok_or_else(unknown)?;
    let has_key = row.key_hash.as_ref().is_some_and(|hash| token::matches(secret, hash));
    if !has_key || !given.has_cookie_of(&row.id, &row.hash) {
        return Err(unknown());
    }
    good(service, row)
}

/// A session as it is now, if it is still good.
pub(crate) async fn again(service: &Service, id: &str) -> Result<SessionRow, Fault> {
    still(service, &service.store, id).await
}

/// The same, for whoever looks right before something is written.
pub(crate) async fn still(service: &Service, store: &Store, id: &str) -> Result<SessionRow, Fault> {
    let row = store.get::<SessionRow>(id).await?;
    good(service, row.ok_or_else(|| ended("this browser was signed out"))?)
}

fn good(service: &Service, row: SessionRow) -> Result<SessionRow, Fault> {
    let now = clock::now();
    if row.expires <= now {
        return Err(ended("the session is over: sign in once more"));
    }
    if row.last_used + service.sessions.limits.idle <= now {
        return Err(ended("the session was not used for too long: sign in once more"));
    }
    Ok(row)
}

fn not_signed_in(why: &str) -> Fault {
    Fault::new(Code::NoToken, why).next("sign in")
}

fn ended(why: &str) -> Fault {
    Fault::new(Code::TokenEnded, why).next("sign in")
}

/// Notes that a session was used, so that it goes on. The request does not wait for that, and it
/// undoes nothing that was done to the session meanwhile.
pub(crate) fn note_use(service: &Service, row: &SessionRow) {
    let now = clock::now();
    if !service.sessions.uses.is_news_of(&row.id, Some(row.last_used), now) {
        return;
    }
    let mut documents = Batch::default();
    documents.touch(&SessionRow { last_used: now, ..row.clone() });
    let (engine, row) = (service.engine.clone(), row.clone());
    tokio::spawn(async move {
        let write = Write::unnoted(documents).only_if(async move |store| {
            checks::all(checks::same(&store, row.id.as_str(), Some(&row))).await
        });
        // A use that could not be noted is noted the next time.
        let _ = engine.write(write).await;
    });
}

/// What is left behind by a session that ended.
pub struct Closed {
    pub user: String,
    pub means: SignInMeans,
    /// What the provider gave when it was opened.
    pub hint: Option<String>,
}

/// Ends the session of a browser; nothing where there is none any more.
pub async fn close(
    service: &Service,
    given: &Shown,
    origin: &Origin,
) -> Result<Option<Closed>, Fault> {
    let row = match valid(service, given).await {
        Ok(row) => row,
        Err(fault) if fault.is_transient() => return Err(fault),
        Err(_) => return Ok(None),
    };
    let entry = AuditEntry {
        at: Time(0),
        who: row.user.clone(),
        token: format!("session-{}", row.id),
        from: origin.address.clone(),
        method: origin.route.method.to_string(),
        what: "sign_out".to_owned(),
        target: format!("session {}", row.id),
        outcome: "ok".to_owned(),
        detail: json!({ "means": row.means }).to_string(),
    };
    let mut documents = Batch::default();
    documents.delete::<SessionRow>(&row.id);
    service.engine.write(Write::documents(documents, entry)).await?;
    let hint = service.vault.reveal("", &cookie::place(&row.id), &row.hint);
    Ok(Some(Closed { user: row.user.clone(), means: means(&row), hint }))
}
