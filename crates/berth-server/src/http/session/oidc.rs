//! Browsers that go to the provider of identities, and come back.

use super::{limited, origin};
use crate::app::App;
use crate::http::answer::{Failure, Refused};
use crate::http::cookie;
use crate::http::page::Page;
use crate::http::portal::takes_pages;
use crate::http::visitor::Visitor;
use crate::oidc::{Failed, Kept, Oidc};
use axum::extract::{RawQuery, State};
use axum::http::header::{LOCATION, RETRY_AFTER, SET_COOKIE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use berth_api::Code;
use berth_engine::clock;
use berth_service::sessions::{KEY_FRAGMENT, Opened};
use berth_service::sign_in::{self, Door};
use std::sync::Arc;

/// Where what a browser keeps while it is at the provider belongs, for the seal.
const PLACE: &str = "sign in";
/// How long the cookie is kept.
const SECONDS: i64 = 600;
/// The longest address to land on.
const MOST_NEXT: usize = 1_000;

pub async fn start(
    State(app): State<App>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    let shown = |response| shown(&visitor, response);
    let Some(provider) = app.oidc.clone() else { return shown(no_provider().into_response()) };
    // A sign-in that another site begins would replace the session of this browser.
    if let Err(failure) = visitor.check_navigation() {
        return shown(failure.into_response());
    }
    // Nothing is kept of who begins, so there is nothing to be used up.
    let next = parameter(query.as_deref(), "next").filter(|next| is_own_path(next));
    let begun = match provider.begin(next.unwrap_or_else(|| "/".to_owned())).await {
        Ok(begun) => begun,
        Err(failed) => return shown(refused(failed).into_response()),
    };
    let text = serde_json::to_string(&begun.kept).expect("it is plain data");
    let sealed = hex::encode(app.service.vault.seal("", PLACE, &text));
    let kept = cookie::of_sign_in(&sealed, SECONDS, visitor.is_secure(&app));
    redirect(&begun.url, &[kept]).unwrap_or_else(|| shown(refused(Failed::Down).into_response()))
}

pub async fn finish(
    State(app): State<App>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    let shown = |response| shown(&visitor, response);
    let Some(provider) = app.oidc.clone() else { return shown(no_provider().into_response()) };
    let asked_for = limited::attempt(&app, Door::Provider, &visitor, async {
        brought(&app, &visitor, query.as_deref())
    });
    let tried = match asked_for.await {
        Ok((kept, code)) => {
            let exchange = come_back(&app, &provider, &visitor, kept, &code);
            limited::turn(&app, Door::Exchange, &visitor, exchange).await
        }
        Err(response) => Err(response),
    };
    match tried {
        Ok((opened, next)) => {
            let is_secure = visitor.is_secure(&app);
            let used = cookie::of_sign_in("", 0, is_secure);
            let cookies = [cookie::session(&opened, is_secure), used];
            redirect(&landing(&next, &opened.key), &cookies)
                .unwrap_or_else(|| shown(wrong("it leads nowhere").into_response()))
        }
        Err(response) => shown(response),
    }
}

/// The sign-in that this browser began, and the code that it brings from the provider.
fn brought(app: &App, visitor: &Visitor, query: Option<&str>) -> Result<(Kept, String), Failure> {
    let kept = kept_by(app, visitor, parameter(query, "state").as_deref())?;
    if let Some(error) = parameter(query, "error") {
        let said = parameter(query, "error_description").unwrap_or_default();
        let said: String = said.chars().filter(|c| !c.is_control()).take(200).collect();
        let error: String = error.chars().filter(char::is_ascii_graphic).take(60).collect();
        return Err(wrong(&format!("the provider says: {error} {said}")));
    }
    let code = parameter(query, "code").ok_or_else(|| wrong("the provider gave no code"))?;
    Ok((kept, code))
}

async fn come_back(
    app: &App,
    provider: &Arc<Oidc>,
    visitor: &Visitor,
    kept: Kept,
    code: &str,
) -> Result<(Opened, String), Failure> {
    let next = kept.next.clone();
    let provided = provider.finish(code, kept).await.map_err(refused)?;
    let origin = origin(visitor, "finish_oidc");
    let opened = sign_in::admit(&app.service, provider.rules(), provided, &origin).await?;
    Ok((opened, next))
}

/// The sign-in of that state, if this browser has begun it and may still come back from it.
fn kept_by(app: &App, visitor: &Visitor, state: Option<&str>) -> Result<Kept, Failure> {
    let name = cookie::name_of_sign_in(visitor.is_secure(app));
    let sealed = visitor.cookies(name).filter_map(|sealed| hex::decode(sealed).ok());
    let texts = sealed.filter_map(|sealed| app.service.vault.reveal("", PLACE, &sealed));
    let kept = texts.filter_map(|text| serde_json::from_str::<Kept>(&text).ok());
    let mut kept = kept.filter(|kept| kept.until > clock::now().0).peekable();
    let none = "this browser has not begun the sign-in, or too long ago";
    kept.peek().ok_or_else(|| wrong(none))?;
    // Both are random, and the browser that began has sent both: nothing is learned by the time.
    let of_state = kept.find(|kept| state == Some(kept.state.as_str()));
    of_state.ok_or_else(|| wrong("this answer of the provider belongs to another sign-in"))
}

/// Where a browser lands, with the key of its session. What stands after `#` is sent to nobody, and
/// the portal takes it away.
fn landing(next: &str, key: &str) -> String {
    let page = next.split('#').next().unwrap_or_default();
    format!("{page}#{KEY_FRAGMENT}={key}")
}

fn wrong(detail: &str) -> Failure {
    Failure::new(Code::SignInFailed, detail.trim())
}

fn refused(failed: Failed) -> Failure {
    match failed {
        Failed::Down => {
            Failure::new(Code::ProviderDown, "the identity provider does not answer as it should")
        }
        Failed::Wrong(why) => wrong(why),
        Failed::Busy => {
            Failure::new(Code::TooManySignIns, "too many people sign in at this moment")
        }
    }
}

fn no_provider() -> Failure {
    let detail = "this server has no identity provider; sign in with a token";
    Failure::new(Code::NotFound, detail)
}

fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Whether an address leads to a page of the portal, and nowhere else, however a browser reads it.
fn is_own_path(next: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && c != '\\';
    next.len() <= MOST_NEXT
        && next.starts_with('/')
        && !next.starts_with("//")
        && !next.starts_with("/v1/")
        && next.chars().all(plain)
}

/// See other: the browser gets what it is led to, whatever it sent here.
fn redirect(to: &str, cookies: &[String]) -> Option<Response> {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let to = HeaderValue::from_str(to).ok()?;
    response.headers_mut().insert(LOCATION, to);
    for cookie in cookies {
        if let Ok(cookie) = HeaderValue::from_str(cookie) {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
    }
    Some(response)
}

/// A problem as a page, for a browser that has come here by itself.
fn shown(visitor: &Visitor, response: Response) -> Response {
    let problem = response.extensions().get::<Refused>().cloned();
    let Some(problem) = problem.filter(|_| takes_pages(&visitor.headers)) else { return response };
    let Refused(about) = &problem;
    let mut page = Page::new(&about.title)
        .text(&format!("{} ({})", about.detail, about.code))
        .text(&about.next)
        .link("/", "Back to Berth")
        .answer(response.status());
    if let Some(after) = response.headers().get(RETRY_AFTER) {
        page.headers_mut().insert(RETRY_AFTER, after.clone());
    }
    page.extensions_mut().insert(problem);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_session_is_after_the_address_and_nothing_else_is() {
        for (next, to) in [
            ("/", "/#session-key=s_2"),
            ("/sign-in?next=%2Fjobs&of=1", "/sign-in?next=%2Fjobs&of=1#session-key=s_2"),
            ("/jobs#session-key=evil", "/jobs#session-key=s_2"),
        ] {
            assert_eq!(landing(next, "s_2"), to);
        }
    }

    #[test]
    fn a_sign_in_lands_on_our_own_pages_alone() {
        for own in ["/", "/jobs", "/jobs?state=running&sort=-cost#top", "/device?code=BCDF-GHJK"] {
            assert!(is_own_path(own), "{own}");
        }
        for other in [
            "",
            "jobs",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/\t/evil.example",
            "/v1/session",
            "/a\r\nset-cookie: x",
            "/ü",
            "javascript:alert(1)",
        ] {
            assert!(!is_own_path(other), "{other}");
        }
        assert!(!is_own_path(&format!("/{}", "x".repeat(2_000))));
    }
}
