//! The files of the portal, and what is sent with them. Every address that is none of the API's is a
//! page of the portal for a browser, which finds out itself which.

use super::answer::Failure;
use super::headers;
use super::page::Page;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use berth_api::Code;
use berth_portal::File;
use std::borrow::Cow;

/// What the portal does not answer for a browser: the API keeps its problems.
const OF_API: [&str; 7] =
    ["/v1", "/metrics", "/healthz", "/readyz", "/openapi.json", "/api", "/ajax-api"];

/// Answers what is no route.
pub async fn fallback(request: Request) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    answer(method, path, request.headers(), berth_portal::find, berth_portal::index())
}

fn answer(
    method: &Method,
    path: &str,
    asked: &HeaderMap,
    find: impl Fn(&str) -> Option<&'static File>,
    index: Option<&'static File>,
) -> Response {
    let nothing =
        || Failure::new(Code::NoSuchRoute, "there is nothing at this address").into_response();
    if !matches!(*method, Method::GET | Method::HEAD) || is_of_api(path) {
        return nothing();
    }
    let (name, is_head) = (path.trim_start_matches('/'), method == Method::HEAD);
    if let Some(file) = find(name).filter(|file| file.path != "index.html") {
        return send(file, asked, is_head);
    }
    // A file of an older portal, which a page that is still open asks for.
    if name.starts_with("assets/") || !takes_pages(asked) {
        return nothing();
    }
    match index {
        Some(index) => send(index, asked, is_head),
        None => left_out(),
    }
}

fn is_of_api(path: &str) -> bool {
    OF_API.iter().any(|of| {
        path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Whether a browser asks for something to show, and not for data.
pub fn takes_pages(asked: &HeaderMap) -> bool {
    listed(asked, &ACCEPT).any(|(kind, wanted)| wanted && kind == "text/html")
}

/// What a header lists, and whether it is wanted at all.
fn listed<'h>(
    asked: &'h HeaderMap,
    name: &'h HeaderName,
) -> impl Iterator<Item = (String, bool)> + 'h {
    let lines = asked.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(|item| {
        let mut parts = item.split(';').map(str::trim);
        let what = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
        (what, weight.is_none_or(|weight| weight > 0.0))
    })
}

fn send(file: &'static File, asked: &HeaderMap, is_head: bool) -> Response {
    let takes = |coding: &str| {
        listed(asked, &ACCEPT_ENCODING).any(|(what, wanted)| wanted && what == coding)
    };
    let brotli = file.brotli.filter(|_| takes("br")).map(|bytes| ("br", bytes));
    let gzip = || file.gzip.filter(|_| takes("gzip")).map(|bytes| ("gzip", bytes));
    let coded = brotli.or_else(gzip);
    let coding = coded.map(|(coding, _)| coding);
    let tag = format!("\"{}-{}\"", file.tag, coding.unwrap_or("plain"));
    let mut response = Response::new(Body::empty());
    let is_known = listed_tags(asked).any(|known| known == tag);
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        let bytes = match coded.map_or_else(|| file.uncompressed(), |(_, bytes)| bytes.into()) {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => Bytes::from(bytes),
        };
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
        if !is_head {
            *response.body_mut() = Body::from(bytes);
        }
    }
    let sent = response.headers_mut();
    sent.insert(CONTENT_TYPE, HeaderValue::from_static(file.media_type));
    // Asked for each time, the page names the newest files; a file never changes under its name.
    let kept = if file.is_hashed() { "public, max-age=31536000, immutable" } else { "no-cache" };
    sent.insert(CACHE_CONTROL, HeaderValue::from_static(kept));
    sent.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        sent.insert(ETAG, tag);
    }
    if let Some(coding) = coding.filter(|_| !is_known) {
        sent.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    headers::of_portal(sent);
    response
}

fn listed_tags(asked: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = asked.get_all(IF_NONE_MATCH).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(|tag| tag.trim().trim_start_matches("W/"))
}

/// What a browser sees of a program that has no portal.
fn left_out() -> Response {
    Page::new("The portal is not in this build")
        .text(
            "This Berth server runs, and its API and the command line work. The pages for browsers \
               were left out when the program was built.",
        )
        .text("To have them, install Node.js 20.19 or newer (https://nodejs.org) and build again:")
        .code("make portal && make run")
        .text("A build with PORTAL=no leaves them out.")
        .answer(StatusCode::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    static INDEX: File = File {
        path: "index.html",
        media_type: "text/html; charset=utf-8",
        tag: "1",
        plain: Some(b"<!doctype html>"),
        gzip: Some(b"gzipped page"),
        brotli: None,
    };
    static SCRIPT: File = File {
        path: "assets/app-1f.js",
        media_type: "text/javascript; charset=utf-8",
        tag: "2",
        plain: Some(b"plain"),
        gzip: Some(b"gzipped"),
        brotli: Some(b"brotli"),
    };

    fn find(path: &str) -> Option<&'static File> {
        [&INDEX, &SCRIPT].into_iter().find(|file| file.path == path)
    }

    fn ask(method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
        let mut asked = HeaderMap::new();
        for (name, value) in headers {
            asked.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        answer(&method.parse().unwrap(), path, &asked, find, Some(&INDEX))
    }

    async fn body(response: Response) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), 100_000).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");

    #[tokio::test]
    async fn a_file_is_sent_as_the_browser_takes_it_and_kept_for_ever() {
        for (takes, coding, bytes) in [
            ("gzip, deflate, br, zstd", Some("br"), "brotli"),
            ("gzip", Some("gzip"), "gzipped"),
            ("br;q=0, gzip;q=0.5", Some("gzip"), "gzipped"),
            ("identity", None, "plain"),
        ] {
            let response = ask("GET", "/assets/app-1f.js", &[("accept-encoding", takes)]);
            assert_eq!(response.status(), 200);
            let headers = response.headers();
            assert_eq!(headers.get("content-encoding").map(|v| v.to_str().unwrap()), coding);
            assert_eq!(headers["cache-control"], "public, max-age=31536000, immutable");
            assert_eq!(headers["content-type"], "text/javascript; charset=utf-8");
            assert_eq!(headers["vary"], "accept-encoding");
            assert_eq!(body(response).await, bytes);
        }
    }

    #[tokio::test]
    async fn every_page_is_the_first_one_and_is_asked_for_each_time() {
        for path in ["/", "/jobs", "/jobs/17/logs", "/index.html", "/v10"] {
            let response = ask("GET", path, &[BROWSER]);
            assert_eq!(response.status(), 200, "{path}");
            assert_eq!(response.headers()["cache-control"], "no-cache");
            let policy = response.headers()["content-security-policy"].to_str().unwrap();
            assert!(
                policy.contains("script-src 'self';") && policy.contains("frame-ancestors 'none'")
            );
            assert_eq!(response.headers()["x-content-type-options"], "nosniff");
            assert_eq!(body(response).await, "<!doctype html>");
        }
    }

    #[tokio::test]
    async fn what_is_known_is_not_sent_again() {
        let first = ask("GET", "/", &[BROWSER, ("accept-encoding", "gzip")]);
        let tag = first.headers()["etag"].to_str().unwrap().to_owned();
        let again = [BROWSER, ("accept-encoding", "gzip"), ("if-none-match", &tag)];
        let response = ask("GET", "/", &again);
        assert_eq!(response.status(), 304);
        assert_eq!(body(response).await, "");
        // The same page in another coding is something else.
        assert_eq!(ask("GET", "/", &[BROWSER, ("if-none-match", &tag)]).status(), 200);
    }

    #[tokio::test]
    async fn the_api_keeps_its_problems_and_so_does_what_no_browser_asks_for() {
        for (method, path, headers) in [
            ("GET", "/v1/nothing", vec![BROWSER]),
            ("GET", "/v1", vec![BROWSER]),
            ("GET", "/metrics/more", vec![BROWSER]),
            ("GET", "/jobs", vec![]),
            ("GET", "/jobs", vec![("accept", "application/json")]),
            ("GET", "/jobs", vec![("accept", "text/html;q=0, */*")]),
            ("GET", "/assets/old-1.js", vec![BROWSER]),
            ("POST", "/jobs", vec![BROWSER]),
        ] {
            let response = ask(method, path, &headers);
            assert_eq!(response.status(), 404, "{method} {path}");
            assert!(body(response).await.contains("BRT0010"));
        }
    }

    #[tokio::test]
    async fn a_program_without_the_portal_says_how_to_build_it() {
        let mut asked = HeaderMap::new();
        asked.insert(ACCEPT, HeaderValue::from_static("text/html"));
        let response = answer(&Method::GET, "/jobs", &asked, |_| None, None);
        assert_eq!(response.status(), 200);
        assert!(response.headers().contains_key("content-security-policy"));
        assert!(body(response).await.contains("make portal"));
    }
}
