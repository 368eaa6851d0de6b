//! What a browser says about itself and about the page that a request comes from.

use super::answer::Failure;
use super::limits;
use crate::app::App;
use crate::peer::Peer;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::header::{COOKIE, HOST, ORIGIN, UPGRADE, USER_AGENT};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, Method, Uri};
use berth_api::Code;
use berth_service::sessions;
use std::convert::Infallible;
use url::Url;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whoever sends a request, as far as that matters before it is known who it is.
#[derive(Debug, Clone)]
pub struct Visitor {
    pub address: String,
    pub is_encrypted: bool,
    pub method: Method,
    /// The host that the browser sees.
    host: Option<String>,
    pub headers: HeaderMap,
}

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Visitor, Infallible> {
        Ok(Visitor::new(&parts.method, &parts.uri, &parts.headers, &parts.extensions))
    }
}

impl Visitor {
    pub fn new(
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Visitor {
        let peer = extensions.get::<ConnectInfo<Peer>>().map(|info| info.0);
        // HTTP/2 has it in the address.
        let host = uri.authority().map(|authority| authority.as_str());
        let host = host.or_else(|| headers.get(HOST).and_then(|host| host.to_str().ok()));
        Visitor {
            address: peer.map_or_else(String::new, |peer| peer.address.ip().to_string()),
            is_encrypted: peer.is_some_and(|peer| peer.is_encrypted),
            method: method.clone(),
            host: host.map(str::to_owned),
            headers: headers.clone(),
        }
    }

    pub fn agent(&self) -> String {
        self.text(&USER_AGENT).unwrap_or_default().to_owned()
    }

    fn text(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The value of a cookie; the first where there are several.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        let lines = self.headers.get_all(COOKIE).into_iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
        pairs
            .map(|(key, value)| (key.trim(), value.trim()))
            .find(|(key, _)| *key == name)
            .map(|p| p.1)
    }

    /// The cookie of somebody who is signed in.
    pub fn session(&self) -> Option<&str> {
        self.cookie(sessions::COOKIE)
    }

    /// Whether the browser talks to us without anybody listening, as far as we know.
    pub fn is_secure(&self, app: &App) -> bool {
        self.is_encrypted || app.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
    }

    /// Where the portal is for this browser, without a slash at the end.
    pub fn base(&self, app: &App) -> String {
        let own = || {
            let host = self.host.as_deref().unwrap_or("localhost");
            format!("{}://{host}", self.scheme())
        };
        app.public_url
            .as_ref()
            .map_or_else(own, |url| url.as_str().trim_end_matches('/').to_owned())
    }

    fn scheme(&self) -> &'static str {
        if self.is_encrypted { "https" } else { "http" }
    }

    fn is_upgrade(&self) -> bool {
        self.headers.contains_key(UPGRADE)
    }

    fn is_safe(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD | Method::OPTIONS)
    }

    /// Refuses a request that a page of another origin makes, as far as the browser says so.
    pub fn check_origin(&self, public_url: Option<&Url>) -> Result<(), Failure> {
        if self.is_safe() && !self.is_upgrade() {
            return Ok(());
        }
        if self.text(&FETCH_SITE).is_some_and(|site| site != "same-origin") && !self.is_upgrade() {
            return Err(cross_site("it comes from a page of another site"));
        }
        let origin = limits::text_of(&self.headers, &ORIGIN)?;
        match origin {
            Some(origin) if self.is_own(origin, public_url) => Ok(()),
            Some(_) => Err(cross_site("it comes from a page of another origin")),
            // What is no browser says nothing, and has no terminal by a cookie.
            None if self.is_upgrade() => Err(cross_site("a terminal needs the header `origin`")),
            None => Ok(()),
        }
    }

    /// Refuses a request by a cookie that the browser may have been made to send.
    pub fn check_session(&self, cookie: &str, public_url: Option<&Url>) -> Result<(), Failure> {
        self.check_origin(public_url)?;
        if self.is_safe() {
            return Ok(());
        }
        let header = HeaderName::from_static(sessions::CSRF_HEADER);
        let given = limits::text_of(&self.headers, &header)?;
        match given.is_some_and(|given| sessions::csrf_matches(cookie, given)) {
            true => Ok(()),
            false => {
                let detail = format!("the header `{header}` is missing or not that of the session");
                Err(cross_site(&detail))
            }
        }
    }

    fn is_own(&self, origin: &str, public_url: Option<&Url>) -> bool {
        let Ok(given) = Url::parse(origin).map(|url| url.origin()) else { return false };
        if !given.is_tuple() {
            return false;
        }
        let seen = self.host.as_ref().map(|host| format!("{}://{host}", self.scheme()));
        let seen = seen.and_then(|url| Url::parse(&url).ok()).map(|url| url.origin());
        seen.as_ref() == Some(&given) || public_url.is_some_and(|url| url.origin() == given)
    }
}

fn cross_site(detail: &str) -> Failure {
    Failure::new(Code::CrossSite, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor(method: &str, headers: &[(&str, &str)]) -> Visitor {
        let mut all = HeaderMap::new();
        all.insert(HOST, "berth.example:7117".parse().unwrap());
        for (name, value) in headers {
            all.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        let method = method.parse().unwrap();
        Visitor::new(&method, &"/v1/jobs".parse().unwrap(), &all, &Extensions::new())
    }

    fn check(method: &str, headers: &[(&str, &str)]) -> Option<Code> {
        let public = Url::parse("https://gpus.example").unwrap();
        let checked = visitor(method, headers).check_session("1_secret", Some(&public));
        checked.err().map(|failure| failure.0.0.known_code().unwrap())
    }

    #[test]
    fn a_change_by_a_cookie_needs_the_value_of_its_session_and_our_own_origin() {
        let value = sessions::csrf("secret");
        let csrf = (sessions::CSRF_HEADER, value.as_str());
        let own = ("origin", "http://berth.example:7117");
        for good in [
            vec![csrf],
            vec![csrf, own],
            vec![csrf, own, ("sec-fetch-site", "same-origin")],
            vec![csrf, ("origin", "https://gpus.example")],
        ] {
            assert_eq!(check("POST", &good), None, "{good:?}");
        }
        for bad in [
            vec![],
            vec![own],
            vec![own, (sessions::CSRF_HEADER, "0123")],
            vec![csrf, ("origin", "http://evil.example")],
            vec![csrf, ("origin", "https://berth.example:7117")],
            vec![csrf, ("origin", "http://berth.example")],
            vec![csrf, ("origin", "null")],
            vec![csrf, ("sec-fetch-site", "cross-site")],
            vec![csrf, ("sec-fetch-site", "same-site")],
        ] {
            assert_eq!(check("POST", &bad), Some(Code::CrossSite), "{bad:?}");
            assert_eq!(check("DELETE", &bad), Some(Code::CrossSite), "{bad:?}");
        }
        assert_eq!(check("POST", &[csrf, csrf]), Some(Code::BadRequest));
        assert_eq!(check("GET", &[("origin", "http://evil.example")]), None);
    }

    #[test]
    fn a_terminal_by_a_cookie_needs_our_own_origin() {
        let upgrade = ("upgrade", "websocket");
        assert_eq!(check("GET", &[upgrade, ("origin", "http://berth.example:7117")]), None);
        assert_eq!(check("GET", &[upgrade]), Some(Code::CrossSite));
        let evil = [upgrade, ("origin", "http://evil.example")];
        assert_eq!(check("GET", &evil), Some(Code::CrossSite));
    }

    #[test]
    fn cookies_are_found_among_others_and_by_their_whole_name() {
        let seen = visitor(
            "GET",
            &[("cookie", "a=1; xberth_session=no"), ("cookie", "berth_session=s_1; b=2")],
        );
        assert_eq!(seen.session(), Some("s_1"));
        assert_eq!(visitor("GET", &[("cookie", "berth_sessions=x")]).session(), None);
    }
}
