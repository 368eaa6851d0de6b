//! Credentials of requests: a token in one of several headers, or the session of a browser. All routes,
//! including those for other programs, read them here.

use super::answer::Failure;
use super::limits;
use super::visitor::Visitor;
use crate::app::App;
use crate::listen::UnderWay;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use berth_api::Code;
use berth_service::Fault;
use berth_service::caller::{Caller, Credential};

/// An alternative header for the token, on routes for clients of other programs.
const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-berth-token");

#[derive(Debug, PartialEq, Eq)]
pub struct Given {
    pub token: String,
    /// The user name of basic authentication.
    pub name: Option<String>,
}

/// The token from a client of another program: in `X-Berth-Token`, as `Bearer TOKEN`, or as the password
/// of `Basic`, because some clients support only basic authentication.
pub fn of_any_client(headers: &HeaderMap) -> Result<Option<Given>, Failure> {
    if let Some(token) = limits::text_of(headers, &TOKEN_HEADER)? {
        return Ok(Some(Given { token: token.trim().to_owned(), name: None }));
    }
    let Some(value) = limits::text_of(headers, &AUTHORIZATION)? else { return Ok(None) };
    let odd = || {
        let said = "the header `authorization` is neither `Bearer TOKEN` nor `Basic`";
        Failure::new(Code::NoToken, said)
    };
    let (kind, rest) = value.split_once(' ').ok_or_else(odd)?;
    if kind.eq_ignore_ascii_case("bearer") {
        return Ok(Some(Given { token: rest.trim().to_owned(), name: None }));
    }
    if !kind.eq_ignore_ascii_case("basic") {
        return Err(odd());
    }
    let decoded = BASE64_STANDARD.decode(rest.trim()).map_err(|_| odd())?;
    let decoded = String::from_utf8(decoded).map_err(|_| odd())?;
    let (name, token) = decoded.split_once(':').ok_or_else(odd)?;
    let (name, token) = (name.trim(), token.trim());
    // Some clients can send only the user name or only the password.
    let (name, token) = if token.is_empty() { ("", name) } else { (name, token) };
    let name = (!name.is_empty()).then(|| name.to_owned());
    Ok(Some(Given { token: token.to_owned(), name }))
}

/// The token from Berth's own clients. A malformed header is an error and not a missing token.
pub fn of_own_client(headers: &HeaderMap) -> Result<Option<Given>, Failure> {
    let Some(value) = limits::text_of(headers, &AUTHORIZATION)? else { return Ok(None) };
    let odd = || Failure::new(Code::NoToken, "the header `authorization` is not `Bearer TOKEN`");
    let token = value.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
    let given = |(_, token): (&str, &str)| Given { token: token.trim().to_owned(), name: None };
    token.map(given).map(Some).ok_or_else(odd)
}

/// The session of a browser, for a request without a token. A token takes precedence: a client sends it on
/// purpose, while a browser sends cookies by itself.
pub fn session(app: &App, visitor: &Visitor) -> Result<Option<Credential>, Failure> {
    let Some(shown) = visitor.session(visitor.is_secure(app))? else { return Ok(None) };
    visitor.check_origin(app.public_url.as_ref())?;
    Ok(Some(Credential::Session(shown)))
}

/// Assigns a connection to its user. A connection that Berth closes in favour of another gets no more
/// answers.
pub fn identify(under_way: Option<&UnderWay>, caller: &Caller) -> Result<(), Fault> {
    match under_way.is_none_or(|under_way| under_way.identify(caller.user())) {
        true => Ok(()),
        false => {
            Err(Fault::new(Code::TooMany, "Berth closed this connection in favour of another"))
        }
    }
}

/// Refuses an answer of `size` bytes if its user has too many unread bytes.
pub fn must_have_room(under_way: Option<&UnderWay>, size: Option<u64>) -> Result<(), Fault> {
    if under_way.is_none_or(|under_way| under_way.weigh(size)) {
        return Ok(());
    }
    let detail = "unread answers of this user use all their memory";
    Err(Fault::new(Code::TooMany, detail).next("read them, or close their connections"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: HeaderName, value: &str) -> Result<Option<Given>, Option<Code>> {
        let mut headers = HeaderMap::new();
        headers.insert(header, value.parse().unwrap());
        of_any_client(&headers).map_err(|failure| failure.0.0.known_code())
    }

    fn found(token: &str, name: Option<&str>) -> Result<Option<Given>, Option<Code>> {
        Ok(Some(Given { token: token.to_owned(), name: name.map(str::to_owned) }))
    }

    #[test]
    fn a_token_comes_as_a_bearer_in_its_own_header_or_as_the_password_of_any_user() {
        assert_eq!(read(AUTHORIZATION, "Bearer brt_1_2"), found("brt_1_2", None));
        assert_eq!(read(TOKEN_HEADER, "brt_1_2"), found("brt_1_2", None));
        let basic = |text: &str| format!("Basic {}", BASE64_STANDARD.encode(text));
        assert_eq!(read(AUTHORIZATION, &basic("vision:brt_1_2")), found("brt_1_2", Some("vision")));
        assert_eq!(read(AUTHORIZATION, &basic(":brt_1_2")), found("brt_1_2", None));
        assert_eq!(read(AUTHORIZATION, &basic("brt_1_2:")), found("brt_1_2", None));
        for odd in ["Digest x", "Basic !!", "brt_1_2", &basic("nothing")] {
            assert_eq!(read(AUTHORIZATION, odd), Err(Some(Code::NoToken)), "{odd}");
        }
        assert!(of_any_client(&HeaderMap::new()).is_ok_and(|given| given.is_none()));
    }

    #[test]
    fn own_clients_send_a_bearer_and_nothing_else() {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, "Basic dmlzaW9uOmJydA==".parse().unwrap());
        assert!(of_own_client(&headers).is_err());
        headers.insert(AUTHORIZATION, "bearer brt_1_2 ".parse().unwrap());
        let given = of_own_client(&headers).unwrap().unwrap();
        assert_eq!((&*given.token, given.name), ("brt_1_2", None));
    }
}
