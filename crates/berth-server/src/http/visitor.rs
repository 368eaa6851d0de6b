//! What a browser says about itself and about the page that a request comes from.

use super::answer::Failure;
use super::cookie;
use super::limits;
use crate::app::App;
use crate::peer::Peer;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::header::{COOKIE, HOST, ORIGIN, SEC_WEBSOCKET_PROTOCOL, UPGRADE, USER_AGENT};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, Method, Uri};
use berth_api::Code;
use berth_service::sessions::{self, Shown};
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

    /// The values of all cookies of a name. Whoever listens at another port of the host can add one with
    /// a longer path, which then comes first.
    pub fn cookies(&self, name: &str) -> impl Iterator<Item = &str> {
        let lines = self.headers.get_all(COOKIE).into_iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
        pairs.filter(move |(key, _)| key.trim() == name).map(|(_, value)| value.trim())
    }

    /// What somebody shows who is signed in; nothing where it is not even half of it.
    pub fn session(&self, is_secure: bool) -> Result<Option<Shown>, Failure> {
        let cookies = self.cookies(cookie::name(is_secure)).map(str::to_owned).collect();
        let header = HeaderName::from_static(sessions::KEY_HEADER);
        let key = limits::text_of(&self.headers, &header)?.or_else(|| self.key_of_terminal());
        let shown = Shown { cookies, key: key.map(str::to_owned) };
        Ok(Some(shown).filter(|shown| shown.key.is_some() || !shown.cookies.is_empty()))
    }

    /// The key among the protocols of a terminal: a browser can say it nowhere else.
    fn key_of_terminal(&self) -> Option<&str> {
        let lines = self.headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter();
        let lines = lines.filter(|_| self.is_upgrade()).filter_map(|line| line.to_str().ok());
        let mut protocols = lines.flat_map(|line| line.split(',')).map(str::trim);
        protocols.find_map(|protocol| protocol.strip_prefix(sessions::KEY_PROTOCOL))
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

    /// Refuses a page that another site sends the browser to. An address that is typed or bookmarked
    /// counts as the user's own wish; without TLS browsers do not say where they come from.
    pub fn check_navigation(&self) -> Result<(), Failure> {
        match self.text(&FETCH_SITE) {
            None | Some("same-origin" | "none") => Ok(()),
            Some(_) => Err(cross_site("a page of another site has sent the browser here")),
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
        let checked = visitor(method, headers).check_origin(Some(&public));
        checked.err().map(|failure| failure.0.0.known_code().unwrap())
    }

    #[test]
    fn a_change_by_a_session_comes_from_our_own_origin_where_the_browser_says_so() {
        let own = ("origin", "http://berth.example:7117");
        for good in [
            vec![],
            vec![own],
            vec![own, ("sec-fetch-site", "same-origin")],
            vec![("origin", "https://gpus.example")],
        ] {
            assert_eq!(check("POST", &good), None, "{good:?}");
        }
        for bad in [
            vec![("origin", "http://evil.example")],
            vec![("origin", "https://berth.example:7117")],
            vec![("origin", "http://berth.example")],
            vec![("origin", "http://berth.example:9000")],
            vec![("origin", "null")],
            vec![("sec-fetch-site", "cross-site")],
            vec![("sec-fetch-site", "same-site")],
        ] {
            assert_eq!(check("POST", &bad), Some(Code::CrossSite), "{bad:?}");
            assert_eq!(check("DELETE", &bad), Some(Code::CrossSite), "{bad:?}");
        }
        assert_eq!(check("POST", &[own, own]), Some(Code::BadRequest));
        assert_eq!(check("GET", &[("origin", "http://evil.example")]), None);
    }

    #[test]
    fn only_our_own_pages_and_the_user_send_a_browser_to_a_sign_in() {
        let check = |headers: &[(&str, &str)]| {
            let checked = visitor("GET", headers).check_navigation();
            checked.err().map(|failure| failure.0.0.known_code().unwrap())
        };
        for good in
            [vec![], vec![("sec-fetch-site", "same-origin")], vec![("sec-fetch-site", "none")]]
        {
            assert_eq!(check(&good), None, "{good:?}");
        }
        for bad in ["cross-site", "same-site", "", "other"] {
            assert_eq!(check(&[("sec-fetch-site", bad)]), Some(Code::CrossSite), "{bad}");
        }
    }

    #[test]
    fn a_terminal_by_a_session_needs_our_own_origin() {
        let upgrade = ("upgrade", "websocket");
        assert_eq!(check("GET", &[upgrade, ("origin", "http://berth.example:7117")]), None);
        assert_eq!(check("GET", &[upgrade]), Some(Code::CrossSite));
        let evil = [upgrade, ("origin", "http://evil.example")];
        assert_eq!(check("GET", &evil), Some(Code::CrossSite));
    }

    /// The cookies and the key that are seen.
    fn shown(headers: &[(&str, &str)], is_secure: bool) -> Option<(Vec<String>, Option<String>)> {
        let seen = visitor("GET", headers).session(is_secure);
        let seen = seen.unwrap_or_else(|failure| panic!("{}", failure.0.0.detail));
        seen.map(|shown| (shown.cookies, shown.key))
    }

    #[test]
    fn cookies_are_found_among_others_by_their_whole_name_and_all_of_them() {
        let several = [
            ("cookie", "a=1; xberth_session=no; berth_session=early_1"),
            ("cookie", "berth_session=s_1; b=2; __Host-berth_session=t_1"),
        ];
        let found = |cookies: &[&str]| {
            Some((cookies.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>(), None))
        };
        assert_eq!(shown(&several, false), found(&["early_1", "s_1"]));
        assert_eq!(shown(&several, true), found(&["t_1"]), "over TLS only what TLS has set");
        assert_eq!(shown(&[("cookie", "berth_sessions=x")], false), None);
    }

    #[test]
    fn the_key_of_a_session_is_in_its_header_or_among_the_protocols_of_a_terminal() {
        let key = |headers: &[(&str, &str)]| shown(headers, false).and_then(|shown| shown.1);
        let header = (sessions::KEY_HEADER, "s_2");
        assert_eq!(key(&[header]).as_deref(), Some("s_2"));
        let upgrade = ("upgrade", "websocket");
        let protocols = ("sec-websocket-protocol", "berth.shell, berth.key.s_3");
        assert_eq!(key(&[upgrade, protocols]).as_deref(), Some("s_3"));
        assert_eq!(key(&[protocols]), None, "what is no terminal says it in the header");
        assert_eq!(key(&[upgrade, protocols, header]).as_deref(), Some("s_2"));
        assert!(visitor("GET", &[header, header]).session(false).is_err());
    }
}
