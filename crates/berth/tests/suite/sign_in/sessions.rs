//! Sessions of browsers: what their cookie is, what they may do, and when they end.

use super::browser::Browser;
use crate::machine::people::People;
use crate::machine::server::{Server, certificate_and_key, until};
use serde_json::json;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[test]
fn a_browser_signs_in_with_a_token_and_scripts_cannot_read_its_cookie() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let mut browser = Browser::default();
    let session = format!("{url}/v1/session");
    let options = browser.api("GET", &format!("{session}/options"), &json!({}));
    assert_eq!(options.json(), json!({ "token": true, "oidc": null }));
    let before = browser.api("GET", &session, &json!({}));
    assert_eq!((before.status, before.code().as_deref()), (401, Some("BRT0004")));

    let seen = browser.sign_in(&url, &people.kim);
    assert_eq!(seen.status, 200, "{seen:?}");
    let (session_of, key) = (seen.json()["session"].clone(), browser.key.clone().expect("a key"));
    assert_eq!((&session_of["user"], &session_of["means"]), (&json!("kim"), &json!("token")));
    let [cookie] = seen.cookies()[..] else { panic!("one cookie: {seen:?}") };
    for part in ["berth_session=", "Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=43200"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure") && !cookie.contains("Domain"), "{cookie}");
    let value = browser.cookie("berth_session").unwrap().to_owned();
    let secret = value.split_once('_').unwrap().1;
    assert!(!seen.body.contains(secret), "no script learns what the cookie is");

    let again = browser.api("GET", &session, &json!({}));
    assert_eq!(again.json(), session_of);
    assert!(!again.body.contains(&key), "the key is told once");
    let me = browser.api("GET", &format!("{url}/v1/me"), &json!({})).json();
    assert_eq!(me["user"], "kim");
    // Nothing that would sign anybody in is kept.
    let home = people.server.home.path().display().to_string();
    for half in [secret, key.split_once('_').unwrap().1] {
        let found = Command::new("grep").args(["-rlaF", half, &home]).output().unwrap();
        assert!(found.stdout.is_empty(), "{}", String::from_utf8_lossy(&found.stdout));
    }

    let out = browser.api("DELETE", &session, &json!({}));
    assert_eq!((out.status, out.json()), (200, json!({ "logout_url": null })));
    assert_eq!(browser.cookie("berth_session"), None);
    browser.set_cookie(&url, "berth_session", &value);
    assert_eq!(browser.api("GET", &session, &json!({})).status, 401);
    let rows = people.get(&people.admin, "/v1/audit?who=kim").json();
    let what: Vec<&str> =
        rows["rows"].as_array().unwrap().iter().filter_map(|row| row["what"].as_str()).collect();
    assert!(what.contains(&"sign_in") && what.contains(&"sign_out"), "{rows}");
    let verified = people.get(&people.admin, "/v1/audit/verify").json();
    assert_eq!((&verified["whole"], &verified["rights"]), (&json!(true), &json!([])), "{verified}");
}

#[test]
fn a_cookie_over_an_encrypted_connection_never_goes_over_another() {
    let folder = tempfile::tempdir().unwrap();
    let Some((certificate, key)) = certificate_and_key(folder.path()) else { return };
    let server = Server::start(&["--gpus", "1xL4", "--tls-cert", &certificate, "--tls-key", &key]);
    let body = json!({ "token": server.token() }).to_string();
    let asked = Command::new("curl")
        .args(["-sSi", "--cacert", &certificate, "-H", "content-type: application/json"])
        .args(["-d", &body, &format!("{}/v1/session", server.url)])
        .output();
    let Ok(asked) = asked else {
        eprintln!("not tried: there is no curl");
        return;
    };
    let answer = String::from_utf8_lossy(&asked.stdout).to_string();
    assert!(answer.contains("; Secure"), "{answer}");
    // Nobody sets it who has no certificate of the host, nor for a part of the paths.
    assert!(answer.contains("__Host-berth_session=") && answer.contains("; Path=/;"), "{answer}");
}

#[test]
fn a_session_has_the_rights_of_its_token_and_ends_with_it() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let (id, reads) = people.new_token("kim", "read", None);
    let mut browser = Browser::default();
    assert_eq!(browser.sign_in(&url, &reads).status, 200);
    let jobs = format!("{url}/v1/jobs");
    assert_eq!(browser.api("GET", &jobs, &json!({})).status, 200);
    let refused =
        browser.api("POST", &format!("{url}/v1/tokens"), &json!({ "name": "x", "scope": "read" }));
    assert_eq!((refused.status, refused.code().as_deref()), (403, Some("BRT0007")));
    people.revoke(&id);
    let ended = browser.api("GET", &jobs, &json!({}));
    assert_eq!((ended.status, ended.code().as_deref()), (401, Some("BRT0005")));

    let mut browser = Browser::default();
    assert_eq!(browser.sign_in(&url, &people.kim).status, 200);
    // It is the role of this moment that counts.
    people.take("kim", "vision");
    let seen = browser.api("GET", &format!("{url}/v1/me"), &json!({})).json();
    assert_eq!(seen["teams"], json!([]));
    people.admin("DELETE", "/v1/users/kim", &json!({}));
    assert_eq!(browser.api("GET", &jobs, &json!({})).status, 401);
    let mut job = Browser::default();
    assert_eq!(job.sign_in(&url, "brj_17__0_0_5000_00").status, 401);
}

#[test]
fn sessions_are_listed_and_one_that_is_revoked_ends_with_its_streams() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let (mut kim, mut lea) = (Browser::default(), Browser::default());
    assert_eq!(kim.sign_in(&url, &people.kim).status, 200);
    assert_eq!(lea.sign_in(&url, &people.lea).status, 200);
    let own = kim.api("GET", &format!("{url}/v1/sessions"), &json!({})).json();
    let [session] = &own["items"].as_array().unwrap()[..] else { panic!("one: {own}") };
    assert_eq!((&session["user"], &session["current"]), (&json!("kim"), &json!(true)));
    let id = session["id"].as_str().unwrap().to_owned();
    let others = lea.api("DELETE", &format!("{url}/v1/sessions/{id}"), &json!({}));
    assert_eq!(others.status, 404, "those of others are not there");

    let listed = people.server.run_ok(&["session", "list", "-o", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2, "{listed}");
    let events = thread::spawn({
        let (url, key) = (format!("{url}/v1/events"), kim.key.clone().unwrap());
        move || {
            let headers = [("accept", "text/event-stream"), ("x-berth-session-key", key.as_str())];
            let seen = kim.send("GET", &url, &headers, "");
            (kim, seen)
        }
    });
    people.server.run_ok(&["session", "revoke", &id]);
    let (mut kim, seen) = events.join().unwrap();
    assert!(seen.status == 401 || seen.body.contains("BRT0005"), "{seen:?}");
    assert_eq!(kim.api("GET", &format!("{url}/v1/jobs"), &json!({})).status, 401);
    assert_eq!(lea.api("GET", &format!("{url}/v1/jobs"), &json!({})).status, 200);
}

#[test]
fn a_job_that_fails_to_sign_in_all_the_time_keeps_nobody_out_who_shares_its_address() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let stop = Arc::new(AtomicBool::new(false));
    let tries: Vec<_> = (0..6)
        .map(|_| {
            let (url, stop) = (url.clone(), stop.clone());
            thread::spawn(move || {
                let mut refused = 0;
                while !stop.load(Ordering::Relaxed) {
                    let seen = Browser::default().sign_in(&url, "brt_0011223344556677_00");
                    refused += usize::from(seen.status == 429);
                }
                refused
            })
        })
        .collect();
    until("failures are limited", || {
        Browser::default().sign_in(&url, "brt_0011223344556677_00").status == 429
    });
    for _ in 0..20 {
        assert_eq!(Browser::default().sign_in(&url, &people.kim).status, 200);
    }
    // A command line whose code was approved gets its token, too.
    let mut kim = Browser::default();
    assert_eq!(kim.sign_in(&url, &people.kim).status, 200);
    let begun = kim.api("POST", &format!("{url}/v1/session/device"), &json!({ "client": "x" }));
    let begun = begun.json();
    let device = format!("{url}/v1/session/device/{}", begun["user_code"].as_str().unwrap());
    assert_eq!(kim.api("POST", &device, &json!({ "approve": true })).status, 204);
    let body = json!({ "device_code": begun["device_code"] });
    let told = kim.api("POST", &format!("{url}/v1/session/device/token"), &body);
    assert_eq!(told.json()["state"], "approved", "{told:?}");
    stop.store(true, Ordering::Relaxed);
    let refused: usize = tries.into_iter().map(|one| one.join().unwrap()).sum();
    assert!(refused > 0, "they met the limit all the while");
}

#[test]
fn whoever_guesses_tokens_waits_and_is_on_record() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let tries: Vec<_> = (0..6)
        .map(|_| {
            let url = url.clone();
            thread::spawn(move || {
                let mut browser = Browser::default();
                let tried = (0..9).map(|_| browser.sign_in(&url, "brt_0011223344556677_00"));
                tried.collect::<Vec<_>>()
            })
        })
        .collect();
    let seen: Vec<_> = tries.into_iter().flat_map(|one| one.join().unwrap()).collect();
    let limited: Vec<_> = seen.iter().filter(|one| one.status == 429).collect();
    assert!(!limited.is_empty() && seen.iter().any(|one| one.status == 401));
    assert_eq!(limited[0].code().as_deref(), Some("BRT0032"));
    assert!(limited[0].header("retry-after").is_some(), "{:?}", limited[0]);
    until("the refusals are on record", || {
        let rows = people.get(&people.admin, "/v1/audit?what=sign_in").body;
        rows.contains("refused BRT0004")
    });
    let metrics = people.get(&people.admin, "/metrics").body;
    assert!(metrics.contains("berth_sign_ins_total{outcome=\"refused\"}"), "{metrics}");
    assert!(metrics.contains("berth_sessions_open 0"), "{metrics}");
}
