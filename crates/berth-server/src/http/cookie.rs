//! The cookies that a browser is given.

use berth_service::sessions::{COOKIE, Opened, SECURE_COOKIE};

/// What the cookie of a session is called.
pub fn name(is_secure: bool) -> &'static str {
    if is_secure { SECURE_COOKIE } else { COOKIE }
}

/// No script reads it, and no page of another site makes the browser send it. Other servers of the
/// host get it all the same, whatever their port: it is only half of a session.
pub fn session(opened: &Opened, is_secure: bool) -> String {
    let seconds = opened.lasts.0 / 1_000;
    let (name, flags) = (name(is_secure), flags(is_secure));
    format!("{name}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{flags}", opened.cookie)
}

/// Takes it away.
pub fn gone(is_secure: bool) -> String {
    let (name, flags) = (name(is_secure), flags(is_secure));
    format!("{name}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0{flags}")
}

/// What the cookie of a sign-in by the provider is called.
pub fn name_of_sign_in(is_secure: bool) -> &'static str {
    if is_secure { "__Host-berth_sign_in" } else { "berth_sign_in" }
}

/// A cookie of the time in which a browser is at the provider. It comes back by a link of another
/// site, so the browser has to send it then.
pub fn of_sign_in(value: &str, seconds: i64, is_secure: bool) -> String {
    let (name, flags) = (name_of_sign_in(is_secure), flags(is_secure));
    // A name that begins with `__Host-` is good for all paths or for none.
    let path = if is_secure { "/" } else { "/v1/session/oidc" };
    format!("{name}={value}; Path={path}; HttpOnly; SameSite=Lax; Max-Age={seconds}{flags}")
}

fn flags(is_secure: bool) -> &'static str {
    if is_secure { "; Secure" } else { "" }
}
