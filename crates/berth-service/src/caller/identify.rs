//! Finding out who sends a request.

use super::of_job::of_job;
use super::rights::{allowed, membership, role};
use super::{Caller, Credential, Inner};
use crate::checks;
use crate::credentials;
use crate::fault::Fault;
use crate::service::Service;
use crate::sessions;
use crate::token;
use berth_api::Code;
use berth_api::routes::Route;
use berth_engine::{Write, clock};
use berth_store::{Batch, SessionRow, TokenRow};
use std::sync::Arc;

/// Identifies the caller of a route by a token or a session, and refuses what these or the role for
/// the cluster does not allow. What belongs to a team is decided by each use case.
pub async fn identify(
    service: &Service,
    given: Option<Credential>,
    from: String,
    route: &'static Route,
) -> Result<Caller, Unidentified> {
    let caller = known(service, given, from, route).await?;
    match allowed(&caller) {
        Ok(()) => Ok(caller),
        Err(fault) => Err(Unidentified { caller: Some(caller), fault }),
    }
}

/// A request that goes no further, and who sent it, as far as that is known.
#[derive(Debug)]
pub struct Unidentified {
    pub caller: Option<Caller>,
    pub fault: Fault,
}

impl From<Fault> for Unidentified {
    fn from(fault: Fault) -> Unidentified {
        Unidentified { caller: None, fault }
    }
}

/// Whom the token or session belongs to, whatever they may do.
async fn known(
    service: &Service,
    given: Option<Credential>,
    from: String,
    route: &'static Route,
) -> Result<Caller, Fault> {
    let given = match given {
        None => return Err(Fault::new(Code::NoToken, "the request has no token")),
        Some(Credential::Session(shown)) => {
            let row = sessions::valid(service, &shown).await?;
            return of_session(service, row, from, route).await;
        }
        Some(Credential::Token(token)) => token,
    };
    if let Some(token) = service.vault.job_tokens().read(&given) {
        return of_job(service, token?, from, route).await;
    }
    let token = credentials::valid(&service.store, &given).await?;
    note_use(service, &token);
    of_token(service, token, from, route).await
}

/// The owner of a token that is good, with the rights of this moment.
pub(super) async fn of_token(
    service: &Service,
    token: TokenRow,
    from: String,
    route: &'static Route,
) -> Result<Caller, Fault> {
    let Some(user) = credentials::user(service, &token.user).await? else {
        return Err(Fault::new(Code::TokenEnded, "the owner of this token is gone"));
    };
    let teams = service.store.memberships_of(&user.name).await?;
    let inner = Inner {
        user: user.name,
        scope: token::scope(&token.scopes),
        token,
        cluster: user.role.as_deref().and_then(role),
        teams: teams.into_iter().filter_map(membership).collect(),
        tree: service.engine.teams(),
        from,
        job: None,
        session: None,
    };
    Ok(Caller { inner: Arc::new(inner), route })
}

/// Whoever is signed in with a browser: what the token is good for that was signed in with, as far as
/// it is good now, or whatever they may do.
pub(super) async fn of_session(
    service: &Service,
    row: SessionRow,
    from: String,
    route: &'static Route,
) -> Result<Caller, Fault> {
    let token = match &row.token {
        Some(id) => {
            Some(credentials::good(service.store.get::<TokenRow>(id).await?.ok_or_else(|| {
                Fault::new(Code::TokenEnded, "the token that was signed in with is gone")
            })?)?)
        }
        None => None,
    };
    sessions::note_use(service, &row);
    let mut scope = token::scope(&row.scopes);
    let mut expires = row.expires;
    if let Some(token) = &token {
        scope = scope.min(token::scope(&token.scopes));
        expires = token.expires.map_or(expires, |end| end.min(expires));
    }
    let as_token = TokenRow {
        id: format!("session-{}", row.id),
        user: row.user.clone(),
        name: token.map_or_else(|| "browser".to_owned(), |token| token.name),
        hash: String::new(),
        scopes: token::scope_word(scope).to_owned(),
        created: row.created,
        expires: Some(expires),
        revoked: None,
        last_used: Some(row.last_used),
        parent: None,
        session: None,
    };
    let Caller { inner, .. } = of_token(service, as_token, from, route).await?;
    let inner = Arc::into_inner(inner).expect("nobody else has it yet");
    Ok(Caller { inner: Arc::new(Inner { session: Some(row), ..inner }), route })
}

/// Notes that a token was used. The request does not wait for that, and it undoes nothing that was
/// done to the token meanwhile.
fn note_use(service: &Service, token: &TokenRow) {
    let now = clock::now();
    if !service.token_use.is_news(token, now) {
        return;
    }
    let mut documents = Batch::default();
    documents.touch(&TokenRow { last_used: Some(now), ..token.clone() });
    let (engine, token) = (service.engine.clone(), token.clone());
    tokio::spawn(async move {
        let write = Write::unnoted(documents).only_if(async move |store| {
            checks::all(checks::same(&store, token.id.as_str(), Some(&token))).await
        });
        // A use that could not be noted is noted the next time.
        let _ = engine.write(write).await;
    });
}
