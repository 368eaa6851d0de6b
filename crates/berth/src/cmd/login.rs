//! `berth login` and `berth logout`.

use crate::context::Context;
use crate::fail::{Exit, Failure, Result};
use crate::settings::UserFile;
use crate::show::{self, Look, Page};
use crate::{prompt, up};
use berth_api::Client;
use berth_api::wire::{DevicePoll, DeviceStart, DeviceStarted, DeviceState, Me, TokenCreated};
use clap::Args;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How much longer to wait from now on when the server says so.
const SLOWER: Duration = Duration::from_secs(5);

#[derive(Args, Debug)]
pub struct Login {
    /// Use a token, from a prompt or standard input
    #[arg(long)]
    token: bool,
    /// Only show the address, without opening a browser
    #[arg(long)]
    no_browser: bool,
}

pub async fn login(context: &Context, args: &Login) -> Result<()> {
    let file = user_file(context)?;
    let token = match args.token {
        true => prompt::secret("Token")?.trim().to_owned(),
        false => by_code(context.client()?, !args.no_browser).await?.secret,
    };
    // Before it is kept: a token that was typed may be none.
    let me = context.settings.client_with(&token)?.me().await?;
    file.set(&context.settings.url.value, &token)?;
    if let Some(by) = context.settings.overrides_login() {
        show::note(&format!("The {by} sets another token, which overrides this one."));
    }
    if !context.format.is_for_programs() {
        show::note(&format!("Saved the token in {}.", file.path().display()));
    }
    context.show(&Page::new(me, signed_in, |me: &Me| vec![me.token.id.clone()]))
}

fn signed_in(me: &Me, look: &Look) -> String {
    let until = me.token.expires.map(|at| format!(" until {}", look.at(at))).unwrap_or_default();
    format!("Signed in as {}{until}", me.user)
}

fn user_file(context: &Context) -> Result<&UserFile> {
    let missing = || Failure::usage("there is no home folder to save the token in; set HOME");
    context.settings.user_file().ok_or_else(missing)
}

/// Shows a code, and waits until somebody who is signed in to the portal has approved it.
async fn by_code(client: &Client, with_browser: bool) -> Result<TokenCreated> {
    let started = client.start_device(&DeviceStart { client: up::host_name() }).await?;
    let address = &started.verification_uri_complete;
    let opened = with_browser && open_browser(address);
    let what = if opened { "A browser opens" } else { "Open" };
    show::note(&format!(
        "{what} {address}\nand check that it shows the code {}. Waiting…",
        started.user_code
    ));
    wait(client, &started).await
}

async fn wait(client: &Client, started: &DeviceStarted) -> Result<TokenCreated> {
    let mut pause = Duration::from_secs(started.interval.into());
    let end = Instant::now() + Duration::from_secs(started.expires_in.into());
    let poll = DevicePoll { device_code: started.device_code.clone() };
    let over = || {
        let failure = Failure::new(Exit::Refused, "the code expired before it was approved");
        failure.next("Run `berth login` again, or use a token: `berth login --token`.")
    };
    while Instant::now() < end {
        tokio::time::sleep(pause).await;
        let answer = match client.device_token(&poll).await {
            Ok(answer) => answer,
            // The server may be away for a moment.
            Err(error) if error.is_unreachable() => continue,
            Err(error) => return Err(error.into()),
        };
        match (answer.state, answer.token) {
            (DeviceState::Waiting, _) => {}
            (DeviceState::SlowDown, _) => pause += SLOWER,
            (DeviceState::Approved, Some(token)) => return Ok(token),
            (DeviceState::Approved, None) | (DeviceState::Expired, _) => return Err(over()),
            (DeviceState::Refused, _) => {
                return Err(Failure::new(Exit::Refused, "the sign-in was refused in the portal"));
            }
        }
    }
    Err(over())
}

/// Opens the address where there is a screen to open it on; nobody waits for the browser.
fn open_browser(address: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let has_screen = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    // An address of a server that was named by somebody else must be no option of the program.
    let is_address = address.starts_with("http://") || address.starts_with("https://");
    let mut command = Command::new(program);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    has_screen && is_address && command.spawn().is_ok()
}

/// Ends the token of the login, and forgets it.
pub async fn logout(context: &Context) -> Result<()> {
    let file = user_file(context)?;
    let Some((url, token)) = file.login()? else {
        return show::print(&format!("{} has no token\n", file.path().display()));
    };
    let url = url.unwrap_or_else(|| context.settings.url.value.clone());
    let id = token.split('_').nth(1).unwrap_or_default().to_owned();
    let ended = match context.settings.client_for(&url, &token) {
        Ok(client) => client.revoke_token(&id).await.map_err(Failure::from),
        Err(failure) => Err(failure),
    };
    file.forget()?;
    if let Err(failure) = ended {
        show::note(&format!("The token could not be revoked on the server. {failure}"));
    }
    context.gone(&id, &format!("Revoked token {id}"))
}
