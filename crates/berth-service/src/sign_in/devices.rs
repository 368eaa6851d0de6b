//! Signs command lines in by a code: one shows a code, a person who is signed in approves it in the
//! portal, and the command line gets a token of that person.

use crate::caller::Caller;
use crate::device_book::{Answer, CODE_LETTERS, INTERVAL, LASTS, Look};
use crate::fault::Fault;
use crate::identity::tokens;
use crate::service::Service;
use crate::sign_in_limits::{Door, Limited};
use berth_api::Code;
use berth_api::access::Permission;
use berth_api::wire::{self, DeviceState};
use berth_engine::{Write, clock};
use berth_model::Span;
use berth_store::{AuditEntry, Batch};
use serde_json::json;

/// How long the token lives that comes of it, where what approved it lives as long.
const TOKEN_LASTS: Span = Span::days(30);
/// How much of what a command line calls itself is kept.
const MOST_CHARS: usize = 60;

/// What a command line calls itself, made harmless: the user who approves sees it.
fn plain_client(client: &str) -> String {
    let plain = client.chars().filter(|c| c.is_alphanumeric() || "-_. ".contains(*c));
    let short: String = plain.take(MOST_CHARS).collect();
    let short = short.trim();
    if short.is_empty() { "a command line".to_owned() } else { short.to_owned() }
}

/// Gives a command line a code to show. The addresses are those of the portal at `base`.
pub fn begin(
    service: &Service,
    wish: &wire::DeviceStart,
    from: &str,
    base: &str,
) -> Result<wire::DeviceStarted, Fault> {
    let client = plain_client(&wish.client);
    let (device_code, user_code) = service.devices.add(&client, from, clock::now())?;
    let seconds = |span: Span| u32::try_from(span.0 / 1_000).unwrap_or(u32::MAX);
    Ok(wire::DeviceStarted {
        device_code,
        verification_uri: format!("{base}/device"),
        verification_uri_complete: format!("{base}/device?code={user_code}"),
        user_code,
        interval: seconds(INTERVAL),
        expires_in: seconds(LASTS),
    })
}

/// Whether a user has approved; with the token, if so. The token is made now, with the rights that this
/// user has now.
pub async fn poll(
    service: &Service,
    wish: &wire::DevicePoll,
    from: &str,
) -> Result<wire::DeviceToken, Fault> {
    let only = |state| Ok(wire::DeviceToken { state, token: None });
    match service.devices.look(&wish.device_code, clock::now()) {
        Look::Unknown => only(DeviceState::Expired),
        Look::Waits => only(DeviceState::Waiting),
        Look::TooSoon => only(DeviceState::SlowDown),
        Look::Refused => only(DeviceState::Refused),
        Look::Approved(approver, client) => {
            let caller = Caller::again_by(service, &approver).await?;
            caller.must(Permission::TokensManage, None, Some(caller.user()))?;
            let expires = Some(clock::now() + TOKEN_LASTS);
            let name = format!("login on {client}");
            let (user, scope) = (caller.user().to_owned(), caller.scope());
            let made = tokens::make(service, &caller, &user, &name, scope, expires).await?;
            tracing::info!(user, from, "a command line has signed in by a code");
            Ok(wire::DeviceToken { state: DeviceState::Approved, token: Some(made) })
        }
    }
}

/// Which command line shows a code.
pub fn ask(
    service: &Service,
    caller: &Caller,
    user_code: &str,
) -> Result<wire::DeviceAsk, DeviceFailed> {
    guess(service, caller)?;
    let now = clock::now();
    let found = service.devices.ask(user_code, now).ok_or_else(|| no_such_code(user_code))?;
    service.sign_in_limits.give_back(Door::UserCode, caller.user(), now);
    Ok(found)
}

/// Lets a command line sign in as the caller, or not.
pub async fn answer(
    service: &Service,
    caller: &Caller,
    user_code: &str,
    approve: bool,
) -> Result<(), DeviceFailed> {
    guess(service, caller)?;
    let now = clock::now();
    let asks = service.devices.ask(user_code, now).ok_or_else(|| no_such_code(user_code))?;
    caller
        .must(Permission::TokensManage, None, Some(caller.user()))
        .map_err(DeviceFailed::Fault)?;
    let detail = json!({ "client": asks.client, "from": asks.from, "approved": approve });
    let entry: AuditEntry = caller.audit(format!("login on {}", asks.client), detail);
    // On record before it counts.
    let write = Write::documents(Batch::default(), entry);
    service.engine.write(write).await.map_err(|refused| DeviceFailed::Fault(refused.into()))?;
    let answer = match approve {
        true => Answer::Approved(caller.approver()),
        false => Answer::Refused,
    };
    if !service.devices.answer(user_code, answer, now) {
        return Err(no_such_code(user_code));
    }
    service.sign_in_limits.give_back(Door::UserCode, caller.user(), now);
    Ok(())
}

/// Why a code was not answered.
#[derive(Debug)]
pub enum DeviceFailed {
    Fault(Fault),
    Limited(Limited),
}

fn guess(service: &Service, caller: &Caller) -> Result<(), DeviceFailed> {
    let limits = &service.sign_in_limits;
    limits.enter(Door::UserCode, caller.user(), clock::now()).map_err(DeviceFailed::Limited)
}

fn no_such_code(code: &str) -> DeviceFailed {
    let code: String = code.chars().take(CODE_LETTERS + 4).collect();
    let fault = Fault::new(Code::NotFound, format!("no command line waits with the code `{code}`"));
    DeviceFailed::Fault(
        fault.next("compare it with what the command line shows, or begin again there"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_line_calls_itself_moves_no_cursor() {
        assert_eq!(plain_client("\u{1b}[2J<b>box</b>"), "2Jbboxb");
        assert_eq!(plain_client("\n"), "a command line");
    }
}
