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
use berth_store::SessionRow;
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

/// Ends one at once, with all its streams and the tokens that it has made.
pub async fn revoke(service: &Service, caller: &Caller, id: &str) -> Result<(), Fault> {
    let row = service.store.get::<SessionRow>(id).await?;
    let may = |row: &SessionRow| caller.may(Permission::TokensManage, None, Some(&row.user));
    // Those of others are not there, unless one manages them.
    let row = row.filter(may).ok_or_else(|| Fault::not_found("session", id))?;
    let detail = json!({ "user": row.user, "means": row.means });
    let audit = caller.audit(format!("session {id}"), detail);
    remove(service, audit, |batch| batch.delete::<SessionRow>(&row.id)).await?;
    tokens::revoke_those_of_session(service, caller, &row).await
}
