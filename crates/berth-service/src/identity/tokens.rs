//! Tokens.

use super::write;
use crate::caller::Caller;
use crate::checks;
use crate::fault::Fault;
use crate::maker::Maker;
use crate::names;
use crate::service::Service;
use crate::token::{self, scope_word};
use berth_api::access::{Permission, Scope};
use berth_api::{Code, wire};
use berth_engine::clock;
use berth_model::{Span, Time};
use berth_store::TokenRow;
use serde_json::json;
use std::collections::BTreeSet;

/// The longest a token with an end may live.
const LONGEST: Span = Span::days(3_650);
/// Tokens that are revoked by one audit row.
const AT_ONCE: usize = 200;

/// A token as it is listed: never with its hash.
pub fn shown(row: &TokenRow) -> wire::Token {
    wire::Token {
        id: row.id.clone(),
        user: row.user.clone(),
        name: row.name.clone(),
        scope: token::scope(&row.scopes),
        created: row.created.into(),
        expires: row.expires.map(wire::At),
        revoked: row.revoked.map(wire::At),
        last_used: row.last_used.map(wire::At),
        parent: row.parent.clone(),
        session: row.session.clone(),
    }
}

pub async fn list(service: &Service, caller: &Caller) -> Result<wire::Items<wire::Token>, Fault> {
    let rows = match caller.may(Permission::TokensRead, None, None) {
        true => service.store.every::<TokenRow>().await?,
        false => service.store.tokens_of(caller.user()).await?,
    };
    Ok(wire::Items { items: rows.iter().map(shown).collect() })
}

pub async fn create(
    service: &Service,
    caller: &Caller,
    wish: wire::TokenCreate,
) -> Result<wire::TokenCreated, Fault> {
    names::check("token", &wish.name)?;
    let user = wish.user.as_deref().unwrap_or(caller.user());
    caller.must(Permission::TokensManage, None, Some(user))?;
    if wish.scope > caller.scope() {
        let detail = "a token makes no token that is good for more than itself";
        return Err(Fault::new(Code::ScopeTooSmall, detail));
    }
    checks::user(&service.store, user).await?;
    let expires = wish.expires_in.as_deref().map(|text| end(text, clock::now())).transpose()?;
    make(service, caller, user, &wish.name, wish.scope, expires).await
}

/// Makes a token, which the caller may do. It ends with what the caller makes it by.
pub(crate) async fn make(
    service: &Service,
    caller: &Caller,
    user: &str,
    name: &str,
    scope: Scope,
    expires: Option<Time>,
) -> Result<wire::TokenCreated, Fault> {
    let minted = token::mint();
    let maker = Maker::of(service, caller).await?;
    let row = TokenRow {
        id: minted.id,
        user: user.to_owned(),
        name: name.to_owned(),
        hash: minted.hash,
        scopes: scope_word(scope).to_owned(),
        created: clock::now(),
        expires: maker.until(expires),
        revoked: None,
        last_used: None,
        parent: maker.token.clone(),
        session: maker.session.clone(),
    };
    let token = shown(&row);
    let detail = json!({
        "name": token.name, "user": token.user, "scope": token.scope, "expires": token.expires,
    });
    let audit = caller.audit(format!("token {}", row.id), detail);
    let (owner, again) = (row.user.clone(), service.clone());
    write(
        service,
        audit,
        |batch| batch.put(&row),
        async move |store| {
            // What it is made by may have been revoked a moment ago.
            maker.check(&again, &store).await?;
            checks::user(&store, &owner).await.map(drop)
        },
    )
    .await?;
    Ok(wire::TokenCreated { token, secret: minted.token })
}

/// When a token ends that lives so long.
fn end(text: &str, now: Time) -> Result<Time, Fault> {
    let bad = |detail: String| {
        Fault::new(Code::BadRequest, format!("expires_in: {detail}"))
            .next("write a time such as 12h or 30d, or leave it out for a token without an end")
    };
    let span: Span = text.parse().map_err(|why| bad(format!("{why}")))?;
    if span <= Span::ZERO || span > LONGEST {
        return Err(bad(format!("`{text}` is not between 1ms and {LONGEST}")));
    }
    Ok(now + span)
}

/// Ends a token at once, with all that were made by it.
pub async fn revoke(service: &Service, caller: &Caller, wanted: &str) -> Result<(), Fault> {
    let row = find(service, caller, wanted).await?;
    let (id, user) = (row.id.clone(), row.user.clone());
    if row.revoked.is_none() {
        revoke_one(service, caller, row).await?;
    }
    // Also where it was revoked before: the server may have stopped after that.
    let made = service.store.tokens_made_by(&id).await?;
    revoke_all(service, caller, format!("token {id}"), &user, made).await
}

pub(crate) async fn revoke_those_of_session(
    service: &Service,
    caller: &Caller,
    session: &str,
    user: &str,
) -> Result<(), Fault> {
    let made = service.store.tokens_made_in(session).await?;
    revoke_all(service, caller, format!("session {session}"), user, made).await
}

/// Revokes tokens that go with something, then those that were made by them, and so on. What is
/// revoked makes no more, so none is missed by looking only then.
async fn revoke_all(
    service: &Service,
    caller: &Caller,
    with: String,
    user: &str,
    mut made: Vec<TokenRow>,
) -> Result<(), Fault> {
    // An admin makes the first tokens of others, who keep them.
    made.retain(|row| row.user == user);
    while !made.is_empty() {
        let live: Vec<TokenRow> =
            made.iter().filter(|row| row.revoked.is_none()).cloned().collect();
        for some in live.chunks(AT_ONCE) {
            let ids: Vec<&str> = some.iter().map(|row| row.id.as_str()).collect();
            let detail = json!({ "with": with, "tokens": ids });
            let audit = caller.audit(format!("{} tokens", some.len()), detail);
            let now = Some(clock::now());
            let owners: BTreeSet<String> = some.iter().map(|row| row.user.clone()).collect();
            write(
                service,
                audit,
                |batch| {
                    let revoked = some.iter().map(|row| TokenRow { revoked: now, ..row.clone() });
                    revoked.for_each(|row| batch.put(&row));
                },
                async move |store| {
                    for owner in &owners {
                        checks::there(&store, owner).await?;
                    }
                    Ok(())
                },
            )
            .await?;
        }
        let mut next = Vec::new();
        for row in &made {
            let made = service.store.tokens_made_by(&row.id).await?;
            next.extend(made.into_iter().filter(|row| row.user == user));
        }
        made = next;
    }
    Ok(())
}

async fn revoke_one(service: &Service, caller: &Caller, row: TokenRow) -> Result<(), Fault> {
    let row = TokenRow { revoked: Some(clock::now()), ..row };
    let detail = json!({ "name": row.name, "user": row.user });
    let audit = caller.audit(format!("token {}", row.id), detail);
    let id = row.id.clone();
    write(
        service,
        audit,
        |batch| batch.put(&row),
        async move |store| {
            // Its user may have gone, and the token with them.
            let there = store.get::<TokenRow>(&id).await?;
            there.map(drop).ok_or_else(|| Fault::not_found("token", &id))
        },
    )
    .await?;
    Ok(())
}

/// By id, or by the name of one's own. Tokens of others are not there, unless one manages them.
async fn find(service: &Service, caller: &Caller, wanted: &str) -> Result<TokenRow, Fault> {
    if let Some(row) = service.store.get::<TokenRow>(wanted).await?
        && caller.may(Permission::TokensManage, None, Some(&row.user))
    {
        return Ok(row);
    }
    let mut named = service.store.tokens_of(caller.user()).await?;
    named.retain(|row| row.name == wanted && row.revoked.is_none());
    if named.len() > 1 {
        let ids: Vec<&str> = named.iter().map(|row| row.id.as_str()).collect();
        let detail = format!("{} of your tokens are called `{wanted}`", ids.len());
        let next = format!("name one by its id: {}", ids.join(", "));
        return Err(Fault::new(Code::BadRequest, detail).next(next));
    }
    named.pop().ok_or_else(|| Fault::not_found("token", wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_ends_after_the_time_it_was_given_and_odd_times_are_refused() {
        assert_eq!(end("30d", Time(5)).unwrap(), Time(5) + Span::days(30));
        for text in ["", "0s", "-1d", "soon", "999999d"] {
            let fault = end(text, Time(5)).unwrap_err();
            assert!(fault.0.detail.starts_with("expires_in: "), "{text}");
            assert!(fault.0.next.contains("30d"));
        }
    }
}
