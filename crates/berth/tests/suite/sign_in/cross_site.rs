//! What pages of other sites can make a browser do that is signed in: nothing.

use super::browser::Browser;
use crate::machine::people::People;
use crate::machine::server::until;
use serde_json::json;

#[test]
fn a_stolen_form_post_from_another_origin_does_nothing() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let mut browser = Browser::default();
    assert_eq!(browser.sign_in(&url, &people.admin).status, 200);
    let job = people.job(&people.admin, "name: mine\nhold: true\nrun: 'true'\n");
    let csrf = browser.csrf.clone().unwrap();
    let evil = ("origin", "http://evil.example");
    let form = ("content-type", "application/x-www-form-urlencoded");
    let text = ("content-type", "text/plain");
    let json_kind = ("content-type", "application/json");
    for headers in [
        vec![form, evil, ("sec-fetch-site", "cross-site")],
        vec![text, evil],
        vec![text, ("origin", "null")],
        vec![json_kind],
        vec![json_kind, ("x-berth-csrf", "00000000000000000000000000000000")],
        vec![json_kind, ("x-berth-csrf", csrf.as_str()), evil],
        vec![json_kind, ("x-berth-csrf", csrf.as_str()), ("sec-fetch-site", "same-site")],
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
    let headers = [json_kind, ("x-berth-csrf", csrf.as_str()), ("origin", own.as_str())];
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
    let upgrade = [
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
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
    let script = "<script>alert(1)</script>";
    let file = format!(
        "team: vision\nhold: true\ncomment: '{script}'\nlabels: {{x: '{script}'}}\nrun: echo '{script}'\n"
    );
    let job = people.job(&people.kim, &file);
    for path in ["", "/file", "/logs"] {
        let seen = browser.send(
            "GET",
            &format!("{url}/v1/jobs/{job}{path}"),
            &[("accept", "text/html")],
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
