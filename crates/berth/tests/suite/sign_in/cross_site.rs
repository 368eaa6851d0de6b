//! What pages of other sites can make a browser do that is signed in: nothing.

use super::browser::Browser;
use crate::machine::people::People;
use crate::machine::server::until;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

#[test]
fn a_stolen_form_post_from_another_origin_does_nothing() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let mut browser = Browser::default();
    assert_eq!(browser.sign_in(&url, &people.admin).status, 200);
    let job = people.job(&people.admin, "name: mine\nhold: true\nrun: 'true'\n");
    let key = browser.key.clone().unwrap();
    let evil = ("origin", "http://evil.example");
    let form = ("content-type", "application/x-www-form-urlencoded");
    let text = ("content-type", "text/plain");
    let json_kind = ("content-type", "application/json");
    for headers in [
        vec![form, evil, ("sec-fetch-site", "cross-site")],
        vec![text, evil],
        vec![text, ("origin", "null")],
        vec![json_kind, ("x-berth-session-key", key.as_str()), evil],
        vec![json_kind, ("x-berth-session-key", key.as_str()), ("sec-fetch-site", "same-site")],
    ] {
        for (method, path, body) in [
            ("POST", format!("/v1/jobs/{job}/stop"), "{}"),
            ("POST", "/v1/jobs".to_owned(), "run: 'true'\n"),
            ("POST", "/v1/tokens".to_owned(), "{\"name\":\"stolen\",\"scope\":\"all\"}"),
            ("DELETE", "/v1/session".to_owned(), ""),
            ("DELETE", "/v1/users/kim".to_owned(), ""),
        ] {
            let seen = browser.send(method, &format!("{url}{path}"), &headers, body);
            let refused = (seen.status, seen.code());
            assert_eq!(refused, (403, Some("BRT0031".into())), "{method} {path} {headers:?}");
        }
    }
    assert_eq!(people.server.job(&job)["ended"], json!(null));
    let users = people.get(&people.admin, "/v1/users").body;
    assert!(users.contains("kim") && browser.cookie("berth_session").is_some());
    // From the portal's own page all of it works.
    let own = url.clone();
    let headers = [json_kind, ("x-berth-session-key", key.as_str()), ("origin", own.as_str())];
    let seen = browser.send("POST", &format!("{url}/v1/jobs/{job}/stop"), &headers, "{}");
    assert_eq!(seen.status, 200, "{seen:?}");
    // And a token needs none of it, whatever cookies come along.
    let token = format!("Bearer {}", people.admin);
    let headers = [json_kind, ("authorization", token.as_str())];
    let seen = browser.send("POST", &format!("{url}/v1/plan"), &headers, "run: 'true'\n");
    assert_ne!(seen.status, 403, "{seen:?}");
    until("the refusals are on record", || {
        let rows = people.get(&people.admin, "/v1/audit?what=stop_job").body;
        rows.contains("refused BRT0031")
    });
}

#[test]
fn a_page_of_another_origin_opens_no_terminal_and_signs_nobody_in() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let mut browser = Browser::default();
    assert_eq!(browser.sign_in(&url, &people.kim).status, 200);
    let job = people.runs(&people.kim, "vision", "sleep 600");
    let key = browser.key.clone().unwrap();
    let upgrade = [
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("x-berth-session-key", key.as_str()),
    ];
    for origin in [None, Some("http://evil.example"), Some("null")] {
        let mut headers = upgrade.to_vec();
        headers.extend(origin.map(|origin| ("origin", origin)));
        let seen = browser.send("GET", &format!("{url}/v1/jobs/{job}/shell"), &headers, "");
        assert_eq!((seen.status, seen.code()), (403, Some("BRT0031".into())), "{origin:?}");
    }
    let mut other = Browser::default();
    let headers = [("content-type", "application/json"), ("origin", "http://evil.example")];
    let body = json!({ "token": people.lea }).to_string();
    let seen = other.send("POST", &format!("{url}/v1/session"), &headers, &body);
    assert_eq!((seen.status, seen.cookies().len()), (403, 0));
}

#[test]
fn scripts_in_what_people_write_stay_text() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let mut browser = Browser::default();
    assert_eq!(browser.sign_in(&url, &people.kim).status, 200);
    let key = browser.key.clone().unwrap();
    let script = "<script>alert(1)</script>";
    let file = format!(
        "team: vision\nhold: true\ncomment: '{script}'\nlabels: {{x: '{script}'}}\nrun: echo '{script}'\n"
    );
    let job = people.job(&people.kim, &file);
    for path in ["", "/file", "/logs"] {
        let seen = browser.send(
            "GET",
            &format!("{url}/v1/jobs/{job}{path}"),
            &[("accept", "text/html"), ("x-berth-session-key", key.as_str())],
            "",
        );
        // Whatever the text is, the browser is told that it is no page and may run nothing.
        assert_eq!(seen.header("x-content-type-options"), Some("nosniff"), "{path}");
        let policy = seen.header("content-security-policy").expect("a policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"), "{policy}");
        assert!(!seen.header("content-type").unwrap_or_default().contains("html"), "{seen:?}");
    }
    let page = browser.go(&format!("{url}/jobs/{script}"));
    assert!(!page.body.contains(script));
    let failed =
        browser.go(&format!("{url}/v1/session/oidc/callback?error={script}&state={script}"));
    assert!(!failed.body.contains(script), "{failed:?}");
}

#[test]
fn a_job_that_gets_the_cookie_of_whoever_clicks_its_link_is_nobody_by_it() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let mut browser = Browser::default();
    assert_eq!(browser.sign_in(&url, &people.admin).status, 200);
    let job = people.runs(&people.kim, "vision", "sleep 600");
    // What a browser sends to every port of the host, and all that a job makes up beside it.
    let cookie = browser.cookie("berth_session").unwrap().to_owned();
    let mut thief = Browser::default();
    thief.set_cookie(&url, "berth_session", &cookie);
    let mut other = Browser::default();
    assert_eq!(other.sign_in(&url, &people.kim).status, 200);
    let (own, others) = (url.clone(), other.key.clone().unwrap());
    let half = format!("{}_{}", cookie.split_once('_').unwrap().0, "0".repeat(64));
    let upgrade = [("upgrade", "websocket"), ("connection", "upgrade")];
    for key in [None, Some(""), Some("x"), Some(&*cookie), Some(&*others), Some(&*half)] {
        let mut headers = vec![("origin", own.as_str()), ("sec-fetch-site", "same-origin")];
        headers.extend(key.map(|key| ("x-berth-session-key", key)));
        for (method, path, body) in [
            ("GET", "/v1/me".to_owned(), ""),
            ("GET", "/v1/session".to_owned(), ""),
            ("GET", "/v1/jobs".to_owned(), ""),
            ("GET", "/v1/events".to_owned(), ""),
            ("GET", format!("/v1/jobs/{job}/logs"), ""),
            ("POST", "/v1/tokens".to_owned(), "{\"name\":\"stolen\",\"scope\":\"all\"}"),
            ("DELETE", "/v1/users/kim".to_owned(), ""),
        ] {
            let seen = thief.send(method, &format!("{url}{path}"), &headers, body);
            let refused = (seen.status, seen.code());
            assert_eq!(refused, (401, Some("BRT0004".into())), "{method} {path} {key:?}");
        }
        headers.extend(upgrade);
        let protocols = format!("berth.shell, berth.key.{}", key.unwrap_or_default());
        headers.push(("sec-websocket-protocol", &protocols));
        let seen = thief.send("GET", &format!("{url}/v1/jobs/{job}/shell"), &headers, "");
        assert_eq!((seen.status, seen.code()), (401, Some("BRT0004".into())), "{key:?}");
    }
    // Nor does it sign anybody out.
    thief.send("DELETE", &format!("{url}/v1/session"), &[("origin", own.as_str())], "");
    assert_eq!(browser.api("GET", &format!("{url}/v1/me"), &json!({})).status, 200);
}

#[test]
fn a_cookie_that_a_job_puts_before_the_real_one_changes_nothing() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let (mut browser, mut mallory) = (Browser::default(), Browser::default());
    assert_eq!(browser.sign_in(&url, &people.lea).status, 200);
    assert_eq!(mallory.sign_in(&url, &people.kim).status, 200);
    let planted = mallory.cookie("berth_session").unwrap().to_owned();
    let real = browser.cookie("berth_session").unwrap().to_owned();
    let key = browser.key.clone().unwrap();
    for cookies in [
        format!("berth_session={planted}; berth_session={real}"),
        format!("berth_session=; berth_session=x_y; berth_session={planted}; berth_session={real}"),
        format!("berth_session={real}; berth_session={planted}"),
    ] {
        let headers = [("cookie", cookies.as_str()), ("x-berth-session-key", key.as_str())];
        let seen = Browser::default().send("GET", &format!("{url}/v1/me"), &headers, "");
        assert_eq!(seen.json()["user"], "lea", "{cookies}");
    }
    // The key of one and the cookie of another are nobody's.
    let planted = format!("berth_session={planted}");
    let headers = [("cookie", planted.as_str()), ("x-berth-session-key", key.as_str())];
    assert_eq!(Browser::default().send("GET", &format!("{url}/v1/me"), &headers, "").status, 401);
}

#[test]
fn a_terminal_of_the_portal_says_its_key_among_its_protocols_and_speaks_the_other_one() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let mut browser = Browser::default();
    assert_eq!(browser.sign_in(&url, &people.lea).status, 200);
    let job = people.runs(&people.kim, "vision", "sleep 600");
    let address = url.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    let head = format!(
        "GET /v1/jobs/{job}/shell HTTP/1.1\r\nhost: {address}\r\norigin: {url}\r\n\
         connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         sec-websocket-protocol: berth.shell, berth.key.{}\r\ncookie: berth_session={}\r\n\r\n",
        browser.key.as_deref().unwrap(),
        browser.cookie("berth_session").unwrap(),
    );
    socket.write_all(head.as_bytes()).unwrap();
    let lines = BufReader::new(socket).lines().map_while(Result::ok);
    let answer: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let answer = answer.join("\n").to_ascii_lowercase();
    assert!(answer.starts_with("http/1.1 101"), "{answer}");
    assert!(answer.contains("sec-websocket-protocol: berth.shell"), "{answer}");
    assert!(!answer.contains("berth.key"), "{answer}");
}
