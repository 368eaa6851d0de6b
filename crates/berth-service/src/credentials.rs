//! Whether a token and its user are still good.

use crate::fault::Fault;
use crate::service::Service;
use crate::token;
use berth_api::Code;
use berth_engine::clock;
use berth_model::Time;
use berth_store::{Store, TokenRow, UserRow};

/// A user who is there and not disabled.
pub(crate) async fn user(service: &Service, name: &str) -> Result<Option<UserRow>, Fault> {
    let row = service.store.get::<UserRow>(name).await?;
    Ok(row.filter(|row| row.disabled.is_none()))
}

/// The token, if it is one of ours and still good.
pub async fn valid(store: &Store, given: &str) -> Result<TokenRow, Fault> {
    let unknown = || Fault::new(Code::NoToken, "the token is not one of ours");
    let (id, secret) = token::parse(given).ok_or_else(unknown)?;
    let row = store.get::<TokenRow>(id).await?.ok_or_else(unknown)?;
    if !token::matches(secret, &row.hash) {
        return Err(unknown());
    }
    good(row)
}

/// The token, if it has neither expired nor been revoked.
pub(crate) fn good(row: TokenRow) -> Result<TokenRow, Fault> {
    let ended = |at: Option<Time>| at.is_some_and(|at| at <= clock::now());
    if ended(row.revoked) || ended(row.expires) {
        let detail = format!("the token `{}` has expired or was revoked", row.name);
        return Err(Fault::new(Code::TokenEnded, detail));
    }
    Ok(row)
}
