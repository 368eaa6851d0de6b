//! Looking at sessions, and ending those of other browsers.

use super::{remove, tokens};
use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use crate::sessions::means;
use crate::token;
use berth_api::access::Permission;
use berth_api::wire;
use berth_engine::clock;
use berth_store::{AuditFilter, SessionRow, TokenRow};
use serde_json::json;

pub async fn list(
    service: &Service,
    caller: &Caller,
) -> Result<wire::Items<wire::OpenSession>, Fault> {
    let mut rows = match caller.may(Permission::TokensRead, None, None) {
        true => service.store.every::<SessionRow>().await?,
        false => service.store.sessions_of(caller.user()).await?,
    };
    let (now, idle) = (clock::now(), service.sessions.limits.idle);
    rows.retain(|row| row.expires > now && row.last_used + idle > now);
    rows.sort_by(|a, b| (&a.user, b.last_used).cmp(&(&b.user, a.last_used)));
    let own = caller.session().map(|row| row.id.as_str());
    let items = rows.iter().map(|row| wire::OpenSession {
        id: row.id.clone(),
        user: row.user.clone(),
        means: means(row),
        scope: token::scope(&row.scopes),
        created: row.created.into(),
        expires: row.expires.into(),
        last_used: row.last_used.into(),
        from: row.from.clone(),
        agent: row.agent.clone(),
        current: own == Some(row.id.as_str()),
    });
    Ok(wire::Items { items: items.collect() })
}

/// Ends one at once, with all its streams and the tokens that it has made. Those can be revoked by its id
/// also when the session is over: the person may have signed out, or the server stopped halfway.
pub async fn revoke(service: &Service, caller: &Caller, id: &str) -> Result<(), Fault> {
    let row = service.store.get::<SessionRow>(id).await?;
    let user = match &row {
        Some(row) => Some(row.user.clone()),
        None => was_of(service, caller, id).await?,
    };
    // Those of others are not there, unless one manages them.
    let user = user.filter(|user| caller.may(Permission::TokensManage, None, Some(user)));
    let user = user.ok_or_else(|| Fault::not_found("session", id))?;
    if let Some(row) = row {
        let detail = json!({ "user": row.user, "means": row.means });
        let audit = caller.audit(format!("session {id}"), detail);
        remove(service, audit, |batch| batch.delete::<SessionRow>(&row.id)).await?;
    }
    tokens::revoke_those_of_session(service, caller, id, &user).await
}

/// Whose session it was, if it is over and has made tokens that the caller may revoke. Only the audit log
/// still has that: an admin makes tokens for others, so the tokens do not tell. It is read from its end
/// and may be long, so made-up ids must not get so far.
async fn was_of(service: &Service, caller: &Caller, id: &str) -> Result<Option<String>, Fault> {
    let made = service.store.tokens_made_in(id).await?;
    let may = |row: &TokenRow| caller.may(Permission::TokensManage, None, Some(&row.user));
    if !made.iter().any(may) {
        return Ok(None);
    }
    let filter = AuditFilter {
        what: Some("sign_in".to_owned()),
        target: Some(format!("session {id}")),
        ..AuditFilter::default()
    };
    Ok(service.store.audit(&filter, None, 1).await?.into_iter().next().map(|row| row.who))
}
