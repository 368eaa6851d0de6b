//! The cookies that a browser is given.

use berth_service::sessions::{COOKIE, Opened};

/// No script reads it, and no page of another site makes the browser send it.
pub fn session(opened: &Opened, is_secure: bool) -> String {
    let seconds = opened.lasts.0 / 1_000;
    let flags = flags(is_secure);
    format!(
        "{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{flags}",
        opened.cookie
    )
}

/// Takes it away.
pub fn gone(is_secure: bool) -> String {
    format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0{}", flags(is_secure))
}

/// A cookie of the time in which a browser is at the provider. It comes back by a link of another
/// site, so the browser has to send it then.
pub fn of_sign_in(name: &str, value: &str, seconds: i64, is_secure: bool) -> String {
    let flags = flags(is_secure);
    format!(
        "{name}={value}; Path=/v1/session/oidc; HttpOnly; SameSite=Lax; Max-Age={seconds}{flags}"
    )
}

fn flags(is_secure: bool) -> &'static str {
    if is_secure { "; Secure" } else { "" }
}
